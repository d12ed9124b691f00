//! Drives a real Codex: configured for the model double, started by `exec` or in a pane.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::install::installed;
use crate::poll::PATIENCE;
use crate::process::run_within;
use crate::sandbox::expect_success;
use crate::{Model, Pane, Sandbox, Tmux};

/// One version of Codex in a sandbox, talking to a model double.
pub struct CodexDriver<'test> {
    sandbox: &'test Sandbox,
    version: String,
    binary: PathBuf,
}

impl<'test> CodexDriver<'test> {
    /// Finds the version, writes its configuration for the model double, and links it as `codex` on the sandbox's PATH.
    pub fn new(sandbox: &'test Sandbox, model: &Model, version: &str) -> Self {
        let binary = installed("codex", version);
        sandbox.link("codex", &binary);
        sandbox.write(sandbox.codex_home().join("config.toml"), &configuration(sandbox, model));
        Self { sandbox, version: version.to_owned(), binary }
    }

    /// The version that is driven.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The native binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The variables that Codex needs on top of the sandbox's own. Give them to programs that start it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("MODEL_DOUBLE_KEY", "test-key".to_owned())]
    }

    /// A `codex` command in a directory, which it trusts.
    pub fn command(&self, directory: &Path) -> Command {
        self.trust(directory);
        let mut command = self.sandbox.command(&self.binary);
        command.envs(self.environment()).current_dir(directory);
        command
    }

    /// The name of a thread in Codex's own list.
    ///
    /// # Panics
    /// When Codex does not answer.
    pub fn name_of(&self, directory: &Path, id: &str) -> Option<String> {
        let mut command = self.command(directory);
        command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().expect("codex starts");
        let mut input = server.stdin.take().expect("an input");
        let client = json!({ "clientInfo": { "name": "test", "version": "0" } });
        let calls = [("initialize", client), ("thread/list", json!({})), ("thread/read", json!({ "threadId": id }))];
        let mut lines = BufReader::new(server.stdout.take().expect("an output")).lines();
        let mut answer = Value::Null;
        for (number, (method, params)) in calls.iter().enumerate() {
            writeln!(input, "{}", json!({ "id": number, "method": method, "params": params })).expect("codex listens");
            let mut messages = lines.by_ref().map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
            answer = messages.find(|message: &Value| message["id"] == number).expect("an answer");
        }
        drop(input);
        server.wait().expect("codex ends");
        answer["result"]["thread"]["name"].as_str().map(str::to_owned)
    }

    /// Runs one prompt by `codex exec`; the arguments stand before the prompt, as `["resume", id]` does.
    pub fn run(&self, directory: &Path, arguments: &[&str], prompt: &str) -> Output {
        let mut command = self.command(directory);
        command.args(["exec", "--skip-git-repo-check"]).args(arguments).arg(prompt);
        run_within(&mut command, PATIENCE)
    }

    /// Starts a thread with one prompt and returns its id.
    ///
    /// # Panics
    /// When Codex fails.
    #[track_caller]
    pub fn start(&self, directory: &Path, prompt: &str) -> String {
        let known = self.rollouts();
        expect_success(&self.run(directory, &[], prompt));
        self.new_thread(&known)
    }

    /// Continues a thread with one prompt and returns the answer.
    ///
    /// # Panics
    /// When Codex fails.
    #[track_caller]
    pub fn resume(&self, directory: &Path, id: &str, prompt: &str) -> String {
        expect_success(&self.run(directory, &["resume", id], prompt)).trim_end().to_owned()
    }

    /// Forks a thread natively with one prompt and returns the new id. `codex exec fork` exists since 0.150.
    ///
    /// # Panics
    /// When Codex fails.
    #[track_caller]
    pub fn fork(&self, directory: &Path, id: &str, prompt: &str) -> String {
        let known = self.rollouts();
        expect_success(&self.run(directory, &["fork", id], prompt));
        self.new_thread(&known)
    }

    /// Starts Codex interactively in a pane and waits until it takes input.
    pub fn open<'tmux>(&self, tmux: &'tmux Tmux, directory: &Path, arguments: &[&str]) -> Pane<'tmux> {
        let mut command = self.command(directory);
        command.args(arguments);
        let pane = tmux.run(&command);
        pane.wait_for(is_ready);
        pane
    }

    /// All rollout files below `sessions/`.
    pub fn rollouts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.sandbox.codex_home().join("sessions"), &mut found);
        found.sort();
        found
    }

    /// The rollout of a thread.
    pub fn rollout(&self, id: &str) -> Option<PathBuf> {
        self.rollouts().into_iter().find(|path| thread_id(path) == id)
    }

    /// The one thread that was not there before.
    #[track_caller]
    pub fn new_thread(&self, known: &[PathBuf]) -> String {
        let new: Vec<PathBuf> = self.rollouts().into_iter().filter(|path| !known.contains(path)).collect();
        assert_eq!(new.len(), 1, "exactly one new thread was expected: {new:?}");
        thread_id(&new[0])
    }

    /// Marks a directory as trusted, so that no dialog asks. Trust of a directory does not cover a repository inside it.
    pub fn trust(&self, directory: &Path) {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let table = format!("[projects.\"{}\"]", directory.display());
        let configuration = fs::read_to_string(self.sandbox.codex_home().join("config.toml")).expect("config.toml");
        if !configuration.contains(&table) {
            self.configure(&format!("{table}\ntrust_level = \"trusted\""));
        }
    }

    /// Adds lines to `config.toml`: tables of their own, such as `[mcp_servers.x]`.
    pub fn configure(&self, lines: &str) {
        let path = self.sandbox.codex_home().join("config.toml");
        let before = fs::read_to_string(&path).expect("config.toml");
        self.sandbox.write(path, &format!("{before}\n{lines}\n"));
    }
}

/// The thread id in a rollout's name: its last 36 characters.
pub(crate) fn thread_id(rollout: &Path) -> String {
    let stem = rollout.file_stem().unwrap_or_default().to_string_lossy();
    stem[stem.len().saturating_sub(36)..].to_owned()
}

/// Codex shows its hint for shortcuts or the model below the input once it takes keys.
fn is_ready(screen: &str) -> bool {
    screen.contains("context left") || screen.contains("mock-model") && screen.contains('›')
}

/// Without `plugins = false` each start waits five seconds for the network; without `daemon_auto_start = false` the
/// terminal interface leaves a daemon behind.
fn configuration(sandbox: &Sandbox, model: &Model) -> String {
    format!(
        r#"model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[features]
plugins = false
daemon_auto_start = false

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MODEL_DOUBLE_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{work}"]
trust_level = "trusted"
"#,
        url = model.url(),
        work = sandbox.work().display(),
    )
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "jsonl") {
            found.push(path);
        }
    }
}
