//! The records of a Claude Code transcript besides its turns: the initial context, subagents, compactions.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::lines::{ClaudeLines, Setting, SubagentFile};
use crate::build::merge;
use crate::build::random::Random;
use crate::build::turn::Turn;

impl<W: Write> ClaudeLines<W> {
    /// What Claude Code tells the model before its first answer, each part an attachment in the chain.
    pub(super) fn context(&mut self) -> io::Result<()> {
        let date = self.clock.now()[..10].to_owned();
        for (attachment, told) in attachments(&self.setting, &date, self.is_old()) {
            let id = self.random.uuid();
            let time = self.clock.tick(1);
            let mut line = json!({"attachment": attachment, "type": "attachment", "uuid": id, "timestamp": time});
            if !self.is_old() && !told.is_empty() {
                let rendered = json!([{"content": format!("<system-reminder>\n{told}\n</system-reminder>")}]);
                merge(&mut line, json!({"rendered": rendered, "renderedRole": "system"}));
            }
            self.chain(&id, line)?;
        }
        self.request()
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
        let line = self.user_line(
            &summary_id,
            json!(text),
            json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true}),
        );
        self.chain(&summary_id, line)?;
        for (text, extra) in [
            (
                "<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request.</local-command-caveat>",
                json!({"isMeta": true}),
            ),
            (
                "<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n            <command-args></command-args>",
                json!({}),
            ),
            (
                "<local-command-stdout>\u{1b}[2mCompacted (ctrl+o to see full summary)\u{1b}[22m</local-command-stdout>",
                json!({}),
            ),
        ] {
            let id = self.random.uuid();
            let line = self.user_line(&id, json!(text), extra);
            self.chain(&id, line)?;
        }
        Ok(())
    }

    /// 2.1.325 sends subagents away and is told when they are done; 2.1.197 waits for them.
    pub(super) fn subagent(&mut self, mut blocks: Vec<Value>, description: &str, turn: &Turn) -> io::Result<()> {
        let tool_id = self.random.id("toolu_01", 22);
        let agent = format!("a{:016x}", self.random.bits());
        let input = json!({"description": description, "prompt": turn.prompt, "subagent_type": "general-purpose"});
        blocks.push(json!({"type": "tool_use", "id": tool_id, "name": "Agent", "input": input}));
        let call_line = self.message(blocks, Some("tool_use"))?.pop().expect("a line per block");
        self.write_subagent(&agent, description, &tool_id, turn)?;
        let told = if self.is_old() {
            turn.last_words().to_owned()
        } else {
            format!("Async agent launched successfully.\nagentId: {agent}")
        };
        let status = if self.is_old() { "completed" } else { "async_launched" };
        let content =
            json!([{"tool_use_id": tool_id, "type": "tool_result", "content": [{"type": "text", "text": told}]}]);
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
        self.side(
            json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "content": notification}),
        )?;
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
        let mut meta =
            json!({"agentType": "general-purpose", "description": description, "toolUseId": tool_id, "spawnDepth": 1});
        if !self.is_old() {
            meta["finished"] = json!(true);
        }
        self.subagents.push(SubagentFile { id: agent.to_owned(), meta, lines: lines.into_inner() });
        Ok(())
    }
}

/// The attachments of a version, each with the words that the model is told.
fn attachments(setting: &Setting, date: &str, is_old: bool) -> Vec<(Value, String)> {
    let skills = "- init: Describe the project";
    let skill_listing = json!({"type": "skill_listing", "content": skills, "skillCount": 1});
    if is_old {
        let agents = json!({
            "type": "agent_listing_delta", "addedTypes": ["general-purpose"],
            "addedLines": ["- general-purpose: For anything."], "removedTypes": [],
        });
        return vec![(agents, String::new()), (skill_listing, String::new())];
    }
    let snapshot = json!({
        "workingDirectory": setting.cwd, "isWorktree": false, "isGitRepo": true, "additionalWorkingDirectories": [],
        "platform": "linux", "shell": "bash", "osVersion": "Linux 6.1",
    });
    let identity = json!({"modelId": "claude-opus-5-5", "marketingName": "Opus 5.5", "knowledgeCutoff": "June 2026"});
    let model = "You are powered by a model.";
    let prompt = json!({
        "type": "prompt_snapshot", "systemPrompt": ["You help people with their code."], "reminderFold": false,
        "echoWireToolInputs": false, "contextRendering": "announced",
    });
    vec![
        (
            json!({"type": "environment", "snapshot": snapshot}),
            format!("# Environment\n - Primary working directory: {}", setting.cwd),
        ),
        (json!({"type": "model", "identity": identity, "text": model}), model.to_owned()),
        (skill_listing, skills.to_owned()),
        (json!({"type": "date", "date": date}), format!("Today's date is {date}.")),
        (prompt, String::new()),
    ]
}
