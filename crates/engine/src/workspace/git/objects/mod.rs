//! Blobs and trees as they are: no filter runs, no line ending is converted, and neither the index, HEAD, a ref nor a
//! reflog is touched.
//!
//! A tree is the common currency of everything about code as it was: [`ObjectWriter`] makes one from another tree and
//! changes, [`Git::tree_entries`] and [`Git::tree_changes`] list it, and [`BlobReader`] reads its files.

mod reader;
mod writer;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use reader::BlobReader;
pub(super) use writer::quote;
pub(crate) use writer::{Blob, ObjectWriter, SHELL};

use super::Git;
use super::status::to_path;
use crate::advice::FileError;
use crate::private;
use crate::workspace::{Error, Result};

/// What a path of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Mode {
    File,
    Executable,
    Symlink,
    /// The commit of a submodule.
    Submodule,
}

impl Mode {
    const ALL: [Mode; 4] = [Mode::File, Mode::Executable, Mode::Symlink, Mode::Submodule];

    /// git's digits for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::File => "100644",
            Mode::Executable => "100755",
            Mode::Symlink => "120000",
            Mode::Submodule => "160000",
        }
    }

    /// The mode with git's digits. Old trees have other digits for files.
    pub(crate) fn of(digits: &str) -> Option<Self> {
        let known = Mode::ALL.into_iter().find(|mode| mode.as_str() == digits);
        known.or(digits.starts_with("100").then_some(Mode::File))
    }
}

/// A path of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TreeEntry {
    /// Relative to the top.
    pub path: PathBuf,
    pub mode: Mode,
    /// The blob, or the commit of a submodule.
    pub object: String,
}

/// A path that a new tree has, or no longer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeChange {
    Set(TreeEntry),
    Remove(PathBuf),
}

/// A path in which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub path: PathBuf,
    pub before: Option<(Mode, String)>,
    pub after: Option<(Mode, String)>,
}

