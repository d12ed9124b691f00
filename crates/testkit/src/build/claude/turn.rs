//! The turns of a Claude Code transcript: prompts, messages, tools and their results, interruptions.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::lines::ClaudeLines;
use crate::build::merge;
use crate::build::turn::{End, Step, Tool, Turn};

/// From so many bytes on, Claude Code keeps the output of a shell command in a file and cuts it in the transcript.
const SHELL_LIMIT: usize = 30_000;

impl<W: Write> ClaudeLines<W> {
    /// Writes a whole turn.
    pub(crate) fn turn(&mut self, turn: &Turn) -> io::Result<()> {
        self.turns += 1;
        self.prompt(&turn.prompt)?;
        if self.turns == 1 {
            self.context()?;
        }
        let mut message: Vec<Value> = Vec::new();
        for (place, step) in turn.steps.iter().enumerate() {
            let is_last = place + 1 == turn.steps.len();
            match step {
                Step::Text(text) => message.push(json!({"type": "text", "text": text})),
                Step::Thinking(text) => {
                    let signature = self.random.id("Ep4", 240);
                    message.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
                }
                Step::Tools { calls, reversed } => {
                    let killed = is_last && turn.end == End::Killed;
                    self.tools(std::mem::take(&mut message), calls, *reversed, killed)?;
                }
                Step::Subagent { description, turn } => {
                    self.subagent(std::mem::take(&mut message), description, turn)?;
                }
            }
        }
        self.end(message, turn)
    }

    fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.prompt_id = self.random.uuid();
        let id = self.random.uuid();
        if self.setting.subagent.is_some() {
            let line = self.user_line(&id, json!(text), json!({}));
            return self.chain(&id, line);
        }
        let source = if self.setting.interactive {
            let time = self.clock.now();
            if self.turns == 1 {
                self.side(json!({"type": "mode", "mode": "normal"}))?;
                self.side(json!({"type": "permission-mode", "permissionMode": "bypassPermissions"}))?;
            }
            // The two kinds of file history are the only lines without a session id.
            let snapshot = json!({"messageId": id, "trackedFileBackups": {}, "timestamp": time});
            self.line(&json!({"type": "file-history-snapshot", "messageId": id, "snapshot": snapshot, "isSnapshotUpdate": false}))?;
            json!({"origin": {"kind": "human"}, "promptSource": "typed"})
        } else {
            let time = self.clock.tick(1);
            self.side(json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "content": text}))?;
            self.side(json!({"type": "queue-operation", "operation": "dequeue", "timestamp": time}))?;
            json!({"promptSource": "sdk"})
        };
        let mut extra = json!({"permissionMode": "bypassPermissions"});
        merge(&mut extra, source);
        if !self.is_old() {
            let origin = if self.setting.interactive { "human" } else { "sdk" };
            let position = json!({"promptIndex": 0, "turnIndex": self.turns});
            merge(&mut extra, json!({"turnOrigin": origin, "turnPosition": position}));
        }
        let line = self.user_line(&id, json!(text), extra);
        self.chain(&id, line)
    }

    /// The record of a request that 2.1.325 keeps beside the chain.
    pub(super) fn request(&mut self) -> io::Result<()> {
        if self.is_old() {
            return Ok(());
        }
        let (id, hash, time) = (self.random.uuid(), self.random.hash(), self.clock.tick(5));
        self.side(json!({
            "type": "api-request", "id": id, "timestamp": time, "version": self.setting.version, "querySource": "sdk",
            "shapeHash": hash, "params": {"model": "claude-opus-5-5", "max_tokens": 128_000}, "keep": 0, "tail": [],
        }))
    }

    fn tools(&mut self, mut blocks: Vec<Value>, calls: &[Tool], reversed: bool, killed: bool) -> io::Result<()> {
        let first_call = blocks.len();
        let tool_ids: Vec<String> = calls.iter().map(|_| self.random.id("toolu_01", 22)).collect();
        blocks.extend(
            calls
                .iter()
                .zip(&tool_ids)
                .map(|(call, id)| json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input})),
        );
        let lines = self.message(blocks, Some("tool_use"))?;
        if killed {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..calls.len()).collect();
        if reversed {
            order.reverse();
        }
        for place in order {
            // A result hangs on the line of its call, wherever the chain has come to meanwhile.
            let call_line = &lines[first_call + place];
            self.tip = Some(call_line.clone());
            self.result(&tool_ids[place], call_line, &calls[place])?;
        }
        self.request()
    }

    fn result(&mut self, tool_id: &str, call_line: &str, call: &Tool) -> io::Result<()> {
        let is_shell = call.name == "Bash";
        let cut = if is_shell { boundary(&call.output, SHELL_LIMIT) } else { call.output.len() };
        let shown = &call.output[..cut];
        let detail = match (call.failed, is_shell) {
            (true, _) => json!(format!("Error: {shown}")),
            (false, true) => {
                json!({"stdout": shown, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false})
            }
            (false, false) if call.name == "Read" => json!({"type": "text", "file": {
                "filePath": call.input["file_path"], "content": shown, "numLines": shown.lines().count(), "startLine": 1, "totalLines": shown.lines().count(),
            }}),
            (false, false) => json!(shown),
        };
        let result = if call.failed {
            json!({"type": "tool_result", "content": shown, "is_error": true, "tool_use_id": tool_id})
        } else {
            json!({"tool_use_id": tool_id, "type": "tool_result", "content": shown, "is_error": false})
        };
        let id = self.random.uuid();
        let extra = json!({"toolUseResult": detail, "sourceToolAssistantUUID": call_line});
        let line = self.user_line(&id, json!([result]), extra);
        self.chain(&id, line)
    }

    fn end(&mut self, message: Vec<Value>, turn: &Turn) -> io::Result<()> {
        match turn.end {
            End::Killed => self.message(message, None).map(drop),
            End::Complete => {
                if !message.is_empty() {
                    self.message(message, Some("end_turn"))?;
                }
                if self.setting.interactive && self.setting.subagent.is_none() {
                    let (id, time) = (self.random.uuid(), self.clock.tick(50));
                    let line = json!({"type": "system", "subtype": "turn_duration", "durationMs": 183, "messageCount": 13, "timestamp": time, "uuid": id, "isMeta": false});
                    self.chain(&id, line)?;
                }
                Ok(())
            }
            End::Interrupted => {
                let message_id = self.random.id("msg_01", 22);
                self.message_as(&message_id, message, None)?;
                let id = self.random.uuid();
                let content = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
                let line = self.user_line(&id, content, json!({"interruptedMessageId": message_id}));
                self.chain(&id, line)
            }
        }
    }
}

/// The largest cut of at most so many bytes that does not split a character.
fn boundary(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
