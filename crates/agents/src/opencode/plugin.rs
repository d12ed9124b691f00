//! The plugin that setup installs: it reports events to `tine hook`, and writes what the process is doing into a file that
//! [`super::live`] reads.
//!
//! It imports nothing but modules of the runtime. OpenCode itself tries to install `@opencode-ai/plugin` from npm as soon as
//! there is any plugin, and without a network, each start waits for that; see docs/formats/opencode.md.

use std::path::{Path, PathBuf};

/// The variable with the id of the session, for the commands that the agent runs.
pub(super) const SESSION_VARIABLE: &str = "OPENCODE_SESSION_ID";
/// The variable that tells hooks where to write the name of a session for later commands.
pub(super) const NAME_FILE: &str = "TINE_OPENCODE_NAME_FILE";

/// The folder in which the plugin says what each process is doing, in OpenCode's folder for state.
pub(super) fn reports(state: &Path) -> PathBuf {
    state.join("tine")
}

/// What is in front of the program, by which tine recognizes its own plugin.
const MARK: &str = "// Written by `tine setup opencode`, and removed by `tine setup opencode --uninstall`.\n";
const PROGRAM: &str = "const PROGRAM = ";

const CODE: &str = include_str!("plugin.js");

/// The text of the plugin.
pub(super) fn text(program: &str) -> String {
    let program = serde_json::Value::from(program);
    format!("{MARK}{PROGRAM}{program}\n{CODE}")
}

/// The program that a plugin of tine's calls; nothing for any other text.
pub(super) fn program_in(text: &str) -> Option<String> {
    let rest = text.strip_prefix(MARK)?.strip_prefix(PROGRAM)?;
    serde_json::from_str(rest.lines().next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_the_plugin() {
        for program in ["/usr/bin/tine", "/with \"quotes\" and\\/tine"] {
            assert_eq!(program_in(&text(program)).as_deref(), Some(program));
        }
        assert_eq!(program_in("export const Mine = async () => ({})"), None);
    }
}
