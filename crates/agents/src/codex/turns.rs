//! Counting turns as a person would: the one place that decides what is a prompt, for the scan and for the reader.
//!
//! Codex writes a prompt twice: as a message for the model, then as an event for people. Only the event tells a
//! person's words from injected ones for sure, so a message is held back until what follows it decides. Files that
//! somebody made by hand have messages alone; there a message is a prompt.

use super::home::is_uuid;
use super::message::{Author, Message};
use super::record::{Kind, Record};
use crate::fields::Raw;
use crate::files::fingerprint;

/// Where a record stands: the file in the chain, and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub segment: usize,
    pub offset: u64,
}

/// What a record means for the turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Something was asked. `from` is where its records begin.
    Prompt { message: Message, steer: bool, turn: u32, key: u64, from: Place },
    /// A person's `!` command.
    Shell(Message),
    /// Words that neither a person nor the model said.
    Injected(Message),
    /// Everything since this place was taken back.
    TakenBack(Place),
}

/// The turns of one history, fed with every record in order.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How many turns there are so far.
    pub count: u32,
    /// Whether a turn is being worked on.
    pub running: bool,
    /// The id of the turn that is being worked on; the same in a thread and in all of its forks.
    id: Option<u64>,
    task_start: Option<Place>,
    /// Where the client began to tell the model about what follows: its context stands before the prompt, and no task
    /// is recorded around both (0.34 to 0.98).
    context_start: Option<Place>,
    prompts_in_task: u32,
    /// Whether the file has events, so that a message alone is no prompt.
    has_events: bool,
    has_tasks: bool,
    /// Whether it is a helper's thread, where other agents ask.
    pub helper: bool,
    /// The time at which the first thread of the lineage began; tells equal prompts of different lineages apart
    /// where there are no ids.
    origin: u64,
    held: Option<(Message, Place)>,
    last: Last,
    /// The next message from another agent opens a turn.
    agent_triggers: bool,
    prompts: Vec<Mark>,
}

/// What came last, as far as a repetition can be told by it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A prompt's event without a message before it; its message may follow.
    Event(u64),
    #[default]
    Else,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    turn: u32,
    steer: bool,
    from: Place,
    /// Whether a record of the task's start stands there.
    with_task: bool,
}

impl Turns {
    /// The turns of a history that is read from the start of the task of turn `turn`.
    pub(super) fn before(turn: u32) -> Self {
        Turns { count: turn.saturating_sub(1), has_events: true, has_tasks: true, ..Turns::default() }
    }

    /// Where the last turn begins, if its task says so: nothing before that record matters to what follows.
    pub(super) fn began(&self) -> Option<crate::Mark> {
        let opening = self.prompts.iter().rev().find(|mark| !mark.steer)?;
        opening.with_task.then_some(crate::Mark { turn: opening.turn, offset: opening.from.offset })
    }

    /// Takes the next record and adds what it means to `steps`.
    pub(super) fn see(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        match record.kind {
            // At the head of a history stand the thread's own and those of its ancestors; the last is the oldest.
            Kind::SessionMeta if self.is_fresh() => {
                let began = record.get(b"timestamp").or_else(|| record.get(b"id")).and_then(Raw::plain);
                self.origin = began.map_or(0, fingerprint);
            }
            Kind::TokenCount => return,
            Kind::UserMessage => return self.user_message(record, place, steps),
            Kind::PromptEvent | Kind::PromptItem => return self.prompt_event(record, place, steps),
            Kind::AgentMessage => return self.agent_message(record, place, steps),
            Kind::AgentMessageMeta => self.agent_triggers = record.get(b"trigger_turn").is_some_and(Raw::is_true),
            Kind::TurnContext => {
                self.context_start = self.context_start.or(Some(place));
                self.turn_context(record);
            }
            Kind::TaskStarted => {
                self.settle(steps);
                self.has_events = true;
                self.has_tasks = true;
                self.running = true;
                self.id = turn_id(record);
                self.task_start = Some(place);
                self.prompts_in_task = 0;
            }
            Kind::TaskComplete | Kind::TurnAborted => {
                self.settle(steps);
                self.running = false;
                self.id = None;
                self.task_start = None;
            }
            Kind::RolledBack => self.roll_back(record, steps),
            Kind::Answer | Kind::Reasoning | Kind::Call | Kind::Output | Kind::Compacted => self.settle(steps),
            _ => return,
        }
        self.last = Last::Else;
    }

    /// Ends the history: what is still held back is decided.
    pub(super) fn finish(&mut self, steps: &mut Vec<Step>) {
        self.settle(steps);
    }

    fn is_fresh(&self) -> bool {
        self.count == 0 && self.held.is_none()
    }

