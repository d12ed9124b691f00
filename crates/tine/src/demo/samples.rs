//! The sample conversations, written in the agents' own formats.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{Quiet, Tine};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use transcript::{Agent, SessionName};

use crate::failure::Failure;

/// One exchange: the prompt, a command that the agent ran with its output, and the answer.
struct Exchange {
    prompt: &'static str,
    command: Option<(&'static str, &'static str)>,
    answer: &'static str,
}

const fn exchange(prompt: &'static str, answer: &'static str) -> Exchange {
    Exchange { prompt, command: None, answer }
}

const LOGIN: [Exchange; 3] = [
    Exchange {
        prompt: "After login users land on /undefined instead of the page they came from. Why?",
        command: Some(("rg -n redirect src/auth", "src/auth/login.ts:41: res.redirect(req.query.next)")),
        answer: "`login.ts:41` redirects to `req.query.next`, which the form drops. It has to travel in a hidden field.",
    },
    exchange(
        "Carry it through the form, please.",
        "Done: the form keeps `next` in a hidden field, and `login.ts` accepts only paths that start with `/`.",
    ),
    exchange("Add a test for an evil redirect.", "Added `rejects //evil.example`; 14 tests pass."),
];

const LOGIN_COOKIE: [Exchange; 1] = [exchange(
    "What if we kept it in a signed cookie instead?",
    "That survives a reload and OAuth round trips. I moved it to a signed, 10-minute cookie; the hidden field is gone.",
)];

const EXPORT: [Exchange; 2] = [
    Exchange {
        prompt: "Orders need a CSV export. Where would it go?",
        command: Some(("ls src/orders", "list.ts\nmodel.ts\nroutes.ts")),
        answer: "Best beside the list route: `GET /orders.csv` in `routes.ts`, with the columns defined in `model.ts`.",
    },
    exchange("Write it.", "Written. It loads all orders at once, which is fine up to some ten thousand."),
];

const EXPORT_STREAM: [Exchange; 1] = [exchange(
    "Make it stream, for a million orders.",
    "It now pages through the table with a cursor; memory stays at 30 MB.",
)];

const BLOG: [Exchange; 1] = [exchange(
    "Why is the feed not valid?",
    "`updated` has no time zone. I format it as RFC 3339 now; the validator is happy.",
)];

const CLAUDE_LOGIN: &str = "1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21";
const CLAUDE_COOKIE: &str = "b27e4d18-03c9-4f6a-8d15-92a7c4e6f083";
const CLAUDE_BLOG: &str = "6c90d7e2-5a14-4e3b-b8f7-1d2c3a4b5e6f";
const CODEX_EXPORT: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";
const CODEX_STREAM: &str = "019a820b-91d4-7b36-a5c8-04e7f2d1b6a9";

/// The folder of the agents' programs in the sample home.
pub(super) const PROGRAMS: &str = "bin";

/// Writes all sample sessions below `root`, and stand-ins for the agents: the demo doesn't need the real ones.
pub(super) fn write(root: &Path, now: Timestamp) -> io::Result<()> {
    let (shop, blog) = (root.join("shop"), root.join("blog"));
    fs::create_dir_all(&shop)?;
    fs::create_dir_all(&blog)?;
    for agent in Agent::ALL {
        install(&root.join(PROGRAMS).join(agent.as_str()))?;
    }
    let ago = |minutes: i64| now - SignedDuration::from_mins(minutes);

    let mut login = Claude::new(CLAUDE_LOGIN, &shop, "fix/login", ago(26 * 60));
    login.say(&LOGIN[..2]);
    let shared = login.lines.len();
    let mut cookie = login.fork(CLAUDE_COOKIE, shared);
    login.say(&LOGIN[2..]);
    login.title("Login redirect to /undefined");
    login.write(root)?;
    cookie.time = ago(55);
    cookie.say(&LOGIN_COOKIE);
    cookie.title("Login redirect by cookie");
    cookie.write(root)?;

    let mut feed = Claude::new(CLAUDE_BLOG, &blog, "main", ago(5 * 24 * 60));
    feed.say(&BLOG);
    feed.write(root)?;

    let mut export = Codex::new(CODEX_EXPORT, &shop, ago(3 * 60));
    export.say(&EXPORT);
    let mut stream = export.fork(CODEX_STREAM, ago(20));
    export.write(root)?;
    stream.say(&EXPORT_STREAM);
    stream.write(root)
}

