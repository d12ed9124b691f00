//! What can go wrong with a fork.

use std::path::PathBuf;

use agents::ProgramError;
use transcript::{Agent, State};

use crate::advice::{Advice, Cancelled, FileError, in_words, wraps};
use crate::{code, config, naming, operations, program, registry, run, sessions, workspace};

/// The result of anything about forks.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a fork.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source is busy, or waits for the user.
    #[error("session `{session}` is {}", in_words(*.state))]
    AtWork {
        /// The session.
        session: String,
        /// Busy, or waiting for the user.
        state: State,
    },
    /// The source has no turn that could be kept.
    #[error("session `{0}` has no complete turn to fork at")]
    NothingToFork(String),
    /// The method only works within one agent.
    #[error("{} cannot continue a session of {} with `--method {method}`", .to.product_name(), .from.product_name())]
    OtherAgent {
        /// The agent of the source.
        from: Agent,
        /// The agent of the fork.
        to: Agent,
        /// The requested method.
        method: &'static str,
    },
    /// Only a new worktree can have the files of an earlier turn.
    #[error("`--code then` needs `--worktree`")]
    CodeNeedsWorktree,
    /// The commit of an earlier turn is not known.
    #[error("the commit of `{session}` at turn {turn} is not known")]
    NoCommitThen {
        /// The session.
        session: String,
        /// The turn.
        turn: u32,
    },
    /// Translating is for another agent.
    #[error("{} already reads the session, so it can't be translated", .0.product_name())]
    TranslateSameAgent(Agent),
    /// A translation, read back, is not what was meant.
    #[error("{} would not read the translated session as it was: {what}", .agent.product_name())]
    TranslationDiffers {
        /// The agent of the fork.
        agent: Agent,
        /// The difference.
        what: String,
    },
    /// The agent's own fork would not have the same history, or does not have it.
    #[error("{what}")]
    NativeDiffers {
        /// The agent.
        agent: Agent,
        /// The difference.
        what: String,
    },
    /// A copy does not have the same history.
    #[error("the copy differs from its source: {what}")]
    CopyDiffers {
        /// The difference.
        what: String,
    },
    /// The agent did not take over the transcript.
    #[error("{} {what}", .agent.product_name())]
    NotSeeded {
        /// The agent.
        agent: Agent,
        /// What it did.
        what: &'static str,
    },
    /// The transcript that was kept for the agent is not what it was.
    #[error("the transcript saved for the fork has changed: {}", .0.display())]
    KeptTranscriptChanged(PathBuf),
    /// The fork failed, and everything that was created for it has been removed.
    #[error("{0}")]
    NotForked(Box<Error>),
    /// The fork exists, but its agent did not start.
    #[error("{source}")]
    NotOpened {
        /// The fork.
        fork: String,
        /// The operation that created it.
        operation: i64,
        /// What went wrong.
        source: Box<Error>,
    },
    /// Another process is starting the fork.
    #[error("`{0}` is being started")]
    BeingStarted(String),
    /// A fork that waits for its agent could not be started.
    #[error("`{fork}` was not started: {source}")]
    StartFailed {
        /// The fork.
        fork: String,
        /// Whether its transcript still exists.
        is_kept: bool,
        /// What went wrong.
        source: Box<Error>,
    },
    /// The caller no longer waits.
    #[error(transparent)]
    Cancelled(Cancelled),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory or a repository.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(registry::Error),
    /// An agent's program.
    #[error(transparent)]
    Program(program::Error),
    /// A session.
    #[error(transparent)]
    Sessions(sessions::Error),
    /// An operation.
    #[error(transparent)]
    Operations(operations::Error),
    /// Code as it was.
    #[error(transparent)]
    Code(code::Error),
    /// A running agent.
    #[error(transparent)]
    Run(run::Error),
    /// A name.
    #[error(transparent)]
    Naming(naming::Error),
}

wraps!(Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Code, Run, Naming);

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        Error::Program(error.into())
    }
}

