//! `tine diff`: between turns, and against the working tree.

use std::fs;

use crate::recorded::Recorded;

fn two_turns() -> Recorded {
    let mut recorded = Recorded::new();
    recorded.write("a", "one\ntwo\n");
    recorded.write("gone", "x\n");
    recorded.turn();
    recorded.write("a", "one\nTWO\n");
    recorded.write("d/new", "n\n");
    fs::remove_file(recorded.top().join("gone")).expect("removed");
    recorded.turn();
    recorded
}

#[test]
fn turns_and_the_working_tree_are_compared() {
    let recorded = two_turns();
    let world = &recorded.world;
    let patch = world.run(["diff", "work@1", "work@2"]).out;
    for part in
        ["--- a/a\n+++ b/a\n", "-two\n+TWO\n", "rename", "diff --git a/gone b/gone\ndeleted file", "+++ b/d/new\n"]
    {
        assert_eq!(patch.contains(part), part != "rename", "{part}: {patch}");
    }
    let stat = world.run(["diff", "work@1", "work@2", "--stat"]).out;
    assert!(
        stat.contains(" gone  | 1 -\n") && stat.contains("3 files changed, 2 insertions(+), 2 deletions(-)"),
        "{stat}"
    );
    assert_eq!(world.run(["diff", "work@2"]).out, "");
    let objects = || recorded.git(["count-objects", "-v"]);
    let before = objects();
    recorded.write("a", "three\n");
    recorded.write(".env", "TOKEN=1\n");
    let shown = world.run(["diff", "work"]);
    assert!(shown.out.contains("-TWO\n+three\n") && !shown.out.contains("TOKEN"), "{}", shown.whole());
    assert!(shown.err.contains(".env"), "{}", shown.err);
    // Nothing was added to the repository for that.
    assert_eq!(objects(), before);
    let json = world.json(["diff", "work@1", "--json", "--", "a"]);
    assert_eq!(
        (&json["added"], &json["removed"], json["files"].as_array().expect("files").len()),
        (&1.into(), &2.into(), 1)
    );
    assert_eq!(json["from"]["source"], "snapshot");
    assert_eq!(json["to"], serde_json::Value::Null);
    // Paths are relative to the current directory.
    let below = world.run_in(&recorded.top().join("d"), ["diff", "work@1", "work@2", "--stat", "--", "new"]);
    assert!(below.out.contains("d/new") && !below.out.contains("gone"), "{}", below.whole());
}

#[test]
fn no_program_of_the_repository_shows_the_difference() {
    let recorded = two_turns();
    let ran = recorded.world.sandbox.root().join("ran");
    let program = format!("touch {}", ran.display());
    for key in ["core.pager", "diff.external", "diff.bad.command", "diff.bad.textconv", "core.fsmonitor", "pager.diff"]
    {
        recorded.git(["config", key, &program]);
    }
    recorded.write(".gitattributes", "* diff=bad\n");
    let shown = recorded.world.run(["diff", "work@1"]);
    assert!(shown.out.contains("+TWO"), "{}", shown.whole());
    assert!(!ran.exists());
}

#[test]
fn a_turn_without_code_says_so() {
    let mut recorded = Recorded::new();
    recorded.begin_turn();
    // Outside a repository, nothing records code.
    fs::remove_dir_all(recorded.top().join(".git")).expect("removed");
    let shown = recorded.world.run(["diff", "work@1"]);
    assert!(
        shown.code == 1 && shown.err.contains("the code of `work` at turn 1 was not recorded"),
        "{}",
        shown.whole()
    );
    let shown = recorded.world.run(["diff", "work@9"]);
    assert!(shown.code == 1 && shown.err.contains("has no turn 9"), "{}", shown.whole());
}
