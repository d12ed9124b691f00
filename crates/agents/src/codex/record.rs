//! One line of a rollout, scanned without parsing it.
//!
//! Codex writes the short fields first: time, ordinal and type precede the payload, and the payload starts with its own
//! type. So the first hundred bytes identify a line, however long it is, and its bulk is never read.

use jiff::Timestamp;

use crate::fields::{Fields, Raw, string_end};
use crate::lines::Line;

/// The kind of a record. Only kinds that the readers distinguish are named; everything else is `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    SessionMeta,
    TurnContext,
    /// What the model knows about its environment.
    WorldState,
    /// The history before it was replaced by a summary in what the model sees.
    Compacted,
    /// Says whether the message from another agent that follows opens a turn.
    AgentMessageMeta,
    // Events: what happened, as the client shows it.
    TaskStarted,
    TaskComplete,
    TurnAborted,
    RolledBack,
    TokenCount,
    /// A prompt, in the legacy dialect.
    PromptEvent,
    /// A prompt, in the paginated dialect.
    PromptItem,
    ToolEvent,
    ToolItem,
    SubagentItem,
    SubagentEvent,
    ReviewEntered,
    ReviewExited,
    CompactionEvent,
    Error,
    // Response items: what the model sees.
    UserMessage,
    Answer,
    AgentMessage,
    Reasoning,
    Call,
    Output,
    Other,
}

impl Kind {
    fn of(kind: &[u8], payload: &[u8]) -> Kind {
        match kind {
            b"response_item" => Kind::of_item(payload),
            b"event_msg" => Kind::of_event(payload),
            b"turn_context" => Kind::TurnContext,
            b"world_state" => Kind::WorldState,
            b"session_meta" => Kind::SessionMeta,
            b"compacted" => Kind::Compacted,
            b"inter_agent_communication_metadata" => Kind::AgentMessageMeta,
            _ => Kind::Other,
        }
    }

    fn of_item(payload: &[u8]) -> Kind {
        match type_of(payload) {
            b"message" => match lazy_get(payload, b"role").and_then(Raw::plain) {
                Some(b"user") => Kind::UserMessage,
                Some(b"assistant") => Kind::Answer,
                _ => Kind::Other,
            },
            b"agent_message" => Kind::AgentMessage,
            b"reasoning" => Kind::Reasoning,
            b"function_call"
            | b"custom_tool_call"
            | b"local_shell_call"
            | b"web_search_call"
            | b"tool_search_call"
            | b"image_generation_call" => Kind::Call,
            b"function_call_output" | b"custom_tool_call_output" | b"tool_search_output" => Kind::Output,
            _ => Kind::Other,
        }
    }

    /// A line of before September 2025: an item, or the thread's own facts, which have no type.
    fn of_bare(kind: Option<&[u8]>, line: &[u8]) -> Option<Kind> {
        match kind {
            Some(_) => Some(Kind::of_item(line)).filter(|kind| *kind != Kind::Other),
            None => {
                let has = |key| Raw(line).get(key).is_some();
                (has(b"id") && has(b"timestamp") && has(b"instructions")).then_some(Kind::SessionMeta)
            }
        }
    }

    fn of_event(payload: &[u8]) -> Kind {
        match type_of(payload) {
            b"item_completed" => Kind::of_completed(payload),
            b"token_count" => Kind::TokenCount,
            b"task_started" | b"turn_started" => Kind::TaskStarted,
            b"task_complete" | b"turn_complete" => Kind::TaskComplete,
            b"turn_aborted" => Kind::TurnAborted,
            b"user_message" => Kind::PromptEvent,
            b"thread_rolled_back" => Kind::RolledBack,
            b"mcp_tool_call_end" | b"patch_apply_end" => Kind::ToolEvent,
            b"sub_agent_activity" => Kind::SubagentEvent,
            b"entered_review_mode" => Kind::ReviewEntered,
            b"exited_review_mode" => Kind::ReviewExited,
            b"context_compacted" => Kind::CompactionEvent,
            b"error" => Kind::Error,
            _ => Kind::Other,
        }
    }

    fn of_completed(payload: &[u8]) -> Kind {
        match lazy_get(payload, b"item").map_or(&b""[..], |item| type_of(item.0)) {
            b"UserMessage" => Kind::PromptItem,
            b"McpToolCall" | b"FileChange" | b"DynamicToolCall" => Kind::ToolItem,
            b"CollabAgentToolCall" | b"SubAgentActivity" => Kind::SubagentItem,
            b"EnteredReviewMode" => Kind::ReviewEntered,
            b"ExitedReviewMode" => Kind::ReviewExited,
            b"ContextCompaction" => Kind::CompactionEvent,
            _ => Kind::Other,
        }
    }

