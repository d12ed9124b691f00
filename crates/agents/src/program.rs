//! Runs an agent's program: starts it in a directory, writes to its standard input, and waits for it.
//!
//! Arguments are passed as a vector; no shell sees them. Variables that a surrounding agent sets are removed from the
//! environment: the new agent would mistake itself for its child.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use transcript::SessionId;

use crate::chat::{ChatOrder, ChatSession};

/// An agent's program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Variables to remove from its environment.
    pub hidden: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// Cancels its work.
    pub cancel: Cancel,
}

/// A flag that cancels work. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the work.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why an agent's program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It did not start.
    #[error("cannot start {}: {source}", .program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{} failed: {message}", .program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// Its error message.
        message: String,
    },
    /// It did not end in time.
    #[error("{} did not answer within {} seconds", .program.display(), .patience.as_secs())]
    TooSlow {
        /// The program.
        program: PathBuf,
        /// The time limit.
        patience: Duration,
    },
    /// It was cancelled.
    #[error("{} was cancelled", .program.display())]
    Cancelled {
        /// The program.
        program: PathBuf,
    },
    /// It does not support something.
    #[error("{} cannot {what}", .program.display())]
    Unable {
        /// The program.
        program: PathBuf,
        /// What it does not support.
        what: &'static str,
    },
}

/// A request for the agent's own fork.
#[derive(Debug, Clone)]
pub struct ForkRequest<'a> {
    /// The source's transcript.
    pub source: &'a Path,
    /// The id of the source.
    pub source_id: &'a SessionId,
    /// The id of the fork, if the agent accepts one.
    pub id: Option<&'a SessionId>,
    /// The title of the fork.
    pub title: &'a str,
    /// The number of turns to keep; `None` keeps all.
    pub turns: Option<u32>,
    /// The directory for the fork.
    pub directory: &'a Path,
}

/// A session that an agent's program created.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its transcript.
    pub path: PathBuf,
}

/// A session to continue.
#[derive(Debug, Clone, Copy)]
pub struct SessionRef<'a> {
    /// Its id.
    pub id: &'a SessionId,
    /// Its transcript.
    pub path: &'a Path,
}

/// A headless message to an agent.
#[derive(Debug, Clone)]
pub struct HeadlessMessage<'a> {
    /// The session to continue; `None` starts a new one.
    pub session: Option<SessionRef<'a>>,
    /// The id of a new session, if the agent accepts one.
    pub id: Option<&'a SessionId>,
    /// The title of a new session.
    pub title: Option<&'a str>,
    /// The agent's directory.
    pub directory: &'a Path,
    /// More options, from the session's profile.
    pub options: &'a [String],
    /// The text.
    pub text: &'a str,
}

impl HeadlessMessage<'_> {
    /// The chat in which it is sent.
    pub(crate) fn order(&self, new_id: impl FnOnce() -> SessionId) -> ChatOrder {
        let session = match self.session {
            Some(SessionRef { id, path }) => ChatSession::Existing { id: id.clone(), path: path.to_owned() },
            None => ChatSession::New(self.id.cloned().unwrap_or_else(new_id)),
        };
        ChatOrder {
            session,
            directory: self.directory.to_owned(),
            title: self.title.map(str::to_owned),
            model: None,
            mode: None,
            options: self.options.to_vec(),
            is_attended: false,
        }
    }
}

/// An agent's answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The session with the answer.
    pub id: SessionId,
    /// The answer.
    pub answer: String,
    /// The context windows of the models that took part, if the agent reported them.
    pub windows: Vec<(String, u64)>,
}

/// How long an agent may take to end on request.
#[cfg(unix)]
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long an agent may take to start and write a file.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(120);
/// How long an agent may take to answer.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(60 * 60);

