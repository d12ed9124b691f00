//! Forks that tine made, resumed by the real clients: the next request carries exactly the expected history.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};

use crate::told::{Talk, tine_json};

const ID: &str = "11111111-1111-4111-8111-111111111111";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [claude_resumes_what_was_forked]);
    use super::claude_resumes_what_was_forked;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [codex_resumes_what_was_forked]);
    use super::codex_resumes_what_was_forked;
}

/// Makes a fork and returns its id.
fn fork(sandbox: &Sandbox, directory: &Path, arguments: &[&str]) -> String {
    let mut words = vec!["fork"];
    words.extend(arguments);
    words.push("--json");
    let made: Value = tine_json(sandbox, directory, &words);
    made["session"]["id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
}

/// Makes a fork in a worktree and returns where it works, and its id.
fn worktree(sandbox: &Sandbox, directory: &Path, spec: &str) -> (PathBuf, String) {
    let made = tine_json(sandbox, directory, &["fork", spec, "in-a-tree", "--worktree", "--json"]);
    let path = made["workspace"]["path"].as_str().unwrap_or_else(|| panic!("{made:#}"));
    (PathBuf::from(path), made["session"]["id"].as_str().unwrap_or_default().to_owned())
}

fn claude_resumes_what_was_forked(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, elsewhere) = (sandbox.project("app"), sandbox.project("else where"));
    let bash = |command: &str| json!({ "command": command, "description": "Run it" });
    model.push(Reply::text("Two at once.").call("Bash", bash("echo one")).call("Bash", bash("echo two")));
    model.push(Reply::text("One and two."));
    claude.start(&project, ID, "first");
    model.push(Reply::tool("Bash", bash("seq 1 60000")));
    model.push(Reply::text("A lot."));
    claude.resume(&project, ID, "second");
    claude.resume(&project, ID, "third");
    let source = std::fs::read(claude.transcript(ID).unwrap()).unwrap();

    let whole = fork(&sandbox, &project, &[ID]);
    let cut = fork(&sandbox, &project, &[&format!("{ID}@2")]);
    let moved = fork(&sandbox, &project, &[&format!("{ID}@1"), "--to", elsewhere.to_str().unwrap()]);
    assert_eq!(std::fs::read(claude.transcript(ID).unwrap()).unwrap(), source, "the source is as it was");
    claude.resume(&project, ID, "later, in the source");

    let check = |directory: &Path, id: &str, prompts: &[&str]| {
        claude.resume(directory, id, "in the fork");
        let request = model.last_turn();
        assert_eq!(request.session.as_deref(), Some(id));
        let seen = Talk::seen(&request);
        assert_eq!(seen.prompts, prompts);
        Talk::shown(&sandbox, directory, id).assert_like(&seen);
        seen
    };
    let seen = check(&project, &whole, &["first", "second", "third", "in the fork"]);
    assert_eq!(seen.calls.len(), 3);
    let seen = check(&project, &cut, &["first", "second", "in the fork"]);
    let stored =
        seen.results.values().find(|result| result.starts_with("<persisted-output>")).expect("a stored output");
    assert!(stored.contains(&cut) && !stored.contains(ID), "it leads into the fork's own folder: {}", &stored[..300]);
    check(&elsewhere, &moved, &["first", "in the fork"]);
    let (tree, id) = worktree(&sandbox, &project, &format!("{ID}@2"));
    check(&tree, &id, &["first", "second", "in the fork"]);
    claude.resume(&project, ID, "last, in the source");
    assert!(!Talk::seen(&model.last_turn()).prompts.contains(&"in the fork".to_owned()));
}

fn codex_resumes_what_was_forked(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let (project, elsewhere) = (sandbox.project("app"), sandbox.project("else where"));
    model.push(Reply::text("Look.").call("exec_command", json!({"cmd": "echo one"})));
    model.push(Reply::text("One."));
    let id = codex.start(&project, "first");
    codex.resume(&project, &id, "second");
    codex.resume(&project, &id, "third");
    let source = std::fs::read(codex.rollout(&id).unwrap()).unwrap();

    let whole = fork(&sandbox, &project, &[&id]);
    let cut = fork(&sandbox, &project, &[&format!("{id}@2")]);
    let moved = fork(&sandbox, &project, &[&format!("{id}@1"), "--to", elsewhere.to_str().unwrap()]);
    assert_eq!(std::fs::read(codex.rollout(&id).unwrap()).unwrap(), source, "the source is as it was");
    codex.resume(&project, &id, "later, in the source");

    let check = |directory: &Path, id: &str, prompts: &[&str]| {
        codex.resume(directory, id, "in the fork");
        let seen = Talk::seen(&model.last_turn());
        assert_eq!(seen.prompts, prompts);
        Talk::shown(&sandbox, directory, id).assert_like(&seen);
    };
    check(&project, &whole, &["first", "second", "third", "in the fork"]);
    check(&project, &cut, &["first", "second", "in the fork"]);
    check(&elsewhere, &moved, &["first", "in the fork"]);
    let (tree, in_tree) = worktree(&sandbox, &project, &format!("{id}@2"));
    check(&tree, &in_tree, &["first", "second", "in the fork"]);
    codex.resume(&project, &id, "last, in the source");
    assert!(!Talk::seen(&model.last_turn()).prompts.contains(&"in the fork".to_owned()));
    // A fork by reference is copied whole, without its base.
    if version != "0.140.0" {
        let reference = codex.fork(&project, &id, "in the reference");
        let flat = fork(&sandbox, &project, &[&reference]);
        check(
            &project,
            &flat,
            &[
                "first",
                "second",
                "third",
                "later, in the source",
                "last, in the source",
                "in the reference",
                "in the fork",
            ],
        );
    }
}
