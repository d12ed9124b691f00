//! `tine fork --times N`.
#![cfg(unix)]

use std::fs;

use serde_json::json;

use crate::world::{LOGIN, World};

#[test]
fn several_forks_printed_no_commands_and_took_as_many_undos() {
    let world = World::new();
    let before = world.agents_files();
    let output = world.run(["fork", LOGIN, "try", "--times", "3", "-w"]);
    assert_eq!(output.code, 0, "{output:?}");
    let commands: Vec<&str> = output.out.lines().collect();
    assert_eq!(commands.len(), 3, "{}", output.out);
    for (number, command) in (1..).zip(&commands) {
        let begins =
            format!("cd [ROOT]/work/shop.worktrees/try-{number} && TINE_SESSION=try-{number} claude --resume ");
        assert!(command.starts_with(&begins), "{command}");
    }
    assert!(
        output.err.contains("forked 1f3a5c60 after turn 3 as try-1, try-2, try-3\n`tine undo 1` undoes all of them"),
        "{}",
        output.err
    );
    let log = world.json(["log", "--json"]);
    assert_eq!((log.as_array().unwrap().len(), log[0]["parts"].as_array().unwrap().len()), (1, 3));
    let shown = world.run(["log"]).out;
    assert_eq!(shown.lines().filter(|line| line.contains("done")).count(), 1, "{shown}");
    assert_eq!(shown.matches("worktree [ROOT]/work/shop.worktrees/try-").count(), 3, "{shown}");

    let undone = world.run(["undo"]);
    assert_eq!((undone.code, undone.err.as_str()), (0, "undone: fork 1f3a5c60 after turn 3, 3 times\n"));
    assert_eq!(world.agents_files(), before);
    assert_eq!(world.sandbox.git(&world.shop, ["branch", "--list"]).lines().count(), 1);
    assert_eq!(world.sandbox.git(&world.shop, ["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.run(["undo"]).code, 1, "nothing is left to undo");
}

#[test]
fn several_forks_could_not_be_planned_and_were_not_confirmed() {
    let world = World::new();
    fs::write(world.shop.join("README.md"), "changed\n").unwrap();
    let before = (world.agents_files(), world.sandbox.git(&world.shop, ["for-each-ref"]));
    let plans = world.json(["fork", LOGIN, "--times", "2", "-w", "--plan", "--json"]);
    let names = |key: &str| [plans[0]["session"][key].clone(), plans[1]["session"][key].clone()];
    assert_eq!(names("name").map(|name| name.as_str().unwrap().rsplit('-').next().unwrap().to_owned()), ["1", "2"]);
    assert_ne!(plans[0]["session"]["id"], plans[1]["session"]["id"]);
    assert_ne!(plans[0]["workspace"]["path"], plans[1]["workspace"]["path"]);
    let text = world.run(["fork", LOGIN, "try", "--times", "2", "-w", "--plan"]);
    assert!(text.out.contains("try-1") && text.out.contains("try-2"), "{}", text.out);
    assert_eq!(text.out.matches("uncommitted changes stay").count(), 1, "{}", text.out);

    let refused = world.run(["fork", LOGIN, "--times", "2", "-w"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("`--yes`"), "{}", refused.err);
    assert_eq!((world.agents_files(), world.sandbox.git(&world.shop, ["for-each-ref"])), before);
    let output = world.run(["fork", LOGIN, "--times", "2", "-w", "--yes"]);
    assert_eq!((output.code, output.err.matches("uncommitted changes stay").count()), (0, 1), "{}", output.err);
}

#[test]
fn a_name_that_is_taken_leaves_none_of_them() {
    let world = World::new();
    assert_eq!(world.run(["fork", LOGIN, "try-2"]).code, 0);
    let before = world.agents_files();
    assert_eq!(world.run(["fork", LOGIN, "try", "--times", "3"]).code, 1);
    assert_eq!(world.agents_files(), before);
    assert_eq!(world.json(["log", "--json"]).as_array().unwrap().len(), 1);
}

/// A file with 70 prompts made 70 forks, an empty one was "0 prompts for 0 forks", and two clones went to one place.
#[test]
fn a_file_of_prompts_has_the_limits_of_times() {
    let world = World::new();
    let file = world.sandbox.root().join("prompts");
    let file = file.to_str().unwrap();
    let check = |content: &str, expected: &str| {
        std::fs::write(file, content).unwrap();
        let output = world.run(["fork", LOGIN, "--prompts", file, "--plan"]);
        assert_eq!(output.code, 1, "{}", output.whole());
        assert!(output.err.starts_with(expected), "{}", output.err);
    };
    check("\n \n", "error: the `--prompts` file has no prompts\n");
    check(&"go on\n".repeat(65), "error: 65 prompts: the limit is 64 forks per command\n");
    std::fs::write(file, "go on\n".repeat(64)).unwrap();
    assert_eq!(world.run(["fork", LOGIN, "--prompts", file, "--plan"]).code, 0);
    let output = world.run(["fork", LOGIN, "--prompts", file, "--times", "2", "--plan"]);
    assert!(output.err.starts_with("error: expected one prompt per fork: 64 prompts, 2 forks\n"), "{}", output.err);
    assert_eq!(world.run(["fork", LOGIN, "--prompts", file, "--copy-to", "/copy", "--plan"]).code, 2);
}

/// The hint spoke of names and ids.
#[test]
fn a_file_of_prompts_that_is_missing_is_named() {
    let world = World::new();
    let output = world.run(["fork", LOGIN, "--prompts", "/nonexistent", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&output.raw).unwrap();
    assert_eq!((output.code, &error["error"]["kind"]), (1, &json!("unreadable")));
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("cannot read prompts from /nonexistent"),
        "{error}"
    );
    assert!(error["error"]["hint"].as_str().unwrap().contains("`--prompts` takes a text file"), "{error}");
}