impl Error {
    /// Whether the caller no longer waits for the outcome.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled(_) | Error::Program(program::Error::Failed(ProgramError::Cancelled { .. })))
    }

    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        const NOW: &str = "wait for it with `--wait`, or pass `--now` to fork at its last complete turn";
        let after = |hint: &Option<String>| hint.as_ref().map(|hint| format!("{hint}; ")).unwrap_or_default();
        match self {
            Error::AtWork { state: State::Waiting, .. } => {
                Advice::new("at_work", format!("answer its question, {NOW}"))
            }
            Error::AtWork { .. } => Advice::new("at_work", NOW),
            Error::NothingToFork(_) => {
                Advice::new("nothing_to_fork", "send it a message first, or start a new session with `tine start`")
            }
            Error::CodeNeedsWorktree => Advice::new("code_needs_worktree", "add `--worktree`, or leave out `--code`"),
            Error::NoCommitThen { .. } => Advice::new(
                "no_code",
                "the repository's reflog doesn't reach back that far; `--code none` begins at the current commit",
            ),
            Error::OtherAgent { .. } => {
                Advice::new("other_agent", "`--method translate` writes it in that agent's format")
            }
            Error::TranslateSameAgent(_) => Advice::new("same_agent", "`--method copy` forks it for the same agent"),
            Error::TranslationDiffers { .. } => Advice::new(
                "translation_differs",
                "`--method seed` gives the agent the transcript instead; please report this error",
            ),
            Error::NativeDiffers { .. } => Advice::new("native_differs", "`--method copy` keeps the whole history"),
            Error::CopyDiffers { .. } => Advice::new(
                "copy_differs",
                "`--method seed` gives the agent the transcript instead; please report this error",
            ),
            Error::NotSeeded { .. } => Advice::new("copy_differs", "try again; `tine doctor` checks the agent"),
            Error::KeptTranscriptChanged(_) => {
                Advice::new("copy_differs", "delete the fork with `tine delete` and create it again")
            }
            Error::NotForked(source) => {
                let Advice { kind, hint } = source.advice();
                let hint = match &**source {
                    Error::Program(program::Error::Failed(_)) => {
                        Some("`--method copy` forks for the same agent without starting it".to_owned())
                    }
                    _ => hint,
                };
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                Advice::new(kind, format!("the incomplete fork was removed{hint}"))
            }
            Error::NotOpened { fork, operation, source } => {
                let Advice { kind, hint } = source.advice();
                let hint = after(&hint);
                Advice::new(
                    kind,
                    format!(
                        "{hint}the fork {fork} was created: `tine resume {fork}` opens it, `tine undo {operation}` removes it"
                    ),
                )
            }
            Error::BeingStarted(fork) => Advice::new("being_started", format!("`tine info {fork}` shows its state")),
            Error::StartFailed { fork, source, is_kept: true } => {
                let Advice { kind, hint } = source.advice();
                let hint = after(&hint);
                Advice::new(kind, format!("{hint}its transcript was kept; `tine resume {fork}` retries"))
            }
            Error::StartFailed { source, .. } => source.advice(),
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let session = || "auth-fix".to_owned();
    let fork = || "auth-fix-fork-1".to_owned();
    let failed = || {
        Box::new(Error::from(ProgramError::Failed {
            program: "codex".into(),
            message: "stream error: 401 Unauthorized".into(),
        }))
    };
    let full = || {
        let source = std::io::Error::from_raw_os_error(28);
        Box::new(Error::from(FileError::Write { path: "/home/kim/.claude/x.jsonl".into(), source }))
    };
    crate::advice::samples![
        AtWork { session: session(), state: State::Busy },
        AtWork { session: session(), state: State::Waiting },
        NothingToFork(session()),
        CodeNeedsWorktree,
        NoCommitThen { session: session(), turn: 7 },
        OtherAgent { from: Agent::Claude, to: Agent::Codex, method: "copy" },
        TranslateSameAgent(Agent::Codex),
        TranslationDiffers { agent: Agent::Codex, what: "message 4 of 12 is not the same".into() },
        NativeDiffers { agent: Agent::Codex, what: "the agent's own fork has 3 turns instead of 4".into() },
        CopyDiffers { what: "it has 3 turns instead of 4".into() },
        NotSeeded { agent: Agent::Codex, what: "saved no session" },
        KeptTranscriptChanged("/home/kim/.local/share/tine/seeds/1f3a".into()),
        NotForked(full()),
        NotForked(failed()),
        NotOpened { fork: fork(), operation: 12, source: failed() },
        BeingStarted(fork()),
        StartFailed { fork: fork(), is_kept: true, source: failed() },
        StartFailed { fork: fork(), is_kept: false, source: failed() };
        wraps Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming, Code
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fork_that_was_removed_says_so() {
        for source in samples() {
            if matches!(source, Error::NotForked(_)) {
                continue;
            }
            let (message, advice) = (source.to_string(), source.advice());
            let removed = |advice: &Advice| advice.hint.as_ref().is_some_and(|hint| hint.contains("fork was removed"));
            assert!(!removed(&advice), "{message}: {advice:?}");
            let of_fork = Error::NotForked(Box::new(source));
            assert!(removed(&of_fork.advice()), "{of_fork}");
            assert_eq!((of_fork.to_string(), of_fork.advice().kind), (message, advice.kind));
        }
    }
}
