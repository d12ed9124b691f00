//! The titles that 1.0 to 2.1.29 gave to conversations: `summary` records, each with the id of the conversation's last record.
//!
//! The client wrote them at the beginning of the project's next file, so the title of a session is usually in another
//! file. Only the beginnings of these files are read.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::record::{Kind, Record, key_of};
use super::scan::title_of;
use crate::files::open_regular;

/// How much of a file is read.
const BEGINNING: u64 = 64 << 10;

/// The titles in the beginnings of a project's files, by the record that each names.
type Titles = HashMap<u64, String>;

/// The titles of folders, each with the time at which the folder was changed.
type Folders = HashMap<PathBuf, (SystemTime, Arc<Titles>)>;

/// The titles of the projects read so far, valid until something is added to their folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Summaries(Arc<Mutex<Folders>>);

impl Summaries {
    /// The title in another file of the project for a conversation with these records, the latest last.
    pub(super) fn title(&self, path: &Path, records: &[u64]) -> Option<String> {
        let titles = self.of_folder(path.parent()?)?;
        records.iter().rev().find_map(|key| titles.get(key)).cloned()
    }

    /// Takes in the titles in the beginning of a file, which may have got them after its folder was read.
    pub(super) fn add_titles_of(&self, path: &Path) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, titles)) = path.parent().and_then(|folder| known.get_mut(folder)) {
            read_beginning(path, Arc::make_mut(titles));
        }
    }

    fn of_folder(&self, folder: &Path) -> Option<Arc<Titles>> {
        let changed = fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, titles)) = known.get(folder)
            && *then == changed
        {
            return Some(Arc::clone(titles));
        }
        let mut titles = Titles::new();
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                read_beginning(&path, &mut titles);
            }
        }
        let titles = Arc::new(titles);
        known.insert(folder.to_owned(), (changed, Arc::clone(&titles)));
        Some(titles)
    }
}

/// Whether a version of the client wrote such records.
pub(super) fn are_written_by(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(u32::MAX));
    let mut next = || numbers.next().unwrap_or(u32::MAX);
    (next(), next(), next()) < (2, 1, 30)
}

/// The contents of a `summary` record: the record that it names, and the title.
pub(super) fn read(record: &Record<'_>) -> Option<(u64, String)> {
    (record.kind == Kind::Summary).then_some(())?;
    Some((key_of(record.value?.plain()?), title_of(record.summary?)?))
}

fn read_beginning(path: &Path, titles: &mut Titles) {
    let mut beginning = Vec::new();
    // An unreadable file has no titles; its own scan reports the problem.
    if open_regular(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning)).is_err() {
        return;
    }
    let records = beginning.split(|byte| *byte == b'\n').map(Record::of);
    titles.extend(records.map_while(|record| read(&record)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_wrote_summaries_are_known() {
        for version in ["1.0.17", "1.0.128", "2.0.76", "2.1.29"] {
            assert!(are_written_by(version), "{version}");
        }
        for version in ["2.1.30", "2.1.197", "2.1.325", "3.0.0", "", "next"] {
            assert!(!are_written_by(version), "{version}");
        }
    }
}
