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

/// Converts the error of a lower folder into this folder's. An error that the lower folder itself only passed on keeps its own
/// variant, so that it looks the same however many folders it went through.
macro_rules! lift {
    ($folder:ident as $variant:ident $(, passes $($passed:ident),+)?) => {
        impl From<$folder::Error> for Error {
            fn from(error: $folder::Error) -> Self {
                match error {
                    $($($folder::Error::$passed(error) => Error::$passed(error),)+)?
                    error => Error::$variant(error),
                }
            }
        }
    };
}

pub(crate) use lift;

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
