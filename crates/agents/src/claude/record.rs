//! One line of a Claude Code transcript, scanned without parsing it.

use std::ops::Range;

use crate::fields::{Fields, Raw};

/// The kind of a record. Only kinds that the readers distinguish are named; everything else is `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    User,
    Assistant,
    Attachment,
    System,
    LastPrompt,
    CustomTitle,
    AiTitle,
    /// A title of 1.0 to 2.1.29.
    Summary,
    Relocated,
    #[default]
    Other,
}

impl Kind {
    pub(super) fn of(word: &[u8]) -> Kind {
        match word {
            b"user" => Kind::User,
            b"assistant" => Kind::Assistant,
            b"attachment" => Kind::Attachment,
            b"system" => Kind::System,
            b"last-prompt" => Kind::LastPrompt,
            b"custom-title" => Kind::CustomTitle,
            b"ai-title" => Kind::AiTitle,
            b"summary" => Kind::Summary,
            b"relocated" => Kind::Relocated,
            _ => Kind::Other,
        }
    }
}

/// The top-level fields of one line.
#[derive(Debug, Clone, Default)]
pub(super) struct Record<'a> {
    pub kind: Kind,
    /// The kind as written.
    pub word: Option<Raw<'a>>,
    pub uuid: Option<u64>,
    /// The id as written.
    pub id: Option<Raw<'a>>,
    pub session: Option<Raw<'a>>,
    pub parent: Option<u64>,
    /// The parent as written.
    pub parent_value: Option<Raw<'a>>,
    /// Whether it has a parent field at all, even a null one.
    pub has_parent: bool,
    /// Set on a compaction boundary, whose `parentUuid` is null.
    pub logical_parent: Option<u64>,
    pub sidechain: bool,
    pub meta: bool,
    pub compact_summary: bool,
    pub api_error: bool,
    pub timestamp: Option<Raw<'a>>,
    pub cwd: Option<Raw<'a>>,
    pub branch: Option<Raw<'a>>,
    pub version: Option<Raw<'a>>,
    pub subtype: Option<Raw<'a>>,
    pub prompt_source: Option<Raw<'a>>,
    pub message: Option<Raw<'a>>,
    pub attachment: Option<Raw<'a>>,
    pub content: Option<Raw<'a>>,
    pub tool_result: Option<Raw<'a>>,
    pub forked_from: Option<Raw<'a>>,
    /// The title in a `summary` record.
    pub summary: Option<Raw<'a>>,
    /// `leafUuid`, `customTitle`, `aiTitle` or `relocatedCwd`, by the kind of the record.
    pub value: Option<Raw<'a>>,
    /// Whether a field that a copy changes is repeated, which no client writes.
    pub repeated: bool,
    /// Whether the line is one whole JSON object.
    pub complete: bool,
}

impl<'a> Record<'a> {
    /// Looks at one line.
    pub(super) fn of(line: &'a [u8]) -> Self {
        let mut record = Record::default();
        let mut fields = Fields::of(line);
        for (key, value) in fields.by_ref() {
            record.note(key, value);
        }
        record.complete = fields.is_complete();
        record
    }

    pub(super) fn note(&mut self, key: &[u8], value: Raw<'a>) {
        match key {
            b"type" => {
                self.word = Some(value);
                self.kind = value.plain().map_or(Kind::Other, Kind::of);
            }
            b"uuid" => {
                self.id = Some(value);
                self.uuid = value.plain().map(key_of);
            }
            b"sessionId" => self.repeated |= self.session.replace(value).is_some(),
            b"parentUuid" => {
                self.has_parent = true;
                self.parent_value = Some(value);
                self.parent = value.plain().map(key_of);
            }
            b"logicalParentUuid" => self.logical_parent = value.plain().map(key_of),
            b"isSidechain" => self.sidechain = value.is_true(),
            b"isMeta" => self.meta = value.is_true(),
            b"isCompactSummary" => self.compact_summary = value.is_true(),
            b"isApiErrorMessage" => self.api_error = value.is_true(),
            b"timestamp" => self.timestamp = Some(value),
            b"cwd" => self.repeated |= self.cwd.replace(value).is_some(),
            b"gitBranch" => self.repeated |= self.branch.replace(value).is_some(),
            b"version" => self.version = Some(value),
            b"subtype" => self.subtype = Some(value),
            b"promptSource" => self.prompt_source = Some(value),
            b"message" => self.message = Some(value),
            b"attachment" => self.attachment = Some(value),
            b"content" => self.content = Some(value),
            b"toolUseResult" => self.tool_result = Some(value),
            b"forkedFrom" => self.repeated |= self.forked_from.replace(value).is_some(),
            b"summary" => self.summary = Some(value),
            b"leafUuid" | b"customTitle" | b"aiTitle" | b"relocatedCwd" => self.value = Some(value),
            _ => {}
        }
    }

