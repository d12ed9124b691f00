//! Gemini CLI's sessions, as the client wrote them, as tine reads and forks them, and as the client resumes the forks.

use std::fs;
use std::path::Path;

use serde_json::json;
use testkit::Sandbox;
use testkit::agents::GeminiDriver;
use testkit::model::{Model, Reply};

use crate::conversation::{listed, tine, tine_json};

testkit::for_each_version!(v0_61_0 = "0.61.0" => [forks_send_each_result_once]);

/// Resumes a session and returns how many results the model got. The double refuses what the real API would.
fn results_after(gemini: &GeminiDriver<'_>, model: &Model, directory: &Path, id: &str) -> usize {
    model.push(Reply::text("Again."));
    assert_eq!(gemini.resume(directory, id, "one more").trim(), "Again.");
    model.last_turn().tool_results().len()
}

fn forks_send_each_result_once(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let gemini = GeminiDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let shell = |command: &str| json!({ "command": command, "description": "Run it" });
    let calls = Reply::new().thinking("Let me see.").say("I look.").call("run_shell_command", shell("echo one"));
    model.push(calls.call("run_shell_command", shell("echo two; exit 3")));
    model.push(Reply::text("One and two."));
    let id = gemini.start(&project, "first prompt");
    let source = fs::read(gemini.chat(&id).expect("a chat file")).expect("its bytes");

    let session = listed(&sandbox, &project, &id);
    assert_eq!((&session["agent"], &session["turns"]), (&json!("gemini"), &json!(1)));
    assert_eq!(
        (&session["title"], &session["cwd"]),
        (&json!("first prompt"), &json!(project.to_str().expect("UTF-8")))
    );
    let shown = tine(&sandbox, &project, &["show", &id, "--tools"]);
    assert_eq!(shown.matches("Exit Code: 3").count(), 1, "{shown}");

    let made = tine_json(&sandbox, &project, &["fork", &format!("{id}@1"), "first-fork", "--json"]);
    let fork = made["session"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(made["method"], "copy");
    assert_eq!(results_after(&gemini, &model, &project, &fork), 2);
    assert_eq!(model.last_turn().prompts(), ["first prompt", "one more"]);
    assert!(gemini.listed(&project).contains("first-fork"));

    // The client has written the fork anew, in a style of its own. A fork of that works as well, in another directory.
    let made = tine_json(&sandbox, &project, &["fork", "first-fork", "in-a-tree", "--worktree", "--json"]);
    let tree = Path::new(made["workspace"]["path"].as_str().expect("a path")).to_owned();
    let fork = made["session"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(results_after(&gemini, &model, &tree, &fork), 2);
    assert_eq!(model.last_turn().prompts(), ["first prompt", "one more", "one more"]);
    assert_eq!(fs::read(gemini.chat(&id).expect("a chat file")).expect("its bytes"), source, "the source is as it was");
}
