//! The lines of a Claude Code transcript, one after the other, with the parent chain kept.
//!
//! Shapes were taken from recordings of 2.1.325 and 2.1.197; the older one has fewer fields and attachments.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::random::{Clock, Random};
use super::turn::{End, Step, Tool, Turn};

/// From so many bytes on, Claude Code keeps the output of a shell command in a file and cuts it in the transcript.
const SHELL_LIMIT: usize = 30_000;

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
    setting: Setting,
    random: Random,
    clock: Clock,
    /// The chain's tip.
    pub(crate) tip: Option<String>,
    /// The lines being written are copies made by `/branch` of this session.
    pub(crate) copied_from: Option<String>,
    prompt_id: String,
    turns: usize,
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

    /// Writes what a compaction leaves: a boundary, a summary, and the command that asked for it.
    pub(crate) fn compaction(&mut self, summary: &str) -> io::Result<()> {
        let (boundary, summary_id) = (self.random.uuid(), self.random.uuid());
        let kept = self.tip.take();
        let time = self.clock.tick(60);
        let metadata = json!({
            "trigger": "manual", "preTokens": 13_601, "postTokens": 2_863, "durationMs": 66,
            "preservedSegment": {"headUuid": kept, "anchorUuid": summary_id, "tailUuid": kept},
            "preservedMessages": {"anchorUuid": summary_id, "uuids": [kept], "allUuids": [kept]},
        });
        self.chain(
            &boundary,
            json!({
                "logicalParentUuid": kept, "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
                "level": "info", "compactMetadata": metadata, "uuid": boundary, "timestamp": time,
            }),
        )?;
        self.prompt_id = self.random.uuid();
        let text = format!(
            "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\n{summary}"
        );
        let line = self.user_line(&summary_id, json!(text), json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true}));
        self.chain(&summary_id, line)?;
        for (text, extra) in [
            ("<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request.</local-command-caveat>", json!({"isMeta": true})),
            ("<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n            <command-args></command-args>", json!({})),
            ("<local-command-stdout>\u{1b}[2mCompacted (ctrl+o to see full summary)\u{1b}[22m</local-command-stdout>", json!({})),
        ] {
            let id = self.random.uuid();
            let line = self.user_line(&id, json!(text), extra);
            self.chain(&id, line)?;
        }
        Ok(())
    }

    /// Writes the lines that name the session.
    pub(crate) fn title(&mut self, title: &str) -> io::Result<()> {
        self.side(json!({"type": "custom-title", "customTitle": title}))?;
        self.side(json!({"type": "agent-name", "agentName": title}))
    }

    /// Writes what a process leaves behind when it ends.
    pub(crate) fn last_words(&mut self, prompt: &str) -> io::Result<()> {
        let tip = self.tip.clone();
        self.side(json!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": tip}))?;
        self.side(json!({"type": "mode", "mode": "normal"}))
    }

    /// Hands back what was written to.
    pub(crate) fn into_inner(self) -> W {
        self.out
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
            json!({"origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human"})
        } else {
            let time = self.clock.tick(1);
            self.side(json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "content": text}))?;
            self.side(json!({"type": "queue-operation", "operation": "dequeue", "timestamp": time}))?;
            json!({"promptSource": "sdk", "turnOrigin": "sdk"})
        };
        let mut extra = json!({"permissionMode": "bypassPermissions"});
        merge(&mut extra, source);
        merge(&mut extra, json!({"turnPosition": {"promptIndex": 0, "turnIndex": self.turns}}));
        let line = self.user_line(&id, json!(text), extra);
        self.chain(&id, line)
    }

    /// What Claude Code tells the model before its first answer, each part an attachment in the chain.
    fn context(&mut self) -> io::Result<()> {
        let date = self.clock.now()[..10].to_owned();
        let cwd = self.setting.cwd.clone();
        let mut attachments = vec![];
        if self.is_old() {
            attachments.push((json!({"type": "agent_listing_delta", "addedTypes": ["general-purpose"], "addedLines": ["- general-purpose: For anything."], "removedTypes": []}), None));
            attachments.push((json!({"type": "skill_listing", "content": "- init: Describe the project", "skillCount": 1}), None));
        } else {
            let snapshot = json!({"workingDirectory": cwd, "isWorktree": false, "isGitRepo": true, "additionalWorkingDirectories": [], "platform": "linux", "shell": "bash", "osVersion": "Linux 6.1"});
            let told = format!("# Environment\n - Primary working directory: {cwd}");
            attachments.push((json!({"type": "environment", "snapshot": snapshot}), Some(told)));
            let model = json!({"modelId": "claude-opus-5-5", "marketingName": "Opus 5.5", "knowledgeCutoff": "June 2026"});
            attachments.push((json!({"type": "model", "identity": model, "text": "You are powered by a model."}), Some("You are powered by a model.".to_owned())));
            attachments.push((json!({"type": "skill_listing", "content": "- init: Describe the project", "skillCount": 1}), Some("- init: Describe the project".to_owned())));
            attachments.push((json!({"type": "date", "date": date}), Some(format!("Today's date is {date}."))));
            attachments.push((json!({"type": "prompt_snapshot", "systemPrompt": ["You help people with their code."], "reminderFold": false, "echoWireToolInputs": false, "contextRendering": "announced"}), None));
        }
        for (attachment, told) in attachments {
            let id = self.random.uuid();
            let time = self.clock.tick(1);
            let mut line = json!({"attachment": attachment, "type": "attachment", "uuid": id, "timestamp": time});
            if let Some(told) = told {
                let rendered = json!([{"content": format!("<system-reminder>\n{told}\n</system-reminder>")}]);
                merge(&mut line, json!({"rendered": rendered, "renderedRole": "system"}));
            }
            self.chain(&id, line)?;
        }
        self.request()
    }

    /// The record of a request that 2.1.325 keeps beside the chain.
    fn request(&mut self) -> io::Result<()> {
        if self.is_old() {
            return Ok(());
        }
        let (id, hash, time) = (self.random.uuid(), self.random.hash(), self.clock.tick(5));
        self.side(json!({
            "type": "api-request", "id": id, "timestamp": time, "version": self.setting.version, "querySource": "sdk",
            "shapeHash": hash, "params": {"model": "claude-opus-5-5", "max_tokens": 128_000}, "keep": 0, "tail": [],
        }))
    }

    /// One line per block, all under one message id, each with the reason that the message stopped for.
    fn message(&mut self, blocks: Vec<Value>, stop_reason: Option<&str>) -> io::Result<Vec<String>> {
        let message_id = self.random.id("msg_01", 22);
        self.message_as(&message_id, blocks, stop_reason)
    }

    fn message_as(&mut self, message_id: &str, blocks: Vec<Value>, stop_reason: Option<&str>) -> io::Result<Vec<String>> {
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

    fn tools(&mut self, mut blocks: Vec<Value>, calls: &[Tool], reversed: bool, killed: bool) -> io::Result<()> {
        let first_call = blocks.len();
        let tool_ids: Vec<String> = calls.iter().map(|_| self.random.id("toolu_01", 22)).collect();
        blocks.extend(calls.iter().zip(&tool_ids).map(|(call, id)| {
            json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input})
        }));
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
            (false, true) => json!({"stdout": shown, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false}),
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

    /// 2.1.325 sends subagents away and is told when they are done; 2.1.197 waits for them.
    fn subagent(&mut self, mut blocks: Vec<Value>, description: &str, turn: &Turn) -> io::Result<()> {
        let tool_id = self.random.id("toolu_01", 22);
        let agent = format!("a{:016x}", self.random.bits());
        let input = json!({"description": description, "prompt": turn.prompt, "subagent_type": "general-purpose"});
        blocks.push(json!({"type": "tool_use", "id": tool_id, "name": "Agent", "input": input}));
        let call_line = self.message(blocks, Some("tool_use"))?.pop().expect("a line per block");
        self.write_subagent(&agent, description, &tool_id, turn)?;
        let told = if self.is_old() { turn.last_words().to_owned() } else { format!("Async agent launched successfully.\nagentId: {agent}") };
        let status = if self.is_old() { "completed" } else { "async_launched" };
        let content = json!([{"tool_use_id": tool_id, "type": "tool_result", "content": [{"type": "text", "text": told}]}]);
        let detail = json!({"isAsync": !self.is_old(), "status": status, "agentId": agent, "description": description, "prompt": turn.prompt});
        let id = self.random.uuid();
        let line = self.user_line(&id, content, json!({"toolUseResult": detail, "sourceToolAssistantUUID": call_line}));
        self.chain(&id, line)?;
        if self.is_old() {
            return Ok(());
        }
        self.message(vec![json!({"type": "text", "text": "It works in the background."})], Some("end_turn"))?;
        let notification = format!(
            "<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{tool_id}</tool-use-id>\n<status>completed</status>\n<summary>Agent \"{description}\" finished</summary>\n<result>{}</result>\n</task-notification>",
            turn.last_words()
        );
        let time = self.clock.tick(100);
        self.side(json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "content": notification}))?;
        self.side(json!({"type": "queue-operation", "operation": "dequeue", "timestamp": time}))?;
        let id = self.random.uuid();
        let extra = json!({"origin": {"kind": "task-notification"}, "promptSource": "system", "turnOrigin": "task_notification"});
        let line = self.user_line(&id, json!(notification), extra);
        self.chain(&id, line)
    }

    fn write_subagent(&mut self, agent: &str, description: &str, tool_id: &str, turn: &Turn) -> io::Result<()> {
        let setting = Setting { subagent: Some(agent.to_owned()), ..self.setting.clone() };
        let mut lines = ClaudeLines::new(Vec::new(), setting, Random::new(self.random.bits()), self.clock.clone());
        lines.turn(turn)?;
        let mut meta = json!({"agentType": "general-purpose", "description": description, "toolUseId": tool_id, "spawnDepth": 1});
        if !self.is_old() {
            meta["finished"] = json!(true);
        }
        self.subagents.push(SubagentFile { id: agent.to_owned(), meta, lines: lines.into_inner() });
        Ok(())
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

    fn user_line(&mut self, id: &str, content: Value, extra: Value) -> Value {
        let time = self.clock.tick(30);
        let mut line = json!({
            "promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": content}, "uuid": id, "timestamp": time,
        });
        merge(&mut line, extra);
        line
    }

    /// Writes a line of the chain below the tip and makes it the tip.
    fn chain(&mut self, id: &str, fields: Value) -> io::Result<()> {
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
    fn side(&mut self, mut line: Value) -> io::Result<()> {
        if self.copied_from.is_some() {
            return Ok(());
        }
        line["sessionId"] = json!(self.setting.id);
        self.line(&line)
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        let mut text = line.to_string();
        text.push('\n');
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    fn is_old(&self) -> bool {
        self.setting.version == "2.1.197"
    }
}

/// Adds the fields of one object to another, in their order.
pub(crate) fn merge(into: &mut Value, fields: Value) {
    let (Value::Object(into), Value::Object(fields)) = (into, fields) else { return };
    let fields: Map<String, Value> = fields;
    into.extend(fields);
}

/// The largest cut of at most so many bytes that does not split a character.
fn boundary(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
