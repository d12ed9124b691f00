//! Remembers for which boot of the machine the index is known to be intact.

use std::fs;
use std::io::Write;
use std::path::Path;

use diagnostics::OrLog;

use crate::private;

/// The name of the file that names it.
const BOOT: &str = ".boot";

/// An id that changes with every boot.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Whether the index was created or verified since the last boot. Its files are not flushed, so earlier data may not
/// have reached the disk.
pub(crate) fn is_of_this_boot(folder: &Path) -> bool {
    boot().is_none_or(|boot| fs::read_to_string(folder.join(BOOT)).is_ok_and(|known| known == boot))
}

/// Records that only data written from now on can be incomplete. If that fails, everything is verified again the next
/// time.
pub(crate) fn note_boot(folder: &Path) {
    if let Some(boot) = boot() {
        private::open_file(&folder.join(BOOT))
            .and_then(|mut file| file.write_all(boot.as_bytes()))
            .or_log("note the boot in the index");
    }
}

/// Makes the next process verify everything. Returns whether it will.
pub(crate) fn forget_boot(folder: &Path) -> bool {
    fs::remove_file(folder.join(BOOT)).is_ok()
}
