//! What can go wrong with a file of vectors.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file of vectors cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses.
    #[error("cannot {verb} {}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process is writing.
    #[error("another process is writing {}", .0.display())]
    Busy(PathBuf),
    /// The file is of another version of tine, or its vectors are another model's.
    #[error("the vectors in {} were created by another version of tine", .0.display())]
    Foreign(PathBuf),
    /// The file is not what was written.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

impl Error {
    /// Whether the file can only be rebuilt ([`VectorWriter::create_or_replace`](crate::VectorWriter::create_or_replace)).
    pub fn calls_for_rebuild(&self) -> bool {
        matches!(self, Error::Foreign(_) | Error::Damaged { .. })
    }

    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { verb, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str) -> Error {
        Error::Damaged { path: path.to_owned(), what }
    }
}
