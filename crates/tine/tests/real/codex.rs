//! Codex's sessions, as the client wrote them and as tine reads them.

use serde_json::{Value, json};
use testkit::agents::CodexDriver;
use testkit::model::{Kind, Model, Progress, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::{Gate, Sandbox, Tmux};

use crate::conversation::{Conversation, assert_forked_only_now, listed, state, tine_json};

testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
    turns_with_tools_are_read_as_they_were_sent,
    a_subagent_is_nested_and_not_listed,
    compaction_and_fork_keep_what_was_before,
    states_are_seen_from_outside,
    a_renaming_is_taken_back_without_a_trace,
]);

fn turns_with_tools_are_read_as_they_were_sent(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    model.push(Reply::new().thinking("Let me see.").say("I look.").call("exec_command", json!({"cmd": "echo hi"})));
    model.push(Reply::text("It says hi."));
    let id = codex.start(&project, "first prompt");
    model.push(
        Reply::text("Two at once.")
            .call("exec_command", json!({"cmd": "echo one"}))
            .call("exec_command", json!({"cmd": "echo two; exit 3"})),
    );
    model.push(Reply::text("One and two."));
    codex.resume(&project, &id, "second prompt\nwith \"quotes\" and ünïcode 漢字");
    codex.resume(&project, &id, "last prompt");

    Conversation::from_show(&sandbox, &project, &id).assert_matches(&Conversation::from_request(&model.last_turn()));
    let session = listed(&sandbox, &project, &id);
    assert_eq!((&session["turns"], &session["title"]), (&json!(3), &json!("first prompt")));
    assert_eq!((&session["cwd"], &session["branch"]), (&json!(project.to_str().unwrap()), &json!("main")));
    assert_eq!(session["state"], "stopped");
    let shown = tine_json(&sandbox, &project, &["show", &id, "--json"]);
    let outputs = turn(&shown, 2).into_iter().filter(|block| block["kind"] == "output");
    let codes: Vec<Value> = outputs.map(|block| block["exit_code"].clone()).collect();
    assert_eq!(codes, [json!(0), json!(3)]);
    let info = tine_json(&sandbox, &project, &["info", &id, "--json"]);
    assert_eq!(info["agent_version"], version);
    assert_eq!(info["model"], "mock-model");
    assert_eq!(info["defects"], json!({}));
}

fn a_subagent_is_nested_and_not_listed(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    model.push(Reply::new().call_in("multi_agent_v1", "spawn_agent", json!({"message": "For the subagent."})));
    model.push_for_subagent(Reply::text("The subagent is done."));
    assert!(codex.run(&project, &[], "send one").status.success());
    let sessions = tine_json(&sandbox, &project, &["list", "--all", "--json"]);
    assert_eq!(codex.rollouts().len(), 2, "the subagent has a thread of its own");
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions:#}");
    let id = sessions[0]["id"].as_str().expect("an id").to_owned();
    codex.resume(&project, &id, "and now");
    assert_eq!(listed(&sandbox, &project, &id)["turns"], 2);
    let shown = tine_json(&sandbox, &project, &["show", &id, "--json"]);
    let first = turn(&shown, 1);
    let nested = first.iter().find(|block| block["kind"] == "subagent").unwrap_or_else(|| panic!("{shown:#}"));
    assert!(nested.to_string().contains("For the subagent."), "{nested:#}");
}

