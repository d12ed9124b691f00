//! Drives a real OpenCode: configured for the model double, started by `run` or in a pane.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use super::install::installed;
use crate::process::run_within;
use crate::sandbox::{expect_success, text};
use crate::{Model, Pane, Sandbox, Tmux};

/// A start takes six to sixteen seconds on a quiet machine, and several times that on a busy one.
const STARTS_WITHIN: Duration = Duration::from_secs(240);

/// OpenCode in a sandbox, talking to a model double.
pub struct OpenCodeDriver<'test> {
    sandbox: &'test Sandbox,
    binary: PathBuf,
}

impl<'test> OpenCodeDriver<'test> {
    /// Finds the version, writes its configuration for the model double, and links it as `opencode` on the sandbox's PATH.
    pub fn new(sandbox: &'test Sandbox, model: &Model, version: &str) -> Self {
        let binary = installed("opencode", version);
        sandbox.link("opencode", &binary);
        let driver = Self { sandbox, binary };
        driver.configure(&configuration(model));
        // As if the package for plugins had been installed: without it, each start with a plugin waits for npm.
        let folder = sandbox.root().join("config/opencode");
        std::fs::create_dir_all(folder.join("node_modules")).expect("the folder of packages");
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": version}}}});
        sandbox.write(folder.join("package-lock.json"), &lock.to_string());
        driver
    }

    /// The file with the settings.
    pub fn settings(&self) -> PathBuf {
        self.sandbox.root().join("config/opencode/opencode.json")
    }

    /// Writes the settings.
    pub fn configure(&self, settings: &Value) {
        self.sandbox.write(self.settings(), &format!("{settings:#}\n"));
    }

    /// Makes OpenCode ask before it runs a command.
    pub fn ask_before_commands(&self, model: &Model) {
        let mut settings = configuration(model);
        settings["permission"] = json!({"bash": "ask"});
        self.configure(&settings);
    }

    /// The variables that OpenCode needs on top of the sandbox's own. Give them to programs that start it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"]
            .map(|name| (name, "1".to_owned()))
            .to_vec()
    }

    /// An `opencode` command in a directory.
    pub fn command(&self, directory: &Path) -> Command {
        let mut command = self.sandbox.command(&self.binary);
        command.envs(self.environment()).current_dir(directory);
        command
    }

    /// Runs one prompt by `opencode run`; the arguments stand before the prompt, as `["--session", id]` does.
    pub fn run(&self, directory: &Path, arguments: &[&str], prompt: &str) -> Output {
        let mut command = self.command(directory);
        command.args(["run", "--format", "json"]).args(arguments).arg(prompt);
        run_within(&mut command, STARTS_WITHIN)
    }

    /// Starts a session with one prompt and returns its id.
    ///
    /// # Panics
    /// When OpenCode fails.
    #[track_caller]
    pub fn start(&self, directory: &Path, prompt: &str) -> String {
        id_in(&self.run(directory, &[], prompt))
    }

    /// Continues a session with one prompt.
    ///
    /// # Panics
    /// When OpenCode fails or continues another session.
    #[track_caller]
    pub fn resume(&self, directory: &Path, id: &str, prompt: &str) {
        assert_eq!(id_in(&self.run(directory, &["--session", id], prompt)), id);
    }

    /// The sessions that OpenCode itself lists in a directory.
    pub fn listed(&self, directory: &Path) -> Vec<Value> {
        let mut command = self.command(directory);
        command.args(["session", "list", "--format", "json"]);
        let output = expect_success(&run_within(&mut command, STARTS_WITHIN));
        let all: Value = serde_json::from_str(&output).unwrap_or_default();
        all.as_array().cloned().unwrap_or_default()
    }

    /// Starts OpenCode interactively in a pane and waits until it takes input.
    pub fn open<'tmux>(&self, tmux: &'tmux Tmux, directory: &Path, arguments: &[&str]) -> Pane<'tmux> {
        let mut command = self.command(directory);
        command.args(arguments);
        let pane = tmux.run(&command);
        pane.wait_within(STARTS_WITHIN, "OpenCode", |screen| screen.contains("ctrl+p"));
        pane
    }
}

/// The session in the events that `run` prints.
#[track_caller]
fn id_in(output: &Output) -> String {
    let events = expect_success(output);
    let id = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|event| event["sessionID"].as_str().map(str::to_owned));
    id.unwrap_or_else(|| panic!("no session in {events}{}", text(&output.stderr)))
}

/// Without `modalities`, pictures are replaced by an error.
fn configuration(model: &Model) -> Value {
    let modalities = json!({"input": ["text", "image"], "output": ["text"]});
    let limit = json!({"context": 200_000, "output": 8_000});
    let mock = json!({
        "name": "Mock", "attachment": true, "reasoning": true, "tool_call": true, "modalities": modalities, "limit": limit,
    });
    json!({
        // OpenCode adds it to a file that lacks it.
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "model": "mock/mock-model",
        "permission": "allow",
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "x"},
            "models": {"mock-model": mock},
        }},
    })
}
