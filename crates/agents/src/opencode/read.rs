//! Reads a session block by block, with the sessions of its subagents inside it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use transcript::{Block, BlockKind, DefectKind, Defects, NoticeKind, TokenUse};

use super::message::{Meaning, StoredMessage, StoredPart, time_of};
use super::row::Row;
use super::source::SessionSource;
use crate::fields::Raw;
use crate::{Blocks, Part};

/// Subagents deeper than this are named, not shown.
const DEEPEST: u8 = 8;

/// Opens the session at `path`. `database` has the sessions of subagents.
pub(super) fn open(database: &Path, path: &Path, wanted: &Part) -> io::Result<OpenCodeBlocks> {
    let source = SessionSource::open(path)?;
    let id = source.session().text("id").unwrap_or_default().to_owned();
    Ok(OpenCodeBlocks {
        source,
        database: database.to_owned(),
        ancestors: vec![id],
        queue: VecDeque::new(),
        turn: 0,
        nested: None,
        until: wanted.until,
        prose_only: wanted.prose_only,
        with_media: wanted.media,
        left_out: false,
        ended: false,
        tokens: None,
        defects: Defects::default(),
    })
}

/// The blocks of a session.
pub(super) struct OpenCodeBlocks {
    source: SessionSource,
    database: PathBuf,
    /// The session, after those that its subagent belongs to.
    ancestors: Vec<String>,
    queue: VecDeque<Item>,
    turn: u32,
    /// For a subagent: the turn that started it.
    nested: Option<u32>,
    until: Option<u32>,
    prose_only: bool,
    with_media: bool,
    left_out: bool,
    ended: bool,
    tokens: Option<TokenUse>,
    defects: Defects,
}

enum Item {
    Block(Block),
    Subagent(Box<OpenCodeBlocks>),
}

impl OpenCodeBlocks {
    fn advance(&mut self) {
        match self.source.next_message() {
            Ok(Some((row, parts))) => self.message(&row, &parts),
            Ok(None) => self.ended = true,
            Err(_) => {
                self.defects.add(DefectKind::Unreadable);
                self.ended = true;
            }
        }
    }

    fn message(&mut self, row: &Row, parts: &[Row]) {
        let message = StoredMessage::of(row, parts);
        match message.meaning() {
            Meaning::Prompt(prompt) => {
                if self.nested.is_none() && self.until.is_some_and(|until| self.turn >= until) {
                    self.ended = true;
                    return;
                }
                self.turn += 1;
                self.push(&message, message.created(), BlockKind::Prompt { text: prompt.text, steer: false });
                self.beside_prompt(&message);
            }
            Meaning::Injected => self.beside_prompt(&message),
            Meaning::CompactionRequest => {}
            Meaning::Summary => {
                self.tokens = message.tokens().or(self.tokens);
                let parts = parts.iter().map(StoredPart::of).filter(|part| part.kind() == "text");
                let texts: Vec<String> = parts.filter_map(|part| part.text(b"text")).collect();
                self.push(&message, message.created(), BlockKind::Compaction { summary: texts.join("\n\n") });
                self.error(&message);
            }
            Meaning::Answer => {
                self.tokens = message.tokens().or(self.tokens);
                let model = message.text(b"modelID");
                for part in parts {
                    self.part(&message, &StoredPart::of(part), model.as_ref());
                }
                self.error(&message);
            }
            Meaning::Damaged => {
                self.defects.add(DefectKind::BadLine);
                let text = "a damaged message is not shown".to_owned();
                self.push(&message, message.created(), BlockKind::Notice { notice: NoticeKind::Unreadable, text });
            }
        }
    }

    /// What else a message of the user contains.
    fn beside_prompt(&mut self, message: &StoredMessage<'_>) {
        for part in message.parts.iter().map(StoredPart::of) {
            match part.kind().as_str() {
                "text" if part.is_of_client() => {
                    let text = part.text(b"text").unwrap_or_default();
                    self.push(message, message.created(), BlockKind::Notice { notice: NoticeKind::Info, text });
                }
                "file" => self.file(message, part.get(b"mime"), part.get(b"url")),
                _ => {}
            }
        }
    }

    fn part(&mut self, message: &StoredMessage<'_>, part: &StoredPart<'_>, model: Option<&String>) {
        let begun = part.get(b"time").and_then(|time| time.get(b"start")).and_then(time_of);
        let at = begun.or(message.created());
        match part.kind().as_str() {
            "text" => {
                let text = part.text(b"text").unwrap_or_default();
                if !text.trim().is_empty() {
                    self.push(message, at, BlockKind::Answer { text, model: model.cloned() });
                }
            }
            "reasoning" => {
                let text = part.text(b"text").unwrap_or_default();
                self.push(message, at, BlockKind::Thinking { text });
            }
            "tool" => self.tool(message, part, at),
            "file" => self.file(message, part.get(b"mime"), part.get(b"url")),
            "retry" => {
                let said = part.get(b"error").and_then(|error| error.get(b"data")?.get(b"message")?.string());
                let text = said.map(|said| said.into_owned()).unwrap_or_default();
                self.push(message, at, BlockKind::Notice { notice: NoticeKind::Error, text });
            }
            "" => self.defects.add(DefectKind::BadLine),
            _ => {}
        }
    }

