//! What `tine fork --plan` says of tokens, losses and warnings.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Dialect};

use crate::world::{LOGIN, World};

const ID: &str = "5e5e5e5e-1111-4111-8111-111111111111";
const BASE: &str = "019a8000-0000-7000-8000-000000000009";
const CHILD: &str = "019a8000-0000-7000-8000-00000000000a";

fn plan(world: &World, words: &[&str]) -> Value {
    world.json(["fork"].iter().chain(words).copied().chain(["--plan", "--json"]))
}

fn says(plan: &Value, list: &str, part: &str) -> bool {
    plan[list].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(part))
}

/// Ten turns of 20,000 characters each.
fn long(world: &World) -> ClaudeSession {
    (1..=10).fold(ClaudeSession::new(ID).cwd(&world.shop), |session, number| {
        session.turn(|turn| turn.prompt(format!("{number} {}", "w ".repeat(10_000))).text("done"))
    })
}

/// Lets every answer report what `tokens` says of the characters so far.
fn report(path: &Path, tokens: impl Fn(usize) -> usize) {
    let mut characters = 0;
    let lines = fs::read_to_string(path).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        characters += record["message"]["content"].as_str().map_or(0, str::len);
        if record["type"] == "assistant" {
            let input = tokens(characters);
            record["message"]["usage"] = json!({"input_tokens": input, "output_tokens": input.min(10)});
        }
        format!("{record}\n")
    });
    fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn what_was_compacted_away_is_not_counted() {
    let world = World::new();
    let path = long(&world).compact(&"z ".repeat(1000)).write(&world.sandbox.claude_home());
    report(&path, |characters| characters / 4);
    world.sandbox.script("claude", "#!/bin/sh\n");
    let tokens = |words: &[&str]| plan(&world, words)["tokens"].as_u64().unwrap();
    // What is left of it is the summary.
    assert!((300..2_000).contains(&tokens(&[ID])), "{}", tokens(&[ID]));
    let told = tokens(&[ID, "--method", "seed"]);
    assert!((40_000..60_000).contains(&told), "{told}");
    // Before the compaction, everything counts.
    assert!((40_000..50_000).contains(&tokens(&[&format!("{ID}@9")])));
}

#[test]
fn a_compaction_that_comes_along_with_a_cut_is_told() {
    let world = World::new();
    long(&world)
        .compact("what was said")
        .turn(|turn| turn.prompt("on").text("yes"))
        .write(&world.sandbox.claude_home());
    let follows =
        |point: &str| says(&plan(&world, &[&format!("{ID}{point}")]), "warnings", "a compaction follows turn");
    assert_eq!([follows("@9"), follows("@10"), follows("@11"), follows("")], [false, true, false, false]);
}

#[test]
fn tokens_that_nobody_counted_are_estimated() {
    let world = World::new();
    let path = long(&world).write(&world.sandbox.claude_home());
    report(&path, |_| 0);
    let tokens = plan(&world, &[ID])["tokens"].as_u64().unwrap();
    assert!((50_000..70_000).contains(&tokens), "{tokens}");
    // The last report that says something counts, and what was said since.
    report(&path, |characters| if characters < 190_000 { characters } else { 0 });
    let tokens = plan(&world, &[ID])["tokens"].as_u64().unwrap();
    assert!((190_000..210_000).contains(&tokens), "{tokens}");
}

#[test]
fn a_plan_waits_for_nobody() {
    let world = World::new();
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let start = own.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let pid = std::process::id();
    let live = json!({"pid": pid, "sessionId": LOGIN, "cwd": world.shop, "status": "busy", "procStart": start,
        "version": "2.1.325", "kind": "interactive", "entrypoint": "cli"});
    let folder = world.sandbox.claude_home().join("sessions");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{pid}.json")), live.to_string()).unwrap();
    for words in [&["clone", LOGIN][..], &["fork", LOGIN, "--wait"], &["fork", LOGIN, "--copy-to", "../there"]] {
        let told = world.json(words.iter().copied().chain(["--plan", "--json"]));
        assert!(says(&told, "warnings", "the fork is made when it is idle"), "{told:#}");
    }
    // Nobody said that it may wait.
    assert_eq!(world.run(["fork", LOGIN, "--plan"]).code, 1);
}

#[test]
fn what_is_gone_with_a_base_is_a_loss() {
    let world = World::new();
    let base = CodexSession::new(BASE).cwd(&world.shop).dialect(Dialect::Paginated);
    let base = base.turn(|turn| turn.prompt("one").text("1")).turn(|turn| turn.prompt("two").text("2"));
    let path: PathBuf = base.write(&world.sandbox.codex_home());
    base.fork(CHILD).turn(|turn| turn.prompt("three").text("3")).write(&world.sandbox.codex_home());
    assert!(!says(&plan(&world, &[CHILD]), "losses", "is gone"));
    fs::remove_file(path).unwrap();
    let told = plan(&world, &[CHILD]);
    assert!(says(&told, "losses", "the session that the source was forked from is gone"), "{told:#}");
    assert!(!says(&told, "warnings", "damaged"), "{told:#}");
}

#[test]
fn lines_that_are_long_are_not_damaged() {
    let world = World::new();
    let session = ClaudeSession::new(ID).cwd(&world.shop);
    let output = "w".repeat(17 << 20);
    session
        .turn(|turn| turn.prompt("one").tool("Bash", json!({}), output).text("done"))
        .write(&world.sandbox.claude_home());
    let told = plan(&world, &[ID]);
    assert!(!says(&told, "warnings", "damaged"), "{told:#}");
}

#[test]
fn another_branch_than_the_sessions_is_told() {
    let world = World::new();
    let session = ClaudeSession::new(ID).cwd(&world.shop).git_branch("feature");
    session.turn(|turn| turn.prompt("one").text("done")).write(&world.sandbox.claude_home());
    let told = plan(&world, &[ID, "--worktree"]);
    assert!(says(&told, "warnings", "the session worked on the branch feature; main is checked out"), "{told:#}");
    assert!(!says(&plan(&world, &[ID]), "warnings", "branch"));
}

#[test]
fn a_name_that_nobody_chose_leaves_branches_and_folders_alone() {
    let world = World::new();
    let planned = |world: &World| plan(world, &[LOGIN, "--worktree"])["session"]["name"].as_str().unwrap().to_owned();
    let first = planned(&world);
    assert!(first.ends_with("-fork-1"), "{first}");
    world.sandbox.git(&world.shop, ["branch", &first]);
    let second = planned(&world);
    assert!(second.ends_with("-fork-2"), "{second}");
    fs::create_dir_all(world.shop.with_file_name("shop.worktrees").join(&second)).unwrap();
    assert!(planned(&world).ends_with("-fork-3"));
    assert_eq!(world.run(["fork", LOGIN, &first, "--worktree"]).code, 1, "who chooses a name is told");
}
