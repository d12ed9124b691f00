//! The workbench in a real terminal, with real agents in its tabs.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Gate, Model, Reply, Request};
use testkit::poll::{PATIENCE, wait_until};
use testkit::tmux::Pane;
use testkit::{Sandbox, Tmux};

use crate::conversation::tine_json;

/// One tab for each agent: two turns in both at once, permissions, an interrupt, a queued message, a fork, a restart.
#[test]
fn chats_in_tabs_with_claude_2_1_325_and_codex_0_166_0() {
    chats_in_tabs("2.1.325", "0.166.0");
}

#[test]
fn chats_in_tabs_with_claude_2_1_197_and_codex_0_140_0() {
    chats_in_tabs("2.1.197", "0.140.0");
}

/// The workbench in a terminal.
fn open<'a>(
    tmux: &'a Tmux,
    sandbox: &Sandbox,
    (claude, codex): (&ClaudeDriver<'_>, &CodexDriver<'_>),
    project: &Path,
) -> Pane<'a> {
    let mut command: Command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(claude.environment()).envs(codex.environment()).current_dir(project);
    tmux.run_sized(&command, 120, 40)
}

/// Opens a tab with a new chat.
fn new_chat(pane: &Pane<'_>, agent: &str) {
    pane.send_keys(["M-t"]);
    let screen = pane.wait_for_text("New chat with");
    // Claude Code is the first of the list.
    pane.send_keys(if agent == "Codex" { ["Down"] } else { ["Up"] });
    assert!(screen.contains(agent), "{screen}");
    pane.send_keys(["Enter"]);
    pane.wait_for_text(&format!("{agent} · idle"));
}

fn chats_in_tabs(claude_version: &str, codex_version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, claude_version);
    let codex = CodexDriver::new(&sandbox, &model, codex_version);
    let project = sandbox.project("app");
    claude.trust(&project);
    codex.trust(&project);
    let gate = Gate::closed();
    script(&model, &gate);

    let tmux = Tmux::new(&sandbox);
    let pane = open(&tmux, &sandbox, (&claude, &codex), &project);
    pane.wait_for_text("No sessions yet.");

    // Both work at the same time.
    new_chat(&pane, "Claude Code");
    pane.submit("claude: make two files");
    new_chat(&pane, "Codex");
    pane.submit("codex: hello");
    pane.wait_for_text("Codex says hello.");
    // The test's configuration lets it do everything; from here on it asks.
    pane.send_keys(["BTab"]);
    pane.wait_for(|screen| screen.contains("Permission mode") && screen.contains("read-only"));
    pane.send_keys(["Up", "Up", "Enter"]);
    pane.wait_for_text("read-only mode");
    pane.submit("codex: make two files");
    let asks = |pane: &Pane<'_>, file: &str| {
        pane.wait_for(|screen| screen.contains("Wants to run") && screen.contains(&format!("touch {file}")))
    };
    asks(&pane, "codex-allowed");
    assert!(!project.join("codex-allowed").exists() && !project.join("claude-allowed").exists());
    pane.send_keys(["y"]);
    asks(&pane, "codex-denied");
    pane.send_keys(["n"]);
    pane.wait_for_text("Codex made them.");
    pane.send_keys(["M-p"]);
    asks(&pane, "claude-allowed");
    pane.send_keys(["y"]);
    asks(&pane, "claude-denied");
    pane.send_keys(["n"]);
    pane.wait_for_text("Claude made them.");
    let made = ["claude-allowed", "claude-denied", "codex-allowed", "codex-denied"];
    assert_eq!(made.map(|file| project.join(file).exists()), [true, false, true, false]);

    // A question, answered in place.
    pane.submit("claude: ask me");
    pane.wait_for(|screen| screen.contains("Which colour?") && screen.contains("2 Blue"));
    pane.send_keys(["Down", "Enter"]);
    pane.wait_for_text("Blue it is.");
    let results = model.last_turn().tool_results();
    assert!(results.last().is_some_and(|(_, text)| text.contains("Blue")), "{results:?}");

    // A message to a busy agent waits; it can be taken back and queued again. Then the turn is interrupted.
    pane.submit("claude: tell a story");
    pane.wait_for_text("Once upon");
    pane.submit("claude: go on");
    pane.wait_for_text("queued: claude: go on");
    pane.send_keys(["M-Up"]);
    pane.wait_for(|screen| !screen.contains("queued:") && screen.contains("❯ claude: go on"));
    pane.send_keys(["Enter"]);
    pane.wait_for_text("queued: claude: go on");
    // A fork waits for the agent, too, if that is wanted.
    pane.send_keys(["M-F"]);
    pane.wait_for_text("the agent is busy");
    pane.send_keys(["M-F"]);
    pane.wait_for_text("The fork dialog opens when the agent is idle.");
    pane.send_keys(["M-F"]);
    pane.wait_for(|screen| !screen.contains("The fork dialog opens"));
    pane.send_keys(["Escape"]);
    gate.open();
    pane.wait_for_text("Gone on.");

    // A fork by key into a worktree, which takes the whole history along, and has a tab of its own.
    fork_and_continue(&pane, &model, "claude", 4);
    let fork = tine_json(&sandbox, &project, &["info", "claude-fork", "--json"]);
    let worktree = fork["cwd"].as_str().expect("a directory");
    assert!(worktree.ends_with("app.worktrees/claude-fork"), "{fork:#}");
    pane.send_keys(["M-p"]);
    pane.wait_for_text("Codex made them.");
    fork_and_continue(&pane, &model, "codex", 2);

    // After a restart, the tabs are there again, from the agents' own files.
    leave(&pane);
    pane.close();
    let pane = open(&tmux, &sandbox, (&claude, &codex), &project);
    pane.wait_for(|screen| screen.contains("claude-fork") && screen.contains("codex-fork") && screen.contains("│ 4 "));
    pane.send_keys(["M-p"]);
    pane.wait_for_text("Continued in the codex fork.");
    pane.submit("codex: after the restart");
    pane.wait_for_text("Restarted.");
    let prompts = model.last_turn().prompts();
    assert_eq!(prompts, ["codex: hello", "codex: make two files", "codex: in the fork", "codex: after the restart"]);
    leave(&pane);
}

