//! Signals to processes that are known by their numbers.

use diagnostics::OrLog;

/// A signal to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    End,
    Stop,
    Kill,
}

/// Sends a signal to a process, if it still runs.
#[cfg(unix)]
pub(crate) fn signal(pid: u32, signal: Signal) {
    use rustix::process::{Pid, Signal as Number, kill_process};
    let number = match signal {
        Signal::Interrupt => Number::INT,
        Signal::End => Number::TERM,
        Signal::Stop => Number::STOP,
        Signal::Kill => Number::KILL,
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, number).or_log("send a signal");
    }
}

#[cfg(not(unix))]
pub(crate) fn signal(_pid: u32, _signal: Signal) {}
