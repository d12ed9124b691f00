//! `tine read`.

use testkit::Terminal;

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn the_last_answer_is_read_from_the_transcript() {
    let world = World::with_agents();
    insta::assert_snapshot!("last answer", world.run(["read", LOGIN]).whole());
    assert_eq!(world.run(["read", LOGIN, "--last"]).whole(), world.run(["read", LOGIN]).whole());
    let answer = world.json(["read", LOGIN, "--json"]);
    assert_eq!(answer["answer"], "14 tests pass.", "{answer:#}");
}

#[test]
fn the_screen_of_a_session_that_does_not_run_cannot_be_read() {
    insta::assert_snapshot!("no answer", World::with_agents().run(["read", LOGIN, "--screen"]).whole());
}

#[test]
fn the_screen_shows_what_the_pane_shows() {
    let panes = Panes::new(Terminal::Tmux);
    panes.start("one");
    panes.tine(&["send", "one", "hello", "--wait"]);
    insta::assert_snapshot!(panes.tine(&["read", "one", "--screen"]), @r"
    ❯ hello
    to hello
    ❯
    ");
}
