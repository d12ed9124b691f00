//! The files that hold one history: a fork in the paginated dialect refers to its source instead of copying it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::home::Home;
use super::meta::{Base, Meta};
use super::record::Record;

/// No one forks a fork a thousand times; a longer chain is circular or malicious.
const LONGEST: usize = 1000;

/// A file of which only the records before an ordinal count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub path: PathBuf,
    pub end_ordinal: Option<u64>,
    /// Decides only where the records have no ordinals; the client itself goes by the ordinal.
    pub end_offset: Option<u64>,
}

impl Segment {
    /// Whether the record at `offset` is no longer part of the history.
    pub(super) fn ends_before(&self, record: &Record<'_>, offset: u64) -> bool {
        match (self.end_ordinal, record.ordinal) {
            (Some(end), Some(ordinal)) => ordinal >= end,
            _ => self.end_offset.is_some_and(|end| offset >= end),
        }
    }
}

/// The files that `base`, in the file `own`, refers to, the oldest first, and the id of the one that is not there.
pub(super) fn resolve(home: &Home, own: &Path, base: &Base) -> (Vec<Segment>, Option<String>) {
    let mut segments = Vec::new();
    let mut seen = HashSet::from([own.to_owned()]);
    let mut next = Some(base.clone());
    let mut missing = None;
    // A cut applies to everything after it: it may be in the source's own base.
    let mut nearest_end = u64::MAX;
    while let Some(base) = next.take() {
        let path = home.find_segment(&base.segment);
        let Some(path) = path.filter(|path| segments.len() < LONGEST && seen.insert(path.clone())) else {
            missing = Some(base.segment);
            break;
        };
        if let Some(end) = base.end_ordinal {
            nearest_end = nearest_end.min(end);
        }
        let end_ordinal = base.end_ordinal.map(|_| nearest_end);
        next = Meta::read(&path).and_then(|meta| meta.base);
        segments.push(Segment { path, end_ordinal, end_offset: base.end_offset });
    }
    segments.reverse();
    (segments, missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn id(n: u32) -> String {
        format!("01a1e0f9-{n:04x}-7b42-9fdf-a28cec9bdca5")
    }

    /// Writes a file for each thread: its number, and the number and the end of its base.
    fn home(threads: &[(u32, Option<(u32, u64)>)]) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sessions")).unwrap();
        for (n, base) in threads {
            let base = base.map_or(String::new(), |(n, end)| {
                format!(
                    r#","history_base":{{"thread_id":"{}","end_ordinal_exclusive":{end},"end_byte_offset":9}}"#,
                    id(n)
                )
            });
            let line =
                format!("{{\"ordinal\":0,\"type\":\"session_meta\",\"payload\":{{\"id\":\"{}\"{base}}}}}\n", id(*n));
            fs::write(folder.path().join(format!("sessions/rollout-{}.jsonl", id(*n))), line).unwrap();
        }
        let home = Home::new(folder.path().to_owned());
        (folder, home)
    }

    #[test]
    fn references_are_followed_to_the_first_file() {
        let check = |threads: &[(u32, Option<(u32, u64)>)], base: (u32, u64), expected: &[(u32, u64)], whole: bool| {
            let (_folder, home) = home(threads);
            let base = Base { segment: id(base.0), end_ordinal: Some(base.1), end_offset: None };
            let (segments, missing) = resolve(&home, Path::new("own"), &base);
            let found: Vec<(String, Option<u64>)> = segments
                .iter()
                .map(|segment| {
                    (segment.path.file_stem().unwrap().to_str().unwrap()[8..].to_owned(), segment.end_ordinal)
                })
                .collect();
            let expected: Vec<(String, Option<u64>)> = expected.iter().map(|(n, end)| (id(*n), Some(*end))).collect();
            assert_eq!((found, missing.is_none()), (expected, whole), "{threads:?} {base:?}");
        };
        check(&[(1, None)], (1, 23), &[(1, 23)], true);
        check(&[(1, None), (2, Some((1, 23)))], (2, 34), &[(1, 23), (2, 34)], true);
        // A cut before the fork's own records is a cut of its base.
        check(&[(1, None), (2, Some((1, 23)))], (2, 14), &[(1, 14), (2, 14)], true);
        check(&[(2, Some((1, 23)))], (2, 34), &[(2, 34)], false);
        check(&[], (1, 23), &[], false);
        // A circle is cut where it closes.
        check(&[(1, Some((2, 50))), (2, Some((1, 40)))], (2, 60), &[(1, 40), (2, 60)], false);
    }
}
