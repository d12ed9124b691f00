//! `tine fork --code`: the files of an earlier turn in a new worktree.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::build::Random;

use crate::edits::{EDITS, Edits};
use crate::world::World;

fn point(turn: u32) -> String {
    format!("{EDITS}@{turn}")
}

/// Where a fork works, and what it says about its code.
fn fork(world: &World, arguments: &[&str]) -> (PathBuf, Value) {
    let output = world.run(["fork"].iter().chain(arguments).copied().chain(["--json"]));
    assert_eq!(output.code, 0, "{output:?}");
    let fork: Value = serde_json::from_str(&output.raw).unwrap();
    (fork["workspace"]["path"].as_str().unwrap().into(), fork["code"].clone())
}

fn read(tree: &Path, name: &str) -> Option<String> {
    fs::read_to_string(tree.join(name)).ok()
}

#[test]
fn a_fork_of_an_earlier_turn_has_its_files() {
    let world = World::new();
    Edits::new(&world)
        .turn("one")
        .write("new/a.txt", "a 1\n")
        .write("b.txt", "b 1\n")
        .turn("two")
        .write("new/a.txt", "a 2\n")
        .write("b.txt", "b 2\n")
        .turn("three")
        .write("c.txt", "c 3\n")
        .finish();
    let plan = world.run(["fork", &point(1), "--worktree", "--plan"]);
    assert!(plan.out.contains("code  tree at turn 1: 2 files exact\n"), "{}", plan.out);

    let (tree, code) = fork(&world, &[&point(1), "first", "--worktree"]);
    assert_eq!([read(&tree, "new/a.txt"), read(&tree, "b.txt")], [Some("a 1\n".into()), Some("b 1\n".into())]);
    assert_eq!(read(&tree, "c.txt"), None);
    assert_eq!((&code["exact"], &code["turn"], &code["doubtful"]), (&json!(2), &json!(1), &json!([])));
    let status = world.sandbox.command("git").current_dir(&tree).args(["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "?? b.txt\n?? new/\n");
    // Nothing was changed in it, so it can be taken back.
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.exists());

    let (tree, _) = fork(&world, &[&point(2), "second", "--worktree", "--code", "then"]);
    assert_eq!([read(&tree, "new/a.txt"), read(&tree, "c.txt")], [Some("a 2\n".into()), None]);
    let (tree, code) = fork(&world, &[&point(1), "commit", "--worktree", "--code", "none"]);
    assert_eq!((read(&tree, "b.txt"), code), (None, Value::Null));
    let (tree, code) = fork(&world, &[&point(1), "now", "--worktree", "--code", "now"]);
    assert_eq!((read(&tree, "b.txt"), code), (Some("b 2\n".into()), Value::Null));
    let same = world.run(["fork", &point(1), "--code", "then"]);
    assert_eq!(same.code, 2, "{same:?}");
}

#[test]
fn doubts_have_to_be_confirmed() {
    let world = World::new();
    Edits::new(&world)
        .turn("one")
        .write("a.txt", "a 1\n")
        .bash("echo more >> a.txt")
        .write("b.txt", "b 1\n")
        .turn("two")
        .write("c.txt", "c\n")
        .finish();
    let refused = world.run(["fork", &point(1), "first", "--worktree"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("1 doubtful (`echo more >> a.txt` in turn 1)"), "{}", refused.err);
    assert!(
        refused.err.contains("can't ask for confirmation") && refused.err.contains("--code then"),
        "{}",
        refused.err
    );
    let plan = world.json(["fork", &point(1), "first", "--worktree", "--plan", "--json"]);
    assert_eq!(plan["needs_confirmation"], true);
    assert_eq!(plan["code"]["doubtful"][0]["path"], "a.txt");
    // The best that is known: what the file holds, since nothing else has happened to it.
    for (name, answer) in [("first", &["--yes"][..]), ("second", &["--code", "then"])] {
        let (tree, _) = fork(&world, &[&[&*point(1), name, "--worktree"], answer].concat());
        assert_eq!(read(&tree, "a.txt"), Some("a 1\nmore\n".into()), "{name}");
    }
}

#[test]
fn a_killed_fork_leaves_no_half_made_files() {
    let world = World::new();
    let mut edits = Edits::new(&world).turn("one");
    for number in 0..30 {
        edits = edits.write(&format!("folder-{}/{number}.txt", number % 5), &format!("{number}\n").repeat(500));
    }
    edits.turn("two").write("last.txt", "x\n").finish();
    let mut random = Random::new(17);
    let beside = world.shop.with_file_name("shop.worktrees");
    let mut cut_off = 0;
    for round in 0..12 {
        let name = format!("fork-{round}");
        let mut command = world.command(["fork", &point(1), &name, "--worktree"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(150_000) as u64));
        child.kill().unwrap();
        cut_off += usize::from(!child.wait().unwrap().success());
        // The next run removes what is not complete.
        let made = world.json(["list", "--all", "--json"]);
        let is_made = made.as_array().unwrap().iter().any(|session| session["name"] == json!(name));
        let tree = beside.join(&name);
        assert_eq!(tree.exists(), is_made, "{name}");
        if is_made {
            assert_eq!(read(&tree, "folder-4/29.txt"), Some("29\n".repeat(500)));
        }
    }
    assert!(cut_off > 0);
}
