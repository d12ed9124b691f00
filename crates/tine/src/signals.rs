//! Signals that would end tine where an ordinary error is better.

#[cfg(unix)]
use std::sync::OnceLock;

use engine::Cancel;

/// Makes a write past the file size limit (`ulimit -f`) fail with an error instead of ending the process.
///
/// A handler that does nothing is better than ignoring the signal: programs that tine starts would inherit that.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library can't handle signals")]
pub(crate) fn survive_file_size_limit() {
    extern "C" fn do_nothing(_signal: libc::c_int) {}
    // SAFETY: the handler does nothing, which is safe in every state of the process.
    unsafe {
        libc::signal(libc::SIGXFSZ, do_nothing as *const () as libc::sighandler_t);
    }
}

#[cfg(not(unix))]
pub(crate) fn survive_file_size_limit() {}

/// Cancels what this process does when it is asked to end (SIGTERM), so that it can end its agent first.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library can't handle signals")]
pub(crate) fn cancel_when_terminated(cancel: Cancel) {
    static CANCEL: OnceLock<Cancel> = OnceLock::new();
    extern "C" fn terminate(_signal: libc::c_int) {
        if let Some(cancel) = CANCEL.get() {
            cancel.cancel();
        }
    }
    let _ = CANCEL.set(cancel);
    // SAFETY: the handler only stores to an atomic, which is safe in every state of the process.
    unsafe {
        libc::signal(libc::SIGTERM, terminate as *const () as libc::sighandler_t);
    }
}

#[cfg(not(unix))]
pub(crate) fn cancel_when_terminated(_cancel: Cancel) {}
