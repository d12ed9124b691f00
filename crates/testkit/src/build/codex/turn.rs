//! The turns of a Codex rollout: prompts, messages, commands and their output, compactions, subagents.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::lines::{CodexLines, Setting};
use crate::build::merge;
use crate::build::random::Random;
use crate::build::turn::{End, Step, Tool, Turn};

/// Codex cuts what the model sees of a command's output to about so many bytes.
const MODEL_LIMIT: usize = 12_000;

/// How many prompts a compaction keeps.
const KEPT_PROMPTS: usize = 100;

impl<W: Write> CodexLines<W> {
    /// Writes a whole turn.
    pub(crate) fn turn(&mut self, turn: &Turn) -> io::Result<()> {
        self.begin_turn()?;
        if !self.introduced {
            self.introduce()?;
        }
        self.prompt(&turn.prompt)?;
        for (place, step) in turn.steps.iter().enumerate() {
            let killed = turn.end == End::Killed && place + 1 == turn.steps.len();
            match step {
                Step::Text(text) => self.text(text)?,
                Step::Thinking(text) => self.thinking(text)?,
                Step::Tools { calls, reversed } => self.tools(calls, *reversed, killed)?,
                Step::Subagent { turn, .. } => self.subagent(turn)?,
            }
        }
        match turn.end {
            End::Killed => Ok(()),
            End::Complete => self.end_turn(Some(turn.last_words())),
            End::Interrupted => {
                self.message(
                    "user",
                    "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
                )?;
                let payload = json!({"type": "turn_aborted", "turn_id": self.turn_id, "reason": "interrupted", "duration_ms": 72});
                self.event(payload)
            }
        }
    }

    /// Writes `/compact`: a turn of its own that ends in a new history of all prompts and the summary.
    pub(crate) fn compaction(&mut self, summary: &str) -> io::Result<()> {
        self.begin_turn()?;
        let printed = format!(
            "Another language model started to solve this problem and produced a summary of its thinking process. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\n{summary}"
        );
        self.message("assistant", summary)?;
        let mut history = self.prompts.clone();
        history.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": printed}]}));
        let mut payload = json!({"message": printed, "replacement_history": history});
        if self.is_paginated() {
            let window = self.random.uuid_at(self.clock.milliseconds());
            merge(&mut payload, json!({"window_number": 1, "window_id": window}));
        } else {
            payload["window_id"] = json!(1);
        }
        self.line("compacted", payload)?;
        if self.is_paginated() {
            let id = self.random.uuid_at(self.clock.milliseconds());
            self.item(&json!({"type": "ContextCompaction", "id": id}))?;
        } else {
            self.event(json!({"type": "context_compacted"}))?;
        }
        self.introduced = false;
        self.end_turn(None)
    }

    fn begin_turn(&mut self) -> io::Result<()> {
        self.clock.tick(5_000);
        self.turn_id = self.random.uuid_at(self.clock.milliseconds());
        let started = self.clock.seconds();
        let mut payload = json!({"type": "task_started", "turn_id": self.turn_id});
        if self.is_paginated() {
            payload["root_turn_id"] = json!(self.turn_id);
        }
        merge(
            &mut payload,
            json!({"started_at": started, "model_context_window": 258_400, "collaboration_mode_kind": "default"}),
        );
        self.event(payload)
    }

    fn end_turn(&mut self, last_words: Option<&str>) -> io::Result<()> {
        let completed = self.clock.seconds();
        self.event(json!({
            "type": "task_complete", "turn_id": self.turn_id, "last_agent_message": last_words, "completed_at": completed, "duration_ms": 152,
        }))
    }

    /// What the model is told before the first prompt.
    fn introduce(&mut self) -> io::Result<()> {
        self.introduced = true;
        self.message(
            "developer",
            "<permissions instructions>\nAll commands are permitted.\n</permissions instructions>",
        )?;
        let environment = format!(
            "<environment_context>\n  <cwd>{}</cwd>\n  <shell>bash</shell>\n</environment_context>",
            self.setting.cwd
        );
        self.message("user", &environment)?;
        if self.is_paginated() {
            self.line("world_state", json!({"full": true, "state": {"agents_md": {}, "model": "mock-model"}}))?;
        }
        Ok(())
    }

