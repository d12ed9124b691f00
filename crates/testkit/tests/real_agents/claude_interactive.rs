//! Claude Code in a pane.

use serde_json::json;
use testkit::agents::ClaudeDriver;
use testkit::model::{Kind, Model, Progress, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::{Gate, Sandbox, Tmux};

const ID: &str = "11111111-1111-4111-8111-111111111111";

testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
    a_typed_prompt_is_answered,
    a_busy_turn_can_be_interrupted,
    a_tool_waits_for_permission,
    branch_makes_a_new_session,
    compact_replaces_the_history,
]);

fn a_typed_prompt_is_answered(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &sandbox.project("app"), &["--session-id", ID]);
    model.push(Reply::text("The typed answer."));
    pane.submit("typed");
    pane.wait_for_text("The typed answer.");
    assert_eq!(model.last_turn().prompts(), ["typed"]);
    pane.submit("/exit");
    pane.wait_for_end();
}

fn a_busy_turn_can_be_interrupted(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &sandbox.project("app"), &[]);
    let gate = Gate::closed();
    model.push(Reply::text("It begins.").hold(&gate).say("Never said."));
    pane.submit("a long task");
    let request = model.wait_for_prompt("a long task", PATIENCE);
    pane.wait_for_text("It begins.");
    assert_eq!(model.progress(&request), Progress::Open);
    pane.send_keys(["Escape"]);
    pane.wait_for_text("Interrupted");
    wait_until("the agent to hang up", PATIENCE, || model.progress(&request) == Progress::Abandoned);
}

fn a_tool_waits_for_permission(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let project = sandbox.project("app");
    let pane = claude.open_asking(&tmux, &project, &[]);
    model.push(Reply::tool("Bash", json!({"command": "touch asked", "description": "Touch"})));
    pane.submit("do it");
    pane.wait_for_text("Do you want to proceed?");
    assert!(!project.join("asked").exists());
    pane.press_until("Enter", |screen| screen.contains("ok 2"));
    assert!(project.join("asked").exists());
}

fn branch_makes_a_new_session(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &sandbox.project("app"), &["--session-id", ID]);
    pane.submit("in the trunk");
    pane.wait_for_text("ok 1");
    claude.wait_until_written(ID, "ok 1");
    pane.submit("/branch side-road");
    pane.wait_for_text("Branched conversation");
    pane.submit("in the branch");
    pane.wait_for_text("ok 2");
    let request = model.last_turn();
    assert_ne!(request.session.as_deref(), Some(ID));
    assert_eq!(request.prompts(), ["in the trunk", "in the branch"]);
    let branch = claude.transcript(request.session.as_deref().expect("a session")).expect("the branch's file");
    let content = std::fs::read_to_string(branch).expect("the branch's file");
    assert!(content.contains(r#""forkedFrom":{"sessionId":"11111111"#), "{content}");
}

fn compact_replaces_the_history(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &sandbox.project("app"), &[]);
    model.summarise_as("What the double remembers.");
    // 2.1.197 refuses to compact a single turn.
    pane.submit("before");
    pane.wait_for_text("ok 1");
    pane.submit("still before");
    pane.wait_for_text("ok 2");
    pane.submit("/compact");
    pane.wait_for_text("Compacted");
    assert_eq!(model.requests_of(Kind::Compaction).len(), 1);
    pane.submit("after");
    pane.wait_for_text("ok 3");
    let sent = model.last_turn().texts("user").join("\n");
    assert!(sent.contains("What the double remembers."), "{sent}");
    assert_eq!(model.last_turn().prompt().as_deref(), Some("after"));
}
