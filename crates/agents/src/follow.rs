//! Writing a copy, flushing it and reading it back, all at the same time.
//!
//! A reader follows the writer through the file, one block behind it, so that what it checks is what the file holds and
//! comes out of the page cache. A third thread has the disk write while the rest is still being copied, so that little
//! is left to flush at the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::copy::{Copied, CopyOrder, ReadBack};
use crate::{Known, Store};

/// How much is written before the disk is told to begin.
const FLUSHED_AT_ONCE: u64 = 64 << 20;

/// Copies `source` into `file`, which lies at `path` and is empty, flushes it and reads it back. What was read is still
/// to be compared: [`Copied::compare`].
pub fn write_copy(
    store: &dyn Store,
    source: &Path,
    order: &CopyOrder,
    known: Option<&Known>,
    (path, file): (&Path, &File),
) -> io::Result<(Copied, ReadBack)> {
    let growing = Growing::default();
    thread::scope(|scope| {
        let reader = scope.spawn(|| store.read_back(path, source, order, Some(&growing)));
        let flusher = scope.spawn(|| flush(file, &growing));
        let copied = {
            // Whatever happens, nobody goes on waiting for more.
            let mut out = Writer { file, growing: &growing };
            store.copy(source, order, known, &mut out)
        };
        let panicked = |_| io::Error::other("a thread of the copy ended early");
        let read = reader.join().map_err(panicked)?;
        let flushed = flusher.join().map_err(panicked)?;
        let copied = copied?;
        flushed?;
        Ok((copied, read))
    })
}

fn flush(file: &File, growing: &Growing) -> io::Result<()> {
    let mut flushed = 0;
    while let Some(written) = growing.wait_for(flushed + FLUSHED_AT_ONCE) {
        file.sync_data()?;
        flushed = written;
    }
    file.sync_all()
}

/// How far a file has been written.
#[derive(Debug, Default)]
pub struct Growing {
    state: Mutex<Grown>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Grown {
    written: u64,
    ended: bool,
}

impl Growing {
    fn state(&self) -> MutexGuard<'_, Grown> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `size` bytes are written and tells how many there are; nothing where the file ended before.
    fn wait_for(&self, size: u64) -> Option<u64> {
        let waiting = |state: &mut Grown| state.written < size && !state.ended;
        let state = self.changed.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        (state.written >= size).then_some(state.written)
    }
}

/// Writes and tells how far it is.
struct Writer<'a> {
    file: &'a File,
    growing: &'a Growing,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.file;
        let count = file.write(bytes)?;
        self.growing.state().written += count as u64;
        self.growing.changed.notify_all();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.growing.state().ended = true;
        self.growing.changed.notify_all();
    }
}

/// Reads a file that is still being written, up to where it ends once that is done.
pub(crate) struct Following<'a> {
    file: File,
    growing: Option<&'a Growing>,
    read: u64,
}

impl<'a> Following<'a> {
    /// Opens `path`; without somebody who writes, it is an ordinary file.
    pub(crate) fn open(path: &Path, growing: Option<&'a Growing>) -> io::Result<Self> {
        Ok(Following { file: File::open(path)?, growing, read: 0 })
    }
}

impl Read for Following<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(growing) = self.growing {
            growing.wait_for(self.read + 1);
        }
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}
