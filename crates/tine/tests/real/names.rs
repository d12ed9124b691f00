//! Names that stay true, whatever happens inside the real agents: branches, clears, native forks, with hooks and without.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::Model;
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::text;
use testkit::{Sandbox, Tmux};

use crate::conversation::{tine, tine_json};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        names_follow_what_happens_inside_claude,
        forks_are_noticed_without_hooks,
        what_was_started_is_resumed_and_forked_as_it_was,
        quick_branches_and_background_forks_find_their_parents,
    ]);
    use super::*;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [names_follow_what_happens_in_codex]);
    mod with_a_daemon {
        testkit::for_each_version!(v0_166_0 = "0.166.0" => [names_follow_what_a_daemon_does]);
        use super::*;
    }
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
        pane.submit_until(prompt, || model.turn_requests().len() > before);
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
    let output = testkit::sandbox::text(&adopted.expect("tine").stderr);
    assert!(output.contains("is already registered as `work-fork-1-fork-1`"), "{output}");
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
    let output = testkit::sandbox::text(&list.stderr);
    assert!(output.contains("found a fork of plain and named it plain-fork-1"), "{output}");
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

fn quick_branches_and_background_forks_find_their_parents(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    claude.settings(&hooks());
    let project = sandbox.project("app");
    let tmux = Tmux::new(&sandbox);
    let bypass = ["start", "work", "--", "--permission-mode", "bypassPermissions"];
    let pane = tmux.run(&command(&claude, &sandbox, &project, &bypass));
    pane.wait_for_text("bypass permissions on");
    pane.submit("first");
    pane.wait_for_text("ok 1");
    let work = model.last_turn().session.clone().expect("a session");
    claude.wait_until_written(&work, "ok 1");
    // `/fork` of 2.1.325 goes on in the background, and the session stays where it is.
    let mut forks = 0;
    if version == "2.1.325" {
        pane.submit("/fork in the background");
        wait_until("the background session", PATIENCE, || claude.transcripts().len() > 1);
        let request = model.wait_for_prompt("in the background", PATIENCE);
        let background = request.session.clone().expect("a session");
        wait_until("its name", PATIENCE, || names(&sandbox, &project).len() > 1);
        let fork = info(&sandbox, &project, "work-fork-1");
        assert_eq!((&fork["id"], &fork["parent"]["id"]), (&json!(background), &json!(work)));
        assert_eq!(info(&sandbox, &project, "work")["id"], work);
        forks += 1;
    }
    // The client says when it is in the new branch; what is typed before that may still be said in the old one.
    let branch = |known: &str| {
        let before = claude.transcripts().len();
        pane.submit("/branch");
        wait_until("a branch", PATIENCE, || claude.transcripts().len() > before);
        let announced = |screen: &str| Some(screen.rsplit_once("new branch (session ")?.1.get(..36)?.to_owned());
        let screen = pane.wait_for(|screen| announced(screen).is_some_and(|id| id != known));
        announced(&screen).expect("a session")
    };
    let first_branch = branch("");
    let second_branch = branch(&first_branch);
    let is_second = || model.turn_requests().iter().any(|request| request.prompt().as_deref() == Some("second"));
    pane.submit_until("second", is_second);
    let last = model.wait_for_prompt("second", PATIENCE).session.clone().expect("a session");
    assert_eq!(last, second_branch);
    claude.wait_until_written(&last, "second");
    let child = format!("work-fork-{}", forks + 1);
    let grandchild = info(&sandbox, &project, &format!("{child}-fork-1"));
    assert_eq!(grandchild["id"], last);
    assert_eq!(grandchild["parent"]["name"], child);
    assert_eq!(info(&sandbox, &project, &child)["id"], first_branch);
    assert_eq!(info(&sandbox, &project, &child)["parent"]["name"], "work");
    assert_eq!(info(&sandbox, &project, "work")["id"], work);
    let tree = tine(&sandbox, &project, &["tree", "--all"]);
    assert!(tree.contains("work") && tree.contains(&child), "{tree}");
    pane.close();
}

