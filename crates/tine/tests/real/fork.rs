//! Forks that tine made, resumed by the real clients: the next request carries exactly the expected history.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::build::versions::every;
use testkit::model::{Model, Reply};

use crate::conversation::{Conversation, tine_json};

const ID: &str = "11111111-1111-4111-8111-111111111111";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        claude_resumes_what_was_forked,
        what_claude_wrote_too_early_is_not_lost,
        a_model_that_claude_does_not_know_is_no_obstacle,
        what_stands_before_a_missing_record_is_not_lost,
        a_conversation_before_a_local_command_is_not_lost,
        claude_resumes_what_older_versions_wrote,
    ]);
    use super::{
        a_conversation_before_a_local_command_is_not_lost, a_model_that_claude_does_not_know_is_no_obstacle,
        claude_resumes_what_older_versions_wrote, claude_resumes_what_was_forked,
        what_claude_wrote_too_early_is_not_lost, what_stands_before_a_missing_record_is_not_lost,
    };
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        codex_resumes_what_was_forked,
        codex_finds_the_fork_where_it_works,
        what_codex_wrote_once_is_told,
    ]);
    use super::{codex_finds_the_fork_where_it_works, codex_resumes_what_was_forked, what_codex_wrote_once_is_told};
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
        let seen = Conversation::from_request(&request);
        assert_eq!(seen.prompts, prompts);
        Conversation::from_show(&sandbox, directory, id).assert_matches(&seen);
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
    assert!(!Conversation::from_request(&model.last_turn()).prompts.contains(&"in the fork".to_owned()));
}

/// Claude Code adds a remark to its own fork of a session that was held with a model of another version, or of a proxy.
fn a_model_that_claude_does_not_know_is_no_obstacle(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, ID, "first");
    claude.resume(&project, ID, "second");
    let path = claude.transcript(ID).unwrap();
    let written: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(with_another_model).collect();
    std::fs::write(&path, written.join("\n") + "\n").unwrap();
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(claude.environment()).current_dir(&project);
    let output = command.args(["fork", ID, "--method", "native", "--yes", "--json"]).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = made["session"]["id"].as_str().unwrap_or_else(|| panic!("{made:#}"));
    let fork = std::fs::read_to_string(claude.transcript(id).unwrap()).unwrap();
    assert!(fork.contains("a-proxys-model") && !fork.contains("could not be restored"), "{fork}");
    claude.resume(&project, id, "in the fork");
    assert_eq!(Conversation::from_request(&model.last_turn()).prompts, ["first", "second", "in the fork"]);
}

fn with_another_model(line: &str) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    if record["message"]["model"].is_string() {
        record["message"]["model"] = "a-proxys-model".into();
    }
    record.to_string()
}

/// 2.1.197 was seen to write an answer before its prompt. It does not find such an answer again; in a fork it does.
fn what_claude_wrote_too_early_is_not_lost(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    for (prompt, answer) in [("first", "One."), ("second", "Two.")] {
        model.push(Reply::text(answer));
        if prompt == "first" {
            claude.start(&project, ID, prompt)
        } else {
            claude.resume(&project, ID, prompt)
        };
    }
    let path = claude.transcript(ID).unwrap();
    let content = std::fs::read_to_string(&path).unwrap();
    let is_answer = |line: &&str| line.contains("\"type\":\"assistant\"");
    let (early, rest): (Vec<&str>, Vec<&str>) = content.lines().partition(is_answer);
    assert_eq!(early.len(), 2);
    std::fs::write(&path, format!("{}\n{}\n", early.join("\n"), rest.join("\n"))).unwrap();

    let plan = tine_json(&sandbox, &project, &["fork", ID, "--in", "headless", "--prompt", "go", "--plan", "--json"]);
    assert_eq!(plan["method"], "copy", "{plan:#}");
    let id = fork(&sandbox, &project, &[ID]);
    claude.resume(&project, &id, "in the fork");
    let seen = Conversation::from_request(&model.last_turn());
    assert_eq!(seen.prompts, ["first", "second", "in the fork"]);
    assert_eq!(seen.answers, ["One.", "Two."]);
}

