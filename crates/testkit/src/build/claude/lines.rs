//! The lines of a Claude Code transcript, one after the other, with the parent chain kept.
//!
//! Shapes were taken from recordings of 2.1.325 and 2.1.197; the older one has fewer fields and attachments.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::build::merge;
use crate::build::random::{Clock, Random};

/// What all lines of one file share.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) branch: String,
    pub(crate) version: String,
    pub(crate) interactive: bool,
    /// The subagent that the file belongs to, if any.
    pub(crate) subagent: Option<String>,
}

/// Writes lines and remembers what the next ones refer to.
pub(crate) struct ClaudeLines<W> {
    out: W,
    pub(super) setting: Setting,
    pub(super) random: Random,
    pub(super) clock: Clock,
    /// The chain's tip.
    pub(crate) tip: Option<String>,
    /// The lines being written are copies made by `/branch` of this session.
    pub(crate) copied_from: Option<String>,
    pub(super) prompt_id: String,
    pub(super) turns: usize,
    bytes: u64,
    /// The files of the subagents that were sent: their ids, descriptions and content.
    pub(crate) subagents: Vec<SubagentFile>,
}

/// The transcript of a subagent and what stands beside it.
pub(crate) struct SubagentFile {
    pub(crate) id: String,
    pub(crate) meta: Value,
    pub(crate) lines: Vec<u8>,
}

impl<W: Write> ClaudeLines<W> {
    pub(crate) fn new(out: W, setting: Setting, random: Random, clock: Clock) -> Self {
        Self {
            out,
            setting,
            random,
            clock,
            tip: None,
            copied_from: None,
            prompt_id: String::new(),
            turns: 0,
            bytes: 0,
            subagents: Vec::new(),
        }
    }

    /// How much was written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the lines that name the session.
    pub(crate) fn title(&mut self, title: &str) -> io::Result<()> {
        self.side(json!({"type": "custom-title", "customTitle": title}))?;
        self.side(json!({"type": "agent-name", "agentName": title}))
    }

    /// Writes the mark that `/rewind` leaves beside the chain.
    pub(crate) fn rewound(&mut self) -> io::Result<()> {
        self.side(json!({"type": "last-prompt", "leafUuid": "00000000-0000-0000-0000-000000000000", "explicit": true}))
    }

    /// Writes what a process leaves behind when it ends.
    pub(crate) fn last_words(&mut self, prompt: &str) -> io::Result<()> {
        let tip = self.tip.clone();
        self.side(json!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": tip}))?;
        if self.setting.interactive { self.side(json!({"type": "mode", "mode": "normal"})) } else { Ok(()) }
    }

    /// Hands back what was written to.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// One line per block, all under one message id, each with the reason that the message stopped for.
    pub(super) fn message(&mut self, blocks: Vec<Value>, stop_reason: Option<&str>) -> io::Result<Vec<String>> {
        let message_id = self.random.id("msg_01", 22);
        self.message_as(&message_id, blocks, stop_reason)
    }

    pub(super) fn message_as(
        &mut self,
        message_id: &str,
        blocks: Vec<Value>,
        stop_reason: Option<&str>,
    ) -> io::Result<Vec<String>> {
        let request = self.random.uuid();
        let model = if self.is_old() { "claude-opus-4-8" } else { "claude-opus-5-5" };
        let mut ids = Vec::new();
        for (index, block) in blocks.into_iter().enumerate() {
            let id = self.random.uuid();
            let time = self.clock.tick(20);
            let message = json!({
                "id": message_id, "type": "message", "role": "assistant", "model": model, "content": [block],
                "stop_reason": stop_reason, "stop_sequence": null,
                "usage": {
                    "input_tokens": 11_805, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 18,
                    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
                },
            });
            let mut line = json!({"message": message});
            if !self.is_old() {
                merge(&mut line, json!({"apiBlockIndex": index}));
            }
            merge(&mut line, json!({"requestId": "req_011CTestkit"}));
            if !self.is_old() {
                merge(&mut line, json!({"requestRef": request, "requestedModel": model}));
            }
            merge(&mut line, json!({"type": "assistant", "uuid": id, "timestamp": time}));
            self.chain(&id, line)?;
            ids.push(id);
        }
        Ok(ids)
    }

    pub(super) fn user_line(&mut self, id: &str, content: Value, extra: Value) -> Value {
        let time = self.clock.tick(30);
        let mut line = json!({"promptId": self.prompt_id, "type": "user", "message": {"role": "user"}});
        line["message"]["content"] = content;
        merge(&mut line, json!({"uuid": id, "timestamp": time}));
        merge(&mut line, extra);
        line
    }

    /// Writes a line of the chain below the tip and makes it the tip.
    pub(super) fn chain(&mut self, id: &str, fields: Value) -> io::Result<()> {
        let mut line = json!({"parentUuid": self.tip, "isSidechain": self.setting.subagent.is_some()});
        if let Some(agent) = &self.setting.subagent {
            line["agentId"] = json!(agent);
        }
        merge(&mut line, fields);
        let entrypoint = if self.setting.interactive { "cli" } else { "sdk-cli" };
        merge(
            &mut line,
            json!({
                "userType": "external", "entrypoint": entrypoint, "cwd": self.setting.cwd, "sessionId": self.setting.id,
                "version": self.setting.version, "gitBranch": self.setting.branch,
            }),
        );
        if let Some(source) = &self.copied_from {
            line["forkedFrom"] = json!({"sessionId": source, "messageUuid": id});
        }
        self.tip = Some(id.to_owned());
        self.line(&line)
    }

    /// Writes a line beside the chain. Copies made by `/branch` leave them out.
    pub(super) fn side(&mut self, mut line: Value) -> io::Result<()> {
        if self.copied_from.is_some() {
            return Ok(());
        }
        line["sessionId"] = json!(self.setting.id);
        self.line(&line)
    }

    pub(super) fn line(&mut self, line: &Value) -> io::Result<()> {
        let mut text = line.to_string();
        text.push('\n');
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    pub(super) fn is_old(&self) -> bool {
        self.setting.version == "2.1.197"
    }
}
