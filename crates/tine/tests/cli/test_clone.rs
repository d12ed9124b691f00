//! `tine clone`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;
use testkit::build::ClaudeSession;

use crate::test_fork_plan::keep_busy;
use crate::test_fork_workspace::{everything, names};
use crate::world::{LOGIN, World};

#[test]
fn a_session_in_which_nothing_was_said_is_cloned_with_its_directory() {
    let world = World::with_agents();
    fs::write(world.shop.join("work in progress"), "half").unwrap();
    world.json(["start", "unbegun", "--in", "none", "--json"]);
    let twin = world.shop.with_file_name("twin");
    let words = ["clone", "unbegun", "twin", "--to", "../twin", "--json"];
    let plan = world.json(words.iter().chain(&["--plan"]));
    assert!(!twin.exists());
    let output = world.run(["clone", "unbegun", "twin", "--to", "../twin", "--plan"]);
    assert!(output.code == 0 && output.out.contains("which has no messages yet"), "{output:?}");
    let made = world.json(words);
    // Programs find everything where it is of any other fork.
    let fork = world.json(["fork", LOGIN, "--plan", "--json"]);
    for field in fork.as_object().unwrap().keys() {
        assert!(plan.get(field).is_some() && made.get(field).is_some(), "{field}: {made:#}");
    }
    for field in fork["session"].as_object().unwrap().keys() {
        assert!(made["session"].get(field).is_some() && made["parent"].get(field).is_some(), "{field}: {made:#}");
    }
    assert_eq!((&plan["operation"], &made["operation"]), (&json!(null), &json!(1)));
    assert_eq!(made["parent"]["name"], "unbegun");
    let session = &made["session"];
    assert_eq!((&session["name"], session["cwd"].as_str()), (&json!("twin"), twin.canonicalize().unwrap().to_str()));
    assert_eq!(fs::read_to_string(twin.join("work in progress")).unwrap(), "half");
    assert_eq!(made["command"][1], "--session-id");
    let home = world.sandbox.claude_home();
    let said = ClaudeSession::new(session["id"].as_str().unwrap()).cwd(twin.canonicalize().unwrap());
    let path = said.turn(|turn| turn.prompt("hi").text("ok")).write(&home);
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has changed since"), "{output:?}");
    fs::remove_file(path).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!twin.exists());
    assert_eq!(world.run(["clone", "nobody"]).code, 1);
}

#[test]
fn a_clone_finds_a_place_of_its_own() {
    let world = World::new();
    for name in ["first", "second"] {
        let made = world.json(["clone", LOGIN, name, "--json"]);
        let copy = world.shop.with_file_name("shop.clones").join(name);
        assert_eq!((&made["workspace"]["kind"], &made["workspace"]["path"]), (&"copy".into(), &copy.to_str().into()));
        assert_eq!(everything(&copy), everything(&world.shop));
    }
    assert_eq!(world.run(["undo", "1"]).code, 0);
    assert_eq!(names(&world.shop.with_file_name("shop.clones")), ["second"]);
    assert_eq!(world.run(["undo", "2"]).code, 0);
    assert_eq!(names(&world.sandbox.work()), ["blog", "shop"]);
}

/// The copy stayed, and nobody mentioned it.
#[test]
fn the_directory_of_a_deleted_clone_is_mentioned_and_goes_along_only_unchanged() {
    let world = World::new();
    let copy = world.shop.with_file_name("shop.clones").join("cl");
    world.json(["clone", LOGIN, "cl", "--json"]);
    assert!(!world.run(["doctor"]).out.contains("no longer used by a session"));
    let output = world.run(["delete", "cl", "--yes"]);
    assert!(output.code == 0 && output.err.contains("kept its copied directory "), "{}", output.whole());
    let output = world.run(["doctor"]);
    assert!(
        output.out.contains("is no longer used by a session") && output.out.contains("`rm -r "),
        "{}",
        output.whole()
    );
    assert_eq!(world.run(["undo"]).code, 0);

    let (before, held) = (world.agents_files(), everything(&copy));
    let output = world.run(["delete", "cl", "--worktree", "--yes"]);
    assert!(output.code == 0 && output.err.contains("removed its copied directory "), "{}", output.whole());
    assert!(!copy.parent().unwrap().exists());
    assert!(!world.run(["doctor"]).out.contains("no longer used by a session"));
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(world.agents_files() == before && everything(&copy) == held);

    fs::write(copy.join("work"), "of somebody").unwrap();
    let output = world.run(["delete", "cl", "--worktree", "--yes"]);
    assert!(output.code == 1 && output.err.contains("it has changed since it was copied"), "{}", output.whole());
    assert_eq!(world.agents_files(), before);
    let output = world.run(["delete", "cl", "--yes"]);
    assert!(output.code == 0 && output.err.contains("it has changed since it was copied"), "{}", output.whole());
    assert!(copy.join("work").exists());
    assert!(world.run(["doctor"]).out.contains("save what you need before you remove it"));
}

#[test]
fn a_clone_that_was_piped_waited_in_silence() {
    let world = World::new();
    let busy = keep_busy(&world);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut clone = world.command(["clone", LOGIN]).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(&reader).read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting for 1f3a5c60: it is busy ("), "{line}");
    fs::remove_file(busy).unwrap();
    assert!(clone.wait().unwrap().success());
}
