//! Where Claude Code keeps its sessions: `<config>/projects/<encoded directory>/<session id>.jsonl`.
//!
//! The folder's name is a lossy encoding of the directory, so it is computed but never decoded.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use transcript::SessionId;

use crate::files::{entry_metadata, stamp};
use crate::{Discovery, SessionFile};

/// The longest folder name that stays plain; a longer one is cut there and gets a hash.
const PLAIN_LENGTH: usize = 200;

/// The name of the project folder for a directory, which must be resolved already (no symlinks).
///
/// Every UTF-16 unit that is not a letter or digit of ASCII becomes a dash. Checked against 2.1.325 and 2.1.197.
pub fn project_folder(directory: &Path) -> String {
    let text = directory.to_string_lossy();
    let mut name = String::with_capacity(text.len());
    let mut hash = 0i32;
    for unit in text.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
        let plain = u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
        name.push(plain.map_or('-', char::from));
    }
    if name.len() > PLAIN_LENGTH {
        name.truncate(PLAIN_LENGTH);
        name.push('-');
        name.push_str(&base36(hash.unsigned_abs()));
    }
    name
}

/// Finds every transcript, with one `stat` each.
pub(super) fn discover(projects: &Path) -> Discovery {
    let mut found = Discovery::default();
    let folders = match fs::read_dir(projects) {
        Ok(folders) => folders,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                found.unreadable.push((projects.to_owned(), error.kind()));
            }
            return found;
        }
    };
    let mut project_folders = Vec::new();
    for folder in folders.flatten() {
        // A link to a folder is followed, unless it leads to another folder of this listing.
        let is_folder = match folder.file_type() {
            Ok(kind) if kind.is_symlink() => leads_elsewhere(&folder.path(), projects),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        if is_folder {
            project_folders.push(folder.path());
        }
    }
    // Looking up thousands of files is most of what a listing does, so it is shared with a second thread.
    let (here, there) = project_folders.split_at(project_folders.len() / 2);
    let others = std::thread::scope(|scope| {
        let others = (!there.is_empty()).then(|| scope.spawn(|| discover_projects(there)));
        let own = discover_projects(here);
        found.files = own.files;
        found.unreadable.extend(own.unreadable);
        others.and_then(|others| others.join().ok()).unwrap_or_default()
    });
    found.files.extend(others.files);
    found.unreadable.extend(others.unreadable);
    found
}

fn discover_projects(folders: &[PathBuf]) -> Discovery {
    let mut found = Discovery::default();
    folders.iter().for_each(|folder| discover_project(folder, &mut found));
    found
}

fn leads_elsewhere(link: &Path, projects: &Path) -> bool {
    let (Ok(target), Ok(projects)) = (link.canonicalize(), projects.canonicalize()) else {
        return false;
    };
    target.is_dir() && target.parent() != Some(&projects) && !projects.starts_with(&target)
}

fn discover_project(folder: &Path, found: &mut Discovery) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            found.unreadable.push((folder.to_owned(), error.kind()));
            return;
        }
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if !name.and_then(id_in_name).is_some_and(SessionId::is_legal) {
            continue;
        }
        if let Some(metadata) = entry_metadata(&entry).filter(fs::Metadata::is_file) {
            found.files.push(SessionFile { path, stamp: stamp(&metadata) });
        }
    }
}

/// The session id that a transcript's file name carries.
///
/// Older versions kept subagents next to the sessions as `agent-<id>.jsonl`; those are not sessions.
pub(super) fn session_id_of_name(name: &str) -> Option<SessionId> {
    SessionId::new(id_in_name(name)?).ok()
}

fn id_in_name(name: &str) -> Option<&str> {
    name.strip_suffix(".jsonl").filter(|stem| !stem.starts_with("agent-"))
}

/// The folder next to a transcript with its subagents and large tool results.
pub fn side_folder(transcript: &Path) -> PathBuf {
    transcript.with_extension("")
}

/// The folder with the copies of files that the client makes before it changes them.
pub(super) fn backups_of(transcript: &Path) -> Option<PathBuf> {
    let home = transcript.parent()?.parent()?.parent()?;
    Some(home.join("file-history").join(transcript.file_stem()?))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_the_client_names_them() {
        let check = |directory: &str, expected: &str| {
            assert_eq!(project_folder(Path::new(directory)), expected, "{directory}");
        };
        check("/home/u/my.project_x", "-home-u-my-project-x");
        check("/srv/Ünï 漢", "-srv--n---");
        check("/a/🦀b", "-a---b");
        // Lengths at the border: 200 stays plain, 201 is cut and hashed.
        check(&format!("/{}", "a".repeat(199)), &format!("-{}", "a".repeat(199)));
        let long = project_folder(Path::new(&format!("/{}", "a".repeat(200))));
        assert!(long.starts_with(&format!("-{}-", "a".repeat(199))), "{long}");
        assert!(long.len() > 202 && long[201..].bytes().all(|byte| byte.is_ascii_alphanumeric()), "{long}");
    }

    #[test]
    fn subagents_of_older_versions_are_not_sessions() {
        assert!(session_id_of_name("agent-a1b2.jsonl").is_none());
        assert!(session_id_of_name("notes.txt").is_none());
        assert!(session_id_of_name("0b1c.jsonl").is_some());
    }
}
