//! What a message means: the one place that decides what a turn is, for the scan, the reader and the copy.

use jiff::Timestamp;
use transcript::TokenUse;

use super::row::Row;
use crate::fields::Raw;
use crate::files::fingerprint;

/// A message with its parts.
pub(super) struct StoredMessage<'a> {
    pub row: &'a Row,
    pub parts: &'a [Row],
    data: Raw<'a>,
}

/// What a message is.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// A prompt of the user, which starts a turn.
    Prompt(UserPrompt),
    /// Text that the client added as a message of the user.
    Injected,
    /// A request to summarise the history.
    CompactionRequest,
    /// An answer of the model, or one round of it.
    Answer,
    /// A summary that replaces the history before it.
    Summary,
    /// A damaged row.
    Damaged,
}

/// A prompt.
#[derive(Debug, PartialEq)]
pub(super) struct UserPrompt {
    /// The words.
    pub text: String,
    /// The same in a session and in all of its forks: the agent's own fork gives messages other ids, but keeps their
    /// times.
    pub key: u64,
}

impl<'a> StoredMessage<'a> {
    pub(super) fn of(row: &'a Row, parts: &'a [Row]) -> Self {
        StoredMessage { row, parts, data: Raw(row.data().as_bytes()) }
    }

    pub(super) fn meaning(&self) -> Meaning {
        let role = self.text(b"role");
        match role.as_deref() {
            Some("user") => self.meaning_of_user(),
            Some("assistant") if self.data.get(b"summary").is_some_and(Raw::is_true) => Meaning::Summary,
            Some("assistant") => Meaning::Answer,
            _ => Meaning::Damaged,
        }
    }

    fn meaning_of_user(&self) -> Meaning {
        let (mut text, mut says_something) = (String::new(), self.parts.is_empty());
        for part in self.parts {
            let part = StoredPart::of(part);
            match part.kind().as_str() {
                "compaction" => return Meaning::CompactionRequest,
                "text" if !part.is_of_client() => {
                    says_something = true;
                    add_paragraph(&mut text, &part.text(b"text").unwrap_or_default());
                }
                "subtask" => {
                    says_something = true;
                    add_paragraph(&mut text, &part.text(b"prompt").unwrap_or_default());
                }
                "file" | "agent" => says_something = true,
                _ => {}
            }
        }
        if !says_something {
            return Meaning::Injected;
        }
        let created = self.data.get(b"time").and_then(|time| time.get(b"created")).map(|time| time.0);
        let key = fingerprint(&[created.unwrap_or_default(), b"\0", text.as_bytes()].concat());
        Meaning::Prompt(UserPrompt { text, key })
    }

    /// A text of its data.
    pub(super) fn text(&self, key: &[u8]) -> Option<String> {
        self.data.get(key).and_then(Raw::string).map(|text| text.into_owned())
    }

    /// When it began.
    pub(super) fn created(&self) -> Option<Timestamp> {
        self.time(b"created").or_else(|| Timestamp::from_millisecond(self.row.number("time_created")?).ok())
    }

    /// When it was complete.
    pub(super) fn completed(&self) -> Option<Timestamp> {
        self.time(b"completed")
    }

    fn time(&self, key: &[u8]) -> Option<Timestamp> {
        time_of(self.data.get(b"time")?.get(key)?)
    }

    /// The model: `provider/model`.
    pub(super) fn model(&self) -> Option<String> {
        let of = |object: Raw<'_>| {
            let text = |key: &[u8]| object.get(key).and_then(Raw::string);
            Some(format!("{}/{}", text(b"providerID")?, text(b"modelID")?))
        };
        of(self.data).or_else(|| of(self.data.get(b"model")?))
    }

    /// Why it failed: the name of the error, and what it says.
    pub(super) fn error(&self) -> Option<(String, String)> {
        let error = self.data.get(b"error").filter(|error| error.0.starts_with(b"{"))?;
        let name = error.get(b"name").and_then(Raw::string).unwrap_or_default().into_owned();
        let said = error.get(b"data").and_then(|data| data.get(b"message")).and_then(Raw::string);
        Some((name.clone(), said.map_or(name, |said| said.into_owned())))
    }

    /// Whether the agent still works on the turn after it.
    pub(super) fn leaves_turn_open(&self) -> bool {
        self.error().is_none() && (self.completed().is_none() || self.text(b"finish").as_deref() == Some("tool-calls"))
    }

    /// The tokens of the request and the answer.
    pub(super) fn tokens(&self) -> Option<TokenUse> {
        let tokens = self.data.get(b"tokens")?;
        let number = |value: Option<Raw<'_>>| value.and_then(Raw::number).unwrap_or(0);
        let cache = tokens.get(b"cache");
        let cached = |key: &[u8]| number(cache.and_then(|cache| cache.get(key)));
        let input = number(tokens.get(b"input")) + cached(b"read") + cached(b"write");
        let output = number(tokens.get(b"output")) + number(tokens.get(b"reasoning"));
        (input + output > 0).then_some(TokenUse { input, output, window: None })
    }
}