/// The client closes a gap between two records only if they are at most 5 seconds apart. In a fork there is no gap.
fn what_stands_before_a_missing_record_is_not_lost(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    for (prompt, answer) in [("first", "One."), ("second", "Two."), ("third", "Three.")] {
        model.push(Reply::text(answer));
        if prompt == "first" {
            claude.start(&project, ID, prompt)
        } else {
            claude.resume(&project, ID, prompt)
        };
    }
    let path = claude.transcript(ID).unwrap();
    let mut is_after = false;
    let mut cut = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if !is_after && record["message"]["content"] == "third" {
            is_after = true;
            record["parentUuid"] = json!("dddddddd-0000-4000-8000-000000000000");
        }
        if is_after && record["timestamp"].is_string() {
            record["timestamp"] = record["timestamp"].as_str().unwrap().replacen("20", "21", 1).into();
        }
        record.to_string() + "\n"
    };
    let content: String = std::fs::read_to_string(&path).unwrap().lines().map(&mut cut).collect();
    std::fs::write(&path, content).unwrap();

    let plan = tine_json(&sandbox, &project, &["fork", ID, "--in", "headless", "--prompt", "go", "--plan", "--json"]);
    assert_eq!(plan["method"], "copy", "{plan:#}");
    assert!(plan["warnings"].to_string().contains("to the preceding record"), "{plan:#}");
    let id = fork(&sandbox, &project, &[ID]);
    claude.resume(&project, &id, "in the fork");
    let seen = Conversation::from_request(&model.last_turn());
    assert_eq!(seen.prompts, ["first", "second", "third", "in the fork"]);
    assert_eq!(seen.answers, ["One.", "Two.", "Three."]);
    // This is why: the client itself doesn't find what stands before the gap.
    claude.resume(&project, ID, "in the source");
    assert_eq!(Conversation::from_request(&model.last_turn()).prompts, ["third", "in the source"]);
}

/// Every prompt and every final answer of a fork reaches the model, whichever version wrote the source.
fn claude_resumes_what_older_versions_wrote(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    for session in every().into_iter().filter(|session| session.agent == "claude") {
        session.write(&sandbox.claude_home());
        let id = fork(&sandbox, &project, &[&session.id, "--to", project.to_str().unwrap(), "--yes"]);
        claude.resume(&project, &id, "in the fork");
        let seen = Conversation::from_request(&model.last_turn());
        // What was said before a compaction stays in the file; the model gets the summary.
        let is_compacted = session.lines.iter().any(|line| line["isCompactSummary"] == true);
        let turns = if is_compacted { &session.turns[1..] } else { &session.turns[..] };
        let (mut prompts, mut answers): (Vec<&str>, Vec<&str>) = turns.iter().copied().unzip();
        // An interrupted turn has none.
        answers.retain(|answer| !answer.is_empty());
        prompts.push("in the fork");
        let expected = |words: &[String], all: &[&str]| -> Vec<String> {
            // The client ends a prompt with a newline where another follows at once.
            let words = words.iter().map(|words| words.trim_end());
            words.filter(|words| all.contains(words)).map(str::to_owned).collect()
        };
        assert_eq!(expected(&seen.prompts, &prompts), prompts, "{}: {:?}", session.quirk, seen.prompts);
        assert_eq!(expected(&seen.answers, &answers), answers, "{}: {:?}", session.quirk, seen.answers);
    }
}

/// The client goes on from the last record of the file, which 1.0.5x hung below the first caveat.
fn a_conversation_before_a_local_command_is_not_lost(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut session = every().into_iter().find(|session| session.versions == "1.0.5x").unwrap();
    // The client looks for it in the folder of the project.
    let cwd = project.canonicalize().unwrap().to_string_lossy().into_owned();
    let folder: String = cwd.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    session.path = format!("projects/{folder}/{}.jsonl", session.id).into();
    session.lines.iter_mut().for_each(|line| line["cwd"] = json!(cwd));
    session.write(&sandbox.claude_home());
    let id = &*session.id;
    let plan = tine_json(&sandbox, &project, &["fork", id, "--in", "headless", "--prompt", "go", "--plan", "--json"]);
    assert_eq!(plan["method"], "copy", "{plan:#}");
    let copy = fork(&sandbox, &project, &[id]);
    claude.resume(&project, &copy, "in the fork");
    let seen = Conversation::from_request(&model.last_turn());
    let prompts = session.turns.iter().map(|turn| turn.0).chain(["in the fork"]);
    for prompt in prompts {
        assert!(seen.prompts.iter().any(|seen| seen == prompt), "{prompt}: {seen:#?}");
    }
    assert!(session.turns.iter().all(|turn| seen.answers.iter().any(|seen| seen == turn.1)), "{seen:#?}");
    // This is why.
    claude.resume(&project, id, "in the source");
    let seen = Conversation::from_request(&model.last_turn());
    assert!(!session.turns.iter().any(|turn| seen.prompts.iter().any(|seen| seen == turn.0)), "{seen:#?}");
    assert_eq!(seen.prompts.last().map(String::as_str), Some("in the source"), "{seen:#?}");
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
        let seen = Conversation::from_request(&model.last_turn());
        assert_eq!(seen.prompts, prompts);
        Conversation::from_show(&sandbox, directory, id).assert_matches(&seen);
    };
    check(&project, &whole, &["first", "second", "third", "in the fork"]);
    check(&project, &cut, &["first", "second", "in the fork"]);
    check(&elsewhere, &moved, &["first", "in the fork"]);
    let (tree, in_tree) = worktree(&sandbox, &project, &format!("{id}@2"));
    check(&tree, &in_tree, &["first", "second", "in the fork"]);
    codex.resume(&project, &id, "last, in the source");
    assert!(!Conversation::from_request(&model.last_turn()).prompts.contains(&"in the fork".to_owned()));
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