fn compaction_and_fork_keep_what_was_before(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let known = codex.rollouts();
    let pane = codex.open(&tmux, &project, &[]);
    model.summarise_as("What the double remembers.");
    pane.submit("one before");
    pane.wait_for_text("ok 1");
    let id = codex.new_thread(&known);
    pane.submit_until("/compact", || model.requests_of(Kind::Compaction).len() == 1);
    pane.wait_for_text("ompacted");
    model.push(Reply::text("The answer after."));
    pane.submit("two after");
    pane.wait_for_text("The answer after.");
    pane.submit("/quit");
    pane.wait_for_end();

    let shown = tine_json(&sandbox, &project, &["show", &id, "--json"]);
    let output = shown.to_string();
    assert!(output.contains("one before") && output.contains("two after"), "{output}");
    assert!(output.contains(r#""kind":"compaction""#), "{output}");
    assert_eq!(listed(&sandbox, &project, &id)["turns"], 2);

    // 0.140 has no `exec fork`; its interactive fork is tested with the test kit.
    if version == "0.140.0" {
        return;
    }
    let before = codex.rollouts();
    codex.fork(&project, &id, "in the fork");
    let fork = codex.new_thread(&before);
    codex.resume(&project, &id, "three, in the source");
    codex.resume(&project, &fork, "once more");
    let session = listed(&sandbox, &project, &fork);
    assert_eq!(session["turns"], 4, "{session:#}");
    let parent = &session["parent"];
    assert_eq!((&parent["id"], &parent["turn"], &parent["source"]), (&json!(id), &json!(2), &json!("agent")));
    let in_fork = Conversation::from_show(&sandbox, &project, &fork);
    let seen = Conversation::from_request(&model.last_turn());
    assert!(seen.prompts.ends_with(&["in the fork".to_owned(), "once more".to_owned()]), "{:?}", seen.prompts);
    assert_eq!(in_fork.prompts, ["one before", "two after", "in the fork", "once more"]);
}

fn states_are_seen_from_outside(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let known = codex.rollouts();
    let pane = codex.open(&tmux, &project, &[]);
    pane.submit("hello");
    pane.wait_for_text("ok 1");
    let id = codex.new_thread(&known);
    let state = || state(&sandbox, &project, &id);
    wait_until("idle", PATIENCE, || state() == "idle");
    let gate = Gate::closed();
    model.push(Reply::text("It begins.").hold(&gate).say(" It ends."));
    pane.submit("a long task");
    let request = model.wait_for_prompt("a long task", PATIENCE);
    wait_until("an open answer", PATIENCE, || model.progress(&request) == Progress::Open);
    wait_until("busy", PATIENCE, || state() == "busy");
    assert_forked_only_now(&sandbox, &project, &id);
    gate.open();
    wait_until("idle again", PATIENCE, || state() == "idle");
    let pid = pane.process().to_string();
    assert!(sandbox.command("kill").args(["-9", &pid]).status().expect("kill").success());
    pane.wait_for_end();
    wait_until("stopped", PATIENCE, || state() == "stopped");
}

/// Codex's list showed the name for ever, because Codex takes no empty one.
fn a_renaming_is_taken_back_without_a_trace(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let id = codex.start(&project, "how it begins");
    let index = sandbox.codex_home().join("session_index.jsonl");
    let tine = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(codex.environment()).current_dir(&project).args(arguments);
        testkit::sandbox::expect_success(&command.output().expect("tine"))
    };
    let files = || (std::fs::read(&index).ok(), std::fs::read(codex.rollout(&id).expect("a rollout")).expect("a file"));
    let before = files();
    tine(&["rename", &id, "sheets"]);
    assert_eq!(codex.name_of(&project, &id).as_deref(), Some("sheets"));
    tine(&["rename", "sheets", "tables"]);
    tine(&["undo"]);
    assert_eq!(codex.name_of(&project, &id).as_deref(), Some("sheets"));
    tine(&["undo"]);
    // 0.166 keeps a name for its own threads, which is what its list shows for threads without one.
    assert!(codex.name_of(&project, &id).is_none_or(|name| name == "how it begins"));
    assert!(files() == before, "{:?}", std::fs::read_to_string(&index));
}

fn turn(shown: &Value, number: usize) -> Vec<Value> {
    let turns = shown["turns"].as_array().expect("turns");
    let found = turns.iter().find(|candidate| candidate["number"] == number).expect("the turn");
    found["blocks"].as_array().expect("blocks").clone()
}