    /// Whether it is a link of the parent chain. Whatever has an id and a parent is, also of a kind that is not known:
    /// its children would hang in the air otherwise.
    pub(super) fn is_chain(&self) -> bool {
        self.uuid.is_some()
            && !self.sidechain
            && (self.has_parent || matches!(self.kind, Kind::User | Kind::Assistant | Kind::Attachment | Kind::System))
    }

    /// What a `user` record means to the user.
    pub(super) fn user_part(&self) -> UserPart {
        if self.compact_summary {
            return UserPart::Summary;
        }
        let Some(content) = self.message.and_then(|message| message.beginning(b"content")) else {
            return UserPart::Injected;
        };
        let mut part = UserPart::Injected;
        if content.0.starts_with(b"\"") {
            part = UserPart::of_text(&content.0[1..]);
        } else {
            // Most records hold one tool result, with its type before its content: then the content is skipped.
            let first = Fields::of(content.0.get(1..).unwrap_or_default()).find(|(key, _)| *key == b"type");
            if first.is_some_and(|(_, kind)| kind.0 == b"\"tool_result\"") {
                return UserPart::ToolResult;
            }
            for element in content.elements() {
                match element.get(b"type").and_then(Raw::plain) {
                    Some(b"tool_result") => return UserPart::ToolResult,
                    Some(b"text") if part == UserPart::Injected => {
                        let text = element.get(b"text").map_or(&b""[..], |text| &text.0[1..]);
                        part = UserPart::of_text(text);
                    }
                    Some(b"image" | b"document") => part = UserPart::Prompt,
                    _ => {}
                }
            }
        }
        let source = self.prompt_source.and_then(Raw::plain).unwrap_or_default();
        match part {
            UserPart::Prompt if self.meta && source == b"sdk" => UserPart::FromSdk,
            UserPart::Prompt if self.meta || source == b"system" => UserPart::Injected,
            part => part,
        }
    }
}

/// What a `user` record means to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserPart {
    /// A prompt.
    Prompt,
    /// What a tool gave back.
    ToolResult,
    /// A slash command: a prompt if the agent answers it, a client's matter if output follows.
    Command,
    /// What a program sent through the SDK and marked as meta (2.1.212): a prompt if the agent answers it.
    FromSdk,
    /// What a command of the client printed.
    CommandOutput,
    /// The user interrupted the agent.
    Interrupted,
    /// The summary that a compaction left.
    Summary,
    /// The client's introduction before the output of a local command.
    Caveat,
    /// Context that the client put in.
    Injected,
}

impl UserPart {
    /// Tells by the start of the text, which is still JSON-escaped and ends with a quotation mark.
    pub(super) fn of_text(text: &[u8]) -> UserPart {
        const STARTS: [(&[u8], UserPart); 17] = [
            (b"<command-name>", UserPart::Command),
            (b"<command-message>", UserPart::Command),
            (b"<local-command-stdout>", UserPart::CommandOutput),
            (b"<local-command-stderr>", UserPart::CommandOutput),
            (b"<local-command-caveat>", UserPart::Caveat),
            (b"<ide_opened_file>", UserPart::Injected),
            (b"<ide_selection>", UserPart::Injected),
            (b"<bash-input>", UserPart::CommandOutput),
            (b"<bash-stdout>", UserPart::CommandOutput),
            (b"<bash-stderr>", UserPart::CommandOutput),
            // `#memory`, whose output is empty; the client writes that as a text (1.0.5x).
            (b"<user-memory-input>", UserPart::CommandOutput),
            (b"(no content)\"", UserPart::CommandOutput),
            (b"<task-notification>", UserPart::Injected),
            (b"<system-reminder>", UserPart::Injected),
            (b"<teammate-message", UserPart::Injected),
            (b"Caveat: The messages below were generated by the user while running local commands", UserPart::Caveat),
            (b"[Request interrupted by user", UserPart::Interrupted),
        ];
        STARTS.iter().find(|(start, _)| text.starts_with(start)).map_or(UserPart::Prompt, |(_, part)| *part)
    }
}

/// A 64-bit key for an id. Ids of records are random UUIDs, whose halves folded together are as good as a hash.
pub(super) fn key_of(id: &[u8]) -> u64 {
    key_of_uuid(id).unwrap_or_else(|| key_of_any(id))
}

/// Marks the key of an id that is no UUID, so that other sessions may have the same.
const COMMON: u64 = 1 << 63;

/// Whether other sessions may have a record of the same key that has nothing to do with it.
pub(super) fn is_common(key: u64) -> bool {
    key & COMMON != 0
}

