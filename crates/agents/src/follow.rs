//! Writes a copy, flushes it and reads it back, all at the same time.
//!
//! One thread parses the source and writes the copy, while the data is still in its core's cache. A second one follows
//! through the file, a few blocks behind, so that it checks what the file really contains, from the page cache. A third
//! one flushes the file meanwhile, so that little is left to flush at the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::copy::{Copied, CopyRequest, ReadBack};
use crate::{Adapter, PlainScan};

/// Bytes to write before flushing starts.
const FLUSHED_AT_ONCE: u64 = 64 << 20;

/// Bytes to gather before writing. Blocks are aligned to their size, which saves a file system a third of the work: it
/// allocates memory in pieces of that size and touches each of them once.
pub(crate) const BLOCK: usize = 128 << 10;

/// Bytes to write before waking the reader.
const TOLD_AT_ONCE: u64 = 256 << 10;

/// Copies `source` to `file`, which is the empty file at `path`, flushes it and reads it back. The result still has to
/// be compared: [`Copied::compare`].
pub fn write_copy(
    adapter: &dyn Adapter,
    source: &Path,
    order: &CopyRequest,
    known: Option<&PlainScan>,
    (path, file): (&Path, &File),
) -> io::Result<(Copied, ReadBack)> {
    let growing = FileGrowth::default();
    let growing = &growing;
    thread::scope(|scope| {
        // Wakes the reader on every exit path.
        let ends = Ends(growing);
        let (to_flush, flushes) = mpsc::channel();
        let reader = scope.spawn(move || adapter.read_back(path, source, order, Some(growing)));
        let flusher = scope.spawn(move || flush(file, &flushes));
        let copied = {
            let _ends = ends;
            let mut out = Outbox::new(file, growing, to_flush);
            adapter.copy(source, order, known, &mut out).and_then(|copied| out.flush().map(|()| copied))
        };
        let panicked = |_| io::Error::other("a thread of the copy ended early");
        let read = reader.join().map_err(panicked)?;
        let flushed = flusher.join().map_err(panicked)?;
        let copied = copied?;
        flushed?;
        Ok((copied, read))
    })
}

fn flush(file: &File, flushes: &Receiver<()>) -> io::Result<()> {
    while flushes.recv().is_ok() {
        // A slow disk gets everything at once that was written while it was busy.
        flushes.try_iter().for_each(drop);
        file.sync_data()?;
    }
    file.sync_all()
}

/// Writes blocks whole or in four pieces, whichever is currently faster. A virtual machine returns large allocations to
/// its host first, and getting them back takes many times as long as writing to them.
#[derive(Default)]
struct AdaptiveWriter {
    written: u32,
    /// The times of the last trials: whole, and in pieces.
    took: [Duration; 2],
}

impl AdaptiveWriter {
    /// How many blocks are written in the faster way, including trials.
    const ROUND: u32 = 128;
    /// How many blocks are written in each way to compare them.
    const TRIAL: u32 = 4;

    fn write(&mut self, mut file: &File, block: &[u8]) -> io::Result<()> {
        let place = self.written % AdaptiveWriter::ROUND;
        self.written = self.written.wrapping_add(1);
        let trial = (place / AdaptiveWriter::TRIAL) as usize;
        let in_pieces = match trial {
            0 | 1 => trial == 1,
            _ => self.took[1] < self.took[0],
        };
        let begun = Instant::now();
        for piece in block.chunks(if in_pieces { BLOCK / 4 } else { BLOCK }) {
            file.write_all(piece)?;
        }
        if let Some(took) = self.took.get_mut(trial) {
            *took = begun.elapsed() + if place.is_multiple_of(AdaptiveWriter::TRIAL) { Duration::ZERO } else { *took };
        }
        Ok(())
    }
}

/// Gathers blocks, writes them, and requests flushes.
struct Outbox<'a> {
    block: Vec<u8>,
    file: &'a File,
    growing: &'a FileGrowth,
    to_flush: Sender<()>,
    untold: u64,
    unflushed: u64,
    pen: AdaptiveWriter,
}

impl<'a> Outbox<'a> {
    fn new(file: &'a File, growing: &'a FileGrowth, to_flush: Sender<()>) -> Self {
        Outbox {
            block: Vec::with_capacity(BLOCK),
            file,
            growing,
            to_flush,
            untold: 0,
            unflushed: 0,
            pen: AdaptiveWriter::default(),
        }
    }

    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        self.pen.write(self.file, block)?;
        self.untold += block.len() as u64;
        self.unflushed += block.len() as u64;
        if self.untold >= TOLD_AT_ONCE {
            self.report_growth();
        }
        if self.unflushed >= FLUSHED_AT_ONCE {
            self.unflushed = 0;
            // If the other thread has ended, flushing failed, which is reported at the end.
            let _ = self.to_flush.send(());
        }
        Ok(())
    }

    fn put_gathered(&mut self) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        self.put(&block)?;
        self.block = block;
        self.block.clear();
        Ok(())
    }

    fn report_growth(&mut self) {
        self.growing.grow(std::mem::take(&mut self.untold));
    }
}

impl Write for Outbox<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // After a shorter piece, blocks would no longer be aligned.
        if self.block.is_empty() && bytes.len() >= BLOCK {
            self.put(&bytes[..BLOCK])?;
            return Ok(BLOCK);
        }
        let count = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        if self.block.len() == BLOCK {
            self.put_gathered()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_gathered()?;
        self.report_growth();
        Ok(())
    }
}

/// The progress of writing a file.
#[derive(Debug, Default)]
pub struct FileGrowth {
    state: Mutex<GrowthState>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct GrowthState {
    written: u64,
    ended: bool,
}

impl FileGrowth {
    fn state(&self) -> MutexGuard<'_, GrowthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow(&self, count: u64) {
        self.state().written += count;
        self.changed.notify_all();
    }

    /// Waits until more than `size` bytes are written, or until the end.
    fn wait_for_more(&self, size: u64) {
        let waiting = |state: &mut GrowthState| state.written <= size && !state.ended;
        drop(self.changed.wait_while(self.state(), waiting));
    }
}

/// Marks the end of writing, whatever the reason.
struct Ends<'a>(&'a FileGrowth);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_all();
    }
}

/// Reads a file that is still being written, up to its final end.
pub(crate) struct Following<'a> {
    file: File,
    growing: Option<&'a FileGrowth>,
    read: u64,
}

impl<'a> Following<'a> {
    /// Opens `path`; without a writer, it is an ordinary file.
    pub(crate) fn open(path: &Path, growing: Option<&'a FileGrowth>) -> io::Result<Self> {
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
