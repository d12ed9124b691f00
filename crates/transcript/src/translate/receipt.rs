//! What became of the parts of a conversation that was translated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is there as it was, in the other agent's format.
    Carried,
    /// It is there in another form.
    Converted,
    /// A part of it is there.
    Shortened,
    /// It is not there.
    Dropped,
}

impl Outcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Carried => "carried",
            Converted => "converted",
            Shortened => "shortened",
            Dropped => "dropped",
        }
    }
}

/// A kind of part, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReceiptItem {
    /// Prompts.
    Prompts,
    /// Texts of answers.
    Answers,
    /// Calls of tools.
    Calls,
    /// Results of calls.
    Results,
    /// Pictures.
    Pictures,
    /// The summary of a compaction.
    Summary,
    /// Calls of tools that the other agent has under another name.
    ToolsMapped,
    /// Names of tools that are not legal everywhere.
    NamesReplaced,
    /// Ids of calls that are not legal everywhere or not unique.
    IdsReplaced,
    /// Arguments that were not an object.
    ArgumentsWrapped,
    /// Calls without a result.
    CallsClosed,
    /// Failures that are only visible in the text of the result.
    FailuresAsText,
    /// Texts that would be mistaken for something else at the beginning of a prompt.
    PromptsPrefixed,
    /// Messages to a busy agent.
    MessagesToBusyAgent,
    /// Thinking, kept as text.
    ThinkingAsText,
    /// Texts that followed a call of the same answer.
    TextsMoved,
    /// Prompts without content.
    EmptyMessages,
    /// A beginning without a prompt.
    BeginningAdded,
    /// A summary that became a prompt.
    SummaryAsPrompt,
    /// Secrets.
    Secrets,
    /// Long results.
    ResultsShortened,
    /// Long arguments.
    ArgumentsShortened,
    /// Long messages.
    MessagesShortened,
    /// Turns before a compaction.
    TurnsBeforeSummary,
    /// Turns that don't fit the context window.
    TurnsTooLong,
    /// Thinking.
    Thinking,
    /// Subagents' transcripts.
    Subagents,
    /// Pictures and files that the other agent can't take.
    Files,
    /// Pictures in results of calls that failed.
    PicturesInFailures,
    /// Results without a call.
    ResultsWithoutCall,
    /// Notes of the agent's program.
    Notices,
    /// Records that can't be read.
    Unreadable,
}

use Outcome::{Carried, Converted, Dropped, Shortened};

impl ReceiptItem {
    /// All of them, in the order of a receipt.
    pub const ALL: [ReceiptItem; 32] = [
        ReceiptItem::Prompts,
        ReceiptItem::Answers,
        ReceiptItem::Calls,
        ReceiptItem::Results,
        ReceiptItem::Pictures,
        ReceiptItem::Summary,
        ReceiptItem::ToolsMapped,
        ReceiptItem::NamesReplaced,
        ReceiptItem::IdsReplaced,
        ReceiptItem::ArgumentsWrapped,
        ReceiptItem::CallsClosed,
        ReceiptItem::FailuresAsText,
        ReceiptItem::PromptsPrefixed,
        ReceiptItem::MessagesToBusyAgent,
        ReceiptItem::ThinkingAsText,
        ReceiptItem::TextsMoved,
        ReceiptItem::EmptyMessages,
        ReceiptItem::BeginningAdded,
        ReceiptItem::SummaryAsPrompt,
        ReceiptItem::Secrets,
        ReceiptItem::ResultsShortened,
        ReceiptItem::ArgumentsShortened,
        ReceiptItem::MessagesShortened,
        ReceiptItem::TurnsBeforeSummary,
        ReceiptItem::TurnsTooLong,
        ReceiptItem::Thinking,
        ReceiptItem::Subagents,
        ReceiptItem::Files,
        ReceiptItem::PicturesInFailures,
        ReceiptItem::ResultsWithoutCall,
        ReceiptItem::Notices,
        ReceiptItem::Unreadable,
    ];

    /// What became of it.
    pub fn outcome(self) -> Outcome {
        self.facts().0
    }

