//! Codex in a pane.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use testkit::agents::CodexDriver;
use testkit::model::{Kind, Model, Progress, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::{Gate, Sandbox, Tmux};

testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
    a_typed_prompt_is_answered,
    a_busy_turn_can_be_interrupted,
    a_tool_waits_for_permission,
    fork_makes_a_new_thread,
    compact_replaces_the_history,
]);

fn a_typed_prompt_is_answered(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = codex.open(&tmux, &sandbox.project("app"), &[]);
    model.push(Reply::text("The typed answer."));
    pane.submit("typed");
    pane.wait_for_text("The typed answer.");
    assert_eq!(model.last_turn().prompts(), ["typed"]);
    pane.submit("/quit");
    pane.wait_for_end();
}

fn a_busy_turn_can_be_interrupted(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = codex.open(&tmux, &sandbox.project("app"), &[]);
    let gate = Gate::closed();
    model.push(Reply::text("It begins.").hold(&gate).say("Never said."));
    pane.submit("a long task");
    let request = model.wait_for_prompt("a long task", PATIENCE);
    pane.wait_for_text("It begins.");
    assert_eq!(model.progress(&request), Progress::Open);
    pane.send_keys(["Escape"]);
    pane.wait_for_text("interrupted");
    // 0.140.0 shows the interruption at once but keeps the connection.
    if version != "0.140.0" {
        wait_until("the agent to hang up", PATIENCE, || model.progress(&request) == Progress::Abandoned);
    }
}

/// Codex asks when the model says that a command needs more than the sandbox allows.
fn a_tool_waits_for_permission(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let project = sandbox.project("app");
    let pane = codex.open(&tmux, &project, &["-a", "on-request", "-s", "read-only"]);
    let input =
        json!({"cmd": "touch asked", "sandbox_permissions": "require_escalated", "justification": "It writes."});
    model.push(Reply::tool("exec_command", input));
    pane.submit("do it");
    pane.wait_for_text("Would you like to run the following command?");
    assert!(!project.join("asked").exists());
    pane.press_until("Enter", |screen| screen.contains("ok 2"));
    assert!(project.join("asked").exists());
}

fn fork_makes_a_new_thread(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = codex.open(&tmux, &sandbox.project("app"), &[]);
    pane.submit("in the trunk");
    pane.wait_for_text("ok 1");
    let trunk = model.last_turn().session.clone();
    pane.submit("/fork");
    if version == "0.166.0" {
        pane.wait_for_text("Where should the forked conversation run?");
        pane.press_until("Enter", |screen| !screen.contains("Where should"));
    }
    pane.wait_for(|screen| screen.contains("Thread forked from") || screen.contains("Fork created"));
    pane.submit("in the branch");
    pane.wait_for_text("ok 2");
    assert_ne!(model.last_turn().session, trunk);
    assert_eq!(model.last_turn().prompts(), ["in the trunk", "in the branch"]);
}

fn compact_replaces_the_history(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = codex.open(&tmux, &sandbox.project("app"), &[]);
    model.summarise_as("What the double remembers.");
    pane.submit("before");
    pane.wait_for_text("ok 1");
    // The answer is on the screen before the turn is over, and until then the command is refused.
    wait_until("the end of the turn", PATIENCE, || {
        let ended = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"task_complete\""));
        codex.rollouts().iter().any(ended)
    });
    pane.submit_until("/compact", || model.requests_of(Kind::Compaction).len() == 1);
    pane.wait_for_text("Context compacted");
    pane.submit("after");
    pane.wait_for_text("ok 2");
    let sent = model.last_turn().texts("user").join("\n");
    assert!(sent.contains("What the double remembers."), "{sent}");
    assert_eq!(model.last_turn().prompt().as_deref(), Some("after"));
}
