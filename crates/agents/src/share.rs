//! Looking at the lines of a long file on several threads.
//!
//! Threads take turns in reading blocks of whole lines, process them in parallel, and the results are used in file
//! order. The result for a line may depend only on that line. Memory is bounded: each thread holds one block, a block
//! that had to grow for a long line is processed while no other thread reads, and no thread starts another block while
//! too many results wait for an earlier one.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::blocks::{Block, BlockReader, ReadOptions};

/// Calls `look` for all blocks of lines of `source` before the offset `limit`, and passes the results to `take` in file
/// order. If the source becomes unreadable, all lines before that are processed, and the error is returned.
pub(crate) fn map_in_parallel<R, F>(
    source: R,
    limit: u64,
    means: ReadOptions,
    look: impl Fn(&Block) -> F + Sync,
    mut take: impl FnMut(F),
) -> io::Result<()>
where
    R: Read + Send,
    F: Send,
{
    let reader = BlockReader::new(source, limit, means);
    let desk = Desk {
        reading: Mutex::new(Reading { reader, next: 0 }),
        results: Mutex::new(Results { ready: BTreeMap::new(), begun: 0, taken: 0, ended: false, broken: false }),
        changed: Condvar::new(),
        most: 4 * means.threads as u64,
    };
    thread::scope(|scope| {
        for _ in 1..means.threads {
            scope.spawn(|| {
                let _end = EndsAll(&desk);
                let mut block = Block::default();
                while desk.may_begin() && desk.one_block(&mut block, &look) {}
            });
        }
        // This thread looks at blocks as well, whenever there is nothing to take.
        let _end = EndsAll(&desk);
        let mut block = Block::default();
        loop {
            match desk.next(&mut take) {
                Next::Taken => {}
                Next::Begin => {
                    desk.one_block(&mut block, &look);
                }
                Next::Nothing => break,
            }
        }
    });
    let reading = desk.reading.into_inner().unwrap_or_else(PoisonError::into_inner);
    reading.reader.error()
}

/// What the threads share.
struct Desk<R, F> {
    reading: Mutex<Reading<R>>,
    results: Mutex<Results<F>>,
    changed: Condvar,
    /// How many blocks may be begun and not yet taken.
    most: u64,
}

struct Reading<R> {
    reader: BlockReader<R>,
    next: u64,
}

struct Results<F> {
    ready: BTreeMap<u64, F>,
    begun: u64,
    taken: u64,
    /// No more blocks are begun.
    ended: bool,
    /// A thread panicked, so that what it had begun will never be there.
    broken: bool,
}

enum Next {
    /// Something was taken.
    Taken,
    /// There is nothing to take yet, and a block was promised to be begun.
    Begin,
    /// All was taken.
    Nothing,
}

/// No thread waits for one that has ended, whatever the reason.
struct EndsAll<'a, R, F>(&'a Desk<R, F>);

impl<R, F> Drop for EndsAll<'_, R, F> {
    fn drop(&mut self) {
        let mut results = self.0.results();
        results.ended = true;
        results.broken |= thread::panicking();
        drop(results);
        self.0.changed.notify_all();
    }
}

impl<R: Read, F> Desk<R, F> {
    /// Reads the next block, processes it and stores the result; false at the end.
    fn one_block(&self, block: &mut Block, look: &impl Fn(&Block) -> F) -> bool {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if !reading.reader.next(block) {
            drop(reading);
            let mut results = self.results();
            results.begun -= 1;
            results.ended = true;
            self.changed.notify_all();
            return false;
        }
        let number = reading.next;
        reading.next += 1;
        let found = if reading.reader.is_large(block) {
            let found = look(block);
            reading.reader.recycle(block);
            found
        } else {
            drop(reading);
            look(block)
        };
        self.results().ready.insert(number, found);
        self.changed.notify_all();
        true
    }
}

impl<R, F> Desk<R, F> {
    fn results(&self) -> MutexGuard<'_, Results<F>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another block may be started; false at the end.
    fn may_begin(&self) -> bool {
        let is_full = |results: &mut Results<F>| !results.ended && results.begun - results.taken >= self.most;
        let mut results = self.changed.wait_while(self.results(), is_full).unwrap_or_else(PoisonError::into_inner);
        results.begun += u64::from(!results.ended);
        !results.ended
    }

    /// Takes the next result, or returns what else to do.
    fn next(&self, take: &mut impl FnMut(F)) -> Next {
        let mut results = self.results();
        loop {
            let number = results.taken;
            if let Some(found) = results.ready.remove(&number) {
                results.taken += 1;
                drop(results);
                self.changed.notify_all();
                take(found);
                return Next::Taken;
            }
            if !results.ended && results.begun - results.taken < self.most {
                results.begun += 1;
                return Next::Begin;
            }
            if results.broken || results.ended && results.begun == results.taken {
                return Next::Nothing;
            }
            results = self.changed.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_thread_that_panics_does_not_leave_the_others_waiting() {
        let caller = thread::current().id();
        let look = |_: &Block| {
            // Long enough that the other thread comes to it.
            thread::sleep(Duration::from_millis(1));
            assert_eq!(thread::current().id(), caller);
        };
        let text = b"a\n".repeat(10_000);
        let _ = map_in_parallel(&text[..], u64::MAX, ReadOptions { threads: 2, block: 2, longest: 9 }, look, |()| {});
    }
}
