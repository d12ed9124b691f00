//! A session that one real agent made continues in another real agent: its model receives every prompt, answer, call and
//! result, in order, and nothing that a real API would refuse.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver, GeminiDriver, OpenCodeDriver};
use testkit::model::{Block, Model, Reply, Request, broken_rule};
use transcript::Agent;

use crate::conversation::{Conversation, tine, tine_json};

const ID: &str = "11111111-1111-4111-8111-111111111111";
/// Prompts that agents would take for something else at the beginning of a line.
const FIRST: &str = "grüße 漢字: look around";
const SECOND: &str = "/etc/hosts: what is it?";

/// The agents, and a model for all of them.
struct World<'a> {
    sandbox: &'a Sandbox,
    model: &'a Model,
    claude: ClaudeDriver<'a>,
    codex: CodexDriver<'a>,
    gemini: GeminiDriver<'a>,
    opencode: OpenCodeDriver<'a>,
    project: PathBuf,
}

impl World<'_> {
    /// Makes a session of two turns: an answer with two calls at once, one of which fails, and a call of its own.
    fn source(&self, agent: Agent) -> String {
        let shell = |command: &str| match agent {
            Agent::Codex => ("exec_command", json!({"cmd": command})),
            Agent::Gemini => ("run_shell_command", json!({"command": command, "description": "look"})),
            Agent::OpenCode => ("bash", json!({"command": command, "description": "look"})),
            _ => ("Bash", json!({"command": command, "description": "look"})),
        };
        // Gemini CLI itself can't resume a session after calls: it sends their results twice, which the API refuses.
        let begins_with_calls = agent != Agent::Gemini;
        if !begins_with_calls {
            self.model.push(Reply::text("The file with names of hosts."));
        }
        let (tool, echo) = shell("echo grüße; echo zwei");
        let (_, fail) = shell("echo no >&2; exit 3");
        let (_, last) = shell("printf last");
        self.model.push(Reply::text("I look.").thinking("Hm.").call(tool, echo).call(tool, fail));
        self.model.push(Reply::text("One more.").call(tool, last));
        self.model.push(Reply::text("Fertig: grüße."));
        let id = match agent {
            Agent::Codex => self.codex.start(&self.project, FIRST),
            Agent::Gemini => self.gemini.start(&self.project, FIRST),
            Agent::OpenCode => self.opencode.start(&self.project, FIRST),
            Agent::Claude => {
                self.claude.start(&self.project, ID, FIRST);
                ID.to_owned()
            }
        };
        if begins_with_calls {
            self.model.push(Reply::text("The file with names of hosts."));
        }
        self.resume(agent, &id, SECOND);
        id
    }

    fn resume(&self, agent: Agent, id: &str, prompt: &str) {
        // Some agents take a slash for a command of their own, and so does not the user here.
        match agent {
            Agent::Codex => drop(self.codex.resume(&self.project, id, prompt)),
            Agent::Gemini => drop(self.gemini.resume(&self.project, id, &format!("see {prompt}"))),
            Agent::OpenCode => self.opencode.resume(&self.project, id, &format!("see {prompt}")),
            Agent::Claude => drop(self.claude.resume(&self.project, id, &format!("see {prompt}"))),
        }
    }

    fn fork(&self, source: &str, target: Agent, name: &str) -> Value {
        let words = ["fork", source, name, "--agent", target.as_str(), "--json"];
        let made = tine_json(self.sandbox, &self.project, &words);
        assert_eq!((&made["method"], &made["session"]["agent"]), (&json!("translate"), &json!(target)), "{made:#}");
        made
    }

    /// Continues in a fork and compares what reaches the model with what tine shows of the fork, and with the source.
    fn check(&self, source: &str, made: &Value, target: Agent) {
        let id = made["session"]["id"].as_str().expect("an id");
        self.resume(target, id, "and now");
        let request = self.model.last_turn();
        assert_eq!(broken_rule(&request.body), None, "{source} in {target}: {:#}", request.body);
        let seen = Conversation::from_request(&request);
        Conversation::from_show(self.sandbox, &self.project, id).assert_matches(&seen);
        let turn = made["parent"]["turn"].as_u64().expect("a turn") as usize;
        let original = shape_of_source(self.sandbox, &self.project, source, turn);
        assert_eq!(by_round(shape_of_request(&request)), by_round(original), "{source} in {target}");
    }
}

