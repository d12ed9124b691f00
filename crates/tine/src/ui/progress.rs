//! A progress bar that appears only for slow work.

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::{CopyProgress, IndexProgress, Progress, size_of};
use indicatif::{ProgressBar, ProgressStyle};
use transcript::{SessionView, State, text};

use super::{bytes, count};

const PATIENCE: Duration = Duration::from_millis(700);

/// How often a wait is reported without a terminal.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// A bar on standard error.
pub(crate) struct Bar {
    begun: Instant,
    wanted: bool,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Bar { begun: Instant::now(), wanted: std::io::stderr().is_terminal(), bar: OnceLock::new() }
    }
}

impl Bar {
    /// Shows a line in the place of a bar.
    fn print_line(&self, line: &str) {
        if !self.wanted || self.begun.elapsed() < PATIENCE {
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bar.get_or_init(|| ProgressBar::new_spinner().with_style(style));
        bar.set_message(line.to_owned());
        bar.tick();
    }
}

/// A line on standard error for forks that are made one after the other.
pub(crate) struct ForksBar(Bar);

impl ForksBar {
    pub(crate) fn new() -> Self {
        ForksBar(Bar::new())
    }

    pub(crate) fn made(&self, done: usize, total: usize) {
        self.0.print_line(&format!("forking: {done} of {total}"));
    }
}

/// Something that takes as long as it takes, and shows on a terminal for how long it has.
pub(crate) struct Busy(ProgressBar);

impl Busy {
    pub(crate) fn new(line: String) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}");
        let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(line);
        bar.enable_steady_tick(Duration::from_millis(500));
        Busy(bar)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn step(&self, done: usize, total: usize) {
        if !self.wanted || self.begun.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let style = ProgressStyle::with_template("reading sessions {bar:30} {pos}/{len}");
            ProgressBar::new(total as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// A bar on standard error for a directory copy. The total is counted meanwhile; until then, it shows only what is
/// done.
pub(crate) struct CopyBar {
    bar: Bar,
    total: Arc<OnceLock<u64>>,
    is_over: Arc<AtomicBool>,
}

impl CopyBar {
    pub(crate) fn new() -> Self {
        CopyBar { bar: Bar::new(), total: Arc::default(), is_over: Arc::default() }
    }
}

impl CopyProgress for CopyBar {
    fn begins(&self, source: &Path) {
        if !self.bar.wanted {
            return;
        }
        let (source, total, is_over) = (source.to_owned(), self.total.clone(), self.is_over.clone());
        std::thread::spawn(move || {
            if let Some(size) = size_of(&source, &is_over) {
                let _ = total.set(size);
            }
        });
    }

    fn copied(&self, files: u64, size: u64) {
        let done = format!("copying: {}, {}", count(files, "file"), bytes(size));
        let Some(total) = self.total.get().filter(|total| **total > 0) else {
            return self.bar.print_line(&done);
        };
        self.bar.print_line(&format!("{done} of {}", bytes(*total)));
        if let Some(bar) = self.bar.bar.get() {
            let style = ProgressStyle::with_template("{msg} {bar:30} {percent}%");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_length(*total);
            // A file may grow while it is copied.
            bar.set_position(size.min(*total));
        }
    }
}

impl Drop for CopyBar {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A line on standard error for the search index.
pub(crate) struct IndexBar(Bar);

impl IndexBar {
    pub(crate) fn new() -> Self {
        IndexBar(Bar::new())
    }
}

impl IndexProgress for IndexBar {
    fn read(&self, pass: &'static str, done: u64, total: u64) {
        self.0.print_line(&format!("indexing {pass}: {} of {}", bytes(done), bytes(total)));
    }
}

/// A line on standard error for a session that is waited for: kept up to date on a terminal, elsewhere a new one from time
/// to time.
pub(crate) struct Waiting {
    bar: Bar,
    /// When the next line is due without a terminal.
    next: Cell<Duration>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Waiting { bar: Bar::new(), next: Cell::new(PATIENCE) }
    }

    pub(crate) fn show(&self, session: &SessionView, waited: Duration) {
        let why = match session.state {
            State::Waiting => "it needs your answer",
            _ => "it is busy",
        };
        let line = format!("waiting for {}: {why} ({} s)", text::one_line(session.label()), waited.as_secs());
        if self.bar.wanted {
            self.bar.print_line(&line);
        } else if waited >= self.next.get() {
            super::print_message(&line);
            self.next.set(waited + SAID_EVERY);
        }
    }
}
