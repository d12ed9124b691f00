//! The files of a working tree, tracked or not, and where the repository around it is. Nothing is read but names: a
//! file's content is the caller's affair.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use diagnostics::OrLog;

use super::objects::Mode;
use super::status::to_path;
use super::{Git, guard};
use crate::workspace::{Error, Result};

/// A working tree and the repository that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreePlace {
    /// The top of the working tree.
    pub top: PathBuf,
    /// The folder that all working trees of the repository share.
    pub common: PathBuf,
    /// The commit that is checked out; `None` before the first one.
    pub head: Option<String>,
}

/// A file that belongs to a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkingFile {
    /// Relative to the top.
    pub path: PathBuf,
    pub kind: WorkingKind,
}

/// What git knows about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkingKind {
    /// It is in the index. A sparse checkout leaves it out if `is_sparse`.
    Tracked { mode: Mode, object: String, is_sparse: bool },
    /// git doesn't track it and doesn't ignore it.
    Untracked,
    /// A repository of its own that is not a submodule.
    Repository,
}

impl Git {
    /// The working tree that contains a directory; `None` if there is none.
    pub(crate) fn tree_place(&self, directory: &Path) -> Option<TreePlace> {
        let words = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"];
        let told = self.run(directory, words.into_iter().chain(["--verify", "--quiet", "HEAD^{commit}"]));
        // Without a commit, git fails after it has printed the rest, which is lost.
        let told = told.or_else(|_| self.run(directory, words)).ok()?;
        let mut lines = told.lines();
        let (top, common) = (PathBuf::from(lines.next()?), PathBuf::from(lines.next()?));
        Some(TreePlace { top, common, head: lines.next().map(str::to_owned) })
    }

    /// git's list of the files of a working tree that it doesn't ignore. Some may not exist.
    pub(crate) fn working_list(&self, top: &Path) -> Result<Vec<u8>> {
        let words = ["ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard"];
        self.output(top, words).map_err(Self::failed(top))
    }
}

impl WorkingFile {
    /// The files in git's list, each once, by their paths.
    pub(crate) fn parse(list: &[u8]) -> Vec<WorkingFile> {
        let mut files: Vec<WorkingFile> = list.split(|byte| *byte == 0).filter_map(working_file).collect();
        files.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
        // A file with conflicts has several entries.
        files.dedup_by(|one, other| one.path == other.path);
        files
    }
}

impl Git {
    /// The ids that the contents of files have as blobs, without writing them.
    pub(crate) fn blob_ids(&self, top: &Path, paths: &[&Path]) -> Result<Vec<String>> {
        let mut command = self.command(top);
        guard(&mut command);
        command.args(["hash-object", "--no-filters", "--stdin-paths"]);
        let failed = |error: std::io::Error| Self::failed(top)(error.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let mut names = Vec::new();
        for path in paths {
            super::objects::quote(&mut names, path).map_err(failed)?;
        }
        let input = child.stdin.take();
        // git answers while it still reads.
        let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(&names)));
        let output = child.wait_with_output().map_err(failed)?;
        writer.join().map(drop).map_err(|_| "the writer panicked").or_log("write to git hash-object");
        let ids: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        match output.status.success() && ids.len() == paths.len() {
            true => Ok(ids),
            false => Err(Error::Git { directory: top.to_owned(), message: "a file changed while git read it".into() }),
        }
    }

    /// Makes a ref point to a commit, without a reflog.
    pub(crate) fn set_ref(&self, directory: &Path, name: &str, commit: &str) -> Result<()> {
        self.remove_stale_lock(directory, name);
        let words = ["-c", "core.logAllRefUpdates=false", "update-ref", name, commit];
        self.run(directory, words).map(drop).map_err(Self::failed(directory))
    }

    /// Deletes refs, all or none.
    pub(crate) fn delete_refs(&self, directory: &Path, names: &[String]) -> Result<()> {
        let mut command = self.command(directory);
        guard(&mut command);
        command
            .args(["update-ref", "-z", "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let failed = |error: std::io::Error| Self::failed(directory)(error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let words: Vec<OsString> = names.iter().map(|name| format!("delete {name}\0\0").into()).collect();
        let text = words.iter().flat_map(|word| word.as_encoded_bytes()).copied().collect::<Vec<_>>();
        // git reads everything before it prints anything.
        child.stdin.take().map_or(Ok(()), |mut input| input.write_all(&text)).or_log("write to git update-ref");
        let output = child.wait_with_output().map_err(failed)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Self::failed(directory)(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    /// The space that only these refs need, in bytes as compressed.
    pub(crate) fn disk_usage(&self, directory: &Path, prefix: &str) -> Result<u64> {
        let (own, others) = (format!("--glob={prefix}*"), format!("--exclude={prefix}*"));
        let words = ["rev-list", "--objects", "--disk-usage", &own, "--not", &others, "--all"];
        let told = self.run(directory, words).map_err(Self::failed(directory))?;
        told.parse().map_err(|_| Self::failed(directory)(told))
    }
}

fn working_file(record: &[u8]) -> Option<WorkingFile> {
    let (tag, rest) = (record.first()?, record.get(2..)?);
    if *tag == b'?' {
        let (path, kind) = match rest.strip_suffix(b"/") {
            Some(path) => (path, WorkingKind::Repository),
            None => (rest, WorkingKind::Untracked),
        };
        return Some(WorkingFile { path: to_path(path), kind });
    }
    let at = rest.iter().position(|byte| *byte == b'\t')?;
    let words = std::str::from_utf8(&rest[..at]).ok()?;
    let mut words = words.split(' ');
    let (mode, object) = (Mode::of(words.next()?)?, words.next()?.to_owned());
    let kind = WorkingKind::Tracked { mode, object, is_sparse: *tag == b'S' };
    Some(WorkingFile { path: to_path(&rest[at + 1..]), kind })
}
