//! One message of a chat file: what it is, and its parts.
//!
//! A user's message holds what the user typed, results of tools, or context that the client made up. The client stores
//! the result of a tool twice: in the call that it belongs to, and in a message of the user.

use std::borrow::Cow;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::fields::Raw;
use crate::files::fingerprint;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the user typed. It starts a turn.
    Prompt,
    /// Results of tools.
    Results,
    /// Context that the client made up, or nothing.
    Context,
    /// What the model said, thought and called.
    Answer,
    /// A note of the client, which the model never sees.
    Note,
    /// The note that says which file a session was forked from.
    Import,
    /// Anything else.
    Other,
}

/// One message, scanned without parsing it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub kind: Kind,
    /// The fingerprint of its id.
    pub key: u64,
    pub bytes: Raw<'a>,
    pub content: Raw<'a>,
    pub time: Option<&'a [u8]>,
    pub calls: Raw<'a>,
}

const NOTHING: Raw<'static> = Raw(b"null");

impl<'a> Message<'a> {
    /// The message in a JSON object; nothing where the object has no id.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (mut id, mut role, mut time) = (None, None, None);
        let (mut content, mut calls) = (NOTHING, NOTHING);
        for (name, value) in Raw(bytes).fields() {
            match name {
                b"id" => id = value.string(),
                b"type" => role = value.plain(),
                b"timestamp" => time = value.plain(),
                b"content" => content = value,
                b"toolCalls" => calls = value,
                _ => {}
            }
        }
        let key = fingerprint(id?.as_bytes());
        let kind = match role.unwrap_or_default() {
            b"user" => kind_of_user(content),
            b"gemini" => Kind::Answer,
            b"info" if imported_from(content).is_some() => Kind::Import,
            b"info" | b"warning" | b"error" => Kind::Note,
            _ => Kind::Other,
        };
        Some(Message { kind, key, bytes: Raw(bytes), content, time, calls })
    }

    /// The message in an object whose content is too long to be held, by its type.
    pub(super) fn kind_of_long(role: &[u8]) -> Kind {
        match role {
            // Only a picture is that long, and only a prompt brings one.
            b"user" => Kind::Prompt,
            b"gemini" => Kind::Answer,
            _ => Kind::Other,
        }
    }

    /// One of its fields.
    pub(super) fn get(&self, key: &[u8]) -> Option<Raw<'a>> {
        self.bytes.get(key)
    }

    /// A text among its fields.
    pub(super) fn text(&self, key: &[u8]) -> Option<String> {
        self.get(key).and_then(Raw::string).map(Cow::into_owned).filter(|text| !text.is_empty())
    }

    /// When it was written.
    pub(super) fn at(&self) -> Option<Timestamp> {
        std::str::from_utf8(self.time?).ok()?.parse().ok()
    }

    /// What the user typed, and what the client added to it, such as the contents of files.
    pub(super) fn prompt(&self) -> (String, Option<String>) {
        let whole = text_of(self.content);
        let typed = self.get(b"displayContent").map(text_of).filter(|typed| !typed.trim().is_empty());
        match typed {
            Some(typed) if typed != whole => {
                let added = whole.strip_prefix(&typed).unwrap_or(&whole).trim().to_owned();
                (typed, Some(added).filter(|added| !added.is_empty()))
            }
            _ => (whole, None),
        }
    }

    /// The ids of the calls whose results are stored with them.
    pub(super) fn answered_calls(&self) -> impl Iterator<Item = u64> + 'a {
        let answered = self.calls.elements().filter(|call| call.get(b"result").is_some_and(|result| !is_empty(result)));
        answered.filter_map(|call| call.get(b"id")?.string()).map(|id| fingerprint(id.as_bytes()))
    }

    /// Whether it calls tools. While they run, nothing but an answer without words shows it.
    pub(super) fn calls_tools(&self) -> bool {
        let is_call = |part: Raw<'_>| part.get(b"functionCall").is_some();
        self.kind == Kind::Answer
            && (self.calls.elements().next().is_some() || parts(self.content).any(is_call) || self.content.0 == b"\"\"")
    }
}

