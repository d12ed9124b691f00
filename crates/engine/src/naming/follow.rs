//! The pane driver: a chat with a session that runs elsewhere, for example in a pane of a terminal. Its events come from
//! the transcript and from the state that the agent reports; prompts are sent as `tine send` sends them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use agents::chat::{Action, AgentRequest, Ask, ChatEnd, ChatEvent, Prompt, TurnEnd, TurnOutcome};
use diagnostics::OrLog;
use transcript::{Block, BlockKind, NoticeKind, State};

use crate::context::Context;
use crate::ctx::Ctx;
use crate::naming::Result;
use crate::naming::chat::ChatDriver;
use crate::run::drive::control;
use crate::run::drive::send::{self, Target};
use crate::sessions::pages::{Extent, Pages};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;

/// How often the session is checked.
const LOOK: Duration = Duration::from_millis(300);

/// The id of the only request that such a chat can have.
const IN_PANE: &str = "pane";

/// What the follower is told.
enum Order {
    /// Carry out an action of the user.
    Act(Action),
    /// A prompt was taken up, or why it could not be sent.
    Sent(std::result::Result<(), String>),
    /// Stop following.
    Close,
}

/// Follows a session until this is dropped.
pub(super) struct Follower {
    orders: Sender<Order>,
    /// The number of turns that are not reported, because they were complete at the start.
    pub(super) turns_before: u32,
}

impl Follower {
    /// Reports what is written after the last complete turn of `session`, which was just read.
    pub(super) fn start(ctx: &Ctx, session: Session, report: impl Fn(ChatEvent) + Send + 'static) -> Self {
        let (sender, orders) = mpsc::channel();
        let (answers, context) = (sender.clone(), ctx.context().clone());
        let (seen, turns_before) = SeenBlocks::complete_turns(ctx, &session);
        thread::spawn(move || {
            let Some(ctx) = Ctx::open(context).or_log("open the registry to follow a session") else { return };
            let report = &report;
            Following { ctx: &ctx, session, report, seen, is_busy: false, waits: false, sending: 0 }
                .run(&orders, &answers);
        });
        Follower { orders: sender, turns_before }
    }
}

impl ChatDriver for Follower {
    fn act(&self, action: Action) -> Vec<ChatEvent> {
        self.orders.send(Order::Act(action)).or_log("pass an action on to a session that runs elsewhere");
        Vec::new()
    }

    fn close(&self) {
        // If it has ended by itself, nothing is left to close.
        let _ = self.orders.send(Order::Close);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.close();
    }
}

struct Following<'a> {
    ctx: &'a Ctx,
    session: Session,
    report: &'a dyn Fn(ChatEvent),
    /// How much of the transcript was reported: its bytes, its turns, and the blocks of its last turn.
    seen: SeenBlocks,
    is_busy: bool,
    waits: bool,
    /// How many prompts are on their way.
    sending: usize,
}

/// How much of a transcript was reported.
#[derive(Debug, Clone, Copy)]
struct SeenBlocks {
    extent: Extent,
    blocks: usize,
}

impl SeenBlocks {
    /// All turns that were complete when the session was read, and their number.
    fn complete_turns(ctx: &Ctx, session: &Session) -> (Self, u32) {
        let extent = Pages::of(ctx, session).end_when_read();
        let blocks = read(ctx, session, &extent);
        let turns = session.view.turns;
        let before = |turn: u32| blocks.iter().take_while(|block| block.turn <= turn).count();
        let is_under_way = session.view.state != State::Idle;
        match before(turns.saturating_sub(1)) {
            // It is in the part that was read.
            complete if is_under_way && turns > 0 && (complete > 0 || extent.is_first()) => {
                (SeenBlocks { extent, blocks: complete }, turns - 1)
            }
            _ => (SeenBlocks { extent, blocks: blocks.len() }, turns),
        }
    }
}

fn read(ctx: &Ctx, session: &Session, extent: &Extent) -> Vec<Block> {
    let pages = Pages::of(ctx, session);
    let read = pages.read(extent).or_log("read a session that is followed");
    let Some(mut read) = read else { return Vec::new() };
    std::iter::from_fn(|| read.next_block()).collect()
}

