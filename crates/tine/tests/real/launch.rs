//! Launching the real agents: what their command lines take, what they answer, and where they go on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::Model;
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::{expect_success, text};
use testkit::{Sandbox, Tmux};
use transcript::Agent;

use crate::conversation::tine_json;

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        every_option_of_claude_is_known,
        what_is_said_is_said_once,
        a_session_goes_on_in_another_directory,
        a_repository_is_known_by_what_claude_wrote_down,
        a_fork_inherits_what_claude_was_given_by_hand,
    ]);
    use super::*;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        every_option_of_codex_is_known,
        what_was_given_to_codex_is_kept,
        a_fork_inherits_what_codex_was_given_by_hand,
    ]);
    use super::*;
}

/// Holds the options in a help text against what tine knows of them.
#[track_caller]
pub(crate) fn compare(agent: Agent, help: &str) {
    let options = agents::about(agent).options;
    let mut count = 0;
    // What is indented further explains.
    let is_option = |line: &&str| line.trim_start().starts_with('-') && line.len() - line.trim_start().len() <= 6;
    for line in help.lines().filter(is_option).map(str::trim) {
        // Two spaces end what is typed; a bracket tells what stands behind it.
        let usage = line.split("  ").next().unwrap_or_default();
        let flags = usage.split([' ', ',']).filter(|word| word.starts_with('-'));
        let expected = match (usage.contains("..."), usage.contains('<'), usage.contains('[')) {
            (true, ..) => agents::OptionValue::Values,
            (_, true, _) => agents::OptionValue::Value,
            (_, _, true) => agents::OptionValue::MaybeValue,
            _ => agents::OptionValue::Nothing,
        };
        for flag in flags {
            count += 1;
            let (takes, _) = options.find(flag).unwrap_or_else(|| panic!("{flag} is not known: {usage}"));
            assert_eq!(takes, expected, "{usage}");
        }
    }
    assert!(count > 20, "{count} options in {help}");
}

fn run(sandbox: &Sandbox, environment: &[(&'static str, String)], directory: &Path, arguments: &[&str]) -> String {
    let mut command: Command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(environment.iter().cloned()).current_dir(directory).args(arguments);
    expect_success(&command.output().expect("tine"))
}

fn every_option_of_claude_is_known(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let help = claude.command(&sandbox.project("app")).env("COLUMNS", "400").arg("--help").output().expect("claude");
    let help = text(&help.stdout);
    let options = help.split_once("\nOptions:").expect("options").1;
    compare(Agent::Claude, options.split_once("\nCommands:").map_or(options, |(options, _)| options));
}

fn every_option_of_codex_is_known(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    for command in [&[][..], &["resume"], &["exec"]] {
        let help = codex.command(&project).args(command).arg("--help").output().expect("codex");
        let help = text(&help.stdout);
        compare(Agent::Codex, help.split_once("\nOptions:").expect("options").1);
    }
}

/// Prompts behind `--`, options with several values, and one that makes the client tell more than its answer.
fn what_is_said_is_said_once(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, environment) = (sandbox.project("app"), claude.environment());
    for name in ["a.json", "b.json"] {
        sandbox.write(project.join(name), r#"{"mcpServers":{}}"#);
    }
    let tine = |words: &[&str]| run(&sandbox, &environment, &project, words);
    let options = ["--mcp-config", "a.json", "b.json", "--verbose", "-p", "the words"];
    let printed = tine(&[&["start", "loud", "--in", "headless", "--"][..], &options].concat());
    assert_eq!((printed.as_str(), model.last_turn().prompts()), ("ok 1\n", vec!["the words".to_owned()]));
    fs::remove_file(project.join("b.json")).expect("a file");
    let printed =
        tine(&["resume", "loud", "--in", "headless", "--prompt", "again", "--", "--output-format", "stream-json"]);
    assert_eq!((printed.as_str(), model.last_turn().prompts().join(", ")), ("ok 2\n", "the words, again".to_owned()));
    let printed = tine(&["fork", "loud", "--in", "headless", "--prompt", "elsewhere"]);
    assert_eq!(printed, "ok 3\n");
    assert_eq!(model.last_turn().prompts().join(", "), "the words, again, elsewhere");
}

/// A directory that was moved: the client that finds sessions of its own project alone goes on, too.
fn a_session_goes_on_in_another_directory(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, environment) = (sandbox.project("app"), claude.environment());
    run(&sandbox, &environment, &project, &["start", "work", "--in", "headless", "--prompt", "first"]);
    let id = tine_json(&sandbox, &project, &["info", "work", "--json"])["id"].as_str().expect("an id").to_owned();
    let moved = sandbox.work().join("moved");
    fs::rename(&project, &moved).expect("a move");
    let said = |words: &[&str]| run(&sandbox, &environment, &moved, words);
    said(&["resume", "work", "--to", ".", "--in", "headless", "--prompt", "second"]);
    assert_eq!(model.last_turn().prompts(), ["first", "second"]);
    assert_eq!(model.last_turn().session.as_deref(), Some(id.as_str()));
    // The command that is printed does the same, and the session is still one.
    let output: Value = tine_json(&sandbox, &moved, &["resume", "work", "--to", ".", "--prompt", "third", "--json"]);
    let words: Vec<&str> =
        output["command"].as_array().expect("words").iter().skip(1).filter_map(Value::as_str).collect();
    expect_success(&claude.command(&moved).arg("-p").args(words).output().expect("claude"));
    assert_eq!(model.last_turn().prompts(), ["first", "second", "third"]);
    assert_eq!(claude.transcripts().len(), 1);
    assert_eq!(tine_json(&sandbox, &moved, &["info", "work", "--json"])["turns"], 3);
}

/// A session that tine did not start: newer clients write down which commits there were.
fn a_repository_is_known_by_what_claude_wrote_down(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, other) = (sandbox.project("app"), sandbox.project("other"));
    let id = "11111111-1111-4111-8111-111111111111";
    claude.start(&project, id, "first");
    let moved = sandbox.work().join("moved");
    fs::rename(&project, &moved).expect("a move");
    let mut command: Command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    let output = command.current_dir(&other).args(["resume", id, "--in", "none"]).output().expect("tine");
    let output = text(&output.stderr);
    let expected =
        if version == "2.1.197" { "was not found".to_owned() } else { format!("is now at {}", moved.display()) };
    assert!(output.contains(&expected), "{output}");
}