/// Codex makes up its ids, and tells of nothing: tine learns from the files.
fn names_follow_what_happens_in_codex(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    codex.trust(&project);
    let tine_command = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(codex.environment()).current_dir(&project).args(arguments);
        command
    };
    // In a terminal: the name belongs to the thread that the process begins, whatever its id is.
    let tmux = Tmux::new(&sandbox);
    let known = codex.rollouts();
    let pane = tmux.run(&tine_command(&["start", "in-a-pane", "--agent", "codex"]));
    pane.wait_for(|screen| screen.contains("context left") || screen.contains("mock-model") && screen.contains('›'));
    pane.submit("first of all");
    pane.wait_for_text("ok");
    wait_until("the rollout", PATIENCE, || codex.rollouts().len() > known.len());
    let thread = codex.new_thread(&known);
    assert_eq!(info(&sandbox, &project, "in-a-pane")["id"], thread);
    // A fork that is made there is named after it, and the parent stays what it was.
    let before = info(&sandbox, &project, "in-a-pane");
    let known = codex.rollouts();
    pane.submit("/fork");
    if version == "0.166.0" {
        pane.wait_for_text("Where should the forked conversation run?");
        pane.press_until("Enter", |screen| !screen.contains("Where should"));
    }
    pane.wait_for(|screen| screen.contains("Thread forked from") || screen.contains("Fork created"));
    pane.submit("in the fork");
    wait_until("the fork's answer", PATIENCE, || model.last_turn().prompts() == ["first of all", "in the fork"]);
    wait_until("the fork's rollout", PATIENCE, || codex.rollouts().len() > known.len());
    let fork = codex.new_thread(&known);
    wait_until("its name", PATIENCE, || names(&sandbox, &project) == ["in-a-pane", "in-a-pane-fork-1"]);
    let named = info(&sandbox, &project, "in-a-pane-fork-1");
    assert_eq!((&named["id"], &named["parent"]["id"]), (&json!(fork), &json!(thread)));
    assert_eq!(info(&sandbox, &project, "in-a-pane")["id"], before["id"]);
    assert_eq!(info(&sandbox, &project, "in-a-pane")["turns"], before["turns"]);
    pane.close();
    wait_until("stopped", PATIENCE, || crate::conversation::state(&sandbox, &project, &thread) == "stopped");

    // Without a terminal.
    let words =
        ["start", "plain", "--agent", "codex", "--in", "headless", "--prompt", "hello", "--model", "mock-model"];
    testkit::sandbox::expect_success(&tine_command(&words).output().expect("tine"));
    let plain = info(&sandbox, &project, "plain");
    let id = plain["id"].as_str().expect("an id").to_owned();
    assert_eq!(plain["profile"]["args"], json!(["--model", "mock-model"]));
    let words = ["resume", "plain", "--in", "headless", "--prompt", "again"];
    testkit::sandbox::expect_success(&tine_command(&words).output().expect("tine"));
    assert_eq!(model.last_turn().prompts(), ["hello", "again"]);

    // Codex's own forks get their names when tine looks next.
    if version != "0.140.0" {
        let fork = codex.fork(&project, &id, "elsewhere");
        assert_eq!(names(&sandbox, &project), ["in-a-pane", "in-a-pane-fork-1", "plain", "plain-fork-1"]);
        let named = info(&sandbox, &project, "plain-fork-1");
        assert_eq!((&named["id"], &named["parent"]["id"]), (&json!(fork), &json!(id)));
        assert_eq!(named["profile"]["args"], json!(["--model", "mock-model"]), "a fork inherits the profile");
    }
    // An archived thread keeps its name.
    let mut archive = codex.command(&project);
    testkit::sandbox::expect_success(&archive.args(["archive", &id]).output().expect("codex"));
    let archived = info(&sandbox, &project, "plain");
    assert_eq!(archived["id"], json!(id));
    assert!(archived["path"].as_str().expect("a path").contains("archived_sessions"), "{archived:#}");
}

/// A daemon works for many, and its hooks do not say for which terminal. It goes with the sandbox.
fn names_follow_what_a_daemon_does(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    codex.trust(&project);
    let config = sandbox.codex_home().join("config.toml");
    let wanted = fs::read_to_string(&config).expect("a configuration").replace("daemon_auto_start = false\n", "");
    fs::write(&config, wanted).expect("a configuration");
    let tine_command = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(codex.environment()).current_dir(&project).args(arguments);
        command
    };
    testkit::sandbox::expect_success(&tine_command(&["setup", "codex", "--yes"]).output().expect("tine"));
    let tmux = Tmux::new(&sandbox);
    let pane = tmux.run(&tine_command(&["start", "work", "--agent", "codex"]));
    pane.wait_for(|screen| screen.contains("mock-model") && screen.contains('›'));
    let answered = |prompts: &[&str]| {
        model.wait_for_prompt(prompts.last().expect("a prompt"), PATIENCE);
        assert_eq!(model.last_turn().prompts(), prompts);
        let known =
            || tine_command(&["status", "--json"]).output().is_ok_and(|output| !text(&output.stdout).contains("busy"));
        wait_until("the end of the turn", PATIENCE, known);
    };
    let id = |name: &str| info(&sandbox, &project, name)["id"].as_str().expect("an id").to_owned();
    pane.submit("first");
    answered(&["first"]);
    let first = id("work");
    pane.submit("/clear");
    pane.submit("second");
    answered(&["second"]);
    wait_until("the new id", PATIENCE, || id("work") != first);
    let second = id("work");
    assert_eq!(info(&sandbox, &project, "work")["previous_ids"], json!([first]));
    // What is cleared in a fork made inside is the fork's.
    pane.submit("/fork");
    pane.wait_for_text("Where should the forked conversation run?");
    pane.press_until("Enter", |screen| !screen.contains("Where should"));
    pane.submit("in the fork");
    answered(&["second", "in the fork"]);
    wait_until("its name", PATIENCE, || names(&sandbox, &project) == ["work", "work-fork-1"]);
    let fork = id("work-fork-1");
    pane.submit("/clear");
    pane.submit("fresh");
    answered(&["fresh"]);
    wait_until("the new id", PATIENCE, || id("work-fork-1") != fork);
    assert_eq!(info(&sandbox, &project, "work-fork-1")["previous_ids"], json!([fork]));
    assert_eq!(id("work"), second);
    pane.close();
}
