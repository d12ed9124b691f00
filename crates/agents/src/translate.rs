//! Moving a conversation from one agent to another: reads the source as messages, makes them fit for the target, and
//! reads the result back.
//!
//! What is true of one agent only is its [`Translation`], in the agent's own folder. Reading is the ordinary reading of
//! blocks, so that a translation has what `tine show` shows.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::SessionId;
use transcript::seed::{Fit, SeedSizes};
use transcript::translate::{
    Message, MessageKind, Neutral, NeutralOptions, Receipt, ReceiptItem, Step, ToolWords, convert_call,
};

use crate::{Adapter, Blocks, Part};

/// How an agent's format holds a conversation that another agent had.
pub trait Translation {
    /// The tools that other agents have as well.
    fn shared_tools(&self) -> &'static [ToolWords];
    /// Makes a message one that this agent's format and its models can hold, and that is read back as it is. What changes
    /// is counted.
    fn adapt(&self, message: &mut Message, receipt: &mut Receipt);
    /// Writes a new session with these messages to `out`, in the form in which a copy is written, and in constant memory.
    fn write_session(
        &self,
        request: &TranslationRequest,
        messages: &mut dyn Iterator<Item = Message>,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
}

/// A session to write.
#[derive(Debug, Clone)]
pub struct TranslationRequest {
    /// Its id.
    pub id: SessionId,
    /// The title that the agent's own picker shows.
    pub title: String,
    /// The directory in which it will work.
    pub cwd: PathBuf,
    /// The branch checked out there.
    pub branch: Option<String>,
    /// When it is made.
    pub now: Timestamp,
}

impl TranslationRequest {
    /// The time of a message, never before `last`.
    pub(crate) fn time_of(&self, message: &Message, last: Option<Timestamp>) -> Timestamp {
        let at = message.at.unwrap_or(last.unwrap_or(self.now));
        last.map_or(at, |last| last.max(at))
    }
}

/// What is translated.
#[derive(Debug, Clone, Default)]
pub struct TranslationOptions {
    /// The last turn.
    pub until: Option<u32>,
    /// The record with which the branch ends; see [`Part`].
    pub tip: Option<u64>,
    /// Whether thinking is kept as text.
    pub keeps_thinking: bool,
    /// Whether secrets are masked.
    pub masks: bool,
}

/// What a first pass over the source finds out.
#[derive(Debug)]
pub struct TranslationSurvey {
    /// What becomes of everything, unless something is shortened.
    pub receipt: Receipt,
    /// The number of compactions.
    pub compactions: usize,
    /// The sizes of all texts.
    pub sizes: SeedSizes,
    /// How many messages there will be.
    pub messages: usize,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// What became of everything.
    pub receipt: Receipt,
    /// A fingerprint of each message.
    pub fingerprints: Vec<u64>,
    /// How many turns there are.
    pub turns: u32,
}

/// Reads the source and finds out what would become of it. `known` comes from an earlier survey and shortens.
pub fn survey_translation(
    source: &dyn Adapter,
    path: &Path,
    target: &dyn Adapter,
    options: &TranslationOptions,
    known: Option<(usize, Option<Fit>)>,
) -> io::Result<TranslationSurvey> {
    let mut messages = Messages::open(source, path, Some(target), options, known)?;
    messages.by_ref().for_each(drop);
    let Messages { mut neutral, fingerprints, .. } = messages;
    let messages = fingerprints.len();
    let (receipt, compactions) = (std::mem::take(neutral.receipt()), neutral.compactions());
    Ok(TranslationSurvey { receipt, compactions, sizes: neutral.into_sizes(), messages })
}

/// Writes the source as a session of the target to `out`. `compactions` and `fit` come from a survey.
pub fn write_translation(
    source: &dyn Adapter,
    path: &Path,
    target: &dyn Adapter,
    options: &TranslationOptions,
    (compactions, fit): (usize, Option<Fit>),
    request: &TranslationRequest,
    out: &mut dyn io::Write,
) -> io::Result<Written> {
    let mut messages = Messages::open(source, path, Some(target), options, Some((compactions, fit)))?;
    target.write_session(request, &mut messages, out)?;
    // A writer that stops early leaves something out.
    messages.by_ref().for_each(drop);
    let Messages { mut neutral, fingerprints, turns, .. } = messages;
    Ok(Written { receipt: std::mem::take(neutral.receipt()), fingerprints, turns })
}

/// Reads a translated session back and says in what it differs from what was written.
pub fn compare_translation(target: &dyn Adapter, path: &Path, written: &Written) -> io::Result<Result<(), String>> {
    let mut found = Messages::open(target, path, None, &TranslationOptions::default(), None)?;
    found.by_ref().for_each(drop);
    let (expected, found) = (&written.fingerprints, &found.fingerprints);
    let same = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    Ok(match (same == expected.len(), expected.len() == found.len()) {
        (true, true) => Ok(()),
        (_, true) => Err(format!("message {} of {} is not the same", same + 1, expected.len())),
        _ => Err(format!(
            "it has {} messages instead of {}, differing from message {} on",
            found.len(),
            expected.len(),
            same + 1
        )),
    })
}

/// The messages of a session, one at a time.
pub struct Messages<'a> {
    blocks: Box<dyn Blocks>,
    neutral: Neutral,
    /// The source's tools, and the agent that the messages are for.
    target: Option<(&'static [ToolWords], &'a dyn Adapter)>,
    /// The new names of the tools whose results are to come, by call.
    renamed: HashMap<String, String>,
    fingerprints: Vec<u64>,
    turns: u32,
    ended: bool,
}

