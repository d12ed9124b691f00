//! Reports how far a fork is.

use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use engine::CopyProgress;

use crate::workbench::event::Event;

/// How often progress is reported.
const EVERY: Duration = Duration::from_millis(100);

/// Reports the copying of a directory as events.
pub(super) struct Progress {
    reported: Mutex<(Sender<Event>, Instant)>,
}

impl Progress {
    /// Progress of a fork. A seed waits for the agent's first answer.
    pub(super) fn new(events: &Sender<Event>, is_seed: bool) -> Self {
        if is_seed {
            let text = "the agent reads the transcript".to_owned();
            // Without a receiver, the workbench is being closed.
            let _ = events.send(Event::Forking(text));
        }
        Progress { reported: Mutex::new((events.clone(), Instant::now())) }
    }
}

impl CopyProgress for Progress {
    fn copied(&self, files: u64, bytes: u64) {
        let Ok(mut reported) = self.reported.lock() else { return };
        if reported.1.elapsed() < EVERY {
            return;
        }
        reported.1 = Instant::now();
        let _ = reported.0.send(Event::Forking(format!("{files} files, {} MB copied", bytes >> 20)));
    }
}
