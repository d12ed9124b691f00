//! Drives a real Gemini CLI: configured for the model double, started headless or in a pane.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::install::installed;
use crate::poll::PATIENCE;
use crate::process::run_within;
use crate::sandbox::expect_success;
use crate::{Model, Pane, Sandbox, Tmux};

/// One version of Gemini CLI in a sandbox, talking to a model double.
pub struct GeminiDriver<'test> {
    sandbox: &'test Sandbox,
    version: String,
    url: String,
    program: PathBuf,
}

impl<'test> GeminiDriver<'test> {
    /// Finds the version, writes its settings, and puts a `gemini` that Node.js runs on the sandbox's PATH.
    pub fn new(sandbox: &'test Sandbox, model: &Model, version: &str) -> Self {
        let bundle = installed("gemini", version);
        // The client's own `gemini` is a link to this file.
        let program = sandbox.link("gemini", &bundle);
        let driver = Self { sandbox, version: version.to_owned(), url: model.url(), program };
        sandbox.write(sandbox.gemini_home().join("settings.json"), &format!("{:#}\n", settings()));
        driver
    }

    /// The version that is driven.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The variables that Gemini CLI needs on top of the sandbox's own. Give them to programs that start it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("GEMINI_API_KEY", "test-key".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", self.url.clone()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ("GEMINI_MODEL", "gemini-2.5-pro".to_owned()),
        ]
    }

    /// A `gemini` command in a directory.
    pub fn command(&self, directory: &Path) -> Command {
        let mut command = self.sandbox.command(&self.program);
        command.envs(self.environment()).current_dir(directory);
        command
    }

    /// Runs one prompt headless.
    pub fn run(&self, directory: &Path, arguments: &[&str], prompt: &str) -> Output {
        let mut command = self.command(directory);
        command.args(arguments).args(["--prompt", prompt]);
        run_within(&mut command, PATIENCE)
    }

    /// Starts a session with one prompt, in which tools run without being asked for, and returns its id.
    ///
    /// # Panics
    /// When Gemini CLI fails.
    #[track_caller]
    pub fn start(&self, directory: &Path, prompt: &str) -> String {
        let output = expect_success(&self.run(directory, &["--yolo", "--output-format", "json"], prompt));
        let told: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
        told["session_id"].as_str().expect("a session id").to_owned()
    }

    /// Continues a session with one prompt and returns the answer.
    ///
    /// # Panics
    /// When Gemini CLI fails.
    #[track_caller]
    pub fn resume(&self, directory: &Path, id: &str, prompt: &str) -> String {
        let output = expect_success(&self.run(directory, &["--resume", id, "--output-format", "json"], prompt));
        let told: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
        told["response"].as_str().unwrap_or_default().to_owned()
    }

    /// The sessions that Gemini CLI lists in a directory.
    #[track_caller]
    pub fn listed(&self, directory: &Path) -> String {
        let mut command = self.command(directory);
        command.arg("--list-sessions");
        let output = run_within(&mut command, PATIENCE);
        expect_success(&output) + &String::from_utf8_lossy(&output.stderr)
    }

    /// Starts Gemini CLI interactively in a pane and waits until it takes input.
    pub fn open<'tmux>(&self, tmux: &'tmux Tmux, directory: &Path, arguments: &[&str]) -> Pane<'tmux> {
        let mut command = self.command(directory);
        command.args(arguments);
        let pane = tmux.run(&command);
        pane.wait_for(|screen| screen.contains("Type your message"));
        pane
    }

    /// All chat files.
    pub fn chats(&self) -> Vec<PathBuf> {
        let projects = fs::read_dir(self.sandbox.gemini_home().join("tmp")).into_iter().flatten().flatten();
        let chats =
            projects.flat_map(|project| fs::read_dir(project.path().join("chats")).into_iter().flatten().flatten());
        let mut files: Vec<PathBuf> = chats.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        files
    }

    /// The chat file of a session: the largest, beside which resuming leaves small ones.
    pub fn chat(&self, id: &str) -> Option<PathBuf> {
        let is_its = |path: &PathBuf| path.to_string_lossy().contains(&id[..8]);
        self.chats()
            .into_iter()
            .filter(is_its)
            .max_by_key(|path| fs::metadata(path).map_or(0, |metadata| metadata.len()))
    }
}

/// Without the retention, a clean-up at the start of the client deletes sessions that were resumed.
fn settings() -> Value {
    json!({
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "general": { "enableAutoUpdate": false, "sessionRetention": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
    })
}
