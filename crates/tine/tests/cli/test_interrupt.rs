//! `tine interrupt`.

use testkit::Terminal;

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn a_session_that_does_not_run_cannot_be_interrupted() {
    insta::assert_snapshot!(World::new().run(["interrupt", LOGIN]).whole(), @r"
    exit code: 1
    --- stdout
    --- stderr
    error: `1f3a5c60` is not running
    hint: `tine resume 1f3a5c60 --in tmux` opens it
    ");
}

#[test]
fn a_busy_session_becomes_idle_and_takes_the_next_message() {
    let panes = Panes::new(Terminal::Tmux);
    panes.start("one");
    panes.tine(&["send", "one", "take your time"]);
    assert_eq!(panes.state("one"), "busy");
    let interrupted = panes.json(&["interrupt", "one", "--json"]);
    assert_eq!((&interrupted["name"], &interrupted["state"]), (&"one".into(), &"idle".into()), "{interrupted:#}");
    assert_eq!(panes.tine(&["send", "one", "something else", "--wait"]), "to something else\n");
}
