//! `tine snapshots`, and the hooks that take them.

use std::fs;
use std::time::Duration;

use testkit::poll::poll;

use crate::recorded::{ID, Recorded};

#[test]
fn every_turn_has_its_code() {
    let mut recorded = Recorded::new();
    recorded.write("a", "1");
    recorded.turn();
    recorded.write("a", "2");
    recorded.write(".env", "TOKEN=1");
    recorded.turn();
    // A turn without changes has the same commit.
    recorded.turn();
    let listed = recorded.world.json(["snapshots", "--json"]);
    let snapshots = listed["snapshots"].as_array().expect("snapshots");
    let turns: Vec<_> = snapshots.iter().map(|snapshot| snapshot["turn"].as_u64().expect("a turn")).collect();
    assert_eq!(turns, [3, 2, 1]);
    assert_eq!(snapshots[0]["commit"], snapshots[1]["commit"]);
    assert_eq!(snapshots[0]["left_out"][0]["path"], ".env");
    assert!(listed["bytes"].as_u64().expect("bytes") > 0 && listed["enabled"] == true);
    let shown = recorded.world.run(["snapshots", "work"]);
    let points = ["work@3", "work@2", "work@1"];
    assert!(shown.out.lines().zip(points).all(|(line, point)| line.contains(point)), "{}", shown.out);
    assert!(shown.out.lines().next().is_some_and(|line| line.ends_with("  without 1 file")), "{}", shown.out);
    assert!(shown.err.contains("3 snapshots in [ROOT]/work/shop; all snapshots there take "), "{}", shown.err);
    assert_eq!(recorded.log(), "");
}

#[test]
fn an_interrupted_turn_is_recorded_when_the_next_one_begins() {
    let mut recorded = Recorded::new();
    recorded.write("a", "1");
    recorded.begin_turn();
    recorded.call("user-prompt-submit");
    recorded.wait_for("1-next");
    recorded.write("a", "2");
    recorded.turn();
    // A turn that ended is not recorded again.
    recorded.write("a", "3");
    recorded.call("session-end");
    recorded.turn();
    let refs = recorded.git(["for-each-ref", "--format=%(refname)", "refs/tine"]);
    let points: Vec<&str> = refs.lines().map(|name| name.rsplit('/').next().unwrap()).collect();
    let points: Vec<&str> = points.iter().map(|point| &point[..point.rfind('-').unwrap()]).collect();
    assert_eq!(points, ["1-next", "2-end", "3-end"]);
}

#[test]
fn nothing_is_recorded_unless_it_is_wanted() {
    let mut recorded = Recorded::new();
    let config = recorded.world.sandbox.root().join("config/tine/config.toml");
    for text in
        ["", "[snapshots]\nenabled = false\n", "[snapshots]\nenabled = true\nexcept = [\"/\"]\n", "[snapshots\n"]
    {
        fs::write(&config, text).expect("a configuration");
        recorded.begin_turn();
        recorded.call("stop");
    }
    fs::write(&config, "[snapshots]\nenabled = true\n").expect("a configuration");
    recorded.turn();
    assert_eq!(recorded.git(["for-each-ref", "refs/tine"]).lines().count(), 1);
}

#[test]
fn old_snapshots_are_deleted_on_request() {
    let mut recorded = Recorded::new();
    for content in ["1", "2", "3"] {
        recorded.write("a", content);
        recorded.turn();
    }
    let refused = recorded.world.run(["snapshots", "--prune", "--keep", "1"]);
    assert!(refused.code == 1 && refused.err.contains("pass `--yes`"), "{}", refused.whole());
    assert_eq!(
        recorded.world.run(["snapshots", "--prune", "--older-than", "1"]).err,
        "deleted 0 snapshots; `git gc` frees their space\n"
    );
    let deleted = recorded.world.json(["snapshots", "--prune", "--keep", "1", "--yes", "--json"]);
    assert_eq!(deleted["deleted"].as_array().expect("a list").len(), 2);
    assert_eq!(recorded.world.json(["snapshots", "--json"])["snapshots"][0]["turn"], 3);
    recorded.git(["gc", "--quiet", "--prune=now"]);
    recorded.write("a", "4");
    recorded.turn();
}

#[test]
fn a_directory_without_a_repository_says_so() {
    let recorded = Recorded::new();
    let outside = recorded.world.sandbox.directory("plain");
    let shown = recorded.world.run_in(&outside, ["snapshots"]);
    assert!(shown.code == 1 && shown.err.contains("is not in a git repository"), "{}", shown.whole());
}

/// Two sessions in one repository take turns, and none waits for ever.
#[test]
fn many_hooks_at_once_lose_nothing() {
    let mut recorded = Recorded::new();
    recorded.begin_turn();
    for number in 0..5 {
        recorded.write("a", &number.to_string());
        recorded.call("stop");
    }
    let is_newest = || {
        let shown = recorded.world.sandbox.git(recorded.top(), ["for-each-ref", "--format=%(refname)", "refs/tine"]);
        let name = shown.lines().next()?.to_owned();
        let content = recorded.git(["show", &format!("{name}:a")]);
        (content == "4").then_some(())
    };
    poll(Duration::from_secs(60), is_newest).unwrap_or_else(|| panic!("{}", recorded.log()));
    assert_eq!(recorded.log(), "");
    let log = format!("refs/tine/snapshots/claude/{ID}");
    assert_eq!(recorded.git(["for-each-ref", &log]).lines().count(), 1);
}
