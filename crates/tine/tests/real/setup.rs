//! `tine setup`: the real agents run what was installed, and run it no more when it was taken out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::Model;
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::{expect_success, text};
use testkit::{Sandbox, Tmux};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const OTHER: &str = "22222222-2222-4222-8222-222222222222";
const THIRD: &str = "33333333-3333-4333-8333-333333333333";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        hooks_in_settings_fire_until_they_are_taken_out,
        the_person_and_the_project_at_once_run_things_once,
        settings_with_comments_are_not_taken,
        the_plugin_is_valid_and_fires,
        a_permission_and_a_branch_are_told,
    ]);
    use super::*;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        trusted_hooks_fire_until_they_are_taken_out,
    ]);
    use super::*;
}

/// A tine in a place that a shell has to be told with care. It can be another program for a while, which notes how it is
/// called.
struct Installed<'a> {
    sandbox: &'a Sandbox,
    path: PathBuf,
    log: PathBuf,
}

impl<'a> Installed<'a> {
    fn new(sandbox: &'a Sandbox) -> Self {
        let folder = sandbox.root().join("it's a $HOME");
        fs::create_dir_all(&folder).expect("a folder");
        let log = sandbox.root().join("called");
        let script = format!("#!/bin/sh\nread -r payload\necho \"$1 $2 $3 $4\" >> '{}'\n", log.display());
        let stub = sandbox.script("noting", &script);
        // By another process: a program that this one has open for writing while a thread starts a child cannot be run.
        for (from, to) in [(Path::new(env!("CARGO_BIN_EXE_tine")), "as-tine"), (&stub, "as-stub")] {
            expect_success(&sandbox.command("cp").arg(from).arg(folder.join(to)).output().expect("cp"));
        }
        Installed { sandbox, path: folder.join("tine"), log }
    }

    fn be(&self, program: &str) {
        let _ = fs::remove_file(&self.path);
        fs::hard_link(self.path.with_file_name(program), &self.path).expect("a link");
    }

