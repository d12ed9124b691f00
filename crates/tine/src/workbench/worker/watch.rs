//! Looks for changes of a transcript that is followed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::workbench::event::{Effect, Event};

/// How often a transcript that is followed is checked.
const LOOK: Duration = Duration::from_millis(500);

/// Reports changes of the followed transcript. Without one, this thread sleeps.
pub(super) fn keep_watch(effects: &Receiver<Effect>, events: &Sender<Event>) {
    let stamp = |path: &Path| engine::session_stamp(path).ok();
    let mut watched: Option<(PathBuf, Option<engine::Stamp>)> = None;
    loop {
        let received = match watched {
            Some(_) => effects.recv_timeout(LOOK),
            None => effects.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(Effect::Watch(path)) => watched = path.map(|path| (path.clone(), stamp(&path))),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if let Some((path, seen)) = &mut watched {
                    let now = stamp(path);
                    if now != *seen {
                        *seen = now;
                        if events.send(Event::Changed(path.clone())).is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }
}
