//! `tine wait`.

use testkit::Terminal;

use crate::panes::Panes;
use crate::world::{COOKIE, LOGIN, World};

#[test]
fn sessions_that_do_not_run_are_not_waited_for() {
    let world = World::new();
    assert_eq!(world.run(["wait", LOGIN, "--timeout", "1s"]).code, 0);
    let done = world.json(["wait", LOGIN, COOKIE, "--json"]);
    assert_eq!(done.as_array().unwrap().len(), 2, "{done:#}");
    assert_eq!(world.run(["wait", LOGIN, "--timeout", "soon"]).code, 2);
}

#[test]
fn a_busy_session_is_waited_for_until_the_timeout_or_until_another_is_idle() {
    let panes = Panes::new(Terminal::Tmux);
    for name in ["busy-one", "idle-one"] {
        panes.start(name);
        panes.tine(&["send", name, "hello", "--wait"]);
    }
    panes.tine(&["send", "busy-one", "take your time"]);
    insta::assert_snapshot!(panes.run(&["wait", "busy-one", "idle-one", "--timeout", "100ms"]).whole(), @r"
    exit code: 1
    --- stdout
    --- stderr
    error: session `busy-one` is still busy after 0 seconds
    hint: `tine wait busy-one` waits for it; to fork its last complete turn, pass `--now`
    ");
    let done = panes.json(&["wait", "busy-one", "idle-one", "--any", "--json"]);
    assert_eq!((done.as_array().unwrap().len(), &done[0]["name"]), (1, &"idle-one".into()), "{done:#}");
    let mut waiting = panes.command(&["wait", "busy-one"]).spawn().expect("tine");
    panes.world.sandbox.write(panes.world.sandbox.home().join("go"), "");
    assert!(waiting.wait().expect("tine").success());
    assert_eq!(panes.state("busy-one"), "idle");
}

#[test]
fn a_session_that_waits_for_a_permission_ends_the_wait() {
    let panes = Panes::new(Terminal::Tmux);
    panes.start("one");
    panes.tine(&["send", "one", "ask me"]);
    insta::assert_snapshot!(panes.run(&["wait", "one"]).whole(), @r"
    exit code: 1
    --- stdout
    --- stderr
    error: `one` is waiting for permission prompt
    hint: `tine focus one` opens it; tine never answers for you
    ");
}
