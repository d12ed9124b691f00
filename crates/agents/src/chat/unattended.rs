//! One message to an agent without a user: the same stream as in a tab, but no one can answer a request.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use transcript::{BlockKind, SessionId};

use super::{Action, Answer, Chat, ChatEnd, ChatEvent, Prompt, Protocol, TurnOutcome};
use crate::ids::random_id;
use crate::program::{ANSWER_PATIENCE, Program, ProgramError, Reply, last_line};

/// How often to check whether the message was cancelled.
const POLL: Duration = Duration::from_millis(50);

/// How long an agent may take to end after its answer: its hooks and servers may have work to finish.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// The answer to an agent that asks for permission.
const DENIED: &str = "This session runs without a terminal, so no one can allow this.";

/// Sends a message and waits for the answer and the end of the agent. What the agent asks for is denied.
pub(crate) fn converse(
    program: &Program,
    directory: &std::path::Path,
    protocol: Box<dyn Protocol>,
    text: &str,
) -> Result<Reply, ProgramError> {
    let (sender, events) = mpsc::channel();
    let chat = Chat::start(program, directory, protocol, move |event| drop(sender.send(event)))?;
    let id = random_id().to_string();
    chat.act(Action::Prompt(Prompt { id, text: text.to_owned(), images: Vec::new() }));
    let mut heard = Heard::default();
    let begun = Instant::now();
    let mut ended = None;
    loop {
        let event = match events.recv_timeout(POLL) {
            Ok(event) => event,
            Err(_) if program.cancel.is_cancelled() => {
                return Err(ProgramError::Cancelled { program: program.path.clone() });
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let since: Instant = ended.unwrap_or(begun);
                let patience = if ended.is_some() { ENDS_WITHIN } else { ANSWER_PATIENCE };
                match (since.elapsed() < patience, ended) {
                    (true, _) => continue,
                    // It has answered; the rest is ended with the chat.
                    (false, Some(_)) => break,
                    (false, None) => return Err(ProgramError::TooSlow { program: program.path.clone(), patience }),
                }
            }
        };
        if let ChatEvent::Request(request) = &event {
            let answer = Answer::Deny { reason: Some(DENIED.to_owned()), interrupt: false };
            chat.act(Action::Answer { request: request.id.clone(), answer });
        }
        let is_end = matches!(event, ChatEvent::TurnEnded(_));
        heard.note(event);
        if is_end || heard.refusal.is_some() && heard.outcome.is_none() && ended.is_none() {
            chat.close();
            ended = Some(Instant::now());
        }
    }
    drop(chat);
    heard.reply().map_err(|reason| program.failed(reason))
}

/// What an agent has said so far.
#[derive(Debug, Default)]
struct Heard {
    id: Option<SessionId>,
    answer: String,
    windows: Vec<(String, u64)>,
    outcome: Option<TurnOutcome>,
    refusal: Option<String>,
    end: Option<ChatEnd>,
}

impl Heard {
    fn note(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Session { id, .. } => self.id = Some(id),
            ChatEvent::Block { subagent: None, kind: BlockKind::Answer { text, .. } } => self.answer = text,
            // Only what comes before the answer can be its reason to fail.
            ChatEvent::Refused(reason) if self.outcome.is_none() => self.refusal = Some(reason),
            ChatEvent::TurnEnded(end) if self.outcome.is_none() => {
                self.windows = end.windows;
                self.outcome = Some(end.outcome);
            }
            ChatEvent::Ended(end) => self.end = Some(end),
            _ => {}
        }
    }

    /// The reply, or why it is missing.
    fn reply(self) -> Result<Reply, String> {
        match self.outcome {
            Some(TurnOutcome::Completed) => {}
            Some(TurnOutcome::Interrupted) => return Err("it was interrupted".to_owned()),
            Some(TurnOutcome::Failed(reason)) => return Err(reason),
            None => {
                let printed = self.end.as_ref().and_then(|end| last_line(&end.printed)).map(str::to_owned);
                let code = self.end.and_then(|end| end.code).map(|code| format!("exit status: {code}"));
                let reason = self.refusal.or(printed).or(code);
                return Err(reason.unwrap_or_else(|| "a signal ended it".to_owned()));
            }
        }
        let id = self.id.ok_or("it reported no session id")?;
        Ok(Reply { id, answer: self.answer, windows: self.windows })
    }
}
