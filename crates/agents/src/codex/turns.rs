//! Counts turns as users do: the one place that decides what a prompt is, for the scan and for the reader.
//!
//! Codex writes a prompt twice: as a message for the model, then as an event for the user interface. Only the event
//! reliably distinguishes the user's text from injected text, so a message is held back until the next records decide.
//! Handmade files contain only messages; there, a message is a prompt.

use super::home::is_uuid;
use super::message::{Author, Message};
use super::record::{Kind, Record};
use crate::fields::Raw;
use crate::files::fingerprint;

/// The position of a record: the file in the chain, and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub segment: usize,
    pub offset: u64,
}

/// What a record means for the turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// A prompt. `from` is where its records start.
    Prompt { message: Message, steer: bool, turn: u32, key: u64, from: Place },
    /// A `!` command of the user.
    Shell(Message),
    /// Text from neither the user nor the model.
    Injected(Message),
    /// Everything since this position was rolled back.
    TakenBack(Place),
}

/// The turns of one history, fed with every record in order.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The number of turns so far.
    pub count: u32,
    /// Whether a turn is running.
    pub running: bool,
    /// The id of the running turn; the same in a thread and in all of its forks.
    id: Option<u64>,
    task_start: Option<Place>,
    /// Where the client's context for the next turn starts: it precedes the prompt, and no task is recorded around both
    /// (0.34 to 0.98).
    context_start: Option<Place>,
    prompts_in_task: u32,
    /// Whether the file has events, so that a message without one is not a prompt.
    has_events: bool,
    has_tasks: bool,
    /// Whether it is a subagent's thread, with prompts from other agents.
    pub helper: bool,
    /// Whether pictures are kept with their bytes.
    pub with_media: bool,
    /// The start time of the oldest thread in the lineage; distinguishes equal prompts of different lineages if there
    /// are no ids.
    origin: u64,
    held: Option<(Message, Place)>,
    last: Last,
    /// Whether the next message from another agent starts a turn.
    agent_triggers: bool,
    prompts: Vec<Mark>,
}

/// The previous record, to detect repetitions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A prompt's event without a preceding message; its message may follow.
    Event(u64),
    #[default]
    Else,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    turn: u32,
    steer: bool,
    from: Place,
    /// Whether a task start was recorded.
    with_task: bool,
}

impl Turns {
    /// The turns of a history that is read from the task start of turn `turn`.
    pub(super) fn before(turn: u32) -> Self {
        Turns { count: turn.saturating_sub(1), has_events: true, has_tasks: true, ..Turns::default() }
    }

    /// Where the last turn starts, if its task is recorded: earlier records don't matter to what follows.
    pub(super) fn began(&self) -> Option<crate::TurnStart> {
        let opening = self.prompts.iter().rev().find(|mark| !mark.steer)?;
        opening.with_task.then_some(crate::TurnStart { turn: opening.turn, offset: opening.from.offset })
    }

    /// Takes the next record and adds its meaning to `steps`.
    pub(super) fn add_record(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        match record.kind {
            // A history starts with the identities of the thread and its ancestors; the last one is the oldest.
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

    /// Ends the history and decides about a held-back message.
    pub(super) fn finish(&mut self, steps: &mut Vec<Step>) {
        self.settle(steps);
    }

    fn is_fresh(&self) -> bool {
        self.count == 0 && self.held.is_none()
    }

    fn user_message(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        let (message, author) = Message::of_item(record, self.with_media);
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
        let mut message = Message::of_prompt(record, self.with_media);
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

    /// In a subagent's thread, another agent's message is the prompt.
    fn agent_message(&mut self, record: &Record<'_>, place: Place, steps: &mut Vec<Step>) {
        self.settle(steps);
        let (message, _) = Message::of_item(record, self.with_media);
        let triggers = std::mem::take(&mut self.agent_triggers);
        if self.helper && triggers {
            self.prompt(message, place, steps);
        } else {
            steps.push(Step::Injected(message));
        }
        self.last = Last::Else;
    }

    /// Versions that don't record a task start may still name the turn here.
    fn turn_context(&mut self, record: &Record<'_>) {
        let id = turn_id(record);
        if id.is_some() && (self.id.is_none() || !self.has_tasks && self.id != id) {
            self.id = id;
            if !self.has_tasks {
                self.prompts_in_task = 0;
            }
        }
    }

    /// A rollback (0.140 and earlier) removes the given number of prompts, including those added to a running turn.
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

    /// The model's answer or an end follows, so a held-back message was a prompt, unless the task has one already or
    /// there is no task.
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

    /// Another message follows, so the held-back one was injected before the prompt.
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
        // Not by the message's id: a fork that 0.166 creates from a legacy thread gives its messages new ones.
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

/// The id of a record's turn. Only UUIDs count: `codex migrate-rollouts` generates `rollout-<n>`, which is the same in
/// every thread.
fn turn_id(record: &Record<'_>) -> Option<u64> {
    let id = record.get(b"turn_id").and_then(Raw::plain)?;
    is_uuid(std::str::from_utf8(id).ok()?).then(|| fingerprint(id))
}
