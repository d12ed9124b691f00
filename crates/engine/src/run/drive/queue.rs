//! The order of messages to a session.
//!
//! One process at a time holds the session's lock. Workers send their messages in the order in which they were started:
//! each has a ticket, a file with its process number in the name, for as long as it runs.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agents::Holder;
use diagnostics::OrLog;
use transcript::State;

use super::send::Target;
use super::{ENDS_WITHIN, PAUSE};
use crate::context::Context;
use crate::ctx::Ctx;
use crate::private;
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;

/// The workers that are about to send a message to a session.
pub(crate) struct Queue {
    folder: PathBuf,
}

/// The place of a worker in the queue.
struct Ticket {
    /// When it joined, in nanoseconds since 1970.
    joined: u128,
    pid: u32,
}

/// AgentPane while a message is sent to a session. The system releases it when the process ends.
pub(super) struct SendLock {
    _lock: Option<fs::File>,
}

impl Queue {
    pub(super) fn of(context: &Context, session: &Session) -> Self {
        let name = format!("{}-{}.queue", session.view.agent, session.view.id);
        Queue { folder: context.paths.cache.join("locks").join(name) }
    }

    /// Puts a worker at the end.
    pub(super) fn join(&self, pid: u32) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let start = agents::process_start(pid).unwrap_or_default();
        // Without a ticket the message is still sent, though perhaps out of order.
        private::create_folder(&self.folder)
            .and_then(|()| private::open_file(&self.folder.join(format!("{now}-{pid}-{start}"))))
            .or_log("join the queue");
    }

    /// The workers that run, in order. Tickets of workers that have ended are removed.
    fn tickets(&self) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let mut parts = name.to_str().unwrap_or_default().splitn(3, '-');
            let joined = parts.next().and_then(|joined| joined.parse().ok());
            let pid = parts.next().and_then(|pid| pid.parse().ok());
            match (joined, pid, parts.next()) {
                (Some(joined), Some(pid), Some(start)) if agents::process_start(pid).as_deref() == Some(start) => {
                    tickets.push(Ticket { joined, pid });
                }
                _ => fs::remove_file(entry.path())
                    .or_log(format_args!("remove {}", entry.path().display()))
                    .unwrap_or_default(),
            }
        }
        tickets.sort_unstable_by_key(|ticket| ticket.joined);
        tickets
    }

    /// Whether this process may send now: it is the first in the queue, or the queue is empty.
    fn is_our_turn(&self) -> bool {
        self.tickets().first().is_none_or(|first| first.pid == std::process::id())
    }
}

/// Whether a message from another process still waits for its answer in the background.
pub(super) fn is_awaited(ctx: &Ctx, session: &Session) -> bool {
    let tickets = Queue::of(ctx.context(), session).tickets();
    tickets.iter().any(|ticket| ticket.pid != std::process::id())
}

/// Whether another process is about to send a message to a session.
pub(super) fn is_taken(ctx: &Ctx, session: &Session) -> bool {
    let lock = fs::File::open(lock_file(ctx, &Target::Session(Box::new(session.clone()))));
    let is_locked = lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
    is_locked || is_awaited(ctx, session)
}

/// Whether a session runs without a terminal, and ends when it has answered.
pub(crate) fn is_headless(ctx: &Ctx, session: &Session) -> bool {
    let proc = ctx.context().surroundings.proc.as_deref();
    let pid = session.live.as_ref().and_then(|live| live.pid).filter(|_| session.holder() == Some(Holder::Agent));
    let arguments = proc.zip(pid).and_then(|(proc, pid)| agents::arguments_of(proc, pid));
    arguments.is_some_and(|arguments| agents::about(session.view.agent).options.is_headless(&arguments))
}

/// Waits for the end of an agent that has answered without a terminal. Its tine may have been killed, so that nothing
/// else waits for it. The agent of a chat in the workbench stays.
pub(super) fn wait_for_end_of_headless(ctx: &Ctx, mut session: Session) -> Result<Session> {
    let begun = Instant::now();
    while session.live.is_some() && is_headless(ctx, &session) && begun.elapsed() < ENDS_WITHIN {
        ctx.pause(PAUSE)?;
        session = refresh(ctx, &session)?;
    }
    Ok(session)
}

fn lock_file(ctx: &Ctx, target: &Target) -> PathBuf {
    let name = match target {
        Target::Session(session) => format!("{}-{}", session.view.agent, session.view.id),
        Target::EmptySession(name) => format!("name-{name}"),
    };
    ctx.context().paths.cache.join("locks").join(name)
}

/// Waits for our turn to send a message to a session.
pub(super) fn lock_for(ctx: &Ctx, target: &Target, timeout: Option<Duration>) -> Result<SendLock> {
    let file = lock_file(ctx, target);
    let opened = file.parent().map_or(Ok(()), private::create_folder).and_then(|()| private::open_file(&file));
    // Without a cache folder, messages are not locked and concurrent ones may mix.
    let Ok(lock) = opened else {
        return Ok(SendLock { _lock: None });
    };
    let queue = match target {
        Target::Session(session) => Some(Queue::of(ctx.context(), session)),
        Target::EmptySession(_) => None,
    };
    let begun = Instant::now();
    loop {
        if queue.as_ref().is_none_or(Queue::is_our_turn) {
            match lock.try_lock() {
                Ok(()) => return Ok(SendLock { _lock: Some(lock) }),
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(_)) => return Ok(SendLock { _lock: None }),
            }
        }
        let waited = begun.elapsed();
        if timeout.is_some_and(|timeout| waited >= timeout) {
            let (session, seconds) = (target.label(), waited.as_secs());
            return Err(Error::StillAtWork { session, state: State::Busy, seconds });
        }
        ctx.pause(PAUSE)?;
    }
}
