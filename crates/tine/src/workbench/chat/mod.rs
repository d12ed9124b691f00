//! A tab with a live chat: its state, and how events change it.

mod log;
mod prompt;
mod request;

use std::collections::VecDeque;
use std::path::PathBuf;

use engine::chat::{
    Action, ChatCapabilities, ChatEnd, ChatEvent, ContextUse, Prompt, StreamPart, TurnEnd, TurnOutcome,
};
use engine::{Session, TabRecord};
use jiff::tz::TimeZone;
use transcript::{Agent, BlockKind, NoticeKind, SessionId};

pub(crate) use log::Log;
pub(crate) use prompt::PromptBox;
pub(crate) use request::{Choosing, PendingRequest};

use super::document::Document;
use super::event::ErrorText;

/// A tab with a chat.
pub(crate) struct ChatTab {
    /// Its number, which is not reused after it is closed.
    pub number: u64,
    pub agent: Agent,
    /// The name of the session for the user.
    pub label: String,
    pub directory: PathBuf,
    /// The session, once it has a transcript.
    pub session: Option<Session>,
    /// The id that the agent uses now.
    pub id: Option<SessionId>,
    pub driver: Driver,
    pub activity: Activity,
    /// The transcript from before the chat was opened; `None` while it is read.
    pub history: Option<Document>,
    pub ticket: u64,
    pub log: Log,
    /// The agent's requests, oldest first.
    pub requests: VecDeque<PendingRequest>,
    pub prompt: PromptBox,
    /// Prompts that wait until the agent is idle.
    pub queued: VecDeque<Prompt>,
    /// Prompts that the agent has not started on yet.
    pub sent: Vec<Prompt>,
    pub offer: ChatCapabilities,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub context: ContextUse,
    /// The cost of all turns, and of the last one.
    pub cost: (Option<f64>, Option<f64>),
    /// The first visible line; `None` for the end.
    pub top: Option<usize>,
    /// Whether tool calls and thinking are shown in full.
    pub full: bool,
    /// The last turn.
    pub turn: u32,
    /// A line above the prompt box.
    pub note: Option<String>,
    /// Whether the acknowledgement of a seed is left out of this view.
    pub hides_acknowledgement: bool,
    /// Whether the agent's program is being started.
    pub is_opening: bool,
    /// Whether to fork once the agent is idle.
    pub fork: PendingFork,
    /// Whether the agent's own screen opens as soon as its stream has ended.
    pub hands_over: bool,
    /// Whether something happened since the tab was last shown.
    pub has_news: bool,
}

/// The process behind a tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Driver {
    /// No process yet. The first prompt starts the agent, so showing a tab costs nothing.
    Asleep,
    /// The agent is being started.
    Starting,
    /// The agent runs behind its structured stream.
    Stream,
    /// The agent runs elsewhere, for example in a pane. The tab follows the transcript.
    Pane,
    /// The agent could not be started.
    Failed(ErrorText),
    /// The agent has ended.
    Ended(ChatEnd),
}

/// Whether a fork of a busy chat is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingFork {
    None,
    /// The user knows that the agent is busy, and may press the key again.
    Offered,
    /// The dialog opens when the agent is idle.
    Waiting,
}

/// The state of a tab's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Busy,
    Compacting,
}

/// A reaction to an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Followup {
    /// Carry out an action.
    Act(Action),
    /// Read the session's transcript again.
    Refresh,
    /// Open the requested fork dialog.
    Fork,
}

impl ChatTab {
    pub(crate) fn new(
        number: u64,
        agent: Agent,
        label: String,
        directory: PathBuf,
        (color, zone): (bool, TimeZone),
    ) -> Self {
        ChatTab {
            number,
            agent,
            label,
            directory,
            session: None,
            id: None,
            driver: Driver::Asleep,
            activity: Activity::Idle,
            history: None,
            ticket: 0,
            log: Log::new(color, zone),
            requests: VecDeque::new(),
            prompt: PromptBox::new(),
            queued: VecDeque::new(),
            sent: Vec::new(),
            offer: ChatCapabilities::default(),
            model: None,
            mode: None,
            context: ContextUse::default(),
            cost: (None, None),
            top: None,
            full: false,
            turn: 0,
            note: None,
            hides_acknowledgement: false,
            is_opening: false,
            fork: PendingFork::None,
            hands_over: false,
            has_news: false,
        }
    }

