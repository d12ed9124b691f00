//! Chats in the tabs of the workbench, with a stand-in for the agent and the workbench in a real tmux.

use std::process::Command;

use testkit::poll::{PATIENCE, wait_until};
use testkit::tmux::Pane;
use testkit::{Terminal, Tmux};

use crate::panes::Panes;

/// The workbench, started from the first pane of a terminal.
fn open<'a>(panes: &Panes, tmux: &'a Tmux) -> Pane<'a> {
    let mut command = panes.command(&[]);
    command.current_dir(&panes.world.shop);
    tmux.run_sized(&command, 100, 30)
}

fn kill(process: u32, signal: &str) {
    let status = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status().expect("kill");
    assert!(status.success());
}

/// A tab follows what happens in a pane, sends prompts there, and leaves the answers to requests to the pane.
#[test]
fn a_tab_on_a_session_in_a_pane_follows_it() {
    let panes = Panes::new(Terminal::Kitty);
    let own = panes.start("one");
    panes.tine(&["send", "one", "hello", "--wait"]);
    let tmux = Tmux::new(&panes.world.sandbox);
    let bench = open(&panes, &tmux);
    bench.wait_for_text("one");
    bench.send_keys(["c"]);
    bench.wait_for(|screen| screen.contains("to hello") && screen.contains("runs elsewhere"));
    panes.terminal.type_in(own, "typed there\r");
    bench.wait_for_text("to typed there");
    bench.submit("typed here");
    let screen = bench.wait_for_text("to typed here");
    assert_eq!(screen.matches("to typed there").count(), 1, "{screen}");
    wait_until("the prompt in the pane", PATIENCE, || panes.terminal.screen(own).contains("to typed here"));

    panes.terminal.type_in(own, "ask me\r");
    bench.wait_for(|screen| screen.contains("Waits for an answer in its pane") && screen.contains("permission prompt"));
    bench.send_keys(["y"]);
    bench.send_keys(["n"]);
    bench.wait_for_text("only in its own pane");
    assert_eq!(panes.state("one"), "waiting");
    bench.send_keys(["M-o"]);
    wait_until("the focus", PATIENCE, || panes.terminal.focused() == Some(own));
    panes.terminal.type_in(own, "\u{1b}");
    bench.wait_for(|screen| !screen.contains("Waits for an answer"));

    // Once it has ended there, the next message resumes it here.
    kill(panes.terminal.process(own).expect("a process"), "KILL");
    bench.wait_for_text("· ended");
    bench.submit("still there?");
    let screen = bench.wait_for_text("to still there?");
    assert!(!screen.contains("runs elsewhere"), "{screen}");
    bench.send_keys(["C-c"]);
    bench.wait_for_end();
}

/// Only the keys that the request names answer it, in a tab. Without a terminal nobody can answer, so nothing is allowed.
#[test]
fn no_tool_runs_without_the_user() {
    let panes = Panes::new(Terminal::Kitty);
    let made = |file: &str| panes.world.shop.join(file).exists();
    panes.tine(&["start", "headless", "--in", "headless", "--prompt", "touch by-start"]);
    panes.tine(&["send", "headless", "touch by-send", "--wait"]);
    panes.tine(&["resume", "headless", "--in", "headless", "--prompt", "touch by-resume"]);
    assert_eq!(["by-start", "by-send", "by-resume"].map(made), [false; 3]);

    let tmux = Tmux::new(&panes.world.sandbox);
    let bench = open(&panes, &tmux);
    bench.wait_for_text("headless");
    bench.send_keys(["c"]);
    bench.wait_for_text("touch by-resume");
    bench.submit("touch denied");
    bench.wait_for(|screen| screen.contains("Wants to run Bash") && screen.contains("touch denied"));
    for key in ["Enter", "Space", "Tab", "x", "1", "Y", "C-y", "M-y", "Up", "F5"] {
        bench.send_keys([key]);
    }
    // Pasted text is no key.
    tmux.call(["set-buffer", "-b", "yes", "y\ny\n"]);
    tmux.call(["paste-buffer", "-p", "-b", "yes", "-t", bench.id()]);
    bench.send_keys(["n"]);
    bench.wait_for_text("to touch denied");
    bench.submit("touch allowed");
    bench.wait_for(|screen| screen.contains("touch allowed") && screen.contains("y allow"));
    assert!(!made("denied") && !made("allowed"));
    bench.send_keys(["y"]);
    bench.wait_for_text("to touch allowed");
    assert_eq!(["denied", "allowed"].map(made), [false, true]);
    bench.send_keys(["C-c"]);
    bench.wait_for_end();
}
