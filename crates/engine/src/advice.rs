//! What an error offers besides its message: a kind for programs and a hint for people. The kinds are part of the JSON
//! contract, so a kind that was released keeps its spelling.

use std::io;
use std::path::PathBuf;

use transcript::State;

/// What to do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// A kind for programs.
    pub kind: &'static str,
    /// The next step for the user.
    pub hint: Option<String>,
}

impl Advice {
    pub(crate) fn new(kind: &'static str, hint: impl Into<String>) -> Self {
        Advice { kind, hint: Some(hint.into()) }
    }

    /// For an error whose message leaves nothing to add.
    pub(crate) fn without_hint(kind: &'static str) -> Self {
        Advice { kind, hint: None }
    }
}

/// A state, as messages name it.
pub(crate) fn in_words(state: State) -> &'static str {
    if state == State::Waiting { "waiting for you" } else { state.as_str() }
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl FileError {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        use io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match self {
            FileError::Read { source, .. } => match source.kind() {
                NotFound => Advice::new("unreadable", "check the path"),
                PermissionDenied => Advice::new("unreadable", "check the permissions of the file and its folder"),
                _ => Advice::without_hint("unreadable"),
            },
            FileError::Write { source, .. } => Advice::new(
                "cannot_write",
                match source.kind() {
                    StorageFull | QuotaExceeded => "the disk is full; free some space and try again",
                    PermissionDenied => "check the permissions of the folder",
                    ReadOnlyFilesystem => "the file system is read-only",
                    _ => "check that the disk has space and the folder is writable",
                },
            ),
        }
    }
}

/// The caller no longer waits for the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancelled {
    /// The kind; there is nothing to do about it.
    pub fn advice(&self) -> Advice {
        Advice::without_hint("cancelled")
    }
}

/// For the error of a folder that has a variant for each of these lower errors: converts them into it, and passes their
/// advice on. In the match of `advice`, `passed_on!()` stands for all of these variants.
macro_rules! wraps {
    ($($variant:ident),+ $(,)?) => {
        $($crate::advice::convert!($variant);)+

        macro_rules! passed_on {
            () => { $(Error::$variant(_))|+ };
        }

        impl Error {
            /// The advice of the lower error that this one wraps.
            fn passed_on(&self) -> Advice {
                match self {
                    $(Error::$variant(error) => error.advice(),)+
                    #[allow(unreachable_patterns, reason = "some errors only wrap others")]
                    own => own.advice(),
                }
            }
        }
    };
}

/// Converts a lower error. One that the lower folder itself only passed on keeps its own variant, so that it looks the same
/// however many folders it went through.
macro_rules! convert {
    (Cancelled) => { $crate::advice::convert!(@ $crate::advice::Cancelled => Cancelled); };
    (File) => { $crate::advice::convert!(@ $crate::advice::FileError => File); };
    (Reported) => { $crate::advice::convert!(@ $crate::reported::ReportedError => Reported); };
    (Registry) => { $crate::advice::convert!(@ registry as Registry); };
    (Config) => { $crate::advice::convert!(@ config as Config); };
    (Workspace) => { $crate::advice::convert!(@ workspace as Workspace, passes File); };
    (Program) => { $crate::advice::convert!(@ program as Program, passes Config); };
    (Sessions) => {
        $crate::advice::convert!(@ sessions as Sessions, passes File, Config, Workspace, Registry);
    };
    (Operations) => {
        $crate::advice::convert!(
            @ operations as Operations, passes File, Config, Workspace, Registry, Program, Sessions
        );
    };
    (Code) => {
        $crate::advice::convert!(
            @ code as Code, passes File, Config, Workspace, Registry, Program, Sessions, Operations
        );
    };
    (Run) => {
        $crate::advice::convert!(
            @ run as Run, passes Cancelled, File, Config, Workspace, Registry, Program, Sessions
        );
    };
    (Naming) => {
        $crate::advice::convert!(
            @ naming as Naming,
            passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run
        );
    };
    (Fork) => {
        $crate::advice::convert!(
            @ fork as Fork,
            passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming
        );
    };
    (Search) => {
        $crate::advice::convert!(
            @ search as Search,
            passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming, Fork
        );
    };
    (Setup) => {
        $crate::advice::convert!(
            @ setup as Setup, passes File, Config, Workspace, Registry, Program, Sessions, Operations, Search
        );
    };
    (@ $lower:ident as $variant:ident, passes $($passed:ident),+) => {
        impl From<$crate::$lower::Error> for Error {
            fn from(error: $crate::$lower::Error) -> Self {
                type Lower = $crate::$lower::Error;
                match error {
                    $(Lower::$passed(error) => Error::$passed(error),)+
                    error => Error::$variant(error),
                }
            }
        }
    };
    (@ $lower:ident as $variant:ident) => {
        $crate::advice::convert!(@ $crate::$lower::Error => $variant);
    };
    (@ $lower:path => $variant:ident) => {
        impl From<$lower> for Error {
            fn from(error: $lower) -> Self {
                Error::$variant(error)
            }
        }
    };
}

pub(crate) use {convert, wraps};

/// Sample errors for the review of all messages. The compiler rejects a list without a sample of each variant; variants that
/// only wrap the error of another folder are listed after `wraps`.
#[cfg(test)]
macro_rules! samples {
    ($($variant:ident $(($($value:tt)*))? $({$($field:tt)*})?),* $(,)?; wraps $($wrapper:ident),* $(,)?) => {{
        #[allow(unreachable_patterns, reason = "a variant may have several samples")]
        fn names_every_variant(error: &Error) {
            match error {
                $(Error::$variant { .. } => {})*
                $(Error::$wrapper { .. } => {})*
            }
        }
        let samples = vec![$(Error::$variant $(($($value)*))? $({$($field)*})?),*];
        samples.iter().for_each(names_every_variant);
        samples
    }};
}

#[cfg(test)]
pub(crate) use samples;
