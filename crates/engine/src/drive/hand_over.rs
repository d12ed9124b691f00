//! Handing a text over as it is.
//!
//! Input lines change what is pasted: tabs become spaces, carriage returns, letters that cannot be seen and accents of their
//! own are lost. What an editor brings back is taken as it is. So the agents that tine runs in a terminal have tine for
//! their editor: it fetches what is to be said, and is the person's own editor at any other time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::PAUSE;
use crate::Tine;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::places::{Key, OpenPane};
use crate::private;

/// Where an agent's editor finds what is to be said.
const FILE_VARIABLE: &str = "TINE_HAND_OVER";
/// The person's own editor.
const OWN_VARIABLE: &str = "TINE_EDITOR";
/// What agents look at first to find an editor.
const EDITOR_VARIABLE: &str = "VISUAL";
/// How long an agent takes to run its editor.
const FETCHED_WITHIN: Duration = Duration::from_secs(4);

/// What an agent needs that runs in a terminal.
pub(crate) fn variables(context: &Context) -> Vec<(String, String)> {
    let program = context.program.to_string_lossy();
    // Every agent takes such a line apart in its own way.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if context.surroundings.proc.is_none() || !program.bytes().all(is_plain) {
        return Vec::new();
    }
    let file = folder(context).join(uuid::Uuid::new_v4().to_string());
    let own = [OWN_VARIABLE, EDITOR_VARIABLE, "EDITOR"].into_iter().find_map(|name| context.variable(name));
    let mut variables = vec![
        (EDITOR_VARIABLE.to_owned(), format!("{program} editor")),
        (FILE_VARIABLE.to_owned(), file.to_string_lossy().into_owned()),
    ];
    variables.extend(own.map(|own| (OWN_VARIABLE.to_owned(), own)));
    variables
}

fn folder(context: &Context) -> PathBuf {
    context.paths.cache.join("hand-over")
}

/// Whether an input line takes a text as it is, when it is pasted.
pub(super) fn is_plain(text: &str) -> bool {
    let changes = |letter: char| match letter {
        '\n' => false,
        // Signs that steer, that cannot be seen, or that belong to the letter before them.
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{feff}' => true,
        letter => letter.is_control(),
    };
    !text.contains(changes)
}

/// What an agent's editor does: fetches what is to be said into `file`; false where there is nothing.
pub fn fetch(context: &Context, file: &Path) -> io::Result<bool> {
    let Some(handed) = context.variable(FILE_VARIABLE).map(PathBuf::from) else {
        return Ok(false);
    };
    match fs::read(&handed) {
        Ok(text) => fs::write(file, text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    // That it is gone tells that it was fetched.
    fs::remove_file(&handed)?;
    Ok(true)
}

/// The person's own editor, as a shell would run it.
pub fn own_editor(context: &Context, files: &[PathBuf]) -> Command {
    let known = context.variable(OWN_VARIABLE);
    let usual = || ["editor", "nano", "vim", "vi"].into_iter().find(|name| context.find_program(name).is_some());
    let editor = known.clone().unwrap_or_else(|| usual().unwrap_or("vi").to_owned());
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec {editor} \"$@\"")).arg(&editor).args(files);
    command.env_remove(EDITOR_VARIABLE).envs(known.map(|known| (EDITOR_VARIABLE, known)));
    command
}

impl Tine {
    /// Lets the agent in a pane fetch a text; false where it does not.
    pub(super) fn hand_over(&self, open: &OpenPane<'_>, process: Option<u32>, text: &str) -> Result<bool> {
        let proc = self.context().surroundings.proc.as_deref();
        let processes = [process, open.info().and_then(|info| info.pid)];
        let file = proc.and_then(|proc| {
            let mut processes = processes.into_iter().flatten();
            processes.find_map(|pid| agents::variable_of(proc, pid, FILE_VARIABLE))
        });
        // Whoever runs in that pane may say anything; only our own folder is written to.
        let folder = folder(self.context());
        let Some(file) = file.map(PathBuf::from).filter(|file| file.parent() == Some(&folder)) else {
            return Ok(false);
        };
        let failed = |source| Error::CannotWrite { path: file.clone(), source };
        private::create_folder(&folder).map_err(failed)?;
        let mut handed = private::open_file(&file).map_err(failed)?;
        io::Write::write_all(&mut handed, text.as_bytes()).map_err(failed)?;
        drop(handed);
        let fetched = open.press(Key::Editor).and_then(|()| self.until_fetched(&file));
        // What was not fetched must not come up when the person opens the editor.
        let _ = fs::remove_file(&file);
        fetched
    }

    fn until_fetched(&self, file: &Path) -> Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < FETCHED_WITHIN {
            if !file.exists() {
                self.pause(PAUSE * 2)?;
                return Ok(true);
            }
            self.pause(PAUSE / 2)?;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_an_input_line_changes_are_known() {
        for text in ["plain", "two\nlines", "ünï 漢字 🙂", "quotes ' \" $(x)"] {
            assert!(is_plain(text), "{text:?}");
        }
        for text in ["a\tb", "a\r\nb", "\u{1b}[31m", "e\u{301}", "z\u{200b}w", "\u{feff}bom", "\u{7f}", "a\u{2028}b"] {
            assert!(!is_plain(text), "{text:?}");
        }
    }
}
