//! Codex without a terminal: `codex exec`.

use std::fs;

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::CodexDriver;
use testkit::model::{Block, Model, Reply};
use testkit::sandbox::expect_success;

testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
    states_its_version,
    a_turn_reaches_the_model,
    several_tools_make_a_round_trip,
    turns_add_up_by_resume,
    thinking_is_kept_and_sent_back,
    a_subagent_is_a_thread_of_its_own,
    a_refusal_is_reported,
]);

fn states_its_version(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let stated = expect_success(&codex.command(&sandbox.work()).arg("--version").output().expect("codex"));
    assert_eq!(stated.trim(), format!("codex-cli {version}"));
}

fn a_turn_reaches_the_model(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let id = codex.start(&sandbox.project("app"), "The question?");
    let request = model.last_turn();
    assert_eq!(request.prompts(), ["The question?"]);
    assert_eq!(request.session, Some(id.clone()));
    assert!(codex.rollout(&id).is_some());
}

fn several_tools_make_a_round_trip(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    model.push(
        Reply::text("Two.")
            .call("exec_command", json!({"cmd": "echo one"}))
            .call("exec_command", json!({"cmd": "echo two"})),
    );
    codex.start(&sandbox.project("app"), "run two");
    let results: Vec<String> = model.last_turn().tool_results().into_iter().map(|(_, text)| text).collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].contains("one") && results[1].contains("two"), "{results:?}");
}

fn turns_add_up_by_resume(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let id = codex.start(&project, "first");
    codex.resume(&project, &id, "second");
    assert_eq!(codex.resume(&project, &id, "third"), "ok 3");
    assert_eq!(model.last_turn().prompts(), ["first", "second", "third"]);
    assert_eq!(model.last_turn().texts("assistant"), ["ok 1", "ok 2"]);
}

fn thinking_is_kept_and_sent_back(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    model.push(Reply::new().thinking("A thought.").call("exec_command", json!({"cmd": "true"})));
    codex.start(&sandbox.project("app"), "think");
    let blocks: Vec<Block> = model.last_turn().messages().into_iter().flat_map(|message| message.blocks).collect();
    assert!(blocks.contains(&Block::Thinking("A thought.".to_owned())), "{blocks:?}");
}

fn a_subagent_is_a_thread_of_its_own(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    // The result of the first call names the agent to wait for.
    model.on(|request| {
        let (_, result) = request.tool_results().pop()?;
        let result: Value = serde_json::from_str(&result).ok()?;
        let agent = result["agent_id"].as_str()?.to_owned();
        Some(Reply::new().call_in("multi_agent_v1", "wait_agent", json!({"targets": [agent]})))
    });
    model.push(Reply::new().call_in("multi_agent_v1", "spawn_agent", json!({"message": "For the subagent."})));
    model.push_for_subagent(Reply::text("The subagent is done."));
    expect_success(&codex.run(&sandbox.project("app"), &[], "send one"));
    let below: Vec<_> = model.turn_requests().into_iter().filter(|request| request.subagent.is_some()).collect();
    assert_eq!(below.len(), 1, "{}", model.overview());
    assert_eq!(below[0].prompts(), ["For the subagent."]);
    assert!(codex.rollout(below[0].subagent.as_deref().expect("a subagent")).is_some());
    assert_eq!(codex.rollouts().len(), 2);
}

fn a_refusal_is_reported(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    model.push(Reply::error(400, json!({"type": "invalid_request_error", "message": "the double refuses"})));
    let output = codex.run(&sandbox.project("app"), &[], "to be refused");
    assert!(!output.status.success());
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("the double refuses"), "{printed}");
}

/// Since 0.150 a native fork refers to its source instead of copying it.
#[test]
fn a_native_fork_refers_to_its_source() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
    let project = sandbox.project("app");
    let id = codex.start(&project, "first");
    let source = fs::read(codex.rollout(&id).expect("the source")).expect("the source");
    let fork = codex.fork(&project, &id, "in the fork");
    assert_eq!(fs::read(codex.rollout(&id).expect("the source")).expect("the source"), source);
    let content = fs::read_to_string(codex.rollout(&fork).expect("the fork")).expect("the fork");
    let meta: Value = serde_json::from_str(content.lines().next().expect("a line")).expect("JSON");
    assert_eq!(meta["payload"]["history_base"]["thread_id"], json!(id));
    assert_eq!(meta["payload"]["history_base"]["end_byte_offset"], json!(source.len()));
    assert_eq!(model.last_turn().prompts(), ["first", "in the fork"]);
}

/// A thread of the old format stays in it when a newer version goes on, and its fork is a copy.
#[test]
fn a_thread_of_the_old_version_goes_on_in_the_new_one() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let project = sandbox.project("app");
    let id = CodexDriver::new(&sandbox, &model, "0.140.0").start(&project, "to the old");
    let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
    codex.resume(&project, &id, "to the new");
    let fork = codex.fork(&project, &id, "in the fork");
    assert_eq!(model.last_turn().prompts(), ["to the old", "to the new", "in the fork"]);
    let content = fs::read_to_string(codex.rollout(&fork).expect("the fork")).expect("the fork");
    assert!(!content.contains("\"ordinal\""));
    assert!(content.contains("to the old"));
}
