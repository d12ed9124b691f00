//! Hooks as a running agent calls them, from the settings that `tine setup` writes.

use serde_json::{Value, json};
use testkit::Terminal;
use testkit::poll::{PATIENCE, poll, wait_until};

use crate::panes::Panes;

/// An agent with hooks in a pane, after its first turn.
fn hooked() -> (Panes, u32) {
    let panes = Panes::new(Terminal::Tmux);
    panes.tine(&["setup", "claude", "--yes"]);
    let pane = panes.start("one");
    assert_eq!(panes.tine(&["send", "one", "hello", "--wait"]), "to hello\n");
    (panes, pane)
}

fn info(panes: &Panes, session: &str) -> Value {
    panes.json(&["info", session, "--json"])
}

#[test]
fn a_branch_made_inside_the_agent_is_named_after_its_parent() {
    let (panes, pane) = hooked();
    panes.terminal.type_in(pane, "/branch\r");
    wait_until("the fork", PATIENCE, || panes.run(&["info", "one-fork-1"]).code == 0);
    let fork = info(&panes, "one-fork-1");
    assert_eq!((&fork["parent"]["name"], &fork["parent"]["turn"]), (&json!("one"), &json!(1)), "{fork:#}");
    // The pane shows the fork now, and the parent doesn't run any more.
    assert_eq!(panes.tine(&["send", "one-fork-1", "in the fork", "--wait"]), "to in the fork\n");
    assert_eq!((panes.state("one"), panes.state("one-fork-1")), ("stopped".into(), "idle".into()));
    assert!(panes.terminal.screen(pane).contains("to in the fork"));
    panes.terminal.type_in(pane, "/branch\r");
    wait_until("its fork", PATIENCE, || panes.run(&["info", "one-fork-1-fork-1"]).code == 0);
}

#[test]
fn a_cleared_session_keeps_its_name_under_a_new_id() {
    let (panes, pane) = hooked();
    let before = info(&panes, "one");
    panes.terminal.type_in(pane, "/clear\r");
    panes.terminal.type_in(pane, "again\r");
    wait_until("the answer", PATIENCE, || panes.run(&["read", "one"]).out == "to again\n");
    let after = info(&panes, "one");
    assert_ne!(after["id"], before["id"]);
    assert_eq!(after["turns"], 1, "{after:#}");
    assert_eq!(panes.tine(&["send", "one", "and by name", "--wait"]), "to and by name\n");
    // What was said before is still there, under its id.
    assert_eq!(info(&panes, before["id"].as_str().expect("an id"))["turns"], 1);
}

#[test]
fn what_happens_in_the_agent_becomes_events_in_order() {
    let (panes, pane) = hooked();
    panes.terminal.type_in(pane, "/branch\r");
    wait_until("the fork", PATIENCE, || panes.run(&["info", "one-fork-1"]).code == 0);
    panes.tine(&["stop", "one-fork-1"]);
    let seen = || -> Vec<(String, String)> {
        let lines = panes.tine(&["events", "--json", "--last", "100"]);
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        events.map(|event| (text(&event["event"]), text(&event["name"]))).collect()
    };
    let expected = [
        ("session_started", "one"),
        ("busy", "one"),
        ("answered", "one"),
        ("idle", "one"),
        ("stopped", "one"),
        ("forked", "one-fork-1"),
        ("stopped", "one-fork-1"),
    ]
    .map(|(event, name)| (event.to_owned(), name.to_owned()));
    let found = poll(PATIENCE, || Some(seen()).filter(|seen| seen[..] == expected));
    assert!(found.is_some(), "{:?}", seen());
}
