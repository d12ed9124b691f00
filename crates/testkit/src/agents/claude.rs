//! Drives a real Claude Code: prepared so that no dialog appears, started in print mode or in a pane.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::install::installed;
use crate::poll::{PATIENCE, wait_until};
use crate::process::run_within;
use crate::sandbox::expect_success;
use crate::{Model, Pane, Sandbox, Tmux};

/// The key that the configuration approves. It opens nothing.
const KEY: &str = "test-key";

/// One version of Claude Code in a sandbox, talking to a model double.
pub struct ClaudeDriver<'test> {
    sandbox: &'test Sandbox,
    model: &'test Model,
    version: String,
    binary: PathBuf,
}

impl<'test> ClaudeDriver<'test> {
    /// Finds the version, writes the files that keep its dialogs away, and links it as `claude` on the sandbox's PATH.
    pub fn new(sandbox: &'test Sandbox, model: &'test Model, version: &str) -> Self {
        let binary = installed("claude", version);
        sandbox.link("claude", &binary);
        let driver = Self { sandbox, model, version: version.to_owned(), binary };
        driver.write_configuration();
        driver
    }

    /// The version that is driven.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The native binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The variables that Claude Code needs on top of the sandbox's own. Give them to programs that start it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("ANTHROPIC_API_KEY", KEY.to_owned()), ("ANTHROPIC_BASE_URL", self.model.url())];
        let switches = [
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            // Lets root use --dangerously-skip-permissions.
            "IS_SANDBOX",
        ];
        variables.extend(switches.map(|name| (name, "1".to_owned())));
        variables
    }

    /// A `claude` command in a directory, which it trusts.
    pub fn command(&self, directory: &Path) -> Command {
        self.trust(directory);
        let mut command = self.sandbox.command(&self.binary);
        command.envs(self.environment()).current_dir(directory);
        command
    }

    /// Runs one prompt in print mode with all permissions.
    pub fn run(&self, directory: &Path, arguments: &[&str], prompt: &str) -> Output {
        let mut command = self.command(directory);
        command.args(["-p", prompt, "--dangerously-skip-permissions"]).args(arguments);
        run_within(&mut command, PATIENCE)
    }

    /// Starts a session under an id with one prompt and returns the answer.
    ///
    /// # Panics
    /// When Claude Code fails.
    #[track_caller]
    pub fn start(&self, directory: &Path, id: &str, prompt: &str) -> String {
        expect_success(&self.run(directory, &["--session-id", id], prompt)).trim_end().to_owned()
    }

    /// Continues a session with one prompt and returns the answer.
    ///
    /// # Panics
    /// When Claude Code fails.
    #[track_caller]
    pub fn resume(&self, directory: &Path, id: &str, prompt: &str) -> String {
        expect_success(&self.run(directory, &["--resume", id], prompt)).trim_end().to_owned()
    }

    /// Forks a session natively into a new id with one prompt and returns the answer.
    ///
    /// # Panics
    /// When Claude Code fails.
    #[track_caller]
    pub fn fork(&self, directory: &Path, source: &str, new: &str, prompt: &str) -> String {
        let arguments = ["--resume", source, "--fork-session", "--session-id", new];
        expect_success(&self.run(directory, &arguments, prompt)).trim_end().to_owned()
    }

    /// Starts Claude Code interactively in a pane, with all permissions, and waits until it takes input.
    pub fn open<'tmux>(&self, tmux: &'tmux Tmux, directory: &Path, arguments: &[&str]) -> Pane<'tmux> {
        self.open_in_mode("bypassPermissions", "bypass permissions on", tmux, directory, arguments)
    }

    /// Starts it so that it asks before it runs a tool. Without a mode 2.1.325 decides by itself what is harmless.
    pub fn open_asking<'tmux>(&self, tmux: &'tmux Tmux, directory: &Path, arguments: &[&str]) -> Pane<'tmux> {
        self.open_in_mode("default", "? for shortcuts", tmux, directory, arguments)
    }

    /// Claude Code shows its mode or its hint below the input once it takes keys.
    fn open_in_mode<'tmux>(
        &self,
        mode: &str,
        sign: &str,
        tmux: &'tmux Tmux,
        directory: &Path,
        arguments: &[&str],
    ) -> Pane<'tmux> {
        let mut command = self.command(directory);
        command.args(["--permission-mode", mode]).args(arguments);
        let pane = tmux.run(&command);
        pane.wait_for_text(sign);
        pane
    }

    /// The transcript files of all projects, without those of subagents.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let projects = fs::read_dir(self.sandbox.claude_home().join("projects")).into_iter().flatten().flatten();
        let files = projects.flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten());
        let mut transcripts: Vec<PathBuf> =
            files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).collect();
        transcripts.sort();
        transcripts
    }

    /// The transcript of a session, in whatever project it is.
    pub fn transcript(&self, id: &str) -> Option<PathBuf> {
        self.transcripts().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == id))
    }

    /// Waits until a session's transcript holds a text. What is on the screen may not be in the file yet, and what is
    /// not in the file cannot be branched.
    ///
    /// # Panics
    /// When it does not come.
    #[track_caller]
    pub fn wait_until_written(&self, id: &str, text: &str) {
        wait_until("the transcript to be written", PATIENCE, || {
            let content = self.transcript(id).and_then(|path| fs::read_to_string(path).ok());
            content.is_some_and(|content| content.contains(text))
        });
    }

    /// Merges the settings that a test wants into `settings.json`, such as hooks.
    pub fn settings(&self, wanted: &Value) {
        let path = self.sandbox.claude_home().join("settings.json");
        let mut settings = read_json(&path);
        for (name, value) in wanted.as_object().expect("settings are an object") {
            settings[name] = value.clone();
        }
        self.sandbox.write(path, &settings.to_string());
    }

    /// Marks a directory as trusted, so that no dialog asks. Trust covers sub-directories and worktrees of the same
    /// repository, but not a repository inside a trusted plain directory.
    pub fn trust(&self, directory: &Path) {
        let path = self.sandbox.home().join(".claude.json");
        let mut state = read_json(&path);
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let trusted = &mut state["projects"][directory.display().to_string()]["hasTrustDialogAccepted"];
        if *trusted != json!(true) {
            *trusted = json!(true);
            self.sandbox.write(path, &state.to_string());
        }
    }

    fn write_configuration(&self) {
        let path = self.sandbox.home().join(".claude.json");
        let mut state = read_json(&path);
        state["hasCompletedOnboarding"] = json!(true);
        state["customApiKeyResponses"] = json!({"approved": [KEY], "rejected": []});
        self.sandbox.write(path, &state.to_string());
        self.trust(&self.sandbox.work());
        self.settings(&json!({"skipDangerousModePermissionPrompt": true}));
    }
}

fn read_json(path: &Path) -> Value {
    let content = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&content).unwrap_or_else(|_| json!({}))
}