    fn user_message(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        let (message, author) = Message::of_item(record);
        match author {
            Author::Client => {
                self.context_start = self.context_start.or(Some(place));
                return;
            }
            Author::Shell => {
                self.settle(steps);
                steps.push(Step::Shell(message));
            }
            Author::Person if self.last == Last::Event(fingerprint(message.text.as_bytes())) => {}
            Author::Person => {
                self.displace(steps);
                self.held = Some((message, place));
            }
        }
        self.last = Last::Else;
    }

    fn prompt_event(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        let mut message = Message::of_prompt(record);
        if !self.running {
            self.id = turn_id(record).or(self.id);
        }
        let words = fingerprint(message.text.as_bytes());
        match self.held.take() {
            Some((held, held_place)) => {
                if !held.media.is_empty() {
                    message.media = held.media;
                }
                message.id = held.id.or(message.id);
                self.prompt(message, held_place, steps);
                self.last = Last::Else;
            }
            // A review's prompt is recorded twice in a row (0.140).
            None if self.last == Last::Event(words) => {}
            None => {
                self.prompt(message, place, steps);
                self.last = Last::Event(words);
            }
        }
        self.has_events = true;
    }

    /// In a helper's thread the words of another agent are what was asked.
    fn agent_message(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        self.settle(steps);
        let (message, _) = Message::of_item(record);
        let triggers = std::mem::take(&mut self.agent_triggers);
        if self.helper && triggers {
            self.prompt(message, place, steps);
        } else {
            steps.push(Step::Injected(message));
        }
        self.last = Last::Else;
    }

    /// Versions that record no start of a task may still name the turn here.
    fn turn_context(&mut self, record: &Record<'_>) {
        let id = turn_id(record);
        if id.is_some() && (self.id.is_none() || !self.has_tasks && self.id != id) {
            self.id = id;
            if !self.has_tasks {
                self.prompts_in_task = 0;
            }
        }
    }

    /// Going back (0.140 and before) takes back as many prompts as it says, counting those that were added to a
    /// running turn.
    fn roll_back(&mut self, record: &Record<'_>, steps: &mut Vec<Step>) {
        self.settle(steps);
        let wanted = record.get(b"num_turns").and_then(Raw::number).unwrap_or(0);
        let kept = self.prompts.len().saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
        if let Some(first) = self.prompts.get(kept).copied() {
            self.prompts.truncate(kept);
            self.count = if first.steer { first.turn } else { first.turn - 1 };
            steps.push(Step::TakenBack(first.from));
        }
        self.running = false;
        self.id = None;
        self.task_start = None;
    }

    /// What follows is the model's answer or an end, so a message that is held back was asked, unless the task has
    /// its prompt already or there is no task.
    fn settle(&mut self, steps: &mut Vec<Step>) {
        self.settle_held(steps);
        self.context_start = None;
    }

    fn settle_held(&mut self, steps: &mut Vec<Step>) {
        if let Some((message, place)) = self.held.take() {
            let lost_event = self.running && self.prompts_in_task == 0;
            if !self.has_events || lost_event {
                self.prompt(message, place, steps);
            } else {
                steps.push(Step::Injected(message));
            }
        }
    }

    /// What follows is another message, so the one that is held back was put in before the prompt.
    fn displace(&mut self, steps: &mut Vec<Step>) {
        if !self.has_events {
            return self.settle(steps);
        }
        if let Some((message, _)) = self.held.take() {
            self.context_start = None;
            steps.push(Step::Injected(message));
        }
    }

    fn prompt(&mut self, message: Message, place: Place, steps: &mut Vec<Step>) {
        let steer = self.running && self.prompts_in_task > 0;
        if !steer {
            self.count += 1;
        }
        let context = self.context_start.take();
        let from = if steer { place } else { self.task_start.or(context).unwrap_or(place) };
        // Not by the message's id: a fork that 0.166 makes of a legacy thread gives its messages new ones.
        let key = match self.id {
            Some(id) => id,
            None => {
                let words = fingerprint(message.text.as_bytes());
                fingerprint(
                    &[self.origin.to_le_bytes(), words.to_le_bytes(), u64::from(self.count).to_le_bytes()].concat(),
                )
            }
        };
        if !self.running {
            self.id = None;
        }
        self.prompts_in_task += 1;
        let with_task = self.task_start == Some(from);
        self.prompts.push(Mark { turn: self.count, steer, from, with_task });
        steps.push(Step::Prompt { message, steer, turn: self.count, key, from });
    }
}

/// The id of the turn that a record belongs to. Only a UUID will do: `codex migrate-rollouts` makes up `rollout-<n>`,
/// which is the same in every thread.
fn turn_id(record: &Record<'_>) -> Option<u64> {
    let id = record.get(b"turn_id").and_then(Raw::plain)?;
    is_uuid(std::str::from_utf8(id).ok()?).then(|| fingerprint(id))
}