impl Git {
    /// The files of a tree, or of those of its paths that equal one of `paths` or are below it.
    pub(crate) fn tree_entries(&self, directory: &Path, tree: &str, paths: &[PathBuf]) -> Result<Vec<TreeEntry>> {
        let words = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", tree, "--"];
        let words = words.iter().map(|word| word.as_ref()).chain(paths.iter().map(|path| path.as_os_str()));
        let list = self.output(directory, words).map_err(Self::failed(directory))?;
        Ok(list.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// The paths in which two trees differ. A rename is a deletion and an addition.
    pub(crate) fn tree_changes(&self, directory: &Path, before: &str, after: &str) -> Result<Vec<Difference>> {
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--full-index", before, after];
        let list = self.output(directory, words).map_err(Self::failed(directory))?;
        let mut fields = list.split(|byte| *byte == 0);
        let mut differences = Vec::new();
        while let (Some(record), Some(path)) = (fields.next(), fields.next()) {
            let record = String::from_utf8_lossy(record);
            let mut words = record.trim_start_matches(':').split(' ');
            let (Some(old), Some(new), Some(from), Some(to)) = (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let side = |mode: &str, object: &str| Some((Mode::of(mode)?, object.to_owned()));
            differences.push(Difference { path: to_path(path), before: side(old, from), after: side(new, to) });
        }
        Ok(differences)
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, directory: &Path, commit: &str) -> Option<String> {
        self.run(directory, ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}^{{tree}}")])
            .ok()
    }

    /// The same git, but what it writes into the repository of `directory` goes to a new folder in `scratch`. Returns
    /// the folder too, which the caller removes.
    pub(crate) fn with_own_objects(&self, directory: &Path, scratch: &Path) -> Result<(Git, PathBuf)> {
        let (objects, _) = self.object_store(directory)?;
        let folder = scratch.join(format!("{SHELL}{}", uuid::Uuid::new_v4().simple()));
        let created = private::create_folder(scratch).and_then(|()| private::new_folder(&folder));
        created.map_err(|source| FileError::Write { path: folder.clone(), source })?;
        Ok((Git { own_objects: Some((folder.clone(), objects)), ..self.clone() }, folder))
    }

    /// Where a repository keeps its objects, and how it names them.
    fn object_store(&self, directory: &Path) -> Result<(PathBuf, String)> {
        let words = ["rev-parse", "--show-object-format", "--git-path", "objects"];
        let told = self.run(directory, words).map_err(Self::failed(directory))?;
        let (format, objects) = told.split_once('\n').unwrap_or(("sha1", &told));
        let objects = directory.join(objects);
        let objects = objects.canonicalize().map_err(|_| Error::NoRepository(directory.to_owned()))?;
        Ok((objects, format.to_owned()))
    }
}

fn entry(record: &[u8]) -> Option<TreeEntry> {
    let at = record.iter().position(|byte| *byte == b'\t')?;
    let words = String::from_utf8_lossy(&record[..at]);
    let mut words = words.split(' ');
    let (mode, _, object) = (words.next()?, words.next()?, words.next()?);
    Some(TreeEntry { path: to_path(&record[at + 1..]), mode: Mode::of(mode)?, object: object.to_owned() })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    use jiff::Timestamp;

    use super::*;

    fn git(directory: &Path, words: &[&str]) -> String {
        let output = Command::new("git").current_dir(directory).args(words).output().expect("git");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let root = tempfile::tempdir().expect("a folder");
        for format in ["sha1", "sha256"] {
            let repository = root.path().join(format);
            let scratch = root.path().join("scratch");
            fs::create_dir(&repository).expect("a folder");
            git(&repository, &["init", "--quiet", &format!("--object-format={format}")]);
            // Whatever the repository configures, bytes stay as they are.
            fs::write(repository.join(".gitattributes"), "* text eol=lf ident filter=bad\n").expect("a file");
            git(&repository, &["config", "filter.bad.clean", "touch ../ran"]);
            let subject = Git::new(PathBuf::from("git"));

            let mut writer = subject.object_writer(&repository, &scratch).expect("a writer");
            let contents: [&[u8]; 3] = [b"", b"one\r\n$Id$\r\n", b"\0\xff\n"];
            let blobs: Vec<Blob> = contents.iter().map(|content| writer.blob(content).expect("a blob")).collect();
            let ids = writer.ids(&blobs).expect("ids");
            let names: [&[u8]; 3] = [b"a \"b\"\\\n\xff", b"d/e", "größe".as_bytes()];
            let entry =
                |name: &[u8], object: &String, mode| TreeEntry { path: to_path(name), mode, object: object.clone() };
            let modes = [Mode::File, Mode::Executable, Mode::Symlink];
            let mut entries: Vec<TreeEntry> = (0..3).map(|at| entry(names[at], &ids[at], modes[at])).collect();
            entries.push(entry(b"sub", &"2".repeat(ids[0].len()), Mode::Submodule));
            let changes: Vec<TreeChange> = entries.iter().cloned().map(TreeChange::Set).collect();
            let first = writer.commit(None, &changes, "what\n\nT: 1\n", Timestamp::UNIX_EPOCH).expect("a commit");
            let remove = [TreeChange::Remove("d/e".into()), TreeChange::Set(entry(b"d", &ids[0], Mode::File))];
            let second = writer.tree(Some(&first.tree), &remove).expect("a tree");
            let empty = writer.tree(None, &[]).expect("a tree");
            writer.finish().expect("objects");

            entries.sort();
            assert_eq!(subject.tree_entries(&repository, &first.id, &[]).expect("a tree"), entries);
            let one = subject.tree_entries(&repository, &first.tree, &["d".into()]).expect("a tree");
            assert_eq!(one.iter().map(|entry| entry.path.as_os_str().as_bytes()).collect::<Vec<_>>(), [b"d/e"]);
            assert_eq!(subject.tree_entries(&repository, &empty, &[]).expect("a tree"), []);
            assert_eq!(
                git(&repository, &["log", "-1", "--format=%B|%T|%P|%an", &first.id]),
                format!("what\n\nT: 1\n|{}||tine", first.tree)
            );
            let changed = subject.tree_changes(&repository, &first.tree, &second).expect("changes");
            let expected = [
                Difference { path: "d".into(), before: None, after: Some((Mode::File, ids[0].clone())) },
                Difference { path: "d/e".into(), before: Some((Mode::Executable, ids[1].clone())), after: None },
            ];
            assert_eq!(changed, expected);
            let mut reader = subject.blob_reader(&repository).expect("a reader");
            for (content, id) in contents.iter().zip(&ids) {
                assert_eq!(reader.read(id).expect("an answer").as_deref(), Some(*content));
            }
            assert_eq!(reader.read(&"1".repeat(ids[0].len())).expect("an answer"), None);
            assert_eq!(reader.read(&first.tree).expect("an answer"), None);
            assert_eq!(reader.read(&ids[1]).expect("an answer").as_deref(), Some(contents[1]));

            // What fails or is given up leaves nothing but loose objects.
            let mut writer = subject.object_writer(&repository, &scratch).expect("a writer");
            let error = writer.tree(Some(&"1".repeat(ids[0].len())), &[]).expect_err("no such tree");
            assert!(error.to_string().contains("1111"), "{error}");
            drop(writer);
            assert_eq!(fs::read_dir(&scratch).expect("a folder").count(), 0);
            assert_eq!(git(&repository, &["for-each-ref"]), "");
            assert!(!root.path().join("ran").exists());
            git(&repository, &["fsck", "--strict"]);
        }
    }
}