    /// Whether turns are counted by it. Such a record is checked to its end; damage in others costs no more than
    /// what they hold.
    fn counts(self) -> bool {
        matches!(
            self,
            Kind::TaskStarted
                | Kind::TaskComplete
                | Kind::TurnAborted
                | Kind::RolledBack
                | Kind::PromptEvent
                | Kind::PromptItem
                | Kind::UserMessage
                | Kind::AgentMessage
                | Kind::AgentMessageMeta
        )
    }
}

/// One line: its short fields, and where its payload begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub kind: Kind,
    pub ordinal: Option<u64>,
    pub time: Option<&'a [u8]>,
    /// Whether the line is what others have for a payload: before September 2025 there was nothing around it.
    pub is_bare: bool,
    /// The payload and what follows it on the line.
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// Looks at a line, or at the beginning of one that is too long to be held. Nothing for what is no JSON object.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let (mut kind, mut ordinal, mut time, mut payload) = (None, None, None, None);
        let mut fields = Short::of(line)?;
        for (key, value) in fields.by_ref() {
            match (key, value) {
                (b"type", Value::Plain(value)) => kind = value.plain(),
                (b"ordinal", Value::Plain(value)) => ordinal = value.number(),
                (b"timestamp", Value::Plain(value)) => time = value.plain(),
                (b"payload", Value::Nested(value)) => payload = Some(value),
                _ => {}
            }
        }
        if kind.is_none() || payload.is_none() {
            // Another program wrote the line, with its fields in another order.
            for (key, value) in Raw(line).fields() {
                match key {
                    b"type" => kind = value.plain(),
                    b"ordinal" => ordinal = value.number(),
                    b"timestamp" => time = value.plain(),
                    b"payload" => payload = Some(value.0),
                    _ => {}
                }
            }
        }
        if payload.is_none()
            && let Some(kind) = Kind::of_bare(kind, line)
        {
            return Some(Record { kind, ordinal, time, is_bare: true, payload: line });
        }
        let payload = payload.unwrap_or(b"");
        let kind = kind.map_or(Kind::Other, |kind| Kind::of(kind, payload));
        Some(Record { kind, ordinal, time, is_bare: false, payload })
    }

    /// The record on a line that is held in full; nothing where the line is damaged.
    pub(super) fn of_line(line: &Line<'a>) -> Option<Self> {
        let bytes = line.bytes?;
        let record = Record::of(bytes)?;
        let whole = if record.kind.counts() || !line.terminated {
            Fields::of(bytes).finish()
        } else {
            bytes.trim_ascii_end().ends_with(b"}")
        };
        whole.then_some(record)
    }

    /// One field of the payload.
    pub(super) fn get(&self, key: &[u8]) -> Option<Raw<'a>> {
        Raw(self.payload).get(key)
    }

    /// Whether the payload has a field that is not null, where only short ones precede it.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        lazy_get(self.payload, key).is_some_and(|value| value.0 != b"null")
    }

    /// The fields of the payload.
    pub(super) fn fields(&self) -> Fields<'a> {
        Raw(self.payload).fields()
    }

    /// The payload's `type`.
    pub(super) fn subtype(&self) -> &'a [u8] {
        type_of(self.payload)
    }

    /// A text in the payload.
    pub(super) fn text(&self, key: &[u8]) -> Option<String> {
        self.get(key).and_then(Raw::string).map(|text| text.into_owned()).filter(|text| !text.is_empty())
    }

    /// The payload's bytes, with what follows it.
    pub(super) fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// When it was written.
    pub(super) fn at(&self) -> Option<Timestamp> {
        std::str::from_utf8(self.time?).ok()?.parse().ok()
    }
}

/// The payload's `type`, which Codex writes first.
fn type_of(object: &[u8]) -> &[u8] {
    lazy_get(object, b"type").and_then(Raw::plain).unwrap_or(b"")
}

/// One field of an object, found without scanning past it if only short fields precede it. A nested value includes
/// everything after it.
fn lazy_get<'a>(object: &'a [u8], key: &[u8]) -> Option<Raw<'a>> {
    for (name, value) in Short::of(object)? {
        match value {
            Value::Plain(value) if name == key => return Some(value),
            Value::Nested(value) if name == key => return Some(Raw(value)),
            _ => {}
        }
    }
    Raw(object).get(key)
}

