//! Claude Code's sessions, as the client wrote them and as tine reads them.

use serde_json::json;
use testkit::agents::ClaudeDriver;
use testkit::model::{Kind, Model, Progress, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::{Gate, Sandbox, Tmux};

use crate::conversation::{Conversation, assert_forked_only_now, listed, state, tine_json};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const FORK: &str = "22222222-2222-4222-8222-222222222222";

testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
    turns_with_tools_are_read_as_they_were_sent,
    a_subagent_is_nested_below_its_call,
    a_native_fork_is_found_and_its_parent_inferred,
    folders_are_named_as_computed,
    compaction_and_branch_keep_what_was_before,
    a_rewound_branch_is_left_out,
    states_are_seen_from_outside,
    waiting_for_a_permission_is_seen_from_outside,
    a_rewind_is_followed,
]);

fn turns_with_tools_are_read_as_they_were_sent(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    model.push(Reply::new().thinking("Let me see.").say("I look.").call("Bash", bash("echo hi")));
    model.push(Reply::text("It says hi."));
    claude.start(&project, ID, "first prompt");
    model.push(Reply::text("Two at once.").call("Bash", bash("echo one")).call("Bash", bash("echo two")));
    model.push(Reply::text("One and two."));
    claude.resume(&project, ID, "second prompt\nwith \"quotes\" and ünïcode 漢字");
    model.push(Reply::tool("Bash", bash("seq 1 60000")));
    model.push(Reply::tool("Bash", bash("echo broken >&2; exit 3")));
    model.push(Reply::text("A lot, and a failure.").usage(4321, 77));
    claude.resume(&project, ID, "third prompt");
    claude.resume(&project, ID, "last prompt");

    Conversation::from_show(&sandbox, &project, ID).assert_matches(&Conversation::from_request(&model.last_turn()));
    let session = listed(&sandbox, &project, ID);
    assert_eq!(session["turns"], 4);
    assert_eq!(session["title"], "first prompt");
    assert_eq!(session["cwd"], project.to_str().unwrap());
    assert_eq!(session["branch"], "main");
    assert_eq!(session["state"], "stopped");
    let shown = tine_json(&sandbox, &project, &["show", ID, "--json"]);
    let outputs: Vec<_> = blocks(&shown, 3).into_iter().filter(|block| block["kind"] == "output").collect();
    assert!(outputs[0]["text"].as_str().unwrap().trim_end().ends_with("60000"), "the stored output is read in full");
    assert_eq!((&outputs[1]["error"], &outputs[1]["exit_code"]), (&json!(true), &json!(3)));
    let thoughts = blocks(&shown, 1).into_iter().filter(|block| block["kind"] == "thinking").count();
    assert_eq!(thoughts, 1);
    let info = tine_json(&sandbox, &project, &["info", ".", "--json"]);
    assert_eq!(info["agent_version"], version);
    assert!(info["tokens"]["input"].as_u64().unwrap() > 0);
    assert_eq!(info["defects"], json!({}));
}

