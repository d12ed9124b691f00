//! A progress bar that shows itself only when something takes longer than a person likes to wait in the dark.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};

const PATIENCE: Duration = Duration::from_millis(700);

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