fn what_was_given_to_codex_is_kept(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let (project, environment) = (sandbox.project("app"), codex.environment());
    codex.trust(&project);
    let prompt = sandbox.write("prompt.md", "You are a lighthouse keeper.");
    let option = format!("model_instructions_file={}", prompt.display());
    let is_keeper = || model.last_turn().body.to_string().contains("lighthouse keeper");
    let words = ["start", "keeper", "--agent", "codex", "--in", "headless", "--", "-c", &option, "the words"];
    run(&sandbox, &environment, &project, &words);
    assert!(is_keeper(), "{}", model.last_turn().body);
    assert_eq!(model.last_turn().prompts(), ["the words"]);
    // Told again without the file, which is gone.
    fs::remove_file(&prompt).expect("a file");
    let words = ["resume", "keeper", "--in", "headless", "--prompt", "again", "--", "--skip-git-repo-check"];
    run(&sandbox, &environment, &project, &words);
    assert_eq!(model.last_turn().prompts(), ["the words", "again"]);
    assert!(is_keeper());
}

fn a_fork_inherits_what_claude_was_given_by_hand(version: &str) {
    let (sandbox, model, tmux_sandbox) = (Sandbox::new(), Model::start(), Sandbox::new());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let id = "11111111-1111-4111-8111-111111111111";
    claude.start(&project, id, "first");
    let tmux = Tmux::new(&tmux_sandbox);
    let options = ["--model", "opus", "--allowedTools", "Bash(ls:*)", "Read", "--verbose"];
    let pane = claude.open(&tmux, &project, &[&["--resume", id][..], &options].concat());
    wait_until("idle", PATIENCE, || tine_json(&sandbox, &project, &["status", id, "--json"])["state"] == "idle");
    let plan = tine_json(&sandbox, &project, &["fork", id, "--plan", "--json"]);
    let expected = [&["--permission-mode", "bypassPermissions"][..], &options].concat();
    assert_eq!(plan["profile"]["args"], json!(expected), "{plan:#}");
    assert_eq!(plan["losses"], json!([]));
    pane.close();
}

fn a_fork_inherits_what_codex_was_given_by_hand(version: &str) {
    let (sandbox, model, tmux_sandbox) = (Sandbox::new(), Model::start(), Sandbox::new());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    codex.trust(&project);
    let id = codex.start(&project, "first");
    let tmux = Tmux::new(&tmux_sandbox);
    let options = ["-s", "read-only", "-c", "model_reasoning_effort=low"];
    let pane = codex.open(&tmux, &project, &[&["resume", &id][..], &options].concat());
    wait_until("idle", PATIENCE, || tine_json(&sandbox, &project, &["status", &id, "--json"])["state"] == "idle");
    let plan = tine_json(&sandbox, &project, &["fork", &id, "--plan", "--json"]);
    assert_eq!(plan["profile"]["args"], json!(options), "{plan:#}");
    pane.close();
}
