//! Writes events into a file, one line each.
//!
//! A subscriber of our own instead of `tracing-subscriber`: spans, filters and formats are not needed, and every hook
//! would pay for their setup.

use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::TARGET;

/// Appends the events of this process to a file that only its owner can read, from now on.
///
/// `clean` gets every message before it is written, to mask secrets and control characters.
///
/// # Errors
/// When the file cannot be opened, or when the process already has a log.
pub fn install(path: &Path, level: LevelFilter, clean: fn(&str) -> String) -> io::Result<()> {
    let file = open(path)?;
    tracing::subscriber::set_global_default(LogFile { file, level, clean }).map_err(io::Error::other)
}

struct LogFile {
    file: File,
    level: LevelFilter,
    clean: fn(&str) -> String,
}

impl Subscriber for LogFile {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let (time, level, process) = (Timestamp::now(), event.metadata().level(), std::process::id());
        let line = format!("{time:.3} {level:5} {process} {}\n", (self.clean)(&message.0));
        // One call, so that concurrent processes don't mix their lines. A failure can't be reported anywhere.
        drop((&self.file).write_all(line.as_bytes()));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OrLog;

    fn logged(level: LevelFilter, act: impl FnOnce()) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log/tine.log");
        let file = open(&path).expect("a log");
        let clean = |text: &str| text.replace("s3cret", "[secret]");
        tracing::subscriber::with_default(LogFile { file, level, clean }, act);
        let text = fs::read_to_string(path).expect("the log");
        // Without the time and the process.
        text.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect()
    }

    /// An error of each kind; the first line that is logged is that of this function.
    fn ignore_errors() {
        let missing: io::Result<u8> = Err(io::ErrorKind::NotFound.into());
        let denied: Result<u8, String> = Err("permission denied: s3cret".into());
        assert_eq!(missing.or_log("remove the lock"), None);
        assert_eq!(denied.or_log(format_args!("write to {}", "the cache")), None);
        assert_eq!(Ok::<u8, String>(1).or_log("count"), Some(1));
        tracing::error!(target: "rmcp", "a request");
    }

    #[test]
    fn an_ignored_error_leaves_a_line_with_its_place() {
        let process = std::process::id();
        let lines = logged(LevelFilter::DEBUG, ignore_errors);
        let [missing, denied] = &lines[..] else { panic!("{lines:?}") };
        assert!(
            missing.starts_with(&format!("DEBUG {process} could not remove the lock: entity not found (")),
            "{missing}"
        );
        assert!(denied.contains("could not write to the cache: permission denied: [secret] ("), "{denied}");
        assert!(denied.starts_with("WARN") && denied.contains("diagnostics/src/file.rs:"), "{denied}");
    }

    #[test]
    fn the_level_decides_what_is_written() {
        assert_eq!(logged(LevelFilter::WARN, ignore_errors).len(), 1);
        assert_eq!(logged(LevelFilter::ERROR, ignore_errors).len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = open(&folder.path().join("tine.log")).expect("a log");
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("metadata").permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