/// Codex lists its threads by the directory of their last turn: a copy was listed, and resumed, where its source works.
fn codex_finds_the_fork_where_it_works(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let id = codex.start(&project, "first");
    codex.resume(&project, &id, "second");
    let (tree, fork) = worktree(&sandbox, &project, &id);
    // Without `world_state`, the directory of the last turn is also how Codex knows that the model has to be told of
    // another one, so it stays there.
    let which = if version == "0.140.0" { fork.as_str() } else { "--last" };
    testkit::sandbox::expect_success(&codex.run(&tree, &["resume", which], "in the tree"));
    let request = model.last_turn();
    assert_eq!(request.prompts(), ["first", "second", "in the tree"]);
    let output = request.texts("user").into_iter().rfind(|text| text.contains("<cwd>")).expect("the surroundings");
    assert!(output.contains(&format!("<cwd>{}</cwd>", tree.display())), "{output}");
    if version != "0.140.0" {
        testkit::sandbox::expect_success(&codex.run(&project, &["resume", "--last"], "in the project"));
        assert_eq!(model.last_turn().prompts(), ["first", "second", "in the project"]);
    }
}

/// Codex does not read what it wrote before September 2025; it is told what was said.
fn what_codex_wrote_once_is_told(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let message = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}).to_string()
    };
    let lines = [
        json!({"id": ID, "timestamp": "2025-06-01T10:00:00.000Z", "instructions": null}).to_string(),
        message("user", &format!("<environment_context>\n<cwd>{}</cwd>\n</environment_context>", project.display())),
        message("user", "where the treasure lies"),
        message("assistant", "below the third palm"),
        message("user", "and how deep"),
        message("assistant", "two fathoms"),
    ];
    let folder = sandbox.codex_home().join("sessions/2025/06/01");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(format!("rollout-2025-06-01T10-00-00-{ID}.jsonl"));
    std::fs::write(&path, lines.join("\n") + "\n").expect("a session");
    let before = std::fs::read(&path).expect("the session");

    let listed = tine_json(&sandbox, &project, &["list", "--json"]);
    assert_eq!((&listed[0]["id"], &listed[0]["turns"]), (&json!(ID), &json!(2)));
    let plan = tine_json(&sandbox, &project, &["fork", ID, "--plan", "--json"]);
    assert_eq!(plan["method"], "seed", "{plan:#}");
    let mut fork = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    fork.envs(codex.environment()).current_dir(&project).args(["fork", &format!("{ID}@1"), "again", "--yes", "--json"]);
    let made = testkit::sandbox::expect_success(&fork.output().expect("tine"));
    let made: Value = serde_json::from_str(&made).expect("JSON");
    codex.resume(&project, made["session"]["id"].as_str().expect("an id"), "go on");
    let prompts = model.last_turn().prompts();
    assert!(prompts[0].starts_with("[TINE_FORK_SEED]"), "{prompts:?}");
    assert!(prompts[0].contains("below the third palm") && !prompts[0].contains("two fathoms"), "{prompts:?}");
    assert_eq!(prompts.last().map(String::as_str), Some("go on"));
    assert_eq!(std::fs::read(&path).expect("the session"), before);
}
