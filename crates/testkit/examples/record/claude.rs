//! The scenarios of Claude Code.

use serde_json::json;
use testkit::agents::ClaudeDriver;
use testkit::model::Reply;
use testkit::poll::PATIENCE;
use testkit::{Gate, Pane, Tmux};

use crate::{Scenario, Scene};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const FORK: &str = "22222222-2222-4222-8222-222222222222";

/// All of them, in order.
pub const SCENARIOS: [Scenario; 5] =
    [("turns", turns), ("subagent", subagent), ("interactive", interactive), ("rewind", rewind), ("fork", fork)];

fn turns(scene: &Scene, version: &str) {
    let claude = ClaudeDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.push(
        Reply::new()
            .thinking("I should look first.")
            .say("I look.")
            .call("Bash", json!({"command": "echo hi", "description": "Say hi"})),
    );
    scene.model.push(Reply::text("It says hi."));
    claude.start(&project, ID, "first prompt");
    scene.model.push(
        Reply::text("Two at once.")
            .call("Bash", json!({"command": "echo one", "description": "One"}))
            .call("Bash", json!({"command": "echo two", "description": "Two"})),
    );
    scene.model.push(Reply::text("One and two."));
    claude.resume(&project, ID, "second prompt");
    scene.model.push(Reply::tool("Bash", json!({"command": "seq 1 40000 | head -c 200000", "description": "Count"})));
    scene.model.push(Reply::tool("Write", json!({"file_path": project.join("notes.txt"), "content": "notes\n"})));
    scene.model.push(Reply::tool("Read", json!({"file_path": project.join("notes.txt")})));
    scene.model.push(Reply::tool("Bash", json!({"command": "exit 3", "description": "Fail"})));
    scene.model.push(Reply::text("A lot."));
    claude.resume(&project, ID, "third prompt");
}

/// 2.1.325 runs subagents beside the session, 2.1.197 inside the turn.
fn subagent(scene: &Scene, version: &str) {
    let claude = ClaudeDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.push(
        Reply::text("I send two.")
            .call("Agent", json!({"description": "Look around", "prompt": "subagent prompt", "subagent_type": "general-purpose"}))
            .call("Agent", json!({"description": "Look elsewhere", "prompt": "second subagent prompt", "subagent_type": "general-purpose"})),
    );
    scene.model.on(|request| {
        request.subagent.as_ref()?;
        Some(match request.tool_results().len() {
            0 => Reply::tool("Bash", json!({"command": "echo from the subagent", "description": "Say"})),
            _ => Reply::text("The subagent is done."),
        })
    });
    claude.start(&project, ID, "use subagents");
    claude.resume(&project, ID, "and after them");
}

fn fork(scene: &Scene, version: &str) {
    let claude = ClaudeDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    scene.model.push(Reply::tool("Bash", json!({"command": "echo hi", "description": "Say hi"})));
    claude.start(&project, ID, "first prompt");
    claude.resume(&project, ID, "second prompt");
    claude.fork(&project, ID, FORK, "prompt of the fork");
}

/// Goes back in the conversation by Esc Esc, and then another way.
fn rewind(scene: &Scene, version: &str) {
    let claude = ClaudeDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    let tmux = Tmux::new(&scene.sandbox);
    let pane = claude.open(&tmux, &project, &["--session-id", ID]);
    talk(scene, &pane, "first typed prompt", "first answer");
    scene.model.push(Reply::tool("Write", json!({"file_path": project.join("notes.txt"), "content": "notes\n"})));
    talk(scene, &pane, "second typed prompt", "second answer");
    talk(scene, &pane, "third typed prompt", "third answer");
    pane.submit("/rewind");
    pane.wait_for_text("Rewind");
    scene.picture("01-rewind", &pane);
    pane.send_keys(["Up"]);
    pane.send_keys(["Up"]);
    scene.picture("02-chosen", &pane);
    pane.press_until("Enter", |screen| screen.contains("Restore"));
    scene.picture("03-confirm", &pane);
    pane.press_until("Enter", |screen| !screen.contains("Restore"));
    scene.picture("04-rewound", &pane);
    pane.send_keys(["C-u"]);
    talk(scene, &pane, "another second prompt", "another second answer");
    scene.picture("05-end", &pane);
    pane.submit("/clear");
    pane.wait_for(|screen| !screen.contains("another second answer"));
    talk(scene, &pane, "prompt after clear", "answer after clear");
    pane.submit("/exit");
    pane.wait_for_end();
}

/// Types a prompt and waits for the answer on the screen.
fn talk(scene: &Scene, pane: &Pane<'_>, prompt: &str, answer: &str) {
    scene.model.push(Reply::text(answer));
    pane.submit(prompt);
    pane.wait_for_text(answer);
}

fn interactive(scene: &Scene, version: &str) {
    let claude = ClaudeDriver::new(&scene.sandbox, &scene.model, version);
    let project = scene.sandbox.project("app");
    let tmux = Tmux::new(&scene.sandbox);
    let pane = claude.open(&tmux, &project, &["--session-id", ID]);
    scene.picture("01-start", &pane);
    talk(scene, &pane, "first typed prompt", "first answer");
    scene.picture("02-turn", &pane);
    // The model answers to the output of a shell command at once.
    talk(scene, &pane, "!echo hi from the shell", "answer to the shell");
    scene.picture("03-shell", &pane);
    pane.submit("/cost");
    pane.wait_for_text("Total cost");
    scene.picture("04-cost", &pane);
    pane.send_keys(["Escape"]);
    pane.submit("/rename a better name");
    pane.wait_for_text("renamed");
    scene.picture("05-rename", &pane);

    let gate = Gate::closed();
    scene.model.push(Reply::text("I begin.").hold(&gate).say("I end."));
    scene.model.push(Reply::text("answer to the queue"));
    pane.submit("a long task");
    scene.model.wait_for_prompt("a long task", PATIENCE);
    pane.submit("queued while busy");
    scene.picture("06-queued", &pane);
    gate.open();
    scene.model.wait_for_prompt("queued while busy", PATIENCE);
    pane.wait_for_text("answer to the queue");
    scene.picture("07-queue-done", &pane);

    let gate = Gate::closed();
    scene.model.push(Reply::text("Words before the interrupt.").hold(&gate).say("never said"));
    pane.submit("to be interrupted");
    pane.wait_for_text("Words before the interrupt");
    pane.send_keys(["Escape"]);
    pane.wait_for_text("Interrupted");
    scene.picture("08-interrupted", &pane);
    talk(scene, &pane, "after the interrupt", "answer after the interrupt");

    scene.model.summarise_as("The summary of the first part.");
    pane.submit("/compact");
    pane.wait_for_text("Compacted");
    scene.picture("09-compact", &pane);
    talk(scene, &pane, "after the compaction", "answer after the compaction");
    pane.submit("/branch side-road");
    pane.wait_for_text("Branched");
    scene.picture("10-branch", &pane);
    talk(scene, &pane, "prompt in the branch", "answer in the branch");
    scene.picture("11-end", &pane);
    pane.submit("/exit");
    pane.wait_for_end();
}