    /// The outcome, the word in JSON and the registry, one of it, several of it, and the reason.
    fn facts(self) -> (Outcome, &'static str, &'static str, &'static str, Option<&'static str>) {
        match self {
            ReceiptItem::Prompts => (Carried, "prompts", "prompt", "prompts", None),
            ReceiptItem::Answers => (Carried, "answers", "answer", "answers", None),
            ReceiptItem::Calls => (Carried, "calls", "tool call", "tool calls", None),
            ReceiptItem::Results => (Carried, "results", "tool result", "tool results", None),
            ReceiptItem::Pictures => (Carried, "pictures", "picture", "pictures", None),
            ReceiptItem::Summary => (Carried, "summary", "summary", "summaries", None),
            ReceiptItem::ToolsMapped => (
                Converted,
                "tools_mapped",
                "tool call",
                "tool calls",
                Some("the other agent has the same tool under another name"),
            ),
            ReceiptItem::NamesReplaced => (
                Converted,
                "names_replaced",
                "tool name",
                "tool names",
                Some("it has characters that not every model accepts"),
            ),
            ReceiptItem::IdsReplaced => (
                Converted,
                "ids_replaced",
                "call id",
                "call ids",
                Some("models accept only short ids that are used once"),
            ),
            ReceiptItem::ArgumentsWrapped => (
                Converted,
                "arguments_wrapped",
                "call's arguments",
                "calls' arguments",
                Some("most models accept only objects as arguments"),
            ),
            ReceiptItem::CallsClosed => (
                Converted,
                "calls_closed",
                "call without a result",
                "calls without a result",
                Some("a note takes the place of the missing result"),
            ),
            ReceiptItem::FailuresAsText => (
                Converted,
                "failures_as_text",
                "failed call",
                "failed calls",
                Some("the other agent records a failure only in the text of the result"),
            ),
            ReceiptItem::PromptsPrefixed => (
                Converted,
                "prompts_prefixed",
                "prompt",
                "prompts",
                Some("\"User: \" is put in front, or the other agent would mistake the prompt for something else"),
            ),
            ReceiptItem::MessagesToBusyAgent => (
                Converted,
                "messages_to_busy_agent",
                "message to the busy agent",
                "messages to the busy agent",
                Some("in the fork, it begins a turn"),
            ),
            ReceiptItem::ThinkingAsText => {
                (Converted, "thinking_as_text", "thought", "thoughts", Some("kept as text, as requested"))
            }
            ReceiptItem::TextsMoved => (
                Converted,
                "texts_moved",
                "text after a call",
                "texts after a call",
                Some("the other agent keeps texts before the calls of the same answer"),
            ),
            ReceiptItem::BeginningAdded => (
                Converted,
                "beginning_added",
                "beginning",
                "beginnings",
                Some("a conversation must begin with a prompt"),
            ),
            ReceiptItem::SummaryAsPrompt => (
                Converted,
                "summary_as_prompt",
                "summary",
                "summaries",
                Some("the other agent has no record for it, so it is the first prompt"),
            ),
            ReceiptItem::Secrets => {
                (Converted, "secrets", "secret", "secrets", Some("redacted; `--keep-secrets` keeps it"))
            }
            ReceiptItem::ResultsShortened => (
                Shortened,
                "results_shortened",
                "tool result",
                "tool results",
                Some("the conversation is too long for the other agent's context window"),
            ),
            ReceiptItem::ArgumentsShortened => (
                Shortened,
                "arguments_shortened",
                "call's arguments",
                "calls' arguments",
                Some("the conversation is too long for the other agent's context window"),
            ),
            ReceiptItem::MessagesShortened => (
                Shortened,
                "messages_shortened",
                "message",
                "messages",
                Some("the conversation is too long for the other agent's context window"),
            ),
            ReceiptItem::TurnsBeforeSummary => (
                Dropped,
                "turns_before_summary",
                "turn before the last compaction",
                "turns before the last compaction",
                Some("the summary replaces it"),
            ),
            ReceiptItem::TurnsTooLong => (
                Dropped,
                "turns_too_long",
                "turn",
                "turns",
                Some("the conversation is too long for the other agent's context window"),
            ),
            ReceiptItem::Thinking => {
                (Dropped, "thinking", "thought", "thoughts", Some("only the model that wrote it accepts it"))
            }
            ReceiptItem::Subagents => (
                Dropped,
                "subagents",
                "subagent's transcript",
                "subagents' transcripts",
                Some("only the call and its result are part of the conversation"),
            ),
            ReceiptItem::Files => {
                (Dropped, "files", "file", "files", Some("a note takes its place: only pictures can be carried"))
            }
            ReceiptItem::PicturesInFailures => (
                Dropped,
                "pictures_in_failures",
                "picture in a failed result",
                "pictures in failed results",
                Some("the other agent's models accept only text there"),
            ),
            ReceiptItem::ResultsWithoutCall => (
                Dropped,
                "results_without_call",
                "result without a call",
                "results without a call",
                Some("models refuse it"),
            ),
            ReceiptItem::EmptyMessages => (
                Converted,
                "empty_messages",
                "empty prompt",
                "empty prompts",
                Some("models refuse it, so a note takes its place"),
            ),
            ReceiptItem::Notices => (
                Dropped,
                "notices",
                "note of the agent's program",
                "notes of the agent's program",
                Some("it is not part of the conversation"),
            ),
            ReceiptItem::Unreadable => {
                (Dropped, "unreadable", "record", "records", Some("it can't be read or is too large"))
            }
        }
    }

