//! What surrounds a fork: subagents, the agents' own lists, sources that are waited for, agents that are opened.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::text;
use testkit::{Gate, Sandbox, Tmux};

use crate::conversation::{Conversation, state, tine, tine_json};

const ID: &str = "11111111-1111-4111-8111-111111111111";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        old_subagents_can_be_addressed_in_a_fork,
        a_busy_source_is_waited_for,
        a_fork_opens_in_this_terminal,
    ]);
    use super::*;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        codex_lists_a_copy_itself,
        a_seed_goes_to_the_other_agent_and_back,
        a_kept_seed_is_sent_by_the_first_resume,
    ]);
    use super::*;
}

fn old_subagents_can_be_addressed_in_a_fork(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, elsewhere) = (sandbox.project("app"), sandbox.project("other"));
    let input = json!({"description": "Look", "prompt": "For the subagent.", "subagent_type": "general-purpose"});
    model.push(Reply::tool("Agent", input));
    model.push_for_subagent(Reply::text("The subagent is done."));
    claude.start(&project, ID, "send one");
    claude.resume(&project, ID, "and now");
    let shown = tine_json(&sandbox, &project, &["show", ID, "--json"]);
    let blocks = shown["turns"][0]["blocks"].as_array().expect("blocks");
    let agent = blocks.iter().find(|block| block["kind"] == "subagent").expect("a subagent")["id"].clone();

    for method in ["copy", "native"] {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(claude.environment()).current_dir(&project);
        command.args(["fork", ID, "--method", method, "--to"]).arg(&elsewhere).arg("--json");
        let made: Value = serde_json::from_slice(&command.output().expect("tine").stdout).expect("JSON");
        let fork = made["session"]["id"].as_str().unwrap_or_else(|| panic!("{made:#}"));
        if version == "2.1.325" {
            model.push(Reply::tool("ToolSearch", json!({"query": "select:SendMessage", "max_results": 1})));
        }
        let message = json!({"to": agent, "summary": "Ask it again", "message": "Once more, please."});
        model.push(Reply::tool("SendMessage", message));
        model.push(Reply::text("I asked it."));
        model.push_for_subagent(Reply::text("Once more done."));
        claude.resume(&elsewhere, fork, "ask it again");
        let results: Vec<String> =
            model.turn_requests().iter().flat_map(|request| request.tool_results()).map(|(_, text)| text).collect();
        let answer = results.iter().rev().find(|text| text.contains(agent.as_str().unwrap()));
        let answer = answer.unwrap_or_else(|| panic!("{method}: {results:#?}"));
        assert!(!answer.contains("could not be resumed"), "{method}: {answer}");
    }
}

fn a_busy_source_is_waited_for(version: &str) {
    let (sandbox, model, tmux_sandbox) = (Sandbox::new(), Model::start(), Sandbox::new());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    let gate = Gate::closed();
    let tmux = Tmux::new(&tmux_sandbox);
    let pane = claude.open(&tmux, &project, &["--resume", ID]);
    model.push(Reply::text("It begins.").hold(&gate).say(" It ends."));
    pane.submit("second");
    wait_until("busy", PATIENCE, || state(&sandbox, &project, ID) == "busy");

    let tine = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.current_dir(&project).args(["fork", ID]).args(arguments).arg("--json");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine")
    };
    let late = tine(&["--wait", "1s"]).wait_with_output().expect("tine");
    let printed: Value = serde_json::from_slice(&late.stdout).expect("JSON");
    assert_eq!(printed["error"]["kind"], "still_at_work", "{printed:#}");
    let mut waiting = tine(&["waited", "--wait"]);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(waiting.try_wait().expect("a child").is_none(), "it does not wait");
    gate.open();
    let output = waiting.wait_with_output().expect("tine");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(made["session"]["turns"], 2, "{made:#}");
    pane.close();
    claude.resume(&project, made["session"]["id"].as_str().expect("an id"), "third");
    let seen = Conversation::from_request(&model.last_turn());
    assert_eq!(seen.prompts, ["first", "second", "third"]);
    assert!(seen.answers.iter().any(|answer| answer.ends_with("It ends.")), "{seen:?}");
}

