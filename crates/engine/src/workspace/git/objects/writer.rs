//! Writes blobs, trees and commits with one process of git, `fast-import`.
//!
//! It runs in a repository of our own in the cache, a shell without a configuration, and puts its objects where the
//! real repository keeps them. So it reads nothing that the real repository configures, and what it leaves behind when
//! it is killed (a crash report, a lock, the ref that it needs) is in the shell. Nothing of it can be seen before the
//! writer is finished.

use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use diagnostics::OrLog;
use jiff::Timestamp;

use super::super::{Git, guard};
use super::{TreeChange, TreeEntry};
use crate::advice::FileError;
use crate::private;
use crate::workspace::{Error, Result};

/// The number of answers that surely fit into a pipe.
const ANSWERS_AT_ONCE: usize = 256;

/// A running `git fast-import`.
pub(crate) struct ObjectWriter {
    directory: PathBuf,
    /// Dropped last.
    _shell: Shell,
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
    marks: usize,
}

/// A blob that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blob(usize);

/// A written commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub id: String,
    pub tree: String,
}

impl Git {
    /// Starts writing objects into the repository of `directory`. The shell is created in `scratch`, a private folder.
    pub(crate) fn object_writer(&self, directory: &Path, scratch: &Path) -> Result<ObjectWriter> {
        let (objects, format) = self.object_store(directory)?;
        let shell = Shell::new(scratch, &format).map_err(|source| FileError::Write { path: scratch.into(), source })?;
        // Not in the repository: git would read its configuration.
        let mut command = self.command(&shell.0);
        guard(&mut command);
        command.env("GIT_DIR", &shell.0).env("GIT_OBJECT_DIRECTORY", objects);
        // Without `--done`, a stream that breaks off would count as complete.
        let settings = ["core.logAllRefUpdates=false", "core.protectNTFS=false", "core.protectHFS=false"];
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.args(["fast-import", "--quiet", "--force", "--done", "--depth=0"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| Self::failed(directory)(error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let input = input.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let output = BufReader::new(output.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?);
        let input = Some(BufWriter::with_capacity(1 << 16, input));
        Ok(ObjectWriter { directory: directory.to_owned(), _shell: shell, child, input, output, marks: 0 })
    }
}

/// How the names of all shells begin.
pub(crate) const SHELL: &str = "shell-";

/// A repository without anything in it.
struct Shell(PathBuf);

impl Shell {
    fn new(scratch: &Path, format: &str) -> io::Result<Self> {
        private::create_folder(scratch)?;
        let shell = Shell(scratch.join(format!("{SHELL}{}", uuid::Uuid::new_v4().simple())));
        private::new_folder(&shell.0)?;
        fs::create_dir(shell.0.join("refs"))?;
        fs::write(shell.0.join("HEAD"), "ref: refs/heads/none\n")?;
        let core = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n";
        fs::write(shell.0.join("config"), format!("{core}[extensions]\n\tobjectFormat = {format}\n"))?;
        Ok(shell)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).or_log(format_args!("remove {}", self.0.display()));
    }
}

impl ObjectWriter {
    /// Writes a blob.
    pub(crate) fn blob(&mut self, content: &[u8]) -> Result<Blob> {
        self.marks += 1;
        let mark = self.marks;
        self.send(|input| {
            write!(input, "blob\nmark :{mark}\ndata {}\n", content.len())?;
            input.write_all(content)?;
            input.write_all(b"\n")
        })?;
        Ok(Blob(mark))
    }

    /// The ids of blobs.
    pub(crate) fn ids(&mut self, blobs: &[Blob]) -> Result<Vec<String>> {
        let mut ids = Vec::with_capacity(blobs.len());
        for blobs in blobs.chunks(ANSWERS_AT_ONCE) {
            self.send(|input| {
                blobs.iter().try_for_each(|Blob(mark)| writeln!(input, "get-mark :{mark}"))?;
                input.flush()
            })?;
            for _ in blobs {
                ids.push(self.answer()?);
            }
        }
        Ok(ids)
    }

    /// Writes a tree: `base` with changes. Where a path is both a file and a folder, the later change wins.
    pub(crate) fn tree(&mut self, base: Option<&str>, changes: &[TreeChange]) -> Result<String> {
        Ok(self.commit(base, changes, "", Timestamp::UNIX_EPOCH)?.tree)
    }

    /// Writes a commit without parents, whose tree is `base` with changes.
    pub(crate) fn commit(
        &mut self,
        base: Option<&str>,
        changes: &[TreeChange],
        message: &str,
        time: Timestamp,
    ) -> Result<Commit> {
        self.marks += 1;
        let (mark, seconds) = (self.marks, time.as_second());
        self.send(|input| {
            // A branch that exists would be the parent.
            write!(input, "commit refs/heads/{mark}\nmark :{mark}\ncommitter tine <tine@localhost> {seconds} +0000\n")?;
            write!(input, "data {}\n{message}\n", message.len())?;
            if let Some(base) = base {
                writeln!(input, "M 040000 {base} \"\"")?;
            }
            for change in changes {
                match change {
                    TreeChange::Remove(path) => write!(input, "D ").and_then(|()| quote(input, path))?,
                    TreeChange::Set(TreeEntry { path, mode, object }) => {
                        write!(input, "M {} {object} ", mode.as_str())?;
                        quote(input, path)?;
                    }
                }
            }
            write!(input, "ls \"\"\n\nget-mark :{mark}\n")?;
            input.flush()
        })?;
        let listed = self.answer()?;
        let tree = listed.split([' ', '\t']).nth(2).unwrap_or_default().to_owned();
        Ok(Commit { id: self.answer()?, tree })
    }

    /// Makes everything that was written part of the repository.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.send(|input| input.write_all(b"done\n").and_then(|()| input.flush()))?;
        drop(self.input.take());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(self.failure(&io::ErrorKind::Other.into())),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut BufWriter<ChildStdin>) -> io::Result<()>) -> Result<()> {
        let sent = self.input.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), write);
        sent.map_err(|error| self.failure(&error))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(count) if count > 0 => Ok(line.trim_end().to_owned()),
            Ok(_) => Err(self.failure(&io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// What git printed explains more than the broken pipe.
    fn failure(&mut self, error: &io::Error) -> Error {
        drop(self.input.take());
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.take(1 << 16).read_to_string(&mut said).or_log("read what git printed");
        }
        let said = said.lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        Error::Git { directory: self.directory.clone(), message: said.map_or_else(|| error.to_string(), str::to_owned) }
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        // What is not finished is given up.
        self.child.kill().or_log("end git fast-import");
        self.child.wait().or_log("wait for git fast-import");
    }
}

/// A path as fast-import reads it, and the end of the line.
pub(in crate::workspace::git) fn quote(input: &mut impl Write, path: &Path) -> io::Result<()> {
    input.write_all(b"\"")?;
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\n' => input.write_all(b"\\n")?,
            b'"' | b'\\' => input.write_all(&[b'\\', *byte])?,
            byte => input.write_all(&[*byte])?,
        }
    }
    input.write_all(b"\"\n")
}
