//! Names that stay true, whatever happens inside the real agents: branches, clears, native forks, with hooks and without.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::agents::ClaudeDriver;
use testkit::model::Model;
use testkit::poll::{PATIENCE, wait_until};
use testkit::{Sandbox, Tmux};

use crate::told::{tine, tine_json};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        names_follow_what_happens_inside_claude,
        forks_are_noticed_without_hooks,
        what_was_started_is_resumed_and_forked_as_it_was,
    ]);
    use super::*;
}

/// Hooks that call the tine under test, as `tine setup` installs them.
fn hooks() -> Value {
    let entry = |event: &str| {
        let command = format!("{} hook {event} --agent claude", env!("CARGO_BIN_EXE_tine"));
        json!([{"hooks": [{"type": "command", "command": command}]}])
    };
    json!({"hooks": {
        "SessionStart": entry("session-start"),
        "SessionEnd": entry("session-end"),
        "UserPromptSubmit": entry("user-prompt-submit"),
        "Stop": entry("stop"),
    }})
}

/// `tine` with the agent's environment.
fn command(claude: &ClaudeDriver<'_>, sandbox: &Sandbox, directory: &Path, arguments: &[&str]) -> Command {
    claude.trust(directory);
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(claude.environment()).current_dir(directory).args(arguments);
    command
}

fn info(sandbox: &Sandbox, directory: &Path, session: &str) -> Value {
    tine_json(sandbox, directory, &["info", session, "--json"])
}

