//! A session of Claude Code that edits files, as the client records it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::build::claude_project_directory;

use crate::world::World;

pub(crate) const EDITS: &str = "77777777-7777-4777-8777-777777777777";

/// The session's records so far. Each also happens to the files.
pub(crate) struct Edits<'a> {
    world: &'a World,
    lines: Vec<Value>,
}

impl<'a> Edits<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        // The session began after this commit.
        let date = "2026-01-15T09:00:00Z";
        let mut git = world.sandbox.command("git");
        git.current_dir(&world.shop).env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date);
        git.args(["commit", "--quiet", "--allow-empty", "--message", "before"]);
        assert!(git.status().unwrap().success());
        Edits { world, lines: Vec::new() }
    }

    fn add(&mut self, kind: &str, content: &Value, result: &Value) {
        let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let (number, parent) = (self.lines.len(), self.lines.len().checked_sub(1).map(id));
        self.lines.push(json!({
            "type": kind, "uuid": id(number), "parentUuid": parent, "sessionId": EDITS, "cwd": self.world.shop,
            "version": "2.1.325", "timestamp": format!("2026-01-15T10:{:02}:{:02}.000Z", number / 60, number % 60),
            "toolUseResult": result, "message": {"role": kind, "id": format!("m{number}"), "content": content},
        }));
    }

    fn tool(&mut self, name: &str, input: &Value, result: &Value) {
        let call = format!("t{}", self.lines.len());
        self.add("assistant", &json!([{"type": "tool_use", "id": call, "name": name, "input": input}]), &Value::Null);
        self.add("user", &json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]), result);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.shop.join(name)
    }

    pub(crate) fn turn(mut self, prompt: &str) -> Self {
        self.add("user", &json!(prompt), &Value::Null);
        self
    }

    pub(crate) fn write(mut self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        let before = fs::read_to_string(&path).ok();
        let kind = if before.is_some() { "update" } else { "create" };
        self.world.sandbox.write(&path, text);
        let result =
            json!({"type": kind, "filePath": path, "content": text, "originalFile": before, "structuredPatch": []});
        self.tool("Write", &json!({}), &result);
        self
    }

    /// A command that has been carried out.
    pub(crate) fn bash(mut self, command: &str) -> Self {
        let mut shell = self.world.sandbox.command("sh");
        assert!(shell.current_dir(&self.world.shop).args(["-c", command]).status().unwrap().success());
        self.tool("Bash", &json!({"command": command}), &json!({"stdout": "", "stderr": ""}));
        self
    }

    pub(crate) fn finish(self) {
        let folder = claude_project_directory(&self.world.sandbox.claude_home(), self.world.shop.to_str().unwrap());
        fs::create_dir_all(&folder).unwrap();
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join(format!("{EDITS}.jsonl")), text).unwrap();
    }
}
