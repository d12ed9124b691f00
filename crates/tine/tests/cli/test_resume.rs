//! `tine resume`.

use std::fs;

use serde_json::json;
use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::Panes;
use crate::world::{EXPORT, LOGIN, World};

#[test]
fn a_session_is_resumed_where_it_works() {
    let world = World::with_agents();
    let output = world.run_in(&world.blog, ["resume", LOGIN]);
    assert_eq!(output.out, format!("cd [ROOT]/work/shop && claude --resume {LOGIN}\n"), "{}", output.err);
    let output = world.json(["resume", EXPORT, "--prompt", "-go 'on'", "--json", "--", "--search"]);
    let shop = world.shop.canonicalize().unwrap();
    let expected = json!(["codex", "resume", EXPORT, "-C", shop, "--search", "--", "-go 'on'"]);
    assert_eq!(output["command"], expected);
    // A directory that was moved is found again.
    let moved = world.sandbox.work().join("elsewhere");
    fs::create_dir(&moved).unwrap();
    fs::rename(&world.shop, moved.join("shop")).unwrap();
    insta::assert_snapshot!("gone", world.run_in(&world.blog, ["resume", LOGIN]).whole());
    let output = world.run_in(&world.blog, ["resume", LOGIN, "--to", "../elsewhere/shop"]);
    assert!(output.out.starts_with("cd "), "{}", output.whole());
}

/// Two agents would write one history.
#[test]
fn a_session_that_is_open_is_not_resumed_a_second_time() {
    let panes = Panes::new(Terminal::Tmux);
    let pane = panes.start("one");
    panes.tine(&["send", "one", "hello", "--wait"]);
    let output = panes.run(&["resume", "one", "--in", "tmux"]);
    assert!(output.code == 1 && output.err.contains("is already open"), "{output:?}");
    // On a terminal, the person chooses what to do instead.
    let ask = |answer: &str| {
        let asking = panes.terminal.run(&panes.world.command(["resume", "one", "--in", "here"]));
        let place = format!("in tmux pane %{pane}");
        wait_until("the question", PATIENCE, || panes.terminal.screen(asking).contains(&place));
        panes.terminal.type_in(asking, &format!("{answer}\r"));
    };
    ask("s");
    wait_until("its pane", PATIENCE, || panes.terminal.focused() == Some(pane));
    ask("f");
    wait_until("the fork", PATIENCE, || panes.run(&["status", "one-fork-1"]).out == "idle\n");
    assert_eq!(panes.terminal.panes().len(), 2);
}

#[test]
fn a_session_is_resumed_in_a_pane_with_a_first_prompt() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        panes.tine(&["start", "one", "--in", "headless", "--prompt", "first"]);
        panes.tine(&["resume", "one", "--in", terminal.as_str(), "--prompt", "take your time"]);
        assert_eq!(panes.state("one"), "busy", "{terminal:?}");
        panes.world.sandbox.write(panes.world.sandbox.home().join("go"), "");
        panes.tine(&["wait", "one"]);
        assert_eq!(panes.tine(&["read", "one"]), "to take your time\n", "{terminal:?}");
    }
}