    /// Runs `tine setup` with the agents' own variables.
    #[track_caller]
    fn setup(&self, directory: &Path, environment: Vec<(&'static str, String)>, arguments: &[&str]) -> String {
        self.be("as-tine");
        let mut command: Command = self.sandbox.command(&self.path);
        command.envs(environment).current_dir(directory).arg("setup").args(arguments);
        let output = command.output().expect("tine");
        expect_success(&output);
        text(&output.stdout) + &text(&output.stderr)
    }

    /// The hooks that the agent runs during an action, in order.
    fn hooks_during(&self, act: impl FnOnce()) -> Vec<String> {
        self.be("as-stub");
        let _ = fs::remove_file(&self.log);
        act();
        self.hooks_called()
    }

    fn hooks_called(&self) -> Vec<String> {
        let called = fs::read_to_string(&self.log).unwrap_or_default();
        let hooks = called.lines().filter_map(|line| line.strip_prefix("hook "));
        hooks.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    }
}

fn hooks_in_settings_fire_until_they_are_taken_out(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    let settings = sandbox.claude_home().join("settings.json");
    let before = fs::read(&settings).expect("settings");
    tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    let output = tine.hooks_during(|| drop(claude.start(&project, ID, "first")));
    assert_eq!(output, ["session-start", "user-prompt-submit", "stop", "session-end"]);
    tine.setup(&project, claude.environment(), &["claude", "--uninstall", "--yes"]);
    assert_eq!(fs::read(&settings).expect("settings"), before);
    assert_eq!(tine.hooks_during(|| drop(claude.resume(&project, ID, "second"))), [""; 0]);

    // The same with tine itself, which then knows that it is told.
    tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    claude.resume(&project, ID, "third");
    let status = tine.setup(&project, claude.environment(), &["claude", "--status", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let events = status["agents"][0]["events"].as_array().expect("events").clone();
    let heard = events.iter().filter(|event| !event["last"].is_null()).map(|event| event["event"].clone());
    assert_eq!(heard.collect::<Vec<_>>(), ["session-start", "session-end", "user-prompt-submit", "stop"]);
}

fn the_person_and_the_project_at_once_run_things_once(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    sandbox.link("tine", &tine.path);
    tine.setup(&project, claude.environment(), &["claude", "--project", "--yes"]);
    let output = tine.hooks_during(|| drop(claude.start(&project, ID, "first")));
    assert_eq!(output, ["session-start", "user-prompt-submit", "stop", "session-end"]);
    let elsewhere = sandbox.project("other");
    assert_eq!(tine.hooks_during(|| drop(claude.start(&elsewhere, OTHER, "first"))), [""; 0]);
    tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    let output = tine.hooks_during(|| drop(claude.start(&project, THIRD, "first")));
    assert_eq!(output, ["session-start", "user-prompt-submit", "stop", "session-end"]);
    // A plugin is another place of the person's.
    tine.setup(&project, claude.environment(), &["claude", "--plugin", "--yes"]);
    let output = tine.hooks_during(|| drop(claude.resume(&project, THIRD, "second")));
    assert_eq!(output, ["session-start", "user-prompt-submit", "stop", "session-end"]);
    // Without tine, nobody is told anything.
    fs::remove_file(&tine.path).expect("a program");
    claude.resume(&project, THIRD, "third");
    let transcript = fs::read_to_string(claude.transcript(THIRD).expect("a transcript")).expect("records");
    // That a server is not there, Claude Code says by itself.
    let of_hooks: Vec<&str> = transcript.lines().filter(|line| line.contains("hook")).collect();
    let is_told = |line: &&&str| line.contains("hook_non_blocking_error") || line.contains("tine: not found");
    assert_eq!(of_hooks.iter().find(is_told), None);
}

/// Should a version take them one day, tine need not warn of comments any more.
fn settings_with_comments_are_not_taken(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    sandbox.write(
        sandbox.claude_home().join("settings.json"),
        "// why\n{\n  \"skipDangerousModePermissionPrompt\": true\n}\n",
    );
    let said = tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    assert!(said.contains("ignores"), "{said}");
    assert_eq!(tine.hooks_during(|| drop(claude.start(&project, ID, "first"))), [""; 0]);
}

fn the_plugin_is_valid_and_fires(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    let settings = sandbox.claude_home().join("settings.json");
    sandbox.write(&settings, "{\n      \"skipDangerousModePermissionPrompt\":true}\n");
    let before = fs::read(&settings).expect("settings");
    // The entries in the settings give way to the plugin, or everything would run twice.
    tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    tine.setup(&project, claude.environment(), &["claude", "--plugin", "--yes"]);
    let folder = sandbox.root().join("data/tine/claude-plugin");
    expect_success(&claude.command(&project).args(["plugin", "validate"]).arg(&folder).output().expect("claude"));
    let output = tine.hooks_during(|| drop(claude.start(&project, ID, "first")));
    assert_eq!(output, ["session-start", "user-prompt-submit", "stop", "session-end"]);
    // The command reaches the model as a prompt, with this session's id in it.
    claude.resume(&project, ID, "/tine:tine fork new-way");
    let prompts = model.last_turn().prompts().join("\n");
    assert!(prompts.contains("fork new-way") && prompts.contains(ID), "{prompts}");

    let status = tine.setup(&project, claude.environment(), &["claude", "--status", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["agents"][0]["places"][0]["scope"], "plugin", "{status:#}");
    tine.setup(&project, claude.environment(), &["claude", "--uninstall", "--yes"]);
    assert_eq!(tine.hooks_during(|| drop(claude.resume(&project, ID, "second"))), [""; 0]);
    assert_eq!(text(&fs::read(&settings).expect("settings")), text(&before));
    assert!(!folder.exists());
    let listed = claude.command(&project).args(["plugin", "marketplace", "list"]).output().expect("claude");
    assert!(!text(&listed.stdout).contains("tine"), "{}", text(&listed.stdout));
}

fn a_permission_and_a_branch_are_told(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    tine.setup(&project, claude.environment(), &["claude", "--yes"]);
    let tmux = Tmux::new(&sandbox);
    let waited = |event: &str, times: usize| {
        wait_until(event, PATIENCE, || tine.hooks_called().iter().filter(|output| *output == event).count() >= times);
    };
    tine.hooks_during(|| {
        let pane = claude.open_asking(&tmux, &project, &["--session-id", ID]);
        model.push(testkit::Reply::tool("Bash", json!({"command": "touch made"})));
        pane.submit("make it");
        waited("permission-request", 1);
        pane.wait_for_text("Do you want to proceed?");
        pane.press_until("Enter", |screen| !screen.contains("Do you want to proceed?"));
        waited("stop", 1);
        claude.wait_until_written(ID, "\"ok");
        pane.submit("/branch");
        waited("session-start", 2);
        pane.close();
    });
}

fn trusted_hooks_fire_until_they_are_taken_out(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let (project, tine) = (sandbox.project("app"), Installed::new(&sandbox));
    codex.trust(&project);
    let own = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    let (hooks, config) = (sandbox.codex_home().join("hooks.json"), sandbox.codex_home().join("config.toml"));
    sandbox.write(&hooks, own);
    let before = fs::read(&config).expect("config.toml");
    let said = tine.setup(&project, codex.environment(), &["codex", "--yes"]);
    // Older versions do not tell the end of a session.
    let is_old = version == "0.140.0";
    assert_eq!(said.contains("this version of Codex does not support SessionEnd"), is_old, "{said}");
    let mut thread = String::new();
    let output = tine.hooks_during(|| thread = codex.start(&project, "first"));
    let expected = ["session-start", "user-prompt-submit", "stop", "session-end"];
    assert_eq!(output, expected[..if is_old { 3 } else { 4 }]);
    let said = tine.setup(&project, codex.environment(), &["codex", "--yes"]);
    assert!(said.ends_with("codex: already set up\n"), "{said}");
    let status = tine.setup(&project, codex.environment(), &["codex", "--status", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["agents"][0]["places"][0]["trusted"], true, "{status:#}");

    tine.setup(&project, codex.environment(), &["codex", "--uninstall", "--yes"]);
    assert_eq!(text(&fs::read(&hooks).expect("hooks.json")), own);
    assert_eq!(text(&fs::read(&config).expect("config.toml")), text(&before));
    assert_eq!(tine.hooks_during(|| drop(codex.resume(&project, &thread, "second"))), [""; 0]);

    // With tine itself.
    tine.setup(&project, codex.environment(), &["codex", "--yes"]);
    codex.resume(&project, &thread, "third");
    let status = tine.setup(&project, codex.environment(), &["codex", "--status"]);
    assert!(status.contains("last ran  just now"), "{status}");
}