    fn prompt(&mut self, text: &str) -> io::Result<()> {
        let context = json!({
            "turn_id": self.turn_id, "cwd": self.setting.cwd, "approval_policy": "never",
            "sandbox_policy": {"type": "danger-full-access"}, "model": "mock-model", "summary": "auto",
        });
        self.line("turn_context", context)?;
        let message = self.message("user", text)?;
        // Codex itself keeps only the latest prompts when it compacts; memory stays bounded with it.
        if self.prompts.len() == KEPT_PROMPTS {
            self.prompts.remove(0);
        }
        self.prompts.push(message);
        if self.is_paginated() {
            let id = self.random.uuid_at(self.clock.milliseconds());
            self.item(&json!({"type": "UserMessage", "id": id, "content": [{"type": "text", "text": text, "text_elements": []}]}))
        } else {
            self.event(
                json!({"type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": []}),
            )
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if self.is_paginated() {
            let id = self.random.id("msg_", 48);
            self.item(&json!({"type": "AgentMessage", "id": id, "content": [{"type": "Text", "text": text}]}))?;
        } else {
            self.event(json!({"type": "agent_message", "message": text, "phase": null, "memory_citation": null}))?;
        }
        self.message("assistant", text)?;
        self.usage()
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        let id = self.random.id("rs_", 48);
        if self.is_paginated() {
            self.item(&json!({"type": "Reasoning", "id": id, "summary_text": [text], "raw_content": []}))?;
        } else {
            self.event(json!({"type": "agent_reasoning", "text": text}))?;
        }
        let hidden = self.random.id("gAAAA", 160);
        let mut payload = json!({"type": "reasoning"});
        if self.is_paginated() {
            payload["id"] = json!(id);
        }
        merge(
            &mut payload,
            json!({"summary": [{"type": "summary_text", "text": text}], "content": null, "encrypted_content": hidden}),
        );
        self.response_item(payload)
    }

    fn tools(&mut self, calls: &[Tool], reversed: bool, killed: bool) -> io::Result<()> {
        let ids: Vec<String> = calls.iter().map(|_| self.random.id("call_", 24)).collect();
        for (call, id) in calls.iter().zip(&ids) {
            self.call(&call.name, None, &call.input.to_string(), id)?;
        }
        self.usage()?;
        if killed {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..calls.len()).collect();
        if reversed {
            order.reverse();
        }
        for place in order {
            self.tool_result(&calls[place], &ids[place])?;
        }
        Ok(())
    }

    fn call(&mut self, name: &str, namespace: Option<&str>, arguments: &str, id: &str) -> io::Result<()> {
        let mut payload = json!({"type": "function_call"});
        if self.is_paginated() {
            payload["id"] = json!(self.random.id("fc_", 48));
        }
        payload["name"] = json!(name);
        if let Some(namespace) = namespace {
            payload["namespace"] = json!(namespace);
        }
        merge(&mut payload, json!({"arguments": arguments, "call_id": id}));
        self.response_item(payload)
    }

    /// The terminal interface is shown the whole output, the model a part of it.
    fn tool_result(&mut self, call: &Tool, id: &str) -> io::Result<()> {
        let code = i32::from(call.failed);
        if self.is_paginated() {
            let status = if call.failed { "failed" } else { "completed" };
            let item = json!({
                "type": "CommandExecution", "id": id, "process_id": "51967", "command": ["/bin/bash", "-lc", call.input["cmd"]],
                "cwd": format!("file://{}", self.setting.cwd), "parsed_cmd": [{"type": "unknown", "cmd": call.input["cmd"]}],
                "source": "unified_exec_startup", "status": status, "aggregated_output": call.output, "exit_code": code,
                "duration": {"secs": 0, "nanos": 10_365},
            });
            self.item(&item)?;
        }
        let cut =
            (0..=call.output.len().min(MODEL_LIMIT)).rev().find(|at| call.output.is_char_boundary(*at)).unwrap_or(0);
        let shown = format!(
            "Chunk ID: 49cd08\nWall time: 0.0000 seconds\nProcess exited with code {code}\nOriginal token count: {}\nOutput:\n{}",
            call.output.len() / 4,
            &call.output[..cut]
        );
        self.output(id, &shown)
    }

    fn output(&mut self, call: &str, text: &str) -> io::Result<()> {
        let mut payload = json!({"type": "function_call_output"});
        if self.is_paginated() {
            payload["id"] = json!(format!("fco_{}", self.random.uuid_at(self.clock.milliseconds())));
        }
        merge(&mut payload, json!({"call_id": call, "output": text}));
        self.response_item(payload)
    }

    fn subagent(&mut self, turn: &Turn) -> io::Result<()> {
        let call = self.random.id("call_", 24);
        let thread = self.random.uuid_at(self.clock.milliseconds());
        let parent = self.setting.parent.clone().unwrap_or_else(|| self.setting.id.clone());
        let setting = Setting { id: thread.clone(), parent: Some(parent), ..self.setting.clone() };
        let mut lines = CodexLines::new(Vec::new(), setting, Random::new(self.random.bits()), self.clock.clone(), 0);
        lines.meta(&Value::Null)?;
        lines.turn(turn)?;
        self.subagents.append(&mut lines.subagents);
        self.subagents.push((thread.clone(), lines.into_inner()));
        let arguments = json!({"message": turn.prompt}).to_string();
        self.call("spawn_agent", Some("multi_agent_v1"), &arguments, &call)?;
        self.output(&call, &json!({"agent_id": thread, "nickname": "Peirce"}).to_string())?;
        let status = json!({"agent_path": thread, "status": {"completed": turn.last_words()}});
        self.message("user", &format!("<subagent_notification>\n{status}\n</subagent_notification>"))?;
        Ok(())
    }

    fn usage(&mut self) -> io::Result<()> {
        let usage = json!({"input_tokens": 9_870, "cached_input_tokens": 0, "output_tokens": 12, "reasoning_output_tokens": 0, "total_tokens": 9_882});
        let info = json!({"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258_400});
        self.event(json!({"type": "token_count", "info": info, "rate_limits": null}))
    }
}