impl Program {
    /// A command of this program in `directory`.
    pub fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(directory);
        for variable in &self.hidden {
            command.env_remove(variable);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn failed(&self, message: impl Into<String>) -> ProgramError {
        ProgramError::Failed { program: self.path.clone(), message: message.into() }
    }

    pub(crate) fn unable(&self, what: &'static str) -> ProgramError {
        ProgramError::Unable { program: self.path.clone(), what }
    }

    pub(crate) fn spawn(&self, command: &mut Command) -> Result<Child, ProgramError> {
        command.spawn().map_err(|source| ProgramError::NotStarted { program: self.path.clone(), source })
    }

    /// Runs a command with `input` on its standard input, and returns its output.
    pub(crate) fn run(&self, command: Command, input: &str, patience: Duration) -> Result<String, ProgramError> {
        self.run_telling(command, input, patience, |_| None)
    }

    /// The same; `reason` extracts the reason of a failure from the output.
    pub(crate) fn run_telling(
        &self,
        mut command: Command,
        input: &str,
        patience: Duration,
        reason: impl Fn(&str) -> Option<String>,
    ) -> Result<String, ProgramError> {
        let not_started = |source| ProgramError::NotStarted { program: self.path.clone(), source };
        // Output goes to files: a broken pipe would end the program in the middle of its work.
        let (stdout, to_stdout) = printed().map_err(not_started)?;
        let (stderr, to_stderr) = printed().map_err(not_started)?;
        command.stdin(Stdio::piped()).stdout(to_stdout).stderr(to_stderr);
        let mut child = self.spawn(&mut command)?;
        let stdin = child.stdin.take();
        let input = input.to_owned();
        // A program that doesn't read its input must not block reading its output.
        let writer = thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(input.as_bytes())));
        let status = self.wait(&mut child, patience)?;
        drop(writer);
        let (stdout, stderr) = (text_of(stdout), text_of(stderr));
        if status.success() {
            return Ok(stdout);
        }
        let said = reason(&stdout)
            .or_else(|| [&stderr, &stdout].into_iter().find_map(|text| last_line(text)).map(str::to_owned));
        Err(self.failed(said.unwrap_or_else(|| status.to_string())))
    }

    pub(crate) fn wait(&self, child: &mut Child, patience: Duration) -> Result<std::process::ExitStatus, ProgramError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if self.cancel.is_cancelled() => {
                    end(child);
                    return Err(ProgramError::Cancelled { program: self.path.clone() });
                }
                Ok(None) if begun.elapsed() < patience => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Ok(None) => {
                    end(child);
                    return Err(ProgramError::TooSlow { program: self.path.clone(), patience });
                }
                Err(source) => return Err(ProgramError::NotStarted { program: self.path.clone(), source }),
            }
        }
    }
}

/// Ends a child process: asks it first, so that it can end its own children, then kills it.
pub(crate) fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        let begun = Instant::now();
        while asked && begun.elapsed() < ENDS_WITHIN {
            match child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Ok(Some(_)) | Err(_) => break,
            }
        }
    }
    child.kill().or_log("kill a process");
    child.wait().or_log("wait for a process");
}

/// A temporary file for a program's output, without a name, with one handle to read from and one to write to.
pub(crate) fn printed() -> io::Result<(File, File)> {
    let file = tempfile::NamedTempFile::new()?;
    Ok((file.reopen()?, file.into_file()))
}

pub(crate) fn text_of(mut printed: File) -> String {
    let mut bytes = Vec::new();
    printed.read_to_end(&mut bytes).or_log("read what a program printed");
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_that_fails_or_hangs_is_told() {
        let program = Program {
            path: "/bin/sh".into(),
            hidden: vec!["PATH".into()],
            environment: Vec::new(),
            cancel: Cancel::default(),
        };
        let run = |script: &str, patience: u64| {
            let mut command = program.command(Path::new("/"));
            command.args(["-c", script]);
            program.run(command, "in\nput", Duration::from_millis(patience)).map_err(|error| error.to_string())
        };
        assert_eq!(run("/bin/cat", 5000).unwrap(), "in\nput");
        assert_eq!(run("echo before; echo why >&2; exit 3", 5000).unwrap_err(), "/bin/sh failed: why");
        assert!(run("exec /bin/sleep 20", 50).unwrap_err().contains("did not answer"));
        // What is not read is no reason to wait.
        assert_eq!(run("exec 0<&-; echo done", 5000).unwrap(), "done\n");
    }
}
