//! The scenarios of Codex.

use serde_json::json;
use testkit::agents::CodexDriver;
use testkit::model::Reply;
use testkit::poll::PATIENCE;
use testkit::{Gate, Pane, Tmux};

use crate::{Scenario, Scene};

/// All of them, in order.
pub const SCENARIOS: [Scenario; 5] =
    [("turns", turns), ("fork", fork), ("legacy", legacy), ("subagent", subagent), ("interactive", interactive)];

fn turns(scene: &Scene, version: &str) {
    let codex = CodexDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.push(
        Reply::new().thinking("I should look first.").say("I look.").call("exec_command", json!({"cmd": "echo hi"})),
    );
    scene.model.push(Reply::text("It says hi."));
    let id = codex.start(&project, "first prompt");
    scene.model.push(
        Reply::text("Two at once.")
            .call("exec_command", json!({"cmd": "echo one"}))
            .call("exec_command", json!({"cmd": "echo two"})),
    );
    scene.model.push(Reply::text("One and two."));
    codex.resume(&project, &id, "second prompt");
    scene.model.push(Reply::tool("exec_command", json!({"cmd": "seq 1 40000 | head -c 200000"})));
    scene.model.push(Reply::text("A lot."));
    codex.resume(&project, &id, "third prompt");
}

fn fork(scene: &Scene, version: &str) {
    let codex = CodexDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.push(Reply::tool("exec_command", json!({"cmd": "echo hi"})));
    let id = codex.start(&project, "first prompt");
    codex.resume(&project, &id, "second prompt");
    if version == "0.140.0" {
        // `exec fork` does not exist yet; the terminal interface forks.
        let tmux = Tmux::new(&scene.sandbox);
        scene.model.push(Reply::text("answer of the fork"));
        let pane = codex.open(&tmux, &project, &["fork", &id, "prompt of the fork"]);
        pane.wait_for_text("answer of the fork");
        scene.picture("01-fork", &pane);
        return;
    }
    let child = codex.fork(&project, &id, "prompt of the fork");
    let grandchild = codex.fork(&project, &child, "prompt of the fork's fork");
    codex.resume(&project, &grandchild, "second prompt of the fork's fork");
    codex.resume(&project, &id, "third prompt of the source");
    scene.note("lineage.txt", &format!("{id}\n{child}\n{grandchild}\n"));
}

/// A thread begun by 0.140.0, continued and forked by 0.166.0.
fn legacy(scene: &Scene, version: &str) {
    let project = scene.sandbox.project("app");
    let old = CodexDriver::new(&scene.sandbox, &scene.model, "0.140.0");
    scene.model.push(Reply::tool("exec_command", json!({"cmd": "echo hi"})));
    let id = old.start(&project, "prompt to the old version");
    if version != "0.166.0" {
        return;
    }
    let new = CodexDriver::new(&scene.sandbox, &scene.model, version);
    new.resume(&project, &id, "prompt to the new version");
    let child = new.fork(&project, &id, "prompt of the fork");
    scene.note("lineage.txt", &format!("{id}\n{child}\n"));
}

fn subagent(scene: &Scene, version: &str) {
    let codex = CodexDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.on(|request| {
        // The id of the spawned agent is in the result of the call.
        let (_, result) = request.tool_results().pop()?;
        let result: serde_json::Value = serde_json::from_str(&result).ok()?;
        let agent = result["agent_id"].as_str()?.to_owned();
        Some(Reply::new().call_in("multi_agent_v1", "wait_agent", json!({"targets": [agent]})))
    });
    scene.model.push(Reply::new().call_in("multi_agent_v1", "spawn_agent", json!({"message": "subagent prompt"})));
    scene.model.push_for_subagent(Reply::tool("exec_command", json!({"cmd": "echo from the subagent"})));
    scene.model.push_for_subagent(Reply::text("The subagent is done."));
    scene.model.push(Reply::text("All done."));
    testkit::sandbox::expect_success(&codex.run(&project, &[], "use a subagent"));
}

fn talk(scene: &Scene, pane: &Pane<'_>, prompt: &str, answer: &str) {
    scene.model.push(Reply::text(answer));
    pane.submit(prompt);
    pane.wait_for_text(answer);
}

fn interactive(scene: &Scene, version: &str) {
    let codex = CodexDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    let tmux = Tmux::new(&scene.sandbox);
    let pane = codex.open(&tmux, &project, &[]);
    scene.picture("01-start", &pane);
    scene.model.push(Reply::tool("exec_command", json!({"cmd": "echo from the tool"})));
    talk(scene, &pane, "first typed prompt", "first answer");
    scene.picture("02-turn", &pane);
    pane.submit("/rename a better name");
    pane.wait_for(|screen| screen.contains("renamed") || screen.contains("· a better name"));
    scene.picture("03-rename", &pane);
    pane.submit("!echo hi from the shell");
    pane.wait_for(|screen| screen.matches("hi from the shell").count() > 1);
    scene.picture("04-shell", &pane);

    let gate = Gate::closed();
    scene.model.push(Reply::text("I begin.").hold(&gate).say("I end."));
    scene.model.push(Reply::text("answer to the queue"));
    pane.submit("a long task");
    scene.model.wait_for_prompt("a long task", PATIENCE);
    pane.submit("queued while busy");
    scene.picture("05-queued", &pane);
    gate.open();
    pane.wait_for_text("answer to the queue");
    scene.picture("06-queue-done", &pane);

    let gate = Gate::closed();
    scene.model.push(Reply::text("Words before the interrupt.").hold(&gate).say("never said"));
    pane.submit("to be interrupted");
    pane.wait_for_text("Words before the interrupt");
    pane.send_keys(["Escape"]);
    pane.wait_for_text("interrupted");
    scene.picture("07-interrupted", &pane);
    talk(scene, &pane, "after the interrupt", "answer after the interrupt");

    pane.submit("/compact");
    pane.wait_for_text("ompacted");
    scene.picture("08-compact", &pane);
    talk(scene, &pane, "after the compaction", "answer after the compaction");
    pane.submit("/fork");
    if version == "0.166.0" {
        pane.wait_for_text("Where should the forked conversation run?");
        pane.press_until("Enter", |screen| !screen.contains("Where should"));
    }
    pane.wait_for(|screen| screen.contains("forked from") || screen.contains("Fork created"));
    scene.picture("09-fork", &pane);
    talk(scene, &pane, "prompt in the fork", "answer in the fork");
    scene.picture("10-end", &pane);
    pane.submit("/quit");
    pane.wait_for_end();
}