    /// A tab for an existing session.
    pub(crate) fn of(number: u64, session: Session, looks: (bool, TimeZone)) -> Self {
        let view = &session.view;
        let directory = view.cwd.clone().unwrap_or_default();
        let mut tab = ChatTab::new(number, view.agent, view.label().to_owned(), directory, looks);
        (tab.id, tab.turn) = (Some(view.id.clone()), view.turns);
        tab.model.clone_from(&session.details.model);
        if view.state != transcript::State::Stopped {
            tab.driver = Driver::Pane;
        }
        tab.session = Some(session);
        tab
    }

    /// Its record for the next start. A chat without messages has none.
    pub(crate) fn record(&self) -> Option<TabRecord> {
        let session = self.session.as_ref()?;
        let id = self.id.clone().unwrap_or_else(|| session.view.id.clone());
        Some(TabRecord { agent: self.agent, id })
    }

    /// Whether a fork can be made now: the transcript holds whole turns.
    pub(crate) fn is_settled(&self) -> bool {
        self.activity == Activity::Idle && self.requests.is_empty() && self.sent.is_empty()
    }

    /// The request that the user can answer.
    pub(crate) fn request(&self) -> Option<&PendingRequest> {
        self.requests.front()
    }

    /// Accepts a prompt. It is sent immediately if the agent is idle, otherwise as soon as it is.
    pub(crate) fn submit(&mut self, prompt: Prompt) -> Vec<Followup> {
        self.top = None;
        self.note = None;
        if self.activity == Activity::Idle && self.sent.is_empty() && self.driver != Driver::Starting {
            self.send(prompt)
        } else {
            self.queued.push_back(prompt);
            Vec::new()
        }
    }

    fn send(&mut self, prompt: Prompt) -> Vec<Followup> {
        self.sent.push(prompt.clone());
        self.activity = Activity::Busy;
        vec![Followup::Act(Action::Prompt(prompt))]
    }

    /// Removes the prompt that was queued last, and returns it.
    pub(crate) fn take_back(&mut self) -> Option<Prompt> {
        self.queued.pop_back()
    }

    /// The agent has been started.
    pub(crate) fn started(&mut self) -> Vec<Followup> {
        if self.driver != Driver::Pane {
            self.driver = Driver::Stream;
        }
        match self.queued.pop_front() {
            Some(prompt) => self.send(prompt),
            None => Vec::new(),
        }
    }

    /// The agent could not be started. The prompts are kept.
    pub(crate) fn failed(&mut self, trouble: ErrorText) {
        self.is_opening = false;
        self.driver = Driver::Failed(trouble);
        self.return_prompts();
    }