fn a_subagent_is_nested_below_its_call(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let input = json!({"description": "Look", "prompt": "For the subagent.", "subagent_type": "general-purpose"});
    model.push(Reply::tool("Agent", input));
    model.push_for_subagent(Reply::tool("Bash", bash("echo from below")));
    model.push_for_subagent(Reply::text("The subagent is done."));
    claude.start(&project, ID, "send one");
    claude.resume(&project, ID, "and now");

    Conversation::from_show(&sandbox, &project, ID).assert_matches(&Conversation::from_request(&model.last_turn()));
    let shown = tine_json(&sandbox, &project, &["show", ID, "--json"]);
    let first = blocks(&shown, 1);
    let nested = first.iter().find(|block| block["kind"] == "subagent").expect("a subagent");
    assert_eq!((&nested["role"], &nested["description"]), (&json!("general-purpose"), &json!("Look")));
    let below = nested["blocks"].as_array().unwrap();
    let kinds: Vec<&str> = below.iter().map(|block| block["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["prompt", "call", "output", "answer"]);
    assert_eq!(below[0]["text"], "For the subagent.");
    assert_eq!(below[2]["text"], "from below");
    assert_eq!(listed(&sandbox, &project, ID)["turns"], 2, "what comes back from a subagent is no prompt");
}

fn a_native_fork_is_found_and_its_parent_inferred(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    claude.resume(&project, ID, "second");
    claude.fork(&project, ID, FORK, "in the fork");
    claude.resume(&project, ID, "third, in the source");
    claude.resume(&project, FORK, "once more");

    Conversation::from_show(&sandbox, &project, FORK).assert_matches(&Conversation::from_request(&model.last_turn()));
    let fork = listed(&sandbox, &project, FORK);
    assert_eq!(fork["turns"], 4);
    let parent = &fork["parent"];
    assert_eq!((&parent["id"], &parent["turn"], &parent["source"]), (&json!(ID), &json!(2), &json!("inferred")));
    assert!(listed(&sandbox, &project, ID)["parent"].is_null());
    let tree = tine_json(&sandbox, &project, &["tree", "--json"]);
    assert_eq!((&tree[0]["id"], &tree[0]["children"][0]["id"]), (&json!(ID), &json!(FORK)));
}

/// The client makes the folder; tine computes the same name.
fn folders_are_named_as_computed(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    for name in ["dots.and_lines", "with space", "ünïcode 漢字 🦀", &"long".repeat(50)] {
        let directory = sandbox.directory(name);
        let before = claude.transcripts();
        assert!(claude.run(&directory, &[], "hello").status.success());
        let new: Vec<_> = claude.transcripts().into_iter().filter(|path| !before.contains(path)).collect();
        let folder = new[0].parent().unwrap().file_name().unwrap().to_str().unwrap();
        assert_eq!(folder, agents::claude::project_folder(&directory.canonicalize().unwrap()), "{name}");
        let here = tine_json(&sandbox, &directory, &["list", "--json"]);
        assert_eq!(here.as_array().unwrap().len(), 1, "{name}: {here:#}");
        assert_eq!(here[0]["cwd"], directory.to_str().unwrap());
    }
}

fn compaction_and_branch_keep_what_was_before(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &project, &["--session-id", ID]);
    model.summarise_as("What the double remembers.");
    pane.submit("one before");
    pane.wait_for_text("ok 1");
    pane.submit("two before");
    pane.wait_for_text("ok 2");
    pane.submit("/compact");
    pane.wait_for_text("Compacted");
    assert_eq!(model.requests_of(Kind::Compaction).len(), 1);
    model.push(Reply::text("The answer after."));
    pane.submit("three after");
    pane.wait_for_text("The answer after.");
    claude.wait_until_written(ID, "The answer after.");
    pane.submit("/branch side-road");
    pane.wait_for_text("Branched conversation");
    model.push(Reply::text("The answer in the branch."));
    pane.submit("four in the branch");
    pane.wait_for_text("The answer in the branch.");
    let branch = model.last_turn().session.clone().expect("a session");
    pane.submit("/exit");
    pane.wait_for_end();

    let source = listed(&sandbox, &project, ID);
    assert_eq!(source["turns"], 3, "what lies before a compaction counts");
    let shown = tine_json(&sandbox, &project, &["show", ID, "--json"]);
    let output = shown.to_string();
    assert!(output.contains("one before") && output.contains("three after") && !output.contains("four in the branch"));
    let compactions: Vec<_> = blocks(&shown, 2).into_iter().filter(|block| block["kind"] == "compaction").collect();
    assert!(compactions[0]["summary"].as_str().unwrap().contains("What the double remembers."), "{output}");

    let fork = listed(&sandbox, &project, &branch);
    assert_eq!(fork["title"], "side-road");
    let parent = &fork["parent"];
    assert_eq!((&parent["id"], &parent["turn"], &parent["source"]), (&json!(ID), &json!(3), &json!("agent")));
    let in_branch = Conversation::from_show(&sandbox, &project, &branch);
    // The model sees the summary and what came after it; tine shows what the branch holds of the rest as well.
    let (summary, after) = Conversation::from_request(&model.last_turn())
        .prompts
        .split_first()
        .map(|(a, b)| (a.clone(), b.to_vec()))
        .unwrap();
    assert!(summary.contains("What the double remembers."), "{summary}");
    assert_eq!(after, ["three after", "four in the branch"]);
    assert!(in_branch.prompts.ends_with(&after), "{:?}", in_branch.prompts);
}

fn a_rewound_branch_is_left_out(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    claude.resume(&project, ID, "to be given up");
    let shown = tine_json(&sandbox, &project, &["show", ID, "--json"]);
    let answer = std::fs::read_to_string(claude.transcript(ID).unwrap()).unwrap();
    // The hidden option takes the id of a record: that of the first answer.
    let first_answer = answer
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|record| record["type"] == "assistant")
        .expect("an answer")["uuid"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(shown["turns"].as_array().unwrap().len(), 2);
    let output = claude.run(&project, &["--resume", ID, "--resume-session-at", &first_answer], "instead");
    assert!(output.status.success(), "{output:?}");
    claude.resume(&project, ID, "and on");
    Conversation::from_show(&sandbox, &project, ID).assert_matches(&Conversation::from_request(&model.last_turn()));
    assert_eq!(Conversation::from_show(&sandbox, &project, ID).prompts, ["first", "instead", "and on"]);
    // What was given up can be continued in a fork.
    let branches = tine_json(&sandbox, &project, &["show", ID, "--branches", "--json"]);
    assert_eq!(branches.as_array().map(Vec::len), Some(1), "{branches:#}");
    let spec = format!("{ID}@{}", branches[0]["handle"].as_str().unwrap());
    let made = tine_json(&sandbox, &project, &["fork", &spec, "--json"]);
    claude.resume(&project, made["session"]["id"].as_str().unwrap_or_else(|| panic!("{made:#}")), "in the fork");
    assert_eq!(Conversation::from_request(&model.last_turn()).prompts, ["first", "to be given up", "in the fork"]);
}

fn states_are_seen_from_outside(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &project, &["--session-id", ID]);
    pane.submit("hello");
    pane.wait_for_text("ok 1");
    let state = || state(&sandbox, &project, ID);
    wait_until("idle", PATIENCE, || state() == "idle");
    let gate = Gate::closed();
    model.push(Reply::text("It begins.").hold(&gate).say(" It ends."));
    pane.submit("a long task");
    let request = model.wait_for_prompt("a long task", PATIENCE);
    pane.wait_for_text("It begins.");
    assert_eq!(model.progress(&request), Progress::Open);
    wait_until("busy", PATIENCE, || state() == "busy");
    let open = tine_json(&sandbox, &project, &["status", "--json"]);
    assert_eq!((&open[0]["id"], &open[0]["state"]), (&json!(ID), &json!("busy")));
    assert_forked_only_now(&sandbox, &project, ID);
    gate.open();
    pane.wait_for_text("It ends.");
    wait_until("idle again", PATIENCE, || state() == "idle");
    // A killed client leaves its file behind; the process decides.
    let pid = open[0]["pid"].as_u64().expect("a process").to_string();
    assert!(sandbox.command("kill").args(["-9", &pid]).status().expect("kill").success());
    pane.wait_for_end();
    wait_until("stopped", PATIENCE, || state() == "stopped");
}