fn install(program: &Path) -> io::Result<()> {
    write_text(program, "#!/bin/sh\nexit 1\n")?;
    #[cfg(unix)]
    fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Names some of them, as a user would.
pub(super) fn name(tine: &Tine) -> Result<(), Failure> {
    let sessions = tine.all_sessions(&Quiet)?;
    for (id, name) in [(CLAUDE_LOGIN, "login-fix"), (CODEX_EXPORT, "csv-export"), (CODEX_STREAM, "csv-export-fork-1")] {
        let Some(session) = sessions.iter().find(|session| session.view.id.as_str() == id) else {
            continue;
        };
        let name = SessionName::new(name).map_err(engine::Error::from)?;
        tine.adopt(session, Some(name), None)?;
    }
    Ok(())
}

/// A session in Claude Code's format.
struct Claude {
    id: String,
    cwd: PathBuf,
    branch: String,
    time: Timestamp,
    parent: Option<String>,
    lines: Vec<Value>,
}

impl Claude {
    fn new(id: &str, cwd: &Path, branch: &str, time: Timestamp) -> Self {
        let (id, cwd, branch) = (id.to_owned(), cwd.to_owned(), branch.to_owned());
        Claude { id, cwd, branch, time, parent: None, lines: Vec::new() }
    }

    /// Like `/branch`: the lines so far, under a new id, each with its origin.
    fn fork(&self, id: &str, lines: usize) -> Self {
        let copied = self.lines[..lines].iter().cloned().map(|mut line| {
            line["forkedFrom"] = json!({ "sessionId": self.id, "messageUuid": line["uuid"] });
            line["sessionId"] = json!(id);
            line
        });
        let lines: Vec<Value> = copied.collect();
        let parent = lines.last().and_then(|line| line["uuid"].as_str()).map(str::to_owned);
        Claude { id: id.into(), cwd: self.cwd.clone(), branch: self.branch.clone(), time: self.time, parent, lines }
    }

    fn say(&mut self, exchanges: &[Exchange]) {
        for exchange in exchanges {
            self.record("user", &json!({ "role": "user", "content": exchange.prompt }));
            if let Some((command, output)) = exchange.command {
                let call = format!("toolu_{:04}", self.lines.len());
                let tool = json!({ "type": "tool_use", "id": call, "name": "Bash", "input": { "command": command } });
                self.answer(&tool, "tool_use");
                let result = json!({ "type": "tool_result", "tool_use_id": call, "content": output });
                self.record("user", &json!({ "role": "user", "content": [result] }));
            }
            self.answer(&json!({ "type": "text", "text": exchange.answer }), "end_turn");
        }
    }

    fn answer(&mut self, block: &Value, stop: &str) {
        let id = format!("msg_{}_{:04}", &self.id[..8], self.lines.len());
        let message = json!({
            "id": id, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block],
            "stop_reason": stop, "usage": { "input_tokens": 18_000 + 400 * self.lines.len(), "output_tokens": 160 },
        });
        self.record("assistant", &message);
    }

    fn record(&mut self, kind: &str, message: &Value) {
        self.time += SignedDuration::from_secs(37);
        let uuid = format!("{}-0000-4000-8000-{:012}", &self.id[..8], self.lines.len());
        self.lines.push(json!({
            "parentUuid": self.parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
            "timestamp": self.time, "cwd": self.cwd, "sessionId": self.id, "version": "2.1.325", "gitBranch": self.branch,
        }));
        self.parent = Some(uuid);
    }

    fn title(&mut self, title: &str) {
        self.lines.push(json!({ "type": "ai-title", "aiTitle": title, "sessionId": self.id }));
    }

    fn write(&self, root: &Path) -> io::Result<()> {
        let folder = root.join(".claude/projects").join(agents::claude::project_folder(&self.cwd));
        write_lines(&folder.join(format!("{}.jsonl", self.id)), &self.lines)
    }
}