fn names(sandbox: &Sandbox, directory: &Path) -> Vec<String> {
    let sessions = tine_json(sandbox, directory, &["list", "--json"]);
    let mut names: Vec<String> =
        sessions.as_array().unwrap().iter().filter_map(|session| session["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}

fn names_follow_what_happens_inside_claude(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    claude.settings(&hooks());
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let bypass = ["start", "work", "--", "--permission-mode", "bypassPermissions"];
    let pane = tmux.run(&command(&claude, &sandbox, &project, &bypass));
    pane.wait_for_text("bypass permissions on");
    let say = |prompt: &str| {
        let before = model.turn_requests().len();
        pane.submit(prompt);
        wait_until("an answer", PATIENCE, || model.turn_requests().len() > before);
        model.last_turn().session.clone().expect("a session")
    };
    let answered = |id: &str, text: &str| claude.wait_until_written(id, text);
    let work = say("first");
    answered(&work, "ok 1");
    assert_eq!(info(&sandbox, &project, "work")["id"], work);

    // A branch is another session with another name; the one that it came from is what it was.
    pane.submit("/branch");
    wait_until("the branch", PATIENCE, || claude.transcripts().len() > 1);
    let branch = say("second");
    assert_ne!(branch, work);
    answered(&branch, "ok 2");
    let first = info(&sandbox, &project, "work-fork-1");
    assert_eq!((&first["id"], &first["parent"]["id"]), (&json!(branch), &json!(work)));
    assert_eq!(info(&sandbox, &project, "work")["id"], work);

    // A branch of the branch.
    pane.submit("/branch");
    wait_until("the second branch", PATIENCE, || claude.transcripts().len() > 2);
    let second = say("third");
    answered(&second, "ok 3");
    let deeper = info(&sandbox, &project, "work-fork-1-fork-1");
    assert_eq!((&deeper["id"], &deeper["parent"]["id"]), (&json!(second), &json!(branch)));

    // `/clear` goes on under the same name; what was before belongs to it.
    pane.submit("/clear");
    pane.wait_for(|screen| !screen.contains("third"));
    let cleared = say("fourth");
    assert_ne!(cleared, second);
    answered(&cleared, "ok 4");
    let now = info(&sandbox, &project, "work-fork-1-fork-1");
    assert_eq!((&now["id"], &now["previous_ids"]), (&json!(cleared), &json!([second])));
    assert_eq!(info(&sandbox, &project, "work")["id"], work);
    assert_eq!(info(&sandbox, &project, "work-fork-1")["id"], branch);
    pane.submit("/exit");
    pane.wait_for_end();

    // The agent's own fork, from another terminal.
    let native = "99999999-9999-4999-8999-999999999999";
    claude.fork(&project, &work, native, "elsewhere");
    assert_eq!(names(&sandbox, &project), ["work", "work-fork-1", "work-fork-1-fork-1", "work-fork-2"]);
    assert_eq!(info(&sandbox, &project, "work-fork-2")["id"], native);
    assert_eq!(info(&sandbox, &project, "work")["id"], work);

    // A plain resume is no fork, nor is one of an id that was cleared away.
    claude.resume(&project, &work, "again");
    claude.resume(&project, &second, "what was cleared");
    assert_eq!(names(&sandbox, &project).len(), 4);
    let adopted = sandbox.command(env!("CARGO_BIN_EXE_tine")).current_dir(&project).args(["adopt", &second]).output();
    let told = testkit::sandbox::text(&adopted.expect("tine").stderr);
    assert!(told.contains("is known already, as `work-fork-1-fork-1`"), "{told}");
    // Deleting takes along what was before a `/clear`.
    tine(&sandbox, &project, &["delete", "work-fork-1-fork-1", "--yes"]);
    assert!(claude.transcript(&second).is_none() && claude.transcript(&cleared).is_none());
    tine(&sandbox, &project, &["undo"]);
    assert_eq!(info(&sandbox, &project, "work-fork-1-fork-1")["id"], cleared);
    let log = sandbox.root().join("data/tine/hook.log");
    assert!(!log.exists(), "{}", std::fs::read_to_string(log).unwrap_or_default());
}

fn forks_are_noticed_without_hooks(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let started = command(&claude, &sandbox, &project, &["start", "plain", "--in", "headless", "--prompt", "first"]);
    testkit::sandbox::expect_success(&{ started }.output().expect("tine"));
    let id = info(&sandbox, &project, "plain")["id"].as_str().expect("an id").to_owned();
    let native = "99999999-9999-4999-8999-999999999999";
    claude.fork(&project, &id, native, "elsewhere");
    let list = command(&claude, &sandbox, &project, &["list"]).output().expect("tine");
    let told = testkit::sandbox::text(&list.stderr);
    assert!(told.contains("noticed a fork of plain: it is called plain-fork-1"), "{told}");
    assert_eq!(info(&sandbox, &project, "plain-fork-1")["id"], native);
    assert_eq!(names(&sandbox, &project), ["plain", "plain-fork-1"]);
}

fn what_was_started_is_resumed_and_forked_as_it_was(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let prompt = sandbox.write("prompt.md", "You are a lighthouse keeper.");
    let words =
        ["start", "keeper", "--in", "headless", "--prompt", "hello", "--system-prompt", prompt.to_str().unwrap()];
    testkit::sandbox::expect_success(&command(&claude, &sandbox, &project, &words).output().expect("tine"));
    assert!(model.last_turn().system().contains("lighthouse keeper"), "{}", model.last_turn().system());
    // The file is gone, and the fork starts with what its source started with.
    std::fs::remove_file(&prompt).unwrap();
    let words = ["fork", "keeper", "second-keeper", "--in", "headless", "--prompt", "and you?"];
    testkit::sandbox::expect_success(&command(&claude, &sandbox, &project, &words).output().expect("tine"));
    assert!(model.last_turn().system().contains("lighthouse keeper"));
    assert_eq!(model.last_turn().prompts(), ["hello", "and you?"]);
    let words = ["resume", "second-keeper", "--in", "headless", "--prompt", "still?"];
    testkit::sandbox::expect_success(&command(&claude, &sandbox, &project, &words).output().expect("tine"));
    assert!(model.last_turn().system().contains("lighthouse keeper"));
    assert_eq!(model.last_turn().prompts(), ["hello", "and you?", "still?"]);

    // A session in which nothing was said leaves nothing behind.
    let tmux = Tmux::new(&sandbox);
    let pane = tmux.run(&command(&claude, &sandbox, &project, &["start", "ghost"]));
    pane.wait_for(|screen| screen.contains("? for shortcuts") || screen.contains("shift+tab"));
    assert_ne!(
        sandbox.command(env!("CARGO_BIN_EXE_tine")).args(["start", "ghost"]).output().unwrap().status.code(),
        Some(0)
    );
    pane.close();
    wait_until("the name to be free", PATIENCE, || {
        let words = ["start", "ghost", "--in", "none", "--json"];
        command(&claude, &sandbox, &project, &words).output().unwrap().status.success()
    });
    assert_eq!(names(&sandbox, &project), ["keeper", "second-keeper"]);
    // Renamed, it is found by its new title in the client, too.
    tine(&sandbox, &project, &["rename", "keeper", "warden"]);
    claude.resume(&project, "warden", "by title");
    assert_eq!(model.last_turn().prompts(), ["hello", "by title"]);
}
