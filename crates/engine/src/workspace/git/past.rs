//! Looking at commits and at what differs from them, without running anything that the repository configures.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use diagnostics::OrLog;

use super::status::to_path;
use super::{Git, finish, guard};
use crate::workspace::Result;

/// Reads files of commits, one after the other, by one process of git.
pub(crate) struct FileReader {
    git: Child,
    names: Option<ChildStdin>,
    contents: BufReader<ChildStdout>,
}

impl FileReader {
    /// A file as git would write it into the working tree. `None` if the commit has no such file.
    pub(crate) fn read(&mut self, commit: &str, path: &Path) -> Option<Vec<u8>> {
        let path = path.to_str().filter(|path| !path.contains('\n'))?;
        let names = self.names.as_mut()?;
        writeln!(names, "{commit}:{path} {path}").and_then(|()| names.flush()).ok()?;
        let mut header = String::new();
        self.contents.read_line(&mut header).ok()?;
        let mut words = header.trim_end().rsplit(' ');
        let (size, kind) = (words.next()?, words.next()?);
        // `<name> missing`; and a folder is no file.
        let size: usize = size.parse().ok()?;
        let mut content = vec![0; size + 1];
        self.contents.read_exact(&mut content).ok()?;
        content.pop();
        (kind == "blob").then_some(content)
    }
}

impl Drop for FileReader {
    fn drop(&mut self) {
        self.names.take();
        self.git.wait().or_log("wait for git");
    }
}

impl Git {
    /// The log of what was checked out in the working tree around `directory`.
    pub(crate) fn head_log(&self, directory: &Path) -> Option<PathBuf> {
        let path = self.run(directory, ["rev-parse", "--git-path", "logs/HEAD"]).ok()?;
        Some(directory.join(path))
    }

    /// A reader of files of commits.
    pub(crate) fn file_reader(&self, tree: &Path) -> Option<FileReader> {
        let mut command = self.command(tree);
        guard(&mut command);
        self.disarm(tree, &mut command);
        command.args(["cat-file", "--batch", "--filters"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut git = command.spawn().ok()?;
        let (names, contents) = (git.stdin.take(), BufReader::new(git.stdout.take()?));
        Some(FileReader { git, names, contents })
    }

    /// The files of a commit among `paths`, with their modes.
    pub(crate) fn modes(&self, tree: &Path, commit: &str, paths: &[PathBuf]) -> Result<Vec<(PathBuf, String)>> {
        let mut modes = Vec::new();
        for some in paths.chunks(500) {
            let words = ["ls-tree", "-z", "--full-tree", commit, "--"].map(std::ffi::OsStr::new);
            let words = words.into_iter().chain(some.iter().map(|path| path.as_os_str()));
            let list = self.output(tree, words).map_err(Self::failed(tree))?;
            modes.extend(list.split(|byte| *byte == 0).filter_map(|line| {
                let tab = line.iter().position(|byte| *byte == b'\t')?;
                let mode = String::from_utf8_lossy(&line[..tab]).split(' ').next()?.to_owned();
                Some((to_path(&line[tab + 1..]), mode))
            }));
        }
        Ok(modes)
    }

    /// The files of a working tree that differ from a commit, without submodules and untracked files.
    pub(crate) fn differences(&self, tree: &Path, commit: &str) -> Result<Vec<PathBuf>> {
        let mut command = self.command(tree);
        guard(&mut command);
        self.disarm(tree, &mut command);
        command.args(["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"]);
        command.args(["--ignore-submodules=all", commit, "--"]);
        let list = finish(&mut command).map_err(Self::failed(tree))?;
        Ok(list.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(to_path).collect())
    }

    /// The files of a working tree that git neither tracks nor ignores.
    pub(crate) fn untracked(&self, tree: &Path) -> Result<Vec<PathBuf>> {
        let words = ["ls-files", "-z", "--others", "--exclude-standard"];
        let list = self.output(tree, words).map_err(Self::failed(tree))?;
        Ok(list.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(to_path).collect())
    }
}