/// The key of an id that is written as UUIDs are, which nearly all of them are.
fn key_of_uuid(id: &[u8]) -> Option<u64> {
    let id: &[u8; 36] = id.try_into().ok()?;
    let mut all = 0;
    let mut number = |range: Range<usize>| {
        id[range].iter().fold(0u64, |value, byte| {
            let digit = DIGITS[usize::from(*byte)];
            all |= digit;
            value << 4 | u64::from(digit)
        })
    };
    let high = number(0..8) << 32 | number(9..13) << 16 | number(14..18);
    let low = number(19..23) << 48 | number(24..36);
    let is_uuid = all < 16 && [8, 13, 18, 23].iter().all(|dash| id[*dash] == b'-');
    is_uuid.then_some((high ^ low.rotate_left(1)) & !COMMON)
}

/// The value of each byte as a hexadecimal digit, or something larger.
const DIGITS: [u8; 256] = {
    let mut digits = [0x80; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

fn key_of_any(id: &[u8]) -> u64 {
    let mut value = 0u128;
    let mut digits = 0;
    for byte in id {
        match char::from(*byte).to_digit(16) {
            Some(digit) => {
                value = value << 4 | u128::from(digit);
                digits += 1;
            }
            None if *byte == b'-' => {}
            None => return crate::files::fingerprint(id) | COMMON,
        }
    }
    match digits {
        32 => ((value >> 64) as u64 ^ (value as u64).rotate_left(1)) & !COMMON,
        _ => crate::files::fingerprint(id) | COMMON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_typed_is_told_from_what_was_put_in() {
        let check = |line: &str, expected: UserPart| {
            assert_eq!(Record::of(line.as_bytes()).user_part(), expected, "{line}");
        };
        let user = |content: &str, extra: &str| {
            format!(r#"{{"type":"user","uuid":"x",{extra}"message":{{"role":"user","content":{content}}}}}"#)
        };
        check(&user(r#""fix it""#, ""), UserPart::Prompt);
        check(&user(r#"[{"type":"text","text":"fix it"}]"#, ""), UserPart::Prompt);
        check(&user(r#"[{"type":"image","source":{}}]"#, ""), UserPart::Prompt);
        check(&user(r#"[{"tool_use_id":"t","type":"tool_result","content":"x"}]"#, ""), UserPart::ToolResult);
        check(&user(r#""fix it""#, r#""isMeta":true,"#), UserPart::Injected);
        check(&user(r#""fix it""#, r#""promptSource":"system","#), UserPart::Injected);
        check(&user(r#""fix it""#, r#""promptSource":"sdk","#), UserPart::Prompt);
        check(&user(r#""fix it""#, r#""isMeta":true,"promptSource":"sdk","#), UserPart::FromSdk);
        check(&user(r#""summary""#, r#""isCompactSummary":true,"#), UserPart::Summary);
        check(&user(r#""<command-name>/cost</command-name>""#, ""), UserPart::Command);
        check(&user(r#""<local-command-stdout>1$</local-command-stdout>""#, ""), UserPart::CommandOutput);
        check(&user(r#""<local-command-caveat>Caveat""#, r#""isMeta":true,"#), UserPart::Caveat);
        check(&user(r#""<user-memory-input>Use tabs</user-memory-input>""#, ""), UserPart::CommandOutput);
        check(&user(r#""(no content)""#, ""), UserPart::CommandOutput);
        check(&user(r#"[{"type":"text","text":"(no content)"}]"#, ""), UserPart::CommandOutput);
        check(&user(r#""(no content) is what I see""#, ""), UserPart::Prompt);
        check(
            &user(r#"[{"type":"text","text":"<ide_opened_file>x"},{"type":"text","text":"go"}]"#, ""),
            UserPart::Prompt,
        );
        check(&user(r#""<task-notification>\n<task-id>""#, ""), UserPart::Injected);
        check(&user(r#"[{"type":"text","text":"[Request interrupted by user]"}]"#, ""), UserPart::Interrupted);
        check(r#"{"type":"user","uuid":"x"}"#, UserPart::Injected);
    }

    #[test]
    fn keys_of_ids_differ() {
        let keys: std::collections::HashSet<u64> = [
            "eee5ccf1-1530-4812-8535-228c1ffb7804",
            "eee5ccf1-1530-4812-8535-228c1ffb7805",
            "msg_1",
            "msg_2",
            "11",
            "",
        ]
        .iter()
        .map(|id| key_of(id.as_bytes()))
        .collect();
        assert_eq!(keys.len(), 6);
    }

    #[test]
    fn the_quick_way_to_a_key_gives_the_same_key() {
        for id in ["eee5ccf1-1530-4812-8535-228c1ffb7804", "EEE5CCF1-1530-4812-8535-228C1FFB7804"] {
            assert_eq!(key_of_uuid(id.as_bytes()), Some(key_of_any(id.as_bytes())));
            for at in 0..id.len() {
                for byte in [b'-', b'0', b'g', b'/', b':', b'@', b'`', 0xff] {
                    let mut other = id.as_bytes().to_vec();
                    other[at] = byte;
                    assert_eq!(key_of(&other), key_of_any(&other), "{}", String::from_utf8_lossy(&other));
                }
            }
        }
    }
}
