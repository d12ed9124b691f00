//! Reads many blobs with one process of git.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use diagnostics::OrLog;

use super::super::{Git, guard};
use crate::workspace::{Error, Result};

/// A running `git cat-file --batch`.
pub(crate) struct BlobReader {
    directory: PathBuf,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Git {
    /// Starts reading blobs of a repository.
    pub(crate) fn blob_reader(&self, directory: &Path) -> Result<BlobReader> {
        let mut command = self.command(directory);
        guard(&mut command);
        command.args(["cat-file", "--batch"]);
        BlobReader::start(directory, command)
    }
}

impl BlobReader {
    /// Starts a `git cat-file --batch` with further options.
    pub(in crate::workspace::git) fn start(directory: &Path, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |error: io::Error| Git::failed(directory)(error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?);
        Ok(BlobReader { directory: directory.to_owned(), child, input, output })
    }

    /// The content of a blob; `None` if the repository does not have it.
    pub(crate) fn read(&mut self, object: &str) -> Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        Ok(self.copy(object, &mut content)?.then_some(content))
    }

    /// Writes the content of a blob; false if the repository does not have it.
    pub(crate) fn copy(&mut self, object: &str, to: &mut dyn Write) -> Result<bool> {
        let directory = self.directory.clone();
        self.try_copy(object, to).map_err(|error| Error::Git { directory, message: error.to_string() })
    }

    fn try_copy(&mut self, object: &str, to: &mut dyn Write) -> io::Result<bool> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{object}\n").as_bytes())?;
        let mut header = String::new();
        if self.output.read_line(&mut header)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut words = header.trim_end().split(' ').skip(1);
        let (kind, size) = (words.next(), words.next().and_then(|size| size.parse::<u64>().ok()));
        let (Some("blob"), Some(size)) = (kind, size) else {
            // Any other object is skipped.
            io::copy(&mut self.output.by_ref().take(size.map_or(0, |size| size + 1)), &mut io::sink())?;
            return Ok(false);
        };
        let copied = io::copy(&mut self.output.by_ref().take(size), to)?;
        let mut end = [0];
        self.output.read_exact(&mut end)?;
        if copied == size { Ok(true) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for BlobReader {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends with its input; if its output was not read to the end, it must not be waited for.
        self.child.kill().or_log("end git cat-file");
        self.child.wait().or_log("wait for git cat-file");
    }
}
