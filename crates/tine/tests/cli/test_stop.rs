//! `tine stop`.

use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn a_session_that_does_not_run_is_stopped_already() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["stop", LOGIN]).whole(), @r"
    exit code: 0
    --- stdout
    --- stderr
    1f3a5c60 is stopped
    ");
    assert_eq!(world.run(["stop", "nobody"]).code, 1);
}

#[test]
fn the_agents_end_and_their_conversations_stay() {
    let panes = Panes::new(Terminal::Tmux);
    for name in ["one", "two"] {
        panes.start(name);
        panes.tine(&["send", name, "hello", "--wait"]);
    }
    let stopped = panes.json(&["stop", "one", "two", "--json"]);
    let states: Vec<_> = stopped.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["stopped", "stopped"], "{stopped:#}");
    wait_until("the panes to close", PATIENCE, || panes.terminal.panes().is_empty());
    assert_eq!(panes.tine(&["read", "one"]), "to hello\n");
}