/// What the model answers, by the last prompt and the results that follow it.
fn script(model: &Model, gate: &Gate) {
    let gate = gate.clone();
    let colours = json!({ "questions": [{ "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{ "label": "Red", "description": "Warm" }, { "label": "Blue", "description": "Cold" }] }] });
    let touch = |agent: &str, file: &str| match agent {
        "claude" => Reply::tool("Bash", json!({ "command": format!("touch {file}"), "description": "Touch a file" })),
        _ => Reply::tool(
            "exec_command",
            json!({ "cmd": format!("touch {file}"), "sandbox_permissions": "require_escalated", "justification": "It writes." }),
        ),
    };
    model.on(move |request: &Request| {
        let prompt = request.prompt()?;
        let results = request.tool_results().len();
        let (agent, rest) = prompt.split_once(": ")?;
        let name = if agent == "claude" { "Claude" } else { "Codex" };
        Some(match (rest, results) {
            ("hello", _) => Reply::text(format!("{name} says hello.")),
            ("make two files", 0) => touch(agent, &format!("{agent}-allowed")),
            ("make two files", 1) => touch(agent, &format!("{agent}-denied")),
            ("make two files", _) => Reply::text(format!("{name} made them.")),
            ("ask me", 2) => Reply::tool("AskUserQuestion", colours.clone()),
            ("ask me", _) => Reply::text("Blue it is."),
            ("tell a story", _) => Reply::text("Once upon").hold(&gate).say(" a time."),
            ("go on", _) => Reply::text("Gone on."),
            ("in the fork", _) => Reply::text(format!("Continued in the {agent} fork.")),
            ("after the restart", _) => Reply::text("Restarted."),
            _ => return None,
        })
    });
}

/// Forks the chat on the screen with one key and continues in the fork, whose first request carries all of its turns.
fn fork_and_continue(pane: &Pane<'_>, model: &Model, agent: &str, turns: usize) {
    pane.wait_for_text("· idle");
    pane.send_keys(["M-F"]);
    pane.wait_for(|screen| screen.contains("enter fork") && screen.contains("Cache "));
    pane.send_text(&format!("{agent}-fork"));
    pane.wait_for(|screen| screen.contains(&format!("worktrees/{agent}-fork")));
    pane.send_keys(["Enter"]);
    pane.wait_for_text("Fork created; waiting for your next prompt.");
    pane.submit(&format!("{agent}: in the fork"));
    pane.wait_for_text(&format!("Continued in the {agent} fork."));
    let prompts = model.last_turn().prompts();
    assert_eq!(prompts.last().map(String::as_str), Some(format!("{agent}: in the fork").as_str()));
    assert_eq!(prompts.len(), turns + 1, "{prompts:?}");
}

/// A seed is sent at once; its acknowledgement is hidden in the new tab, and shown after a restart.
#[test]
fn the_acknowledgement_of_a_seed_is_hidden_until_the_restart() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, "2.1.325");
    let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
    let project = sandbox.project("app");
    const ID: &str = "44444444-4444-4444-8444-444444444444";
    claude.start(&project, ID, "first");
    let tmux = Tmux::new(&sandbox);
    let pane = open(&tmux, &sandbox, (&claude, &codex), &project);
    pane.wait_for_text("44444444");
    pane.send_keys(["f"]);
    pane.wait_for(|screen| screen.contains("enter fork") && screen.contains("Cache "));
    pane.send_text("seeded");
    pane.press_until("M-m", |screen| screen.contains("Cache ") && screen.contains("seed:"));
    model.push(Reply::text("Ready."));
    pane.send_keys(["Enter"]);
    let screen = pane.wait_for_text("Fork created; context injected; waiting for your next prompt.");
    assert!(!screen.contains("Ready."), "{screen}");
    model.push(Reply::text("Second answer."));
    pane.submit("second");
    let screen = pane.wait_for_text("Second answer.");
    assert!(!screen.contains("Ready."), "{screen}");
    wait_until("the seed", PATIENCE, || model.last_turn().prompts().last().is_some_and(|prompt| prompt == "second"));
    leave(&pane);
    pane.close();
    let pane = open(&tmux, &sandbox, (&claude, &codex), &project);
    pane.wait_for_text("│ 1 seeded");
    pane.send_keys(["M-n"]);
    pane.wait_for(|screen| screen.contains("Ready.") && screen.contains("Second answer."));
}

/// Leaves the workbench. While the turn that has just been shown is about to end, the key has to be pressed once more.
fn leave(pane: &Pane<'_>) {
    pane.press_until_end("C-c");
}

/// An agent that dies says so in its tab, and the next message resumes its session. Neither agents nor the terminal are
/// left behind, however tine ends.
#[test]
fn agents_and_terminal_are_cleaned_up_however_it_ends() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, "2.1.325");
    let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
    let project = sandbox.project("app");
    claude.trust(&project);
    codex.trust(&project);
    let tmux = Tmux::new(&sandbox);
    let mut command: Command = sandbox.command("sh");
    command.envs(claude.environment()).envs(codex.environment()).current_dir(&project);
    command.args(["-c", "echo before; \"$1\"; echo code $?; read end", "sh", env!("CARGO_BIN_EXE_tine")]);

    let pane = tmux.run_sized(&command, 120, 30);
    pane.wait_for_text("No sessions yet.");
    new_chat(&pane, "Claude Code");
    let gate = Gate::closed();
    model.push(Reply::text("Half an answer").hold(&gate).say(" and the rest."));
    pane.submit("first");
    pane.wait_for_text("Half an answer");
    let tine = child_of(pane.process());
    let agent = child_of(tine);
    kill(agent, "KILL");
    pane.wait_for(|screen| screen.contains("The agent has ended") && screen.contains("Half an answer"));
    gate.open();
    model.push(Reply::text("Here again."));
    pane.submit("second");
    pane.wait_for_text("Here again.");
    assert_eq!(model.last_turn().prompts().last().map(String::as_str), Some("second"));

    // A termination gives the terminal back.
    let agent = child_of(tine);
    kill(tine, "TERM");
    let screen = pane.wait_for_text("code 0");
    assert!(screen.contains("before") && !screen.contains("Here again."), "{screen}");
    wait_until("the agent ends", PATIENCE, || !runs(agent));
    pane.close();

    // Nobody can clean up after this, but the agent notices.
    let pane = tmux.run_sized(&command, 120, 30);
    pane.wait_for_text("│ 1 ");
    pane.send_keys(["M-n"]);
    pane.wait_for_text("Here again.");
    let gate = Gate::closed();
    model.push(Reply::text("Half").hold(&gate).say(" done."));
    pane.submit("third");
    pane.wait_for_text("Half");
    let tine = child_of(pane.process());
    let agent = child_of(tine);
    kill(tine, "KILL");
    pane.wait_for_text("code 137");
    gate.open();
    wait_until("the agent ends", PATIENCE, || !runs(agent));
}

/// The only child of a process that is tine or an agent.
fn child_of(process: u32) -> u32 {
    let children = || {
        let listed = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let others = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let all = std::iter::once(listed).chain(others).collect::<Vec<_>>().join(" ");
        all.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
    };
    wait_until("a child", PATIENCE, || !children().is_empty());
    children()[0]
}

fn kill(process: u32, signal: &str) {
    let status = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status().expect("kill");
    assert!(status.success());
}

fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