    fn tool(&mut self, message: &StoredMessage<'_>, part: &StoredPart<'_>, at: Option<Timestamp>) {
        let id = part.text(b"callID").unwrap_or_default();
        let name = part.text(b"tool").unwrap_or_default();
        let state = part.get(b"state");
        let get = |key: &[u8]| state.and_then(|state| state.get(key));
        let text = |key: &[u8]| get(key).and_then(Raw::string).map(|text| text.into_owned());
        let metadata = |key: &[u8]| get(b"metadata").and_then(|metadata| metadata.get(key));
        let input: Value = get(b"input").and_then(Raw::parse).unwrap_or(Value::Null);
        let time = |key: &[u8]| get(b"time").and_then(|time| time.get(key)).and_then(time_of);
        let (at, ended) = (time(b"start").or(at), time(b"end").or(at));
        let child = metadata(b"sessionId").and_then(Raw::string).filter(|_| name == "task");
        if self.prose_only {
            self.left_out = true;
        } else {
            self.push(message, at, BlockKind::Call { id: id.clone(), name: name.clone(), input: input.clone() });
        }
        if let Some(child) = child {
            let of_input = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
            self.subagent(message, at, &child, of_input("subagent_type"), of_input("description"));
        }
        if self.prose_only {
            return;
        }
        let exit_code = metadata(b"exit").and_then(Raw::parse::<i32>);
        let (text, error) = match text(b"status").as_deref() {
            Some("completed") => (text(b"output").unwrap_or_default(), exit_code.is_some_and(|code| code != 0)),
            Some("error") => (text(b"error").unwrap_or_default(), true),
            // It has not returned, or never will.
            _ => return,
        };
        self.push(message, ended, BlockKind::Output { call: id, name: Some(name), text, error, exit_code });
        for file in get(b"attachments").map(Raw::elements).into_iter().flatten() {
            self.file(message, file.get(b"mime"), file.get(b"url"));
        }
    }

    fn subagent(
        &mut self,
        message: &StoredMessage<'_>,
        at: Option<Timestamp>,
        id: &str,
        role: Option<String>,
        description: Option<String>,
    ) {
        self.push(message, at, BlockKind::Subagent { id: id.to_owned(), role, description });
        if self.ancestors.len() > usize::from(DEEPEST) || self.ancestors.iter().any(|own| own == id) {
            return;
        }
        let wanted = Part { prose_only: self.prose_only, media: self.with_media, ..Part::default() };
        match open(&self.database, &self.database.join(id), &wanted) {
            Ok(mut blocks) => {
                blocks.nested = Some(self.nested.unwrap_or(self.turn));
                blocks.ancestors = self.ancestors.iter().cloned().chain([id.to_owned()]).collect();
                self.queue.push_back(Item::Subagent(Box::new(blocks)));
            }
            Err(_) => self.defects.add(DefectKind::MissingSubagent),
        }
    }

    fn error(&mut self, message: &StoredMessage<'_>) {
        if let Some((name, text)) = message.error() {
            let (notice, text) = match name.as_str() {
                "MessageAbortedError" => (NoticeKind::Interrupted, String::new()),
                _ => (NoticeKind::Error, text),
            };
            self.push(message, message.completed().or(message.created()), BlockKind::Notice { notice, text });
        }
    }

    fn file(&mut self, message: &StoredMessage<'_>, mime: Option<Raw<'_>>, url: Option<Raw<'_>>) {
        let media_type = mime.and_then(Raw::string).map(|mime| mime.into_owned()).unwrap_or_default();
        let url = url.and_then(Raw::string).unwrap_or_default();
        let encoded = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).map(|(_, data)| data);
        let bytes = encoded.map(|data| {
            let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
            (data.len() / 4 * 3).saturating_sub(padding) as u64
        });
        let data = encoded.filter(|_| self.with_media).map(str::to_owned);
        self.push(message, message.created(), BlockKind::Media { media_type, bytes, data });
    }

    fn push(&mut self, message: &StoredMessage<'_>, at: Option<Timestamp>, kind: BlockKind) {
        let turn = self.nested.unwrap_or(self.turn);
        let depth = u8::try_from(self.ancestors.len() - 1).unwrap_or(u8::MAX);
        let message = message.row.text("id").map(str::to_owned);
        self.queue.push_back(Item::Block(Block { turn, depth, at, message, kind }));
    }
}

impl Blocks for OpenCodeBlocks {
    fn next_block(&mut self) -> Option<Block> {
        loop {
            match self.queue.pop_front() {
                Some(Item::Block(block)) => return Some(block),
                Some(Item::Subagent(mut subagent)) => match subagent.next_block() {
                    Some(block) => {
                        self.queue.push_front(Item::Subagent(subagent));
                        return Some(block);
                    }
                    None => {
                        self.defects.merge(subagent.defects());
                        self.left_out |= subagent.left_out;
                    }
                },
                None if self.ended => return None,
                None => self.advance(),
            }
        }
    }

    fn tokens(&self) -> Option<TokenUse> {
        self.tokens
    }

    fn defects(&self) -> &Defects {
        &self.defects
    }

    fn leaves_tools_out(&self) -> bool {
        self.left_out
    }
}
