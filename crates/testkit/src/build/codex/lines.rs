//! The lines of a Codex rollout, in both dialects.
//!
//! Shapes were taken from recordings of 0.166.0 (paginated) and 0.140.0 (legacy).

use std::io::{self, Write};

use serde_json::{Value, json};

use super::Dialect;
use crate::build::merge;
use crate::build::random::{Clock, Random};

/// What all lines of one thread share.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) branch: String,
    pub(crate) provider: String,
    pub(crate) dialect: Dialect,
    pub(crate) interactive: bool,
    /// The thread that spawned this one as a subagent, if any.
    pub(crate) parent: Option<String>,
}

/// Writes lines and remembers what the next ones refer to.
pub(crate) struct CodexLines<W> {
    out: W,
    pub(crate) setting: Setting,
    pub(super) random: Random,
    pub(super) clock: Clock,
    ordinal: u64,
    bytes: u64,
    pub(super) turn_id: String,
    /// Whether the model has been told about its environment since the start or the last compaction.
    pub(super) introduced: bool,
    pub(super) prompts: Vec<Value>,
    /// The threads that were spawned: their ids and content.
    pub(crate) subagents: Vec<(String, Vec<u8>)>,
}

impl<W: Write> CodexLines<W> {
    pub(crate) fn new(out: W, setting: Setting, random: Random, clock: Clock, first_ordinal: u64) -> Self {
        Self {
            out,
            setting,
            random,
            clock,
            ordinal: first_ordinal,
            bytes: 0,
            turn_id: String::new(),
            introduced: false,
            prompts: Vec::new(),
            subagents: Vec::new(),
        }
    }

    /// How much was written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ordinal of the next line.
    pub(crate) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Hands back what was written to.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// Writes the first line. `lineage` holds what a fork says about its source.
    pub(crate) fn meta(&mut self, lineage: &Value) -> io::Result<()> {
        let id = self.setting.id.clone();
        let paginated = self.is_paginated();
        let root = self.setting.parent.clone().unwrap_or_else(|| id.clone());
        let mut payload = if paginated { json!({"session_id": root, "id": id}) } else { json!({"id": id}) };
        let history_base = lineage["history_base"].clone();
        for name in ["forked_from_id", "forked_from_ordinal_exclusive"] {
            if !lineage[name].is_null() {
                payload[name] = lineage[name].clone();
            }
        }
        let (originator, source) = if self.setting.interactive { ("codex-tui", "cli") } else { ("codex_exec", "exec") };
        let time = self.clock.now();
        merge(&mut payload, json!({"timestamp": time, "cwd": self.setting.cwd}));
        if paginated {
            merge(&mut payload, json!({"runtime_workspace_roots": [self.setting.cwd]}));
        }
        let version = if paginated { "0.166.0" } else { "0.140.0" };
        merge(
            &mut payload,
            json!({"originator": originator, "cli_version": version, "source": source, "thread_source": "user"}),
        );
        if let Some(parent) = &self.setting.parent {
            payload["parent_thread_id"] = json!(parent);
            payload["source"] = json!({"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, "agent_path": null, "agent_nickname": "Peirce", "agent_role": null}}});
            payload["thread_source"] = json!("subagent");
            payload["agent_nickname"] = json!("Peirce");
        }
        merge(
            &mut payload,
            json!({"model_provider": self.setting.provider, "base_instructions": {"text": "You help people with their code."}}),
        );
        if paginated {
            payload["history_mode"] = json!("paginated");
            if !history_base.is_null() {
                payload["history_base"] = history_base;
            }
            payload["context_window"] = json!({"window_id": self.random.uuid_at(self.clock.milliseconds())});
        }
        payload["git"] =
            json!({"commit_hash": "f0e094ce0e765ac3acc94b77b92301d32862e0ba", "branch": self.setting.branch});
        self.line("session_meta", payload)
    }

    pub(super) fn message(&mut self, role: &str, text: &str) -> io::Result<Value> {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        let mut payload = json!({"type": "message"});
        if self.is_paginated() {
            payload["id"] = json!(format!("msg_{}", self.random.uuid_at(self.clock.milliseconds())));
        }
        merge(&mut payload, json!({"role": role, "content": [{"type": kind, "text": text}]}));
        self.response_item(payload.clone())?;
        Ok(payload)
    }

    pub(super) fn response_item(&mut self, mut payload: Value) -> io::Result<()> {
        if self.is_paginated() {
            payload["internal_chat_message_metadata_passthrough"] = json!({"turn_id": self.turn_id});
        }
        self.line("response_item", payload)
    }

    pub(super) fn item(&mut self, item: &Value) -> io::Result<()> {
        let time = self.clock.milliseconds();
        let payload = json!({
            "type": "item_completed", "thread_id": self.setting.id, "turn_id": self.turn_id, "item": item,
            "started_at_ms": time, "completed_at_ms": time,
        });
        self.event(payload)
    }

    pub(super) fn event(&mut self, payload: Value) -> io::Result<()> {
        self.line("event_msg", payload)
    }

    pub(super) fn line(&mut self, kind: &str, payload: Value) -> io::Result<()> {
        let mut line = json!({"timestamp": self.clock.tick(8)});
        if self.is_paginated() {
            line["ordinal"] = json!(self.ordinal);
        }
        line["type"] = json!(kind);
        line["payload"] = payload;
        self.ordinal += 1;
        let mut text = line.to_string();
        text.push('\n');
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    pub(super) fn is_paginated(&self) -> bool {
        self.setting.dialect == Dialect::Paginated
    }
}
