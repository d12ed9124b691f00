//! Sending a message in the background, through a worker that takes its turn in the session's queue.

use std::time::Instant;

use super::send::{Delivery, Sent, Target, check_message};
use super::{ENDS_WITHIN, PAUSE, TAKEN_UP_WITHIN, queue};
use crate::ctx::Ctx;
use crate::reported::ReportedError;
use crate::run::worker::{self, Job, Worker};
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;

/// Sends a message to a session headless, from a worker. Returns when the agent starts on it, or immediately if the
/// message is queued.
pub(crate) fn send_in_background(ctx: &Ctx, session: &Session, text: &str) -> Result<Sent> {
    check_message(text)?;
    let is_queued = session.live.is_some() || queue::is_taken(ctx, session);
    let (agent, id, path) = (session.view.agent, session.view.id.clone(), session.view.path.clone());
    let job = Job::Send { agent, id, path, text: text.to_owned() };
    // The worker joins the queue before it gets the message, so that messages keep their order.
    let mut worker = Worker::start(ctx, &job, |pid| queue::Queue::of(ctx.context(), session).join(pid))?;
    let begun = if is_queued { Ok(()) } else { wait_until_begun(ctx, session, &mut worker) };
    if matches!(begun, Err(Error::Cancelled(_))) {
        worker::cancel(std::slice::from_ref(worker.process()));
    }
    begun?;
    let delivery = if is_queued { Delivery::Queued } else { Delivery::Headless };
    let worker = Some(worker.process().clone());
    Ok(Sent { session: refresh(ctx, session)?, answer: None, delivery, worker })
}

/// Waits until the agent works on the message: the next command must not find the session stopped. The worker has
/// accepted the message, so taking longer is not a failure.
fn wait_until_begun(ctx: &Ctx, session: &Session, worker: &mut Worker) -> Result<()> {
    let begun = Instant::now();
    let mut now = session.clone();
    while begun.elapsed() < TAKEN_UP_WITHIN {
        now = refresh(ctx, &now)?;
        if now.view.turns > session.view.turns || now.live.is_some() && now.details.mid_turn {
            return Ok(());
        }
        if let Some(outcome) = worker.outcome() {
            return outcome;
        }
        ctx.pause(PAUSE)?;
    }
    Ok(())
}

/// Why the last message in the background wasn't answered, if it wasn't.
pub(super) fn last_failure(ctx: &Ctx, session: &Session) -> Option<ReportedError> {
    // The agent ends a moment before its worker has recorded the failure.
    let _turn = queue::lock_for(ctx, &Target::Session(Box::new(session.clone())), Some(ENDS_WITHIN));
    worker::last_failure(ctx, session.view.agent, &session.view.id)
}
