//! Claude Code in print mode.

use std::fs;

use serde_json::json;
use testkit::Sandbox;
use testkit::agents::ClaudeDriver;
use testkit::model::{Block, Model, Reply};
use testkit::sandbox::expect_success;

const ID: &str = "11111111-1111-4111-8111-111111111111";
const FORK: &str = "22222222-2222-4222-8222-222222222222";

testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
    states_its_version,
    a_turn_reaches_the_model,
    several_tools_make_a_round_trip,
    turns_add_up_by_resume,
    a_native_fork_leaves_its_source_alone,
    thinking_is_kept_and_sent_back,
    a_subagent_has_its_own_transcript,
    a_refusal_is_reported,
]);

fn states_its_version(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let stated = expect_success(&claude.command(&sandbox.work()).arg("--version").output().expect("claude"));
    assert!(stated.starts_with(version), "{stated}");
}

fn a_turn_reaches_the_model(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    model.push(Reply::text("The answer."));
    assert_eq!(claude.start(&sandbox.project("app"), ID, "The question?"), "The answer.");
    let request = model.last_turn();
    assert_eq!(request.prompts(), ["The question?"]);
    assert_eq!(request.session.as_deref(), Some(ID));
    assert_eq!(request.subagent, None);
    assert!(claude.transcript(ID).is_some());
}

fn several_tools_make_a_round_trip(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    model.push(
        Reply::text("Two.")
            .call("Bash", json!({"command": "echo one", "description": "One"}))
            .call("Bash", json!({"command": "echo two", "description": "Two"})),
    );
    model.push(Reply::text("Both."));
    assert_eq!(claude.start(&sandbox.project("app"), ID, "run two"), "Both.");
    // 2.1.325 sends the results in the order in which the tools ended.
    let mut results: Vec<String> = model.last_turn().tool_results().into_iter().map(|(_, text)| text).collect();
    results.sort();
    assert_eq!(results, ["one", "two"]);
}

fn turns_add_up_by_resume(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    claude.resume(&project, ID, "second");
    assert_eq!(claude.resume(&project, ID, "third"), "ok 3");
    assert_eq!(model.last_turn().prompts(), ["first", "second", "third"]);
    assert_eq!(model.last_turn().texts("assistant"), ["ok 1", "ok 2"]);
}

fn a_native_fork_leaves_its_source_alone(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    let source = fs::read(claude.transcript(ID).expect("the source")).expect("the source");
    claude.fork(&project, ID, FORK, "in the fork");
    assert_eq!(fs::read(claude.transcript(ID).expect("the source")).expect("the source"), source);
    assert!(claude.transcript(FORK).is_some());
    assert_eq!(model.last_turn().session.as_deref(), Some(FORK));
    assert_eq!(model.last_turn().prompts(), ["first", "in the fork"]);
}

fn thinking_is_kept_and_sent_back(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    model.push(Reply::new().thinking("A thought.").call("Bash", json!({"command": "true", "description": "Nothing"})));
    claude.start(&sandbox.project("app"), ID, "think");
    let blocks: Vec<Block> = model.last_turn().messages().into_iter().flat_map(|message| message.blocks).collect();
    assert!(blocks.contains(&Block::Thinking("A thought.".to_owned())), "{blocks:?}");
}

/// Subagents of 2.1.325 run beside the session and those of 2.1.197 inside its turn; both write files of their own.
fn a_subagent_has_its_own_transcript(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let input = json!({"description": "Look", "prompt": "For the subagent.", "subagent_type": "general-purpose"});
    model.push(Reply::tool("Agent", input));
    model.push_for_subagent(Reply::tool("Bash", json!({"command": "echo from below", "description": "Say"})));
    model.push_for_subagent(Reply::text("The subagent is done."));
    claude.start(&sandbox.project("app"), ID, "send one");
    let below: Vec<_> = model.turn_requests().into_iter().filter(|request| request.subagent.is_some()).collect();
    assert_eq!(below.len(), 2, "{}", model.overview());
    assert_eq!(below[1].prompts(), ["For the subagent."]);
    assert_eq!(below[1].tool_results()[0].1, "from below");
    let agent = below[0].subagent.clone().expect("a subagent");
    let transcript = claude.transcript(ID).expect("the transcript");
    let own = transcript.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl"));
    assert!(fs::read_to_string(&own).is_ok_and(|text| text.contains("from below")), "{}", own.display());
}

fn a_refusal_is_reported(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    // It asks again after a refusal, so every answer is one.
    model.on(|_| Some(Reply::error(400, json!({"type": "invalid_request_error", "message": "the double refuses"}))));
    let output = claude.run(&sandbox.project("app"), &[], "to be refused");
    assert!(!output.status.success());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("the double refuses"), "{printed}");
}