    /// Handles an event of the agent.
    pub(crate) fn apply(&mut self, event: ChatEvent) -> Vec<Followup> {
        self.has_news = true;
        match event {
            ChatEvent::Ready(offer) => self.offer = offer,
            ChatEvent::Session { id, .. } => {
                // `/clear` continues in another session.
                let is_other = self.id.as_ref().is_some_and(|own| *own != id);
                self.id = Some(id);
                if is_other && self.session.is_some() {
                    self.session = None;
                    self.turn = 0;
                }
            }
            ChatEvent::Settings { model, mode } => {
                self.model = model.or(self.model.take());
                self.mode = mode.or(self.mode.take());
            }
            ChatEvent::TurnStarted => self.activity = Activity::Busy,
            ChatEvent::Delta { subagent: Some(_), .. } => {}
            ChatEvent::Delta { subagent: None, part, text } => match part {
                StreamPart::Answer => self.log.grow(&text),
                StreamPart::Thinking => self.log.think(&text),
                StreamPart::Output { .. } => self.log.print(&text),
            },
            ChatEvent::Block { subagent, kind } => {
                // The transcript exists from the first prompt on.
                let is_first = self.session.is_none() && matches!(kind, BlockKind::Prompt { .. });
                self.block(subagent, kind);
                if is_first {
                    return vec![Followup::Refresh];
                }
            }
            ChatEvent::Request(request) => self.requests.push_back(PendingRequest::new(request)),
            ChatEvent::Withdrawn(id) => self.requests.retain(|asked| asked.request.id != id),
            ChatEvent::Context(context) => {
                // An agent may report the size of the window only now and then.
                self.context = ContextUse { window: context.window.or(self.context.window), ..context };
            }
            ChatEvent::Compacting => self.activity = Activity::Compacting,
            ChatEvent::Compacted => {
                self.activity = Activity::Busy;
                self.log.push(self.turn, None, BlockKind::Compaction { summary: String::new() });
            }
            ChatEvent::Retrying { attempt, after, reason } => {
                let attempt = if attempt > 0 { format!(" (attempt {attempt})") } else { String::new() };
                let after = after.map(|after| format!(" in {} s", after.as_secs().max(1))).unwrap_or_default();
                self.note = Some(format!("The model request failed: {reason}. Retrying{after}{attempt}."));
            }
            ChatEvent::TurnEnded(end) => return self.turn_ended(end),
            ChatEvent::Notice(text) => self.notice(NoticeKind::Info, text),
            ChatEvent::Refused(text) => self.notice(NoticeKind::Error, text),
            ChatEvent::Ended(end) => {
                self.ended(end);
                return vec![Followup::Refresh];
            }
        }
        Vec::new()
    }

    fn block(&mut self, subagent: Option<String>, kind: BlockKind) {
        if let (None, BlockKind::Prompt { steer, text }) = (&subagent, &kind) {
            // An agent may show a prompt in a different form than it was sent.
            let found = self.sent.iter().position(|prompt| prompt.text.trim() == text.trim());
            if !self.sent.is_empty() {
                self.sent.remove(found.unwrap_or(0));
            }
            self.turn += u32::from(!steer);
        }
        self.log.push(self.turn, subagent, kind);
    }

    fn notice(&mut self, notice: NoticeKind, text: String) {
        self.log.push(self.turn, None, BlockKind::Notice { notice, text });
    }

    fn turn_ended(&mut self, end: TurnEnd) -> Vec<Followup> {
        self.activity = Activity::Idle;
        self.requests.clear();
        self.note = None;
        self.log.end_turn(self.turn);
        // A prompt that the agent never showed was processed as well, for example one of its own commands.
        self.sent.clear();
        if let Some(total) = end.total_cost {
            let last = self.cost.0.map(|before| (total - before).max(0.0));
            self.cost = (Some(total), last.or(Some(total).filter(|_| self.session.is_none())));
        }
        let failed = match end.outcome {
            TurnOutcome::Completed => false,
            TurnOutcome::Interrupted => {
                self.notice(NoticeKind::Interrupted, String::new());
                false
            }
            TurnOutcome::Failed(why) => {
                self.notice(NoticeKind::Error, why);
                true
            }
        };
        let mut followups = vec![Followup::Refresh];
        if std::mem::replace(&mut self.fork, PendingFork::None) == PendingFork::Waiting {
            followups.push(Followup::Fork);
        }
        if failed {
            // The next one would fail for the same reason.
            self.return_prompts();
        } else if let Some(prompt) = self.queued.pop_front() {
            followups.extend(self.send(prompt));
        }
        followups
    }

    fn ended(&mut self, end: ChatEnd) {
        self.requests.clear();
        self.log.end_turn(self.turn);
        self.activity = Activity::Idle;
        self.driver = Driver::Ended(end);
        self.return_prompts();
    }

    /// Returns prompts that were not sent or not processed to the prompt box.
    fn return_prompts(&mut self) {
        let unsent: Vec<Prompt> = self.sent.drain(..).chain(self.queued.drain(..)).collect();
        self.activity = Activity::Idle;
        if unsent.is_empty() {
            return;
        }
        let own = Some(self.prompt.text()).filter(|text| !text.is_empty());
        let texts: Vec<String> = unsent.iter().map(|prompt| prompt.text.clone()).chain(own).collect();
        self.prompt.set(&texts.join("\n"));
        self.prompt.images.extend(unsent.into_iter().flat_map(|prompt| prompt.images));
    }