impl<'a> Messages<'a> {
    /// Reads the session at `path`; for another agent, the messages are made fit for it.
    pub fn open(
        source: &dyn Adapter,
        path: &Path,
        target: Option<&'a dyn Adapter>,
        options: &TranslationOptions,
        known: Option<(usize, Option<Fit>)>,
    ) -> io::Result<Self> {
        let TranslationOptions { until, tip, keeps_thinking, masks } = *options;
        let blocks = source.read_part(path, &Part { until, tip, media: true, ..Part::default() }, None)?;
        let (compactions, fit) = known.map_or((None, None), |(compactions, fit)| (Some(compactions), fit));
        let neutral = Neutral::new(NeutralOptions { keeps_thinking, masks, compactions, fit });
        let target = target.map(|target| (source.shared_tools(), target));
        Ok(Messages {
            blocks,
            neutral,
            target,
            renamed: HashMap::new(),
            fingerprints: Vec::new(),
            turns: 0,
            ended: false,
        })
    }

    /// What became of everything so far.
    pub fn receipt(&mut self) -> &mut Receipt {
        self.neutral.receipt()
    }
}

impl Iterator for Messages<'_> {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(mut message) = self.neutral.next_message() {
                if let Some((tools, target)) = self.target {
                    let receipt = self.neutral.receipt();
                    rename_calls(&mut message, tools, target.shared_tools(), &mut self.renamed, receipt);
                    target.adapt(&mut message, receipt);
                }
                self.turns += u32::from(matches!(message.kind, MessageKind::User { .. }));
                self.fingerprints.push(message.fingerprint());
                return Some(message);
            }
            if self.ended {
                return None;
            }
            match self.blocks.next_block() {
                Some(block) => {
                    if self.neutral.block(block) {
                        self.fingerprints.clear();
                        self.turns = 0;
                    }
                }
                None => {
                    self.ended = true;
                    self.neutral.finish();
                }
            }
        }
    }
}

/// Gives calls the names that the target's own tools have.
fn rename_calls(
    message: &mut Message,
    from: &[ToolWords],
    to: &[ToolWords],
    renamed: &mut HashMap<String, String>,
    receipt: &mut Receipt,
) {
    match &mut message.kind {
        MessageKind::Assistant { steps, .. } => {
            for step in steps {
                if let Step::Call(call) = step
                    && convert_call(call, from, to)
                {
                    renamed.insert(call.id.clone(), call.name.clone());
                    receipt.note(ReceiptItem::ToolsMapped);
                }
            }
        }
        MessageKind::Results(results) => {
            for result in results {
                result.name = renamed.remove(&result.id).unwrap_or_else(|| std::mem::take(&mut result.name));
            }
        }
        MessageKind::User { .. } | MessageKind::Summary(_) => {}
    }
}

/// Puts a word in front of a prompt or a summary that the agent would mistake for something else.
pub(crate) fn prefix_prompt(message: &mut Message, is_mistaken: impl Fn(&str) -> bool, receipt: &mut Receipt) {
    if let MessageKind::User { text, .. } | MessageKind::Summary(text) = &mut message.kind
        && is_mistaken(text)
    {
        text.insert_str(0, "User: ");
        receipt.note(ReceiptItem::PromptsPrefixed);
    }
}

/// Leaves out pictures of failed results, where only text is accepted.
pub(crate) fn drop_pictures_of_failures(message: &mut Message, receipt: &mut Receipt) {
    if let MessageKind::Results(results) = &mut message.kind {
        for result in results.iter_mut().filter(|result| result.error) {
            receipt.add(ReceiptItem::PicturesInFailures, result.pictures.len() as u64);
            result.pictures.clear();
        }
    }
}
