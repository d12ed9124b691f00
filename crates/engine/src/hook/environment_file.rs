//! The file through which a hook sets `TINE_SESSION` for the later commands of an agent.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use transcript::SessionName;

use crate::private;

/// Sets a session's name for the agent's later commands, unless they know it already. An older client passes the file
/// of the session that this one was forked from; the session's own file is next to it.
pub fn write_name(file: &Path, id: &str, name: &SessionName, inherited: Option<&str>) -> io::Result<()> {
    let is_id = |part: &OsStr| uuid::Uuid::try_parse(&part.to_string_lossy()).is_ok();
    let file: PathBuf = file.iter().map(|part| if is_id(part) { OsStr::new(id) } else { part }).collect();
    if let Some(folder) = file.parent() {
        private::create_folder(folder)?;
    }
    let known = read_name(&file);
    if known.as_deref().or(inherited) == Some(name.as_str()) {
        return Ok(());
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    // Names consist of letters, digits and dashes; nothing in them is special to a shell.
    writeln!(file, "export TINE_SESSION={name}")
}

/// The name in such a file.
pub(super) fn read_name(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().rev().find_map(|line| line.strip_prefix("export TINE_SESSION="))?;
    Some(line.trim_matches('\'').to_owned())
}
