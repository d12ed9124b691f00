//! Writing a copy, flushing it and reading it back, all at the same time.
//!
//! One thread takes the source apart, another writes what becomes of it, because copying into the page cache takes half as
//! long again. A reader follows the writer through the file, one block behind it, so that what it checks is what the
//! file holds and comes out of the page cache. One more has the disk write while the rest is still being copied, so
//! that little is left to flush at the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::copy::{Copied, CopyOrder, ReadBack};
use crate::{Known, Store};

/// How much is written before the disk is told to begin.
const FLUSHED_AT_ONCE: u64 = 16 << 20;

/// How much is written at once. Blocks lie at multiples of their size, for which a file system does a third less than for
/// any other place: it takes large pieces of memory for them, and touches each of them once.
const BLOCK: usize = 512 << 10;

/// How many blocks wait to be written.
const AHEAD: usize = 4;

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
    let growing = &growing;
    thread::scope(|scope| {
        let (to_write, blocks) = mpsc::sync_channel(AHEAD);
        let (to_fill, written) = mpsc::channel();
        let (to_flush, flushes) = mpsc::channel();
        let reader = scope.spawn(move || store.read_back(path, source, order, Some(growing)));
        let flusher = scope.spawn(move || flush(file, &flushes));
        let writer = scope.spawn(move || {
            // Whatever happens, nobody goes on waiting for more.
            let _ends = Ends(growing);
            write(file, growing, (&blocks, &to_fill), &to_flush)
        });
        let copied = {
            let mut out = Outbox { block: Vec::new(), to_write, written };
            store.copy(source, order, known, &mut out).and_then(|copied| out.flush().map(|()| copied))
        };
        let panicked = |_| io::Error::other("a thread of the copy ended early");
        let wrote = writer.join().map_err(panicked)?;
        let read = reader.join().map_err(panicked)?;
        let flushed = flusher.join().map_err(panicked)?;
        // Where nothing more could be written, nothing more could be copied either.
        wrote?;
        let copied = copied?;
        flushed?;
        Ok((copied, read))
    })
}

/// Writes all blocks, gives them back to be filled again, and has them flushed from time to time.
fn write(
    mut file: &File,
    growing: &Growing,
    (blocks, to_fill): (&Receiver<Vec<u8>>, &Sender<Vec<u8>>),
    to_flush: &Sender<()>,
) -> io::Result<()> {
    let mut unflushed = 0;
    for block in blocks {
        file.write_all(&block)?;
        growing.grow(block.len() as u64);
        unflushed += block.len() as u64;
        if unflushed >= FLUSHED_AT_ONCE {
            unflushed = 0;
            // Where nobody takes it, flushing has failed, which is told in the end.
            let _ = to_flush.send(());
        }
        // Where nobody takes it, the last block was filled.
        let _ = to_fill.send(block);
    }
    Ok(())
}

fn flush(file: &File, flushes: &Receiver<()>) -> io::Result<()> {
    while flushes.recv().is_ok() {
        // A slow disk gets all at once that was written while it was busy.
        flushes.try_iter().for_each(drop);
        file.sync_data()?;
    }
    file.sync_all()
}

/// Gathers blocks and lays them down until they are written.
struct Outbox {
    block: Vec<u8>,
    to_write: SyncSender<Vec<u8>>,
    written: Receiver<Vec<u8>>,
}

impl Outbox {
    fn send(&mut self) -> io::Result<()> {
        let mut next = self.written.try_recv().unwrap_or_default();
        next.clear();
        let block = std::mem::replace(&mut self.block, next);
        self.to_write.send(block).map_err(|_| io::Error::other("it cannot be written"))
    }
}

impl Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.reserve_exact(BLOCK - self.block.len());
        let count = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        if self.block.len() == BLOCK {
            self.send()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
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

    fn grow(&self, count: u64) {
        self.state().written += count;
        self.changed.notify_all();
    }

    /// Waits until more than `size` bytes are written, or all that there will be.
    fn wait_for_more(&self, size: u64) {
        let waiting = |state: &mut Grown| state.written <= size && !state.ended;
        drop(self.changed.wait_while(self.state(), waiting));
    }
}

/// Ends the growing, whatever ended the writing.
struct Ends<'a>(&'a Growing);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_all();
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
            growing.wait_for_more(self.read);
        }
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}