/// A session in Codex's format.
struct Codex {
    id: String,
    cwd: PathBuf,
    begun: Timestamp,
    time: Timestamp,
    lines: Vec<Value>,
}

impl Codex {
    fn new(id: &str, cwd: &Path, time: Timestamp) -> Self {
        let mut session = Codex { id: id.into(), cwd: cwd.to_owned(), begun: time, time, lines: Vec::new() };
        let meta = session.meta(None);
        session.record("session_meta", &meta);
        session
    }

    /// As a native fork of the legacy format: an own first line, then a copy of everything.
    fn fork(&self, id: &str, time: Timestamp) -> Self {
        let mut fork = Codex { id: id.into(), cwd: self.cwd.clone(), begun: time, time, lines: Vec::new() };
        let meta = fork.meta(Some(&self.id));
        fork.record("session_meta", &meta);
        fork.lines.extend(self.lines.iter().cloned());
        fork
    }

    fn meta(&self, parent: Option<&str>) -> Value {
        let mut meta = json!({
            "id": self.id, "session_id": self.id, "timestamp": self.time, "cwd": self.cwd, "originator": "codex-tui",
            "cli_version": "0.140.0", "source": "cli", "model_provider": "openai", "git": { "branch": "main" },
        });
        if let Some(parent) = parent {
            meta["forked_from_id"] = json!(parent);
        }
        meta
    }

    fn say(&mut self, exchanges: &[Exchange]) {
        for exchange in exchanges {
            let turn = format!("{}-turn-{}", &self.id[..13], self.lines.len());
            self.event(&json!({ "type": "task_started", "turn_id": turn, "model_context_window": 258_400 }));
            self.record("turn_context", &json!({ "turn_id": turn, "cwd": self.cwd, "model": "gpt-5.5-codex" }));
            self.message("user", "input_text", exchange.prompt);
            self.event(&json!({ "type": "user_message", "message": exchange.prompt }));
            if let Some((command, output)) = exchange.command {
                let call = format!("call_{:04}", self.lines.len());
                let arguments = json!({ "cmd": command }).to_string();
                let item =
                    json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call });
                self.record("response_item", &item);
                let item = json!({ "type": "function_call_output", "call_id": call, "output": output });
                self.record("response_item", &item);
            }
            self.message("assistant", "output_text", exchange.answer);
            self.event(&json!({ "type": "agent_message", "message": exchange.answer }));
            self.event(&json!({ "type": "task_complete", "turn_id": turn, "last_agent_message": exchange.answer }));
        }
    }

    fn message(&mut self, role: &str, kind: &str, text: &str) {
        let content = json!([{ "type": kind, "text": text }]);
        self.record("response_item", &json!({ "type": "message", "role": role, "content": content }));
    }

    fn event(&mut self, payload: &Value) {
        self.record("event_msg", payload);
    }

    fn record(&mut self, kind: &str, payload: &Value) {
        self.time += SignedDuration::from_secs(11);
        self.lines.push(json!({ "timestamp": self.time, "type": kind, "payload": payload }));
    }

    fn write(&self, root: &Path) -> io::Result<()> {
        let day = self.begun.strftime("%Y/%m/%d").to_string();
        let name = format!("rollout-{}-{}.jsonl", self.begun.strftime("%Y-%m-%dT%H-%M-%S"), self.id);
        write_lines(&root.join(".codex/sessions").join(day).join(name), &self.lines)
    }
}

fn write_lines(path: &Path, lines: &[Value]) -> io::Result<()> {
    write_text(path, &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn write_text(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
