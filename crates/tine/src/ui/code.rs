//! What the commands about code as it was have in common.

use std::path::{Component, Path, PathBuf};

use engine::{Certainty, CodeAt};
use transcript::text;

use crate::commands::Desk;
use crate::ui;

/// Help for an argument that takes a session and a turn.
pub(crate) const POINT: &str = "Name, id, id prefix or path; `.` is the newest here, `-` the last one used; `@4` is the \
                                end of turn 4 [default: the last turn]";

/// How many paths a message names.
const NAMED: usize = 3;

/// Paths relative to the top of a repository. On the command line, they are relative to the current directory, if that
/// is in the repository, else to its top.
pub(crate) fn inner_paths(desk: &Desk, top: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    let cwd = &desk.tine.context().cwd;
    let below = cwd.strip_prefix(top).unwrap_or(Path::new(""));
    let inner = |path: &PathBuf| match path.strip_prefix(top) {
        Ok(path) => plain(path),
        Err(_) => plain(&below.join(path)),
    };
    paths.iter().map(inner).collect()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Names files that a command does nothing about.
pub(crate) fn mention_left_out<'a>(paths: impl Iterator<Item = &'a Path>, what: &str) {
    let paths: Vec<String> = paths.map(|path| text::one_line(&path.to_string_lossy())).collect();
    if paths.is_empty() {
        return;
    }
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = paths[..paths.len().min(NAMED)].join(", ");
    ui::print_message(&format!("{what}, because snapshots lack them: {named}{more}"));
}

/// Warns about files that may have been different.
pub(crate) fn mention_doubts(code: &CodeAt) {
    let doubtful: Vec<_> = code.files.iter().filter(|file| file.certainty <= Certainty::Doubtful).collect();
    for file in doubtful.iter().take(NAMED) {
        let path = text::one_line(&file.path.to_string_lossy());
        let why = file.why.as_deref().map(|why| format!(": {}", text::one_line(why))).unwrap_or_default();
        ui::warn(&format!("`{path}` may have been different{why}"));
    }
    if doubtful.len() > NAMED {
        ui::warn(&format!("{} more files may have been different", doubtful.len() - NAMED));
    }
}