/// The order of everything: prompts and answers as they are, calls and results by their place.
fn shape_of_request(request: &Request) -> Vec<String> {
    let mut shape = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let place = |ids: &mut Vec<String>, id: &str| match ids.iter().position(|known| known == id) {
        Some(at) => at,
        None => {
            ids.push(id.to_owned());
            ids.len() - 1
        }
    };
    let prompts = request.prompts();
    let last = prompts.last().cloned().unwrap_or_default();
    for message in request.messages() {
        for block in message.blocks {
            match block {
                Block::Text(text) if message.role == "assistant" => shape.push(format!("answer {text}")),
                Block::Text(text) if message.role == "user" && prompts.contains(&text) && text != last => {
                    shape.push(format!("prompt {}", text.trim_start_matches("User: ")));
                }
                Block::ToolUse { id, .. } => shape.push(format!("call {}", place(&mut ids, &id))),
                Block::ToolResult { id, .. } => shape.push(format!("result {}", place(&mut ids, &id))),
                _ => {}
            }
        }
    }
    shape
}

/// Puts the results of calls that stand together after all of these calls: OpenCode keeps each result with its call.
fn by_round(shape: Vec<String>) -> Vec<String> {
    let mut ordered: Vec<String> = Vec::new();
    let mut results: Vec<String> = Vec::new();
    for entry in shape {
        if entry.starts_with("result ") {
            results.push(entry);
            continue;
        }
        if !entry.starts_with("call ") {
            ordered.append(&mut results);
        }
        ordered.push(entry);
    }
    ordered.append(&mut results);
    ordered
}

/// The same, as tine shows the source.
fn shape_of_source(sandbox: &Sandbox, project: &Path, source: &str, turns: usize) -> Vec<String> {
    let shown = tine_json(sandbox, project, &["show", source, "--json"]);
    let mut shape = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for turn in shown["turns"].as_array().expect("turns").iter().take(turns) {
        shape.push(format!("prompt {}", turn["prompt"].as_str().unwrap_or_default()));
        for block in turn["blocks"].as_array().expect("blocks") {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["kind"].as_str().unwrap_or_default() {
                "answer" => shape.push(format!("answer {}", text("text"))),
                "call" => {
                    ids.push(text("id"));
                    shape.push(format!("call {}", ids.len() - 1));
                }
                "output" => {
                    let place = ids.iter().position(|id| *id == text("call")).expect("a call");
                    shape.push(format!("result {place}"));
                }
                _ => {}
            }
        }
    }
    shape
}

#[test]
fn a_session_continues_in_every_other_agent() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, "2.1.325");
    let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
    let gemini = GeminiDriver::new(&sandbox, &model, "0.61.0");
    let opencode = OpenCodeDriver::new(&sandbox, &model, "1.18.33");
    let project = sandbox.project("app");
    let world = World { sandbox: &sandbox, model: &model, claude, codex, gemini, opencode, project };
    // OpenCode comes first, because its client creates the database.
    let agents = [Agent::OpenCode, Agent::Claude, Agent::Codex, Agent::Gemini];
    for from in agents {
        let source = world.source(from);
        let file = tine_json(&sandbox, &world.project, &["info", &source, "--json"])["path"].clone();
        // Rows of a database are compared as they are shown.
        let content = || {
            let bytes = std::fs::read(file.as_str().expect("a path"));
            bytes.unwrap_or_else(|_| tine(&sandbox, &world.project, &["show", &source, "--json"]).into_bytes())
        };
        let before = content();
        for to in agents.into_iter().filter(|to| *to != from) {
            for (cut, spec) in [("whole", source.clone()), ("cut", format!("{source}@1"))] {
                let made = world.fork(&spec, to, &format!("{from}-{to}-{cut}"));
                let carried = &made["receipt"]["carried"];
                let turns = if cut == "cut" { 1 } else { 2 };
                assert_eq!(carried[0], json!({"item": "prompts", "count": turns}), "{made:#}");
                world.check(&source, &made, to);
            }
            // A copy of what was translated is a session like any other.
            let name = format!("{from}-{to}-whole");
            let again = tine(
                &sandbox,
                &world.project,
                &["fork", &name, &format!("{name}-again"), "--method", "copy", "--json"],
            );
            assert!(again.contains("\"copy\""), "{again}");
        }
        assert!(content() == before, "{from}");
    }
}