/// On a terminal the agent is opened at once, by its own fork, and takes what is said first.
fn a_fork_opens_in_this_terminal(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    claude.trust(&project);
    let tmux = Tmux::new(&sandbox);
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(claude.environment()).current_dir(&project);
    // Variables of an agent that runs around tine do not reach the one that is opened.
    command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "x");
    command.args(["fork", ID, "opened", "--prompt", "-- $HOME 'quoted' said first"]);
    let pane = tmux.run(&command);
    model.wait_for_prompt("-- $HOME 'quoted' said first", PATIENCE);
    let process = std::fs::read(format!("/proc/{}/environ", pane.process())).expect("its environment");
    let process = text(&process);
    assert!(!process.contains("CLAUDECODE=") && !process.contains("CLAUDE_CODE_SESSION_ID="), "{process}");
    pane.wait_for_text("ok");
    let made = tine_json(&sandbox, &project, &["info", "opened", "--json"]);
    assert_eq!(made["parent"]["id"], ID);
    assert_eq!(Conversation::from_request(&model.last_turn()).prompts, ["first", "-- $HOME 'quoted' said first"]);
    pane.close();
}

/// Codex's picker knows only what stands in its index; a copy is put there.
fn codex_lists_a_copy_itself(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    // Threads of `codex exec` are not in the picker, so this one is begun as people do.
    let known = codex.rollouts();
    let pane = codex.open(&tmux, &project, &[]);
    pane.submit("first of all");
    pane.wait_for_text("ok");
    wait_until("the rollout", PATIENCE, || codex.rollouts().len() > known.len());
    pane.close();
    let source = codex.new_thread(&known);
    wait_until("stopped", PATIENCE, || state(&sandbox, &project, &source) == "stopped");
    let made = fork(&sandbox, &codex.environment(), &project, &[&source, "picked-copy", "--method", "copy"]);
    assert_eq!(made["method"], "copy");
    let mut command = codex.command(&project);
    command.arg("resume");
    let pane = tmux.run(&command);
    pane.wait_for_text("picked-copy");
    pane.close();
}