/// The fields of an object up to and including the first nested one. The object need not be there in full.
struct Short<'a> {
    rest: &'a [u8],
}

enum Value<'a> {
    Plain(Raw<'a>),
    Nested(&'a [u8]),
}

impl<'a> Short<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.trim_ascii_start().strip_prefix(b"{")?;
        Some(Short { rest })
    }

    fn advance(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let mut rest = self.rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        let key_end = string_end(rest)?;
        let key = &rest[1..key_end - 1];
        rest = rest[key_end..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let end = match rest.first()? {
            b'{' | b'[' => {
                self.rest = b"";
                return Some((key, Value::Nested(rest)));
            }
            b'"' => string_end(rest)?,
            _ => rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())?,
        };
        self.rest = &rest[end..];
        Some((key, Value::Plain(Raw(&rest[..end]))))
    }
}

impl<'a> Iterator for Short<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.advance();
        if field.is_none() {
            self.rest = b"";
        }
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_by_its_beginning() {
        let check = |line: &str, expected: Kind| {
            assert_eq!(Record::of(line.as_bytes()).unwrap().kind, expected, "{line}");
            let spaced = line.replace(':', " : ").replace(',', " , ");
            assert_eq!(Record::of(spaced.as_bytes()).unwrap().kind, expected, "{spaced}");
            // The beginning is enough, for a line that is too long to be held.
            let beginning = &line[..line.len() - 3];
            assert_eq!(Record::of(beginning.as_bytes()).unwrap().kind, expected, "{beginning}");
        };
        let line = |kind: &str, payload: &str| {
            format!(r#"{{"timestamp":"2026-11-15T20:45:44.762Z","ordinal":7,"type":"{kind}","payload":{payload}}}"#)
        };
        check(&line("session_meta", r#"{"id":"x","more":""}"#), Kind::SessionMeta);
        check(&line("event_msg", r#"{"type":"task_started","more":""}"#), Kind::TaskStarted);
        check(&line("event_msg", r#"{"type":"user_message","message":"a"}"#), Kind::PromptEvent);
        let item =
            |item: &str| line("event_msg", &format!(r#"{{"type":"item_completed","turn_id":"t","item":{item}}}"#));
        check(&item(r#"{"type":"UserMessage","id":"i","content":[]}"#), Kind::PromptItem);
        check(&item(r#"{"type":"CommandExecution","id":"i","content":[]}"#), Kind::Other);
        let message = |role: &str| {
            line("response_item", &format!(r#"{{"type":"message","id":"m\"","role":"{role}","content":[]}}"#))
        };
        check(&message("user"), Kind::UserMessage);
        check(&message("assistant"), Kind::Answer);
        check(&message("developer"), Kind::Other);
        check(&line("response_item", r#"{"type":"custom_tool_call","x":""}"#), Kind::Call);
        check(&line("world_state", r#"{"full":true,"state":{}}"#), Kind::WorldState);
        check(&line("from_the_future", r#"{"type":"message","role":"user"}"#), Kind::Other);
    }

    #[test]
    fn the_order_of_the_fields_does_not_matter() {
        let line = r#"{"payload":{"content":[{"type":"x"}],"role":"user","type":"message"},"type":"response_item","ordinal":3,"timestamp":"2026-11-15T20:45:44.762Z"}"#;
        let record = Record::of(line.as_bytes()).unwrap();
        assert_eq!((record.kind, record.ordinal), (Kind::UserMessage, Some(3)));
        assert!(record.at().is_some());
        assert_eq!(record.text(b"role").as_deref(), Some("user"));
    }

    #[test]
    fn what_is_no_record_is_told() {
        for line in ["", "garbage", "[1]", "\"x\"", "null"] {
            assert!(Record::of(line.as_bytes()).is_none(), "{line}");
        }
        for line in [
            "{}",
            r#"{"type":3,"payload":[]}"#,
            r#"{"id":"old","timestamp":"x"}"#,
            r#"{"type":"message","role":"nobody"}"#,
            r#"{"record_type":"state"}"#,
        ] {
            let record = Record::of(line.as_bytes()).unwrap();
            assert_eq!((record.kind, record.is_bare), (Kind::Other, false), "{line}");
        }
        let bare = Record::of(br#"{"type":"message","role":"user"}"#).unwrap();
        assert_eq!((bare.kind, bare.is_bare), (Kind::UserMessage, true));
    }
}
