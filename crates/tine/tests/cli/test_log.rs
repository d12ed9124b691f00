//! `tine log`.

use serde_json::json;
use testkit::sandbox::install_program;

use crate::world::{LOGIN, World};

#[test]
fn the_log_tells_of_nothing_that_is_not_there() {
    let world = World::new();
    assert_eq!(world.run(["fork", LOGIN, "one"]).code, 0);
    assert_eq!(world.run(["delete", "one", "--yes"]).code, 0);
    assert!(world.run(["log"]).out.contains("in the trash"));
    assert_eq!(world.run(["undo"]).code, 0);
    let output = world.run(["log"]).out;
    assert!(!output.contains("in the trash"), "{output}");
    install_program(&world.shop.join(".git/hooks/post-checkout"), b"#!/bin/sh\nexit 1\n");
    assert_eq!(world.run(["fork", LOGIN, "two", "--worktree"]).code, 1);
    let output = world.run(["log"]).out;
    assert!(output.contains("failed") && !output.contains("tine-new"), "{output}");
}

#[test]
fn changes_are_listed_newest_first() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["log"]).whole(), @r"
    exit code: 0
    --- stdout
    --- stderr
    no changes yet
    ");
    for words in [&["adopt", LOGIN, "auth"][..], &["rename", "auth", "login"], &["rename", "login", "other"], &["undo"]]
    {
        assert_eq!(world.run(words).code, 0, "{words:?}");
    }
    insta::assert_snapshot!(world.run(["log"]).out, @r"
    3         now  undone   rename login to other
                           previously login
    2         now  done     rename auth to login
                           previously auth
    1         now  done     adopt 1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21 as auth
                           previously unnamed
    ");
    let log = world.json(["log", "--json"]);
    let listed: Vec<_> = log.as_array().unwrap().iter().map(|one| (&one["kind"], &one["state"])).collect();
    let expected =
        [("rename", "undone"), ("rename", "done"), ("adopt", "done")].map(|(kind, state)| (json!(kind), json!(state)));
    assert_eq!(listed, expected.iter().map(|(kind, state)| (kind, state)).collect::<Vec<_>>(), "{log:#}");
}
