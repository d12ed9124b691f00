//! Sessions that older versions of the agents wrote, through every command that reads or forks one.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::build::versions::{OldSession, every};

use crate::world::World;

/// Every dialect, each with the file that it was written to, in one home.
fn written(world: &World) -> Vec<(OldSession, std::path::PathBuf)> {
    let home = |session: &OldSession| match session.agent {
        "claude" => world.sandbox.claude_home(),
        _ => world.sandbox.codex_home(),
    };
    every().into_iter().map(|session| (session.clone(), session.write(&home(&session)))).collect()
}

/// The turns of a transcript, without what stands before the first prompt.
fn turns_of(shown: &Value) -> Vec<&Value> {
    shown["turns"].as_array().unwrap().iter().filter(|turn| turn["number"] != 0).collect()
}

fn what(session: &OldSession) -> String {
    format!("{} {}: {}", session.agent, session.versions, session.quirk)
}

#[test]
fn every_dialect_is_listed_shown_and_exported() {
    let world = World::empty();
    let sessions = written(&world);
    let list = world.json(["list", "--all", "--json"]);
    let folder = world.sandbox.root().join("exported");
    let exported = world.run(["export".as_ref(), folder.as_os_str()]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let files: Vec<String> =
        fs::read_dir(&folder).unwrap().flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    for (session, _) in &sessions {
        let what = what(session);
        let listed = list.as_array().unwrap().iter().find(|listed| listed["id"] == session.id.as_str());
        let listed = listed.unwrap_or_else(|| panic!("{what}: not listed in {list:#}"));
        assert_eq!(listed["title"], session.title, "{what}");
        assert_eq!(listed["turns"], session.turns.len(), "{what}");
        let shown = world.json(["show", &session.id, "--json"]);
        let file = files.iter().find(|file| file.contains(&session.id));
        let file = file.unwrap_or_else(|| panic!("{what}: not exported"));
        for (turn, (prompt, answer)) in turns_of(&shown).into_iter().zip(&session.turns) {
            let text = turn.to_string();
            let quoted = |words: &str| Value::from(words).to_string();
            assert!(text.contains(&quoted(prompt)), "{what}: {prompt} isn't in {turn:#}");
            assert!(answer.is_empty() || text.contains(&quoted(answer)), "{what}: {answer} isn't in {turn:#}");
            assert!(file.contains(answer), "{what}: {answer} isn't in {file}");
        }
    }
}

#[test]
fn every_dialect_is_found_by_its_prompts() {
    let world = World::empty();
    let sessions = written(&world);
    for (session, _) in &sessions {
        for (prompt, _) in &session.turns {
            let word = prompt.lines().next().unwrap().rsplit(' ').next().unwrap();
            let found = world.json(["search", word, "--engine", "words", "--json"]);
            let results = found["results"].as_array().unwrap();
            let is_this = |result: &Value| {
                let turn = result["turn"].as_u64().unwrap_or(0) as usize;
                let found = session.turns.get(turn.saturating_sub(1)).map(|(prompt, _)| *prompt);
                // What a fork shares with its source is found there, and the fork is named.
                let forks = result["forks"].as_array().unwrap();
                let is_fork = forks.iter().any(|fork| session.id.starts_with(fork.as_str().unwrap()));
                (result["session"]["id"] == session.id.as_str() || is_fork) && found == Some(*prompt)
            };
            assert!(results.iter().any(is_this), "{}: {word} isn't found: {found:#}", what(session));
        }
    }
}

#[test]
fn every_dialect_is_forked_after_its_first_turn() {
    let world = World::empty();
    // A seed is a prompt for the agent, which has to be installed.
    world.sandbox.script("codex", "#!/bin/sh\necho codex-cli 0.166.0\n");
    let sessions = written(&world);
    let before = world.agents_files();
    for (session, path) in &sessions {
        let what = what(session);
        let spec = format!("{}@1", session.id);
        if !session.can_be_copied() {
            let plan = world.json(["fork", &spec, "--to", &*world.shop.to_string_lossy(), "--plan", "--json"]);
            assert_eq!((&plan["method"], &plan["parent"]["turn"]), (&"seed".into(), &1.into()), "{what}: {plan:#}");
            continue;
        }
        let fork = world.json(["fork", &spec, "--to", &*world.shop.to_string_lossy(), "--yes", "--json"]);
        assert_eq!(fork["parent"]["turn"], 1, "{what}: {fork:#}");
        assert_eq!(fork["method"], "copy", "{what}: {fork:#}");
        let info = world.json(["info", fork["session"]["id"].as_str().unwrap(), "--json"]);
        assert_eq!(info["cwd"], &*world.shop.to_string_lossy(), "{what}: it works where it was forked to");
        assert_eq!(&fs::read(path).unwrap(), &before[Path::new(path)], "{what}: the source is as it was");
        let shown = world.json(["show", fork["session"]["id"].as_str().unwrap(), "--json"]);
        let turns = turns_of(&shown);
        assert_eq!(turns.len(), 1, "{what}: {shown:#}");
        let (prompt, answer) = session.turns[0];
        for words in [prompt, answer] {
            assert!(turns[0].to_string().contains(&Value::from(words).to_string()), "{what}: {shown:#}");
        }
    }
}

#[test]
fn a_session_that_the_client_resumes_at_a_local_command_is_copied_and_warned_of() {
    let world = World::with_agents();
    let mut session = every().into_iter().find(|session| session.versions == "1.0.5x").unwrap();
    session.lines.iter_mut().for_each(|line| line["cwd"] = world.shop.to_string_lossy().into());
    session.write(&world.sandbox.claude_home());
    let id = &*session.id;
    let plan = world.json(["fork", id, "--in", "headless", "--prompt", "go", "--plan", "--json"]);
    assert_eq!(plan["method"], "copy", "{plan:#}");
    assert!(plan["why"].as_str().unwrap().contains("which the agent itself doesn't find"), "{plan:#}");
    let native = world.run(["fork", id, "--method", "native"]);
    assert_eq!(native.code, 1, "{native:?}");
    assert!(native.err.contains("loses the conversation"), "{native:?}");
    assert!(native.err.contains("`--method copy` keeps the whole history"), "{native:?}");
    let resumed = world.run(["resume", id, "--in", "none"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.err.contains("warning: Claude Code resumes this session at a later record"), "{resumed:?}");
    let fork = world.json(["fork", id, "--yes", "--json"]);
    let fork = fork["session"]["id"].as_str().unwrap();
    let resumed = world.run(["resume", fork, "--in", "none"]);
    assert!(!resumed.err.contains("warning"), "{resumed:?}");
}

#[test]
fn a_fork_that_ends_before_a_missing_record_does_not_warn_of_it() {
    let world = World::empty();
    let session = every().into_iter().find(|session| session.defects == ["broken-link"]).unwrap();
    session.write(&world.sandbox.claude_home());
    for (turns, warns) in [(1, false), (2, true), (3, true)] {
        let spec = format!("{}@{turns}", session.id);
        let plan = world.json(["fork", &spec, "--to", ".", "--plan", "--json"]);
        assert_eq!(plan["warnings"].to_string().contains("to a missing parent"), warns, "{plan:#}");
    }
}
