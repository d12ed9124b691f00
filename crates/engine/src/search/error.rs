//! What can go wrong with a search.

use std::io;
use std::path::PathBuf;

use transcript::text::clip;

use crate::advice::{Advice, Cancelled, FileError, wraps};
use crate::{config, fork, naming, operations, program, registry, run, sessions, workspace};

/// The result of anything about search.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a search.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The query cannot be read.
    #[error("{message}\n  {shown}\n  {marks}")]
    BadQuery {
        /// What is wrong.
        message: String,
        /// The query, or the part of it around the place.
        shown: String,
        /// Marks below the place.
        marks: String,
    },
    /// The query has no words.
    #[error("the query has no words")]
    EmptyQuery,
    /// The query has only words that are everywhere.
    #[error("the words of `{}` occur in nearly every session", clip(.0, 60))]
    OnlyCommonWords(String),
    /// The intent has no words.
    #[error("the description has no words")]
    EmptyIntent,
    /// The intent has only words that are everywhere.
    #[error("the words of `{}` occur in nearly every session", clip(.0, 60))]
    CommonIntent(String),
    /// The time range ends before it begins.
    #[error("the time range from {since} to {until} is empty")]
    NoSuchTime {
        /// When it begins.
        since: jiff::Timestamp,
        /// When it ends.
        until: jiff::Timestamp,
    },
    /// This build cannot search by meaning.
    #[error("the search engine `hybrid` is not available in this build")]
    NoMeaning,
    /// The query is longer than any typed one.
    #[error("the query is too long: it has {bytes} bytes, and the limit is {most}")]
    QueryTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The index cannot be read or written.
    #[error("cannot {} the search index in {}: {message}", .trouble.verb(), .folder.display())]
    Index {
        /// Where it is.
        folder: PathBuf,
        /// Why.
        message: String,
        /// What kind of trouble it is.
        trouble: IndexProblem,
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
    /// A running agent.
    #[error(transparent)]
    Run(run::Error),
    /// A name.
    #[error(transparent)]
    Naming(naming::Error),
    /// A fork.
    #[error(transparent)]
    Fork(fork::Error),
}

wraps!(Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming, Fork);

/// What is wrong with the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexProblem {
    /// The disk is full.
    Full,
    /// The folder is not writable.
    ReadOnly,
    /// Another process is writing it.
    Busy,
    /// It is damaged.
    Damaged,
    /// Anything else.
    Other,
}

impl IndexProblem {
    /// What an error of the file system means.
    pub(crate) fn of(error: &io::Error) -> IndexProblem {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => IndexProblem::Full,
            ReadOnlyFilesystem | PermissionDenied => IndexProblem::ReadOnly,
            _ => IndexProblem::Other,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            IndexProblem::Full | IndexProblem::ReadOnly | IndexProblem::Busy | IndexProblem::Other => "write",
            IndexProblem::Damaged => "read",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            IndexProblem::Full => "the disk is full: free some space there, or set TINE_CACHE to another folder",
            IndexProblem::ReadOnly => "make the folder writable, or set TINE_CACHE to another folder",
            IndexProblem::Busy => "try again when the other tine is done",
            IndexProblem::Damaged => "`tine index --rebuild` rebuilds it",
            IndexProblem::Other => "check the disk and the folder; to use another folder, set TINE_CACHE",
        }
    }
}

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        const SYNTAX: &str =
            "a query has words, \"phrases\", -exclusions and filters such as agent:codex file:src/auth.rs since:2w";
        match self {
            Error::BadQuery { .. } => Advice::new("bad_query", SYNTAX),
            Error::EmptyQuery => Advice::new("empty_query", SYNTAX),
            Error::OnlyCommonWords(_) => {
                Advice::new("only_common_words", "add a rarer word, or search for a phrase: \"to be or not\"")
            }
            Error::EmptyIntent => Advice::new("empty_query", "describe what you want to build in plain words"),
            Error::CommonIntent(_) => {
                Advice::new("only_common_words", "add what is specific to what you want to build")
            }
            Error::NoSuchTime { .. } => Advice::new("bad_time", "`since` must be earlier than `until`"),
            Error::NoMeaning => {
                Advice::new("no_such_engine", "use `--engine words`, or build tine with the cargo feature `semantic`")
            }
            Error::QueryTooLong { .. } => Advice::new("query_too_long", "shorten it to a sentence"),
            Error::Index { trouble, .. } => Advice::new("index", trouble.hint()),
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let index = |trouble, message: &str| Error::Index {
        folder: "/home/kim/.cache/tine/index".into(),
        message: message.to_owned(),
        trouble,
    };
    let mut samples = crate::advice::samples![
        BadQuery { message: "unknown agent `codx`".into(), shown: "x agent:codx".into(), marks: "  ^^^^^^^^^^".into() },
        EmptyQuery,
        OnlyCommonWords("how to do it".into()),
        EmptyIntent,
        CommonIntent("how to do it".into()),
        NoSuchTime { since: jiff::Timestamp::UNIX_EPOCH, until: jiff::Timestamp::UNIX_EPOCH },
        NoMeaning,
        QueryTooLong { bytes: 2_000_000, most: 1_000_000 },
        Index {
            folder: "/home/kim/.cache/tine/index".into(),
            message: "No space left on device (os error 28)".into(),
            trouble: IndexProblem::Full
        };
        wraps Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming, Fork
    ];
    samples.push(index(IndexProblem::ReadOnly, "Permission denied (os error 13)"));
    samples.push(index(IndexProblem::Busy, "another tine is writing it"));
    samples.push(index(IndexProblem::Damaged, "invalid footer"));
    samples.push(index(IndexProblem::Other, "Input/output error (os error 5)"));
    samples
}
