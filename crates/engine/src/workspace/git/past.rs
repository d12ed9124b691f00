//! Looking at commits and at what differs from them, without running anything that the repository configures.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::objects::{BlobReader, Mode};
use super::status::to_path;
use super::{Git, finish, guard};
use crate::workspace::Result;

/// Reads files of commits as git would write them into the working tree.
pub(crate) struct FileReader {
    converted: BlobReader,
    plain: BlobReader,
}

impl FileReader {
    /// A file; `None` if the commit has no such file.
    pub(crate) fn read(&mut self, commit: &str, path: &Path) -> Option<Vec<u8>> {
        let path = path.to_str().filter(|path| !path.contains('\n'))?;
        let read = match path.contains(char::is_whitespace) {
            // git takes what follows the first space for the path that decides how the file is converted.
            true => self.plain.read(&format!("{commit}:{path}")),
            false => self.converted.read(&format!("{commit}:{path} {path}")),
        };
        read.ok().flatten()
    }
}

impl Git {
    /// The log of what was checked out in the working tree around `directory`.
    pub(crate) fn head_log(&self, directory: &Path) -> Option<PathBuf> {
        let path = self.run(directory, ["rev-parse", "--git-path", "logs/HEAD"]).ok()?;
        Some(directory.join(path))
    }

    /// A reader of files of commits.
    pub(crate) fn file_reader(&self, tree: &Path) -> Result<FileReader> {
        let mut command = self.command(tree);
        guard(&mut command);
        self.disarm(tree, &mut command);
        command.args(["cat-file", "--batch", "--filters"]);
        Ok(FileReader { converted: BlobReader::start(tree, command)?, plain: self.blob_reader(tree)? })
    }

    /// The modes of those of `paths` that a commit has.
    pub(crate) fn modes(&self, tree: &Path, commit: &str, paths: &[PathBuf]) -> Result<HashMap<PathBuf, Mode>> {
        /// The number of paths that surely fits into a command line.
        const AT_ONCE: usize = 200;
        let mut modes = HashMap::new();
        for some in paths.chunks(AT_ONCE) {
            modes.extend(self.tree_entries(tree, commit, some)?.into_iter().map(|entry| (entry.path, entry.mode)));
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
