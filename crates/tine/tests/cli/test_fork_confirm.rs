//! What has to be confirmed before it is done, on a terminal and elsewhere.
#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};
use testkit::Tmux;

use crate::world::{LOGIN, World};

/// A world whose shop has a change that is not committed.
fn dirty() -> World {
    let world = World::new();
    fs::write(world.shop.join("README.md"), "changed\n").unwrap();
    world
}

#[test]
fn a_fork_from_a_dirty_tree_went_ahead_where_nobody_could_be_asked() {
    let world = dirty();
    let state = || (world.agents_files(), world.sandbox.git(&world.shop, ["for-each-ref"]), world.run(["log"]).out);
    let before = state();
    let forks: [&[&str]; 3] = [
        &["fork", LOGIN, "--worktree"],
        &["fork", LOGIN, "one", "-w"],
        &["smart-fork", "csv export", "--pick=1", "-w"],
    ];
    for words in forks {
        let refused = world.run(words);
        assert_eq!(refused.code, 1, "{words:?}: {refused:?}");
        assert!(refused.err.contains("uncommitted changes; can't ask for confirmation"), "{}", refused.err);
        assert!(refused.err.contains("`--carry`") && refused.err.contains("`--yes`"), "{}", refused.err);
        let refused = world.run(words.iter().copied().chain(["--json"]));
        let error: Value = serde_json::from_str(&refused.raw).unwrap();
        assert_eq!((refused.code, &error["error"]["kind"]), (1, &json!("not_confirmed")), "{error:#}");
    }
    assert_eq!(state(), before, "nothing was changed");

    let plan = world.json(["fork", LOGIN, "--worktree", "--plan", "--json"]);
    assert_eq!(plan["needs_confirmation"], true);
    let left = world.json(["fork", LOGIN, "left", "-w", "--yes", "--json"]);
    let carried = world.json(["fork", LOGIN, "carried", "-w", "--carry", "--json"]);
    let read = |made: &Value| fs::read_to_string(format!("{}/README.md", made["workspace"]["path"].as_str().unwrap()));
    assert_ne!(read(&left).unwrap(), "changed\n");
    assert_eq!(read(&carried).unwrap(), "changed\n");
    // What leaves nothing behind needs no confirmation.
    for words in [&["fork", LOGIN, "same"][..], &["clone", LOGIN, "whole"]] {
        assert_eq!(world.run(words).code, 0, "{words:?}");
    }
    world.sandbox.git(&world.shop, ["checkout", "--quiet", "--", "."]);
    assert_eq!(world.run(["fork", LOGIN, "clean", "-w"]).code, 0);
}

#[test]
fn the_question_about_a_dirty_tree_had_no_answer_for_carrying() {
    let world = dirty();
    let tmux = Tmux::new(&world.sandbox);
    for (answer, shown, content) in
        [("n", "cancelled", None), ("y", "forked", Some("# shop\n")), ("c", "forked", Some("changed\n"))]
    {
        let name = format!("try-{answer}");
        let pane = tmux.run(&world.command(["fork", LOGIN, &name, "-w", "--in", "none"]));
        pane.wait_for_text("[c] copy them to the worktree");
        pane.submit(answer);
        pane.wait_for_text(shown);
        let file = world.shop.with_file_name("shop.worktrees").join(&name).join("README.md");
        assert_eq!(fs::read_to_string(file).ok().as_deref(), content, "{answer}");
    }
}