    /// The number of scrollable lines, without those that still change.
    pub(crate) fn stable_lines(&self) -> usize {
        let history = self.history.as_ref().map_or(0, |history| history.lines.len());
        history + self.log.finished().len() + self.log.settled().len()
    }

    /// Scrolls by lines; at the end, the view follows new messages.
    pub(crate) fn scroll(&mut self, lines: isize, height: usize) {
        let last = self.stable_lines().saturating_sub(height);
        let top = self.top.unwrap_or(last).saturating_add_signed(lines);
        self.top = (top < last).then_some(top);
    }
}

#[cfg(test)]
mod tests {
    use engine::chat::{AgentRequest, Ask};

    use super::*;

    fn tab() -> ChatTab {
        ChatTab::new(1, Agent::Claude, "auth".into(), "/work".into(), (false, TimeZone::UTC))
    }

    fn prompt(text: &str) -> Prompt {
        Prompt { id: text.to_owned(), text: text.to_owned(), images: Vec::new() }
    }

    fn ended(outcome: TurnOutcome, total_cost: Option<f64>) -> ChatEvent {
        ChatEvent::TurnEnded(TurnEnd { outcome, total_cost, windows: Vec::new() })
    }

    fn echo(text: &str) -> ChatEvent {
        ChatEvent::Block { subagent: None, kind: BlockKind::Prompt { text: text.into(), steer: false } }
    }

    fn shown(tab: &ChatTab) -> String {
        let lines: Vec<String> = tab.log.finished().iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn a_message_to_a_busy_agent_waits_and_can_be_taken_back() {
        let mut tab = tab();
        tab.driver = Driver::Stream;
        assert_eq!(tab.submit(prompt("one")), [Followup::Act(Action::Prompt(prompt("one")))]);
        assert_eq!(tab.submit(prompt("two")), []);
        assert_eq!(tab.submit(prompt("three")), []);
        assert_eq!(tab.take_back(), Some(prompt("three")));
        assert_eq!(tab.apply(echo("one")), [Followup::Refresh], "the transcript exists now");
        let after = tab.apply(ended(TurnOutcome::Completed, None));
        assert_eq!(after, [Followup::Refresh, Followup::Act(Action::Prompt(prompt("two")))]);
        assert_eq!(tab.turn, 1);
    }

    #[test]
    fn what_was_not_answered_returns_to_the_prompt_box() {
        let mut tab = tab();
        tab.driver = Driver::Stream;
        tab.submit(prompt("one"));
        tab.submit(prompt("two"));
        tab.apply(ChatEvent::Ended(ChatEnd { code: Some(1), printed: "no".into() }));
        assert_eq!((tab.prompt.text().as_str(), tab.queued.len()), ("one\ntwo", 0));
        assert!(matches!(tab.driver, Driver::Ended(_)));
    }

    #[test]
    fn requests_end_with_the_turn() {
        let mut tab = tab();
        let ask = Ask::Unknown { name: "x".into() };
        let request = AgentRequest { id: "1".into(), call: None, by_subagent: false, ask };
        tab.apply(ChatEvent::Request(request.clone()));
        assert!(!tab.is_settled());
        tab.apply(ChatEvent::Withdrawn("1".into()));
        tab.apply(ChatEvent::Request(request));
        tab.apply(ended(TurnOutcome::Interrupted, None));
        assert!(tab.is_settled() && shown(&tab).contains("interrupted"), "{}", shown(&tab));
    }

    #[test]
    fn a_turn_costs_the_difference() {
        let mut tab = tab();
        tab.apply(ended(TurnOutcome::Completed, Some(0.25)));
        assert_eq!(tab.cost, (Some(0.25), Some(0.25)));
        tab.apply(ended(TurnOutcome::Completed, Some(0.75)));
        assert_eq!(tab.cost, (Some(0.75), Some(0.5)));
    }
}
