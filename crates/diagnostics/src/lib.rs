//! The diagnostic log: ignored errors, for users who wonder why something didn't happen.
//!
//! Code that can continue without a result calls [`OrLog::or_log`] instead of dropping the error. Nothing is written
//! unless [`install`] was called; until then, a call costs one comparison, and nothing is formatted.

mod file;

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::Location;

pub use file::install;
pub use tracing::Level;
pub use tracing::level_filters::LevelFilter;

/// The target of tine's own events. Those of other crates are left out, because they may quote what agents say.
pub const TARGET: &str = "tine";

/// For results whose error doesn't change what happens next.
pub trait OrLog<T> {
    /// The value; an error is logged as `could not ACTION`.
    ///
    /// The action must not contain text from a conversation. Use `format_args!` to name an object: it is formatted only when
    /// the line is written.
    fn or_log(self, action: impl Display) -> Option<T>;
}

impl<T, E: Display + 'static> OrLog<T> for Result<T, E> {
    #[track_caller]
    #[inline]
    fn or_log(self, action: impl Display) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(error) => {
                log_error(&error, &action, Location::caller());
                None
            }
        }
    }
}

/// Logs something worth knowing that is no error.
pub fn info(message: impl Display) {
    tracing::info!(target: TARGET, "{message}");
}

#[cold]
fn log_error<E: Display + 'static>(error: &E, action: &dyn Display, place: &Location<'_>) {
    let (file, line) = (place.file(), place.line());
    let is_expected = (error as &dyn Any).downcast_ref::<io::Error>().is_some_and(is_expected);
    if is_expected {
        tracing::debug!(target: TARGET, "could not {action}: {error} ({file}:{line})");
    } else {
        tracing::warn!(target: TARGET, "could not {action}: {error} ({file}:{line})");
    }
}

/// Whether an error is expected: already removed, already there, or a folder that is still in use.
fn is_expected(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}