fn a_seed_goes_to_the_other_agent_and_back(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let claude = ClaudeDriver::new(&sandbox, &model, "2.1.325");
    let project = sandbox.project("app");
    let environment: Vec<_> = codex.environment().into_iter().chain(claude.environment()).collect();
    let secret = format!("sk-ant-api03-{}", "a1B2c3D4".repeat(6));
    model.push(Reply::text("Noted.").call("exec_command", json!({"cmd": format!("echo {secret}")})));
    model.push(Reply::text("It is printed."));
    let source = codex.start(&project, "codex began this");

    model.push(Reply::text("Ready."));
    let made = fork(&sandbox, &environment, &project, &[&source, "in-claude", "--agent", "claude", "--method", "seed"]);
    assert_eq!((&made["method"], &made["session"]["agent"]), (&json!("seed"), &json!("claude")), "{made:#}");
    assert_eq!(made["session"]["parent"]["id"], source);
    let seed = &model.last_turn().prompts()[0];
    assert!(seed.starts_with("[TINE_FORK_SEED]\n") && seed.contains("codex began this"), "{seed}");
    assert!(seed.contains("tool exec_command called") && seed.contains("It is printed."), "{seed}");
    assert!(!seed.contains(&secret) && seed.contains("[secret]"), "{seed}");
    // The seed is one line on a terminal, and whole in JSON.
    let shown = tine(&sandbox, &project, &["show", "in-claude"]);
    assert!(shown.contains(&format!("(transcript of {source} up to turn 1, about ")), "{shown}");
    assert!(shown.contains("Ready.") && !shown.contains("codex began this"), "{shown}");
    let shown = tine_json(&sandbox, &project, &["show", "in-claude", "--json"]);
    let first = &shown["turns"][0];
    assert_eq!(first["seed"], true, "{shown:#}");
    assert_eq!(first["prompt"].as_str().map(str::trim), Some(seed.trim()), "{shown:#}");
    let unasked = sandbox.command(env!("CARGO_BIN_EXE_tine")).args(["read", "in-claude"]).output().expect("tine");
    assert!(text(&unasked.stderr).contains("is ready and has no messages yet"), "{unasked:?}");
    let id = made["session"]["id"].as_str().expect("an id");
    claude.resume(&project, id, "go on in claude");
    assert_eq!(model.last_turn().prompts().len(), 2);

    // Back again, with what was said in the meantime.
    let back = fork(
        &sandbox,
        &environment,
        &project,
        &["in-claude", "back-again", "--agent", "codex", "--method", "seed", "--keep-secrets"],
    );
    assert_eq!(back["session"]["agent"], "codex");
    let seed = model.last_turn().prompts()[0].clone();
    assert!(seed.contains("go on in claude"), "{seed}");
    codex.resume(&project, back["session"]["id"].as_str().expect("an id"), "and back");
    assert_eq!(model.last_turn().prompts().last().map(String::as_str), Some("and back"));
    // What is remembered of a seed is not its text.
    let registry = std::fs::read(sandbox.root().join("data/tine/registry.db")).expect("the registry");
    assert!(!text(&registry).contains("codex began this"));
}

fn a_kept_seed_is_sent_by_the_first_resume(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let claude = ClaudeDriver::new(&sandbox, &model, "2.1.325");
    let project = sandbox.project("app");
    let environment: Vec<_> = codex.environment().into_iter().chain(claude.environment()).collect();
    let in_codex = codex.start(&project, "codex began this");
    claude.start(&project, ID, "claude began that");
    for (source, agent, said) in [(in_codex.as_str(), "claude", "codex began this"), (ID, "codex", "claude began that")]
    {
        let name = format!("in-{agent}");
        let before = model.requests().len();
        let made = fork(
            &sandbox,
            &environment,
            &project,
            &[source, &name, "--agent", agent, "--method", "seed", "--no-start"],
        );
        assert_eq!((&made["session"]["unstarted"], &made["requests"]), (&json!(true), &json!([])), "{made:#}");
        tine(&sandbox, &project, &["show", &name]);
        assert_eq!(model.requests().len(), before, "{}", model.overview());

        let turns = model.turn_requests().len();
        model.push(Reply::text("Ready."));
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(environment.iter().cloned()).current_dir(&project);
        let output = command.args(["resume", &name, "--in", "none", "--json"]).output().expect("tine");
        let resumed: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
        let first = model.turn_requests()[turns].prompts();
        assert!(first[0].starts_with("[TINE_FORK_SEED]\n") && first[0].contains(said), "{first:?}");
        assert_eq!(model.turn_requests().len(), turns + 1, "{}", model.overview());
        let session = &resumed["session"];
        assert_eq!((&session["name"], &session["parent"]["id"]), (&json!(name), &json!(source)), "{resumed:#}");
        let id = session["id"].as_str().expect("an id");
        match agent {
            "claude" => drop(claude.resume(&project, id, "go on there")),
            _ => drop(codex.resume(&project, id, "go on there")),
        }
        let prompts = model.last_turn().prompts();
        assert_eq!((prompts.len(), prompts[1].as_str()), (2, "go on there"), "{prompts:?}");
    }
}

fn fork(sandbox: &Sandbox, environment: &[(&'static str, String)], directory: &Path, arguments: &[&str]) -> Value {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(environment.iter().cloned()).current_dir(directory).arg("fork").args(arguments).arg("--json");
    let output = command.output().expect("tine");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}