fn waiting_for_a_permission_is_seen_from_outside(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open_asking(&tmux, &project, &["--session-id", ID]);
    let file = project.join("new.txt");
    model.push(Reply::tool("Write", json!({"file_path": file, "content": "text"})));
    pane.submit("write a file");
    wait_until("waiting", PATIENCE, || state(&sandbox, &project, ID) == "waiting");
    let status = tine_json(&sandbox, &project, &["status", ID, "--json"]);
    assert!(status["waiting_for"].as_str().is_some_and(|reason| reason.contains("permission")), "{status:#}");
    assert!(!file.exists());
    pane.wait_for_text("Do you want to");
    pane.press_until("Escape", |screen| !screen.contains("Do you want to"));
    wait_until("idle", PATIENCE, || state(&sandbox, &project, ID) == "idle");
}

/// A person goes back to an earlier prompt inside the client; what came after it is no longer part of the history.
fn a_rewind_is_followed(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let pane = claude.open(&tmux, &project, &["--session-id", ID]);
    pane.submit("kept");
    pane.wait_for_text("ok 1");
    pane.submit("to be given up");
    pane.wait_for_text("ok 2");
    pane.submit("/rewind");
    // Below its heading the dialog lists the prompts, beginning at the present; an arrow marks the chosen one.
    let dialog = |screen: &str| {
        screen.lines().map(str::trim).skip_while(|line| *line != "Rewind").map(str::to_owned).collect::<Vec<_>>()
    };
    pane.wait_for(|screen| dialog(screen).iter().any(|line| line == "❯ (current)"));
    pane.press_until("Up", |screen| dialog(screen).iter().any(|line| line == "❯ to be given up"));
    // One Enter chooses, another confirms; the old prompt is put into the input and replaced.
    pane.press_until("Enter", |screen| dialog(screen).is_empty());
    pane.wait_for(|screen| !screen.contains("ok 2"));
    pane.send_keys(["C-u"]);
    pane.submit("instead");
    pane.wait_for_text("ok 3");
    pane.submit("and on");
    pane.wait_for_text("ok 4");
    let seen = Conversation::from_request(&model.last_turn());
    assert_eq!(seen.prompts, ["kept", "instead", "and on"], "the rewind did not happen");
    pane.submit("/exit");
    pane.wait_for_end();
    Conversation::from_show(&sandbox, &project, ID).assert_matches(&seen);
}

fn bash(command: &str) -> serde_json::Value {
    json!({ "command": command, "description": "Run it" })
}

/// The blocks of one turn.
fn blocks(shown: &serde_json::Value, turn: usize) -> Vec<serde_json::Value> {
    let turns = shown["turns"].as_array().expect("turns");
    let found = turns.iter().find(|candidate| candidate["number"] == turn).expect("the turn");
    found["blocks"].as_array().expect("blocks").clone()
}