impl Following<'_> {
    fn run(&mut self, orders: &Receiver<Order>, answers: &Sender<Order>) {
        self.report_new_blocks();
        self.note_state();
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Act(action)) => self.act(action, answers),
                Ok(Order::Sent(sent)) => {
                    self.sending -= 1;
                    self.is_busy = sent.is_ok();
                    if let Err(reason) = sent {
                        self.end_turn(TurnOutcome::Failed(reason));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Order::Close) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if !self.look() {
                return;
            }
        }
    }

    /// Looks at the session. Returns whether it still runs.
    fn look(&mut self) -> bool {
        let now = match refresh(self.ctx, &self.session) {
            Ok(now) => now,
            Err(error) => {
                self.notice(error.to_string());
                (self.report)(ChatEvent::Ended(ChatEnd { code: None, printed: String::new() }));
                return false;
            }
        };
        let has_grown = now.size != self.session.size;
        self.session = now;
        if has_grown {
            self.report_new_blocks();
        }
        // A prompt on its way starts an agent.
        if self.session.view.state == State::Stopped && self.sending == 0 {
            if std::mem::take(&mut self.is_busy) && !self.session.details.mid_turn {
                self.end_turn(TurnOutcome::Completed);
            }
            (self.report)(ChatEvent::Ended(ChatEnd { code: Some(0), printed: String::new() }));
            return false;
        }
        self.note_state();
        true
    }

    fn report_new_blocks(&mut self) {
        let pages = Pages::of(self.ctx, &self.session);
        let mut extents = vec![pages.grown(&self.seen.extent)];
        while let Some(next) = extents.last().and_then(|last| pages.after(last)) {
            extents.push(next);
        }
        drop(pages);
        for extent in extents {
            let is_same = starts_alike(&extent, &self.seen.extent);
            let reported = if is_same { self.seen.blocks } else { 0 };
            self.seen.extent = extent;
            let blocks = read(self.ctx, &self.session, &extent);
            self.seen.blocks = blocks.len();
            for block in blocks.into_iter().skip(reported) {
                let subagent = (block.depth > 0).then(|| "subagent".to_owned());
                (self.report)(ChatEvent::Block { subagent, kind: block.kind });
            }
        }
    }

    /// Reports what the agent does now.
    fn note_state(&mut self) {
        let state = self.session.view.state;
        let waits = state == State::Waiting;
        if waits && !self.waits {
            let what = self.session.live.as_ref().and_then(|live| live.waiting_for.clone());
            let ask = Ask::Elsewhere { what: what.unwrap_or_else(|| "an answer".to_owned()) };
            (self.report)(ChatEvent::Request(AgentRequest {
                id: IN_PANE.to_owned(),
                call: None,
                by_subagent: false,
                ask,
            }));
        }
        if self.waits && !waits {
            (self.report)(ChatEvent::Withdrawn(IN_PANE.to_owned()));
        }
        self.waits = waits;
        match state {
            State::Busy | State::Waiting if !self.is_busy => {
                self.is_busy = true;
                (self.report)(ChatEvent::TurnStarted);
            }
            State::Idle if self.is_busy && self.session.is_settled => {
                self.is_busy = false;
                self.end_turn(TurnOutcome::Completed);
            }
            _ => {}
        }
    }

    fn act(&mut self, action: Action, answers: &Sender<Order>) {
        match action {
            Action::Prompt(prompt) => self.send(prompt, answers.clone()),
            Action::Interrupt => {
                let (context, session) = (self.ctx.context().clone(), self.session.clone());
                let interrupt = move || -> std::result::Result<(), String> {
                    let ctx = Ctx::open(context).map_err(|error| error.to_string())?;
                    control::interrupt(&ctx, &session).map(drop).map_err(|error| error.to_string())
                };
                thread::spawn(move || interrupt().or_log("interrupt a session that runs elsewhere"));
            }
            // Its own screen is the place for these.
            Action::Answer { .. } | Action::SetModel(_) | Action::SetMode(_) => {
                (self.report)(ChatEvent::Refused("this session runs elsewhere; do this on its own screen".to_owned()));
            }
        }
    }

    /// Sends a prompt from a separate thread, because the pane may take a while to take it.
    fn send(&mut self, prompt: Prompt, answers: Sender<Order>) {
        if !prompt.images.is_empty() {
            self.notice(
                "pictures can't be sent to a session that runs elsewhere; the text is sent without them".to_owned(),
            );
        }
        self.sending += 1;
        let (context, session) = (self.ctx.context().clone(), self.session.clone());
        thread::spawn(move || {
            let sent = send_from_here(context, session, &prompt.text).map_err(|error| error.to_string());
            answers.send(Order::Sent(sent)).or_log("report on a prompt");
        });
    }

    fn notice(&self, text: String) {
        (self.report)(ChatEvent::Block { subagent: None, kind: BlockKind::Notice { notice: NoticeKind::Error, text } });
    }

    fn end_turn(&self, outcome: TurnOutcome) {
        (self.report)(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: None, windows: Vec::new() }));
    }
}

fn send_from_here(context: Context, session: Session, text: &str) -> Result<()> {
    let ctx = Ctx::open(context)?;
    send::send(&ctx, &Target::from(session), text, false, None)?;
    Ok(())
}

/// Whether two parts of a transcript begin at the same place.
fn starts_alike(one: &Extent, other: &Extent) -> bool {
    match (one, other) {
        (Extent::Bytes { from, .. }, Extent::Bytes { from: other, .. }) => from == other,
        (Extent::Turns { from, .. }, Extent::Turns { from: other, .. }) => from == other,
        _ => false,
    }
}