    fn counted(self, count: u64) -> String {
        let (_, _, one, many, _) = self.facts();
        format!("{count} {}", if count == 1 { one } else { many })
    }

    fn reasoned(self, count: u64) -> String {
        match self.facts().4 {
            Some(why) => format!("{} ({why})", self.counted(count)),
            None => self.counted(count),
        }
    }

    /// The word for it in JSON and in the registry.
    pub fn as_str(self) -> &'static str {
        self.facts().1
    }

    /// The item of this word.
    pub fn of_word(word: &str) -> Option<ReceiptItem> {
        ReceiptItem::ALL.into_iter().find(|item| item.as_str() == word)
    }
}

/// Counts what became of the parts of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    counts: BTreeMap<ReceiptItem, u64>,
}

impl Receipt {
    /// Counts one.
    pub fn note(&mut self, item: ReceiptItem) {
        self.add(item, 1);
    }

    /// Counts some.
    pub fn add(&mut self, item: ReceiptItem, count: u64) {
        if count > 0 {
            *self.counts.entry(item).or_default() += count;
        }
    }

    /// How many there are.
    pub fn count(&self, item: ReceiptItem) -> u64 {
        self.counts.get(&item).copied().unwrap_or(0)
    }

    /// What there is, in the order of a receipt.
    pub fn items(&self) -> impl Iterator<Item = (ReceiptItem, u64)> {
        self.counts.iter().map(|(item, count)| (*item, *count))
    }

    /// The outcomes and what they apply to: one line for all that was carried, one for each kind of part otherwise.
    pub fn lines(&self) -> Vec<(Outcome, String)> {
        let mut carried = Vec::new();
        let mut lines = Vec::new();
        for (item, count) in self.items() {
            match item.outcome() {
                Carried => carried.push(item.counted(count)),
                outcome => lines.push((outcome, item.reasoned(count))),
            }
        }
        if !carried.is_empty() {
            lines.insert(0, (Carried, carried.join(", ")));
        }
        lines
    }

    /// What was shortened and dropped, a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let is_loss = |(outcome, _): &(Outcome, String)| matches!(outcome, Shortened | Dropped);
        let lines = self.lines().into_iter().filter(is_loss);
        lines.map(|(outcome, line)| format!("{}: {line}", outcome.as_str())).collect()
    }

    /// The JSON of it.
    pub fn view(&self) -> ReceiptView {
        let line = |(item, count): (ReceiptItem, u64)| ReceiptLine { item, count, why: item.facts().4 };
        let of = |outcome| self.items().filter(|(item, _)| item.outcome() == outcome).map(line).collect();
        ReceiptView { carried: of(Carried), converted: of(Converted), shortened: of(Shortened), dropped: of(Dropped) }
    }
}

/// A receipt as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiptView {
    /// What is there as it was.
    pub carried: Vec<ReceiptLine>,
    /// What is there in another form.
    pub converted: Vec<ReceiptLine>,
    /// What is there in part.
    pub shortened: Vec<ReceiptLine>,
    /// What is not there.
    pub dropped: Vec<ReceiptLine>,
}

/// One kind of part in a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiptLine {
    /// The kind.
    pub item: ReceiptItem,
    /// How many.
    pub count: u64,
    /// The reason, unless it was carried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_known_by_their_words() {
        for item in ReceiptItem::ALL {
            assert_eq!(ReceiptItem::of_word(item.as_str()), Some(item));
            assert_eq!(serde_json::to_value(item).unwrap(), item.as_str());
        }
        assert_eq!(ReceiptItem::of_word("other"), None);
    }

    #[test]
    fn a_receipt_reads_as_sentences() {
        let mut receipt = Receipt::default();
        receipt.add(ReceiptItem::Thinking, 2);
        receipt.add(ReceiptItem::Prompts, 1);
        receipt.add(ReceiptItem::Calls, 3);
        receipt.add(ReceiptItem::Files, 0);
        let thoughts = "2 thoughts (only the model that wrote it accepts it)".to_owned();
        assert_eq!(receipt.lines(), [(Carried, "1 prompt, 3 tool calls".to_owned()), (Dropped, thoughts.clone())]);
        assert_eq!(receipt.losses(), [format!("dropped: {thoughts}")]);
    }
}
