//! `tine focus`.

use testkit::Terminal;

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn the_pane_of_a_session_is_brought_to_front() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        let (one, two) = (panes.start("one"), panes.start("two"));
        for (name, pane) in [("one", one), ("two", two), ("one", one)] {
            panes.tine(&["focus", name]);
            assert_eq!(panes.terminal.focused(), Some(pane), "{terminal:?}");
        }
        assert_eq!(panes.json(&["focus", "two", "--json"])["name"], "two");
    }
}

#[test]
fn a_session_that_does_not_run_has_no_pane() {
    insta::assert_snapshot!("does not run", World::with_agents().run(["focus", LOGIN]).whole());
}
