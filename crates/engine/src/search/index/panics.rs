//! Catches panics of tantivy, which trusts its files and may panic on damaged ones. A panic counts as damage until a full
//! verification shows that the files are intact and that the panic was a bug.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::boot::forget_boot;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The index that this process has opened.
static OPENED: OnceLock<PathBuf> = OnceLock::new();

/// Whether a panic of this thread is caught and should not be reported.
pub fn is_panic_caught() -> bool {
    IS_CAUGHT.get()
}

/// For an uncaught panic: makes the next process that opens the index verify every byte first. Returns whether this
/// process had one open.
pub fn require_index_check() -> bool {
    OPENED.get().is_some_and(|folder| forget_boot(folder))
}

/// Records which index is trusted.
pub(crate) fn trusted(folder: &Path) {
    OPENED.get_or_init(|| folder.to_owned());
}

/// Sets for this thread what [`is_panic_caught`] returns for the thread that waits for it.
pub(crate) fn is_caught_as(is_caught: bool) {
    IS_CAUGHT.set(is_caught);
}

/// Runs work on the index, and returns the message of a panic.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}