/// The file that a note says the session was loaded from.
pub(super) fn imported_from(content: Raw<'_>) -> Option<PathBuf> {
    content.string()?.strip_prefix(IMPORTED).map(PathBuf::from)
}

/// What such a note begins with; the path of the file follows.
pub(super) const IMPORTED: &str = "Imported session from ";

/// The parts of a content, which is a text, a part, or a list of both.
pub(super) fn parts(content: Raw<'_>) -> impl Iterator<Item = Raw<'_>> {
    let alone = (!content.0.starts_with(b"[") && content.0 != b"null").then_some(content);
    alone.into_iter().chain(content.elements())
}

/// The text of one part.
pub(super) fn part_text(part: Raw<'_>) -> Option<Cow<'_, str>> {
    part.string().or_else(|| part.get(b"text").and_then(Raw::string))
}

/// The text of all parts.
pub(super) fn text_of(content: Raw<'_>) -> String {
    let mut texts = parts(content).filter_map(part_text);
    let first = texts.next().map(Cow::into_owned).unwrap_or_default();
    texts.fold(first, |text, next| text + &next)
}

/// The id of the call that a part answers.
pub(super) fn answered_call(part: Raw<'_>) -> Option<Cow<'_, str>> {
    part.get(b"functionResponse")?.get(b"id")?.string()
}

fn is_empty(value: Raw<'_>) -> bool {
    matches!(value.0, b"null" | b"[]" | b"\"\"")
}

fn kind_of_user(content: Raw<'_>) -> Kind {
    /// What the client puts around context of its own.
    const CONTEXT: [&str; 2] = ["<session_context>", "<hook_context>"];
    let (mut says, mut is_result) = (false, false);
    for part in parts(content) {
        if part.get(b"functionResponse").is_some() {
            is_result = true;
        } else if let Some(text) = part_text(part) {
            let text = text.trim_start();
            if !says && CONTEXT.iter().any(|context| text.starts_with(context)) {
                return Kind::Context;
            }
            says |= !text.is_empty();
        } else {
            says |= !is_empty(part);
        }
    }
    match (is_result, says) {
        (true, _) => Kind::Results,
        (_, true) => Kind::Prompt,
        _ => Kind::Context,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let check = |message: &str, expected: Kind| {
            assert_eq!(Message::of(message.as_bytes()).map(|message| message.kind), Some(expected), "{message}");
        };
        let user = |content: &str| format!(r#"{{"id":"m","type":"user","content":{content}}}"#);
        check(&user(r#"[{"text":"hello"}]"#), Kind::Prompt);
        check(&user(r#""hello""#), Kind::Prompt);
        check(&user(r#"{"text":"hello"}"#), Kind::Prompt);
        check(&user(r#"[{"inlineData":{"mimeType":"image/png","data":"aa"}}]"#), Kind::Prompt);
        check(&user(r#"[{"text":"  <session_context>\nx"}]"#), Kind::Context);
        check(&user(r#"[{"text":"<hook_context>x"}]"#), Kind::Context);
        check(&user(r#"[{"text":" "}]"#), Kind::Context);
        check(&user("[]"), Kind::Context);
        check(&user(r#"[{"functionResponse":{"id":"c","response":{}}},{"text":"x"}]"#), Kind::Results);
        check(r#"{"id":"m","type":"gemini","content":""}"#, Kind::Answer);
        check(r#"{"id":"m","type":"info","content":"x"}"#, Kind::Note);
        check(r#"{"id":"m","type":"info","content":"Imported session from /x.jsonl"}"#, Kind::Import);
        check(r#"{"id":"m","type":"from the future"}"#, Kind::Other);
        for other in ["{}", "garbage", r#"{"$set":{}}"#, "[]", r#"{"id":7}"#] {
            assert!(Message::of(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn what_was_typed_is_told_from_what_was_added() {
        let message = r#"{"id":"m","type":"user","content":[{"text":"see @a.txt"},{"text":"\n--- Content from referenced files ---\nA"}],"displayContent":[{"text":"see @a.txt"}]}"#;
        let (typed, added) = Message::of(message.as_bytes()).unwrap().prompt();
        assert_eq!(
            (typed.as_str(), added.as_deref()),
            ("see @a.txt", Some("--- Content from referenced files ---\nA"))
        );
    }
}
