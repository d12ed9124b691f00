//! `tine tree`.

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

#[test]
fn forks_stand_below_their_parents() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["tree"]).whole());
    insta::assert_snapshot!(world.run(["tree", COOKIE]).whole());
    let trees = world.json(["tree", "--all", "--json"]);
    assert_eq!((&trees[0]["id"], &trees[0]["children"][0]["id"]), (&EXPORT.into(), &STREAM.into()));
    assert_eq!(trees[1]["children"][0]["parent"]["turn"], 2);
}

#[test]
fn a_parent_that_is_gone_is_remembered() {
    let world = World::new();
    assert_eq!(world.run(["tree"]).code, 0);
    std::fs::remove_file(world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap()).unwrap();
    insta::assert_snapshot!(world.run(["tree", COOKIE]).whole());
    let trees = world.json(["tree", COOKIE, "--json"]);
    assert_eq!((&trees[0]["id"], &trees[0]["gone"]), (&LOGIN.into(), &true.into()));
}

#[test]
fn nothing_forked_is_told() {
    let world = World::empty();
    insta::assert_snapshot!(world.run(["tree"]).whole());
    assert_eq!(world.run(["tree", "--json"]).out, "[]\n");
}