/// A part of a message.
#[derive(Clone, Copy)]
pub(super) struct StoredPart<'a> {
    data: Raw<'a>,
}

impl<'a> StoredPart<'a> {
    pub(super) fn of(row: &'a Row) -> Self {
        StoredPart { data: Raw(row.data().as_bytes()) }
    }

    pub(super) fn kind(&self) -> String {
        self.text(b"type").unwrap_or_default()
    }

    pub(super) fn text(&self, key: &[u8]) -> Option<String> {
        self.data.get(key).and_then(Raw::string).map(|text| text.into_owned())
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Raw<'a>> {
        self.data.get(key)
    }

    /// Whether the client wrote it, not the user: the content of an attached file, or a reminder.
    pub(super) fn is_of_client(&self) -> bool {
        [&b"synthetic"[..], b"ignored"].iter().any(|key| self.data.get(key).is_some_and(Raw::is_true))
    }
}

fn add_paragraph(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// A time in milliseconds, which may have a fraction.
pub(super) fn time_of(value: Raw<'_>) -> Option<Timestamp> {
    let milliseconds: f64 = std::str::from_utf8(value.0).ok()?.trim().parse().ok()?;
    Timestamp::from_millisecond(milliseconds as i64).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn row(table: &str, data: &str) -> Row {
        Row::new(table, Map::from_iter([("data".to_owned(), json!(data))]))
    }

    #[test]
    fn a_turn_is_a_message_in_which_the_user_says_something() {
        let check = |data: &str, parts: &[&str], expected: Option<&str>| {
            let message = row("message", data);
            let parts: Vec<Row> = parts.iter().map(|part| row("part", part)).collect();
            let text = match StoredMessage::of(&message, &parts).meaning() {
                Meaning::Prompt(prompt) => Some(prompt.text),
                _ => None,
            };
            assert_eq!(text.as_deref(), expected, "{data} {}", parts.len());
        };
        let user = r#"{"role":"user","time":{"created":1}}"#;
        let text = r#"{"type":"text","text":"hi"}"#;
        let synthetic = r#"{"type":"text","text":"Called Read","synthetic":true}"#;
        check(user, &[text], Some("hi"));
        check(user, &[synthetic, text, text], Some("hi\n\nhi"));
        check(user, &[synthetic], None);
        check(user, &[r#"{"type":"text","text":"x","ignored":true}"#], None);
        check(user, &[r#"{"type":"file","mime":"image/png"}"#], Some(""));
        check(user, &[r#"{"type":"subtask","prompt":"look"}"#], Some("look"));
        check(user, &[r#"{"type":"compaction","auto":false}"#], None);
        check(user, &[], Some(""));
        check(r#"{"role":"assistant"}"#, &[text], None);
        check(r#"{"role":"robot"}"#, &[text], None);
        check("garbage", &[text], None);
        check("", &[], None);
    }

    #[test]
    fn the_model_and_the_tokens_are_found_in_both_kinds_of_messages() {
        let of = |data: &str| {
            let row = row("message", data);
            let message = StoredMessage::of(&row, &[]);
            (message.model(), message.tokens().map(|tokens| (tokens.input, tokens.output)))
        };
        let both = Some("p/m".to_owned());
        assert_eq!(of(r#"{"role":"user","model":{"providerID":"p","modelID":"m"}}"#), (both.clone(), None));
        let tokens = r#"{"input":10,"output":3,"reasoning":2,"cache":{"read":100,"write":7}}"#;
        let data = format!(r#"{{"role":"assistant","providerID":"p","modelID":"m","tokens":{tokens}}}"#);
        assert_eq!(of(&data), (both, Some((117, 5))));
        assert_eq!(of(r#"{"role":"assistant","tokens":{"input":0}}"#), (None, None));
    }
}
