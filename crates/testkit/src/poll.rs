//! Waiting for conditions: polled often, bounded in time, never a fixed sleep.

use std::thread;
use std::time::{Duration, Instant};

/// How long tests wait for an agent before they give up. A turn takes about two seconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer or the time is over.
pub fn poll<T>(timeout: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the condition holds.
///
/// # Panics
/// When it does not come to hold in time; the message names what was waited for.
pub fn wait_until(what: &str, timeout: Duration, mut holds: impl FnMut() -> bool) {
    let held = poll(timeout, || holds().then_some(()));
    assert!(held.is_some(), "waited {timeout:?} in vain for {what}");
}
