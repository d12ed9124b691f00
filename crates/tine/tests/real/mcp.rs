//! `tine mcp`, called by the official client, over sessions that the real agents wrote.

mod drive;
mod fork;
mod http;
mod look;
mod safety;
mod spawn;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::agents::{CLAUDE_VERSIONS, CODEX_VERSIONS, ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::process::processes_at_home_in;
use testkit::{Gate, McpClient, Sandbox, Tmux};

const UPLOADS: &str = "11111111-1111-4111-8111-111111111111";
const ELSEWHERE: &str = "22222222-2222-4222-8222-222222222222";

/// Both agents, a project, and the server that an agent there would have.
struct Lab<'a> {
    sandbox: &'a Sandbox,
    model: &'a Model,
    claude: ClaudeDriver<'a>,
    codex: CodexDriver<'a>,
    project: PathBuf,
    /// Holds the answer to every prompt that says "take your time".
    gate: Gate,
}

impl Lab<'_> {
    /// The server's command, to be started in the project.
    fn server(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(self.claude.environment()).envs(self.codex.environment());
        command.current_dir(&self.project).arg("mcp").args(arguments);
        command
    }

    /// A client that cannot ask the person.
    #[track_caller]
    fn client(&self) -> McpClient {
        McpClient::start(self.sandbox, &self.server(&[]), false)
    }

    /// A client that can.
    #[track_caller]
    fn asking_client(&self) -> McpClient {
        McpClient::start(self.sandbox, &self.server(&[]), true)
    }

    /// A client whose server runs in a pane of a terminal.
    #[track_caller]
    fn client_in(&self, tmux: &Tmux, project: &Path) -> McpClient {
        let pane = tmux.run_sized(&self.sandbox.command("cat"), 200, 50).id().to_owned();
        let mut server = self.server(&[]);
        server.current_dir(project);
        server.env("TMUX", format!("{},1,0", tmux.socket().display())).env("TMUX_PANE", pane);
        McpClient::start(self.sandbox, &server, false)
    }

    /// A session of Claude Code about uploads, with two turns.
    fn uploads(&self) {
        self.model.push(Reply::text("Raise the read timeout of the proxy."));
        self.claude.start(&self.project, UPLOADS, "The upload times out behind the proxy");
        self.model.push(Reply::text("A retry with backoff helps as well."));
        self.claude.resume(&self.project, UPLOADS, "What else could be done about it?");
    }

    /// A session of Codex about a CSV export, with one turn.
    fn export(&self) -> String {
        self.model.push(Reply::text("Into the orders module, as a stream of rows."));
        self.codex.start(&self.project, "Orders need a CSV export. Where would it go?")
    }

    /// A session of Claude Code in another repository.
    fn elsewhere(&self) -> PathBuf {
        let other = self.sandbox.project("another app");
        self.model.push(Reply::text("It is the clock of the other machine."));
        self.claude.start(&other, ELSEWHERE, "Why do the certificates expire at once?");
        other
    }

    fn configure(&self, lines: &str) {
        self.sandbox.write(self.sandbox.root().join("config/tine/config.toml"), lines);
    }

    /// The agents that run, by the names of their programs.
    fn agents(&self) -> Vec<u32> {
        let binaries = [self.claude.binary(), self.codex.binary()].map(|path| path.canonicalize().expect("a program"));
        let is_agent =
            |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| binaries.contains(&exe));
        processes_at_home_in(&self.sandbox.home()).into_iter().filter(is_agent).collect()
    }

    #[track_caller]
    fn no_agent_is_left(&self) {
        wait_until("the agents to end", PATIENCE, || self.agents().is_empty());
    }

    /// All sessions that there are.
    #[track_caller]
    fn sessions(&self, client: &McpClient) -> Vec<Value> {
        client.tool("list_sessions", json!({"all": true, "limit": 100}))["sessions"].as_array().expect("a list").clone()
    }
}

/// Runs `test` with the newest versions.
fn with_lab(test: impl FnOnce(&Lab<'_>)) {
    with_versions(CLAUDE_VERSIONS[0], CODEX_VERSIONS[0], test);
}

fn with_versions(claude: &str, codex: &str, test: impl FnOnce(&Lab<'_>)) {
    let (sandbox, model, gate) = (Sandbox::new(), Model::start(), Gate::closed());
    let held = gate.clone();
    model.on(move |request| {
        let prompt = request.prompt()?;
        let slow = Reply::new().hold(&held).say(format!("at last: {prompt}"));
        prompt.contains("take your time").then_some(slow)
    });
    let (claude, codex) = (ClaudeDriver::new(&sandbox, &model, claude), CodexDriver::new(&sandbox, &model, codex));
    let project = sandbox.project("my app");
    claude.trust(&project);
    codex.trust(&project);
    let lab = Lab { sandbox: &sandbox, model: &model, claude, codex, project, gate };
    test(&lab);
    lab.gate.open();
}

/// The text between the marks of what is quoted, which nobody could have known.
#[track_caller]
fn unquoted(text: &Value) -> String {
    let text = text.as_str().unwrap_or_else(|| panic!("{text}"));
    let (first, rest) = text.split_once('\n').expect("a mark");
    let mark = first.strip_prefix("<quoted-").and_then(|rest| rest.split(' ').next()).expect("a mark");
    assert!(mark.len() >= 12, "{first}");
    let (quoted, end) = rest.rsplit_once('\n').expect("an end");
    assert_eq!(end, format!("</quoted-{mark}>"));
    assert!(!quoted.contains(mark), "{text}");
    quoted.to_owned()
}

fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("{list:#}"));
    list.iter().filter_map(|one| one["id"].as_str().or(one["session_id"].as_str())).map(str::to_owned).collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
