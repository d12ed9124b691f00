//! `tine send`.

use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn a_session_in_a_pane_is_driven_by_name() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        panes.start("one");
        assert_eq!(panes.tine(&["send", "one", "first 'words' of $one\nand more", "--wait"]).lines().count(), 2);
        let made = panes.json(&["fork", "one", "two", "--in", "auto", "--json", "--yes"]);
        assert_eq!(made["place"]["kind"], terminal.as_str(), "{made:#}");
        assert_eq!(panes.tine(&["send", "two", "second of two", "--wait"]), "to second of two\n", "{terminal:?}");
        assert_eq!(panes.tine(&["read", "one"]), "to first 'words' of $one\nand more\n", "{terminal:?}");
        // What a paste would change goes by the agent's editor.
        assert_eq!(panes.json(&["send", "two", "a\ttab", "--wait", "--json"])["answer"], "to a\ttab", "{terminal:?}");
        panes.tine(&["send", "one", "take your time"]);
        assert_eq!(panes.state("one"), "busy", "{terminal:?}");
        panes.tine(&["interrupt", "one"]);
        assert_eq!(panes.state("one"), "idle", "{terminal:?}");
        panes.tine(&["stop", "one", "two"]);
        assert_eq!((panes.state("one"), panes.state("two")), ("stopped".into(), "stopped".into()), "{terminal:?}");
        wait_until("the panes to close", PATIENCE, || panes.terminal.panes().is_empty());
        // What does not run is opened again in another pane, or answers without one.
        assert_eq!(panes.tine(&["send", "two", "without a pane", "--wait"]), "to without a pane\n");
        panes.tine(&["resume", "two", "--in", terminal.as_str()]);
        assert_eq!(panes.tine(&["send", "two", "and again", "--wait"]), "to and again\n", "{terminal:?}");
    }
}

/// tine may run anywhere: what it recorded names the terminal's server.
#[test]
fn a_session_is_driven_from_outside_its_terminal() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        panes.start("one");
        let outside = |words: &[&str]| panes.world.run(words);
        assert_eq!(outside(&["status", "one"]).out, "idle\n", "{terminal:?}");
        let output = outside(&["send", "one", "hello", "--wait"]);
        assert_eq!(output.out, "to hello\n", "{terminal:?}: {output:?}");
    }
}

#[test]
fn a_message_to_a_busy_headless_session_is_queued_and_its_answer_not_printed() {
    let panes = Panes::new(Terminal::Tmux);
    panes.tine(&["start", "one", "--in", "headless", "--prompt", "first"]);
    let output = panes.run(&["send", "one", "take your time"]);
    assert_eq!(output.err, "sent to one (headless); `tine wait one` waits for the answer\n", "{output:?}");
    for message in ["second", "third", "fourth"] {
        let output = panes.run(&["send", "one", message]);
        let expected = "queued for one, which is busy; `tine wait one` waits for the answer\n";
        assert_eq!((output.code, output.out.as_str(), output.err.as_str()), (0, "", expected));
    }
    assert_eq!(panes.json(&["send", "one", "fifth", "--json"])["queued"], true);
    assert_eq!(panes.state("one"), "busy", "none of them waited");
    panes.world.sandbox.write(panes.world.sandbox.home().join("go"), "");
    panes.tine(&["wait", "one"]);
    assert_eq!(panes.tine(&["read", "one"]), "to fifth\n");
    let shown = panes.tine(&["show", "one", "--markdown"]);
    let said = ["first", "take your time", "second", "third", "fourth", "fifth"].map(|said| format!("to {said}\n"));
    let places: Vec<_> = said.iter().map(|said| shown.find(said.as_str())).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {shown}");
}

#[test]
fn a_message_needs_a_text_and_a_session() {
    let world = World::with_agents();
    insta::assert_snapshot!(world.run(["send", LOGIN, ""]).whole(), @r"
    exit code: 1
    --- stdout
    --- stderr
    error: the prompt is empty
    hint: write a message
    ");
    assert_eq!(world.run(["send", "nobody", "words"]).code, 1);
}

/// Keys would be lost there, or rewind the conversation.
#[test]
fn a_message_arrives_while_the_transcript_is_open() {
    let panes = Panes::new(Terminal::Tmux);
    let pane = panes.start("one");
    panes.tine(&["send", "one", "hello", "--wait"]);
    panes.terminal.type_in(pane, "left over\u{f}");
    wait_until("the transcript", PATIENCE, || panes.terminal.screen(pane).contains("Showing detailed transcript"));
    assert_eq!(panes.tine(&["send", "one", "and more", "--wait"]), "to and more\n");
}
