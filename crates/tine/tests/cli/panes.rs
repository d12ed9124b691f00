//! Sessions in panes, in stand-ins for all four terminals and with a stand-in for the agent.

use std::process::Command;

use serde_json::Value;
use testkit::poll::{PATIENCE, wait_until};
use testkit::stand_in::install_claude;
use testkit::{StandIn, Terminal};

use crate::world::{TineOutput, World};

/// tine in the first pane of a terminal.
pub(crate) struct Panes {
    pub(crate) world: World,
    pub(crate) terminal: StandIn,
}

impl Panes {
    pub(crate) fn new(terminal: Terminal) -> Self {
        let mut world = World::empty();
        world.sandbox.unset("TINE_NOW");
        install_claude(&world.sandbox);
        let terminal = StandIn::start(&world.sandbox, terminal);
        Panes { world, terminal }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.command(words);
        command.envs(self.terminal.environment());
        command
    }

    #[track_caller]
    pub(crate) fn tine(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("tine");
        let printed = TineOutput::of(&self.world, &output);
        assert_eq!(printed.code, 0, "tine {words:?}: {printed:?}");
        printed.out
    }

    pub(crate) fn run(&self, words: &[&str]) -> TineOutput {
        TineOutput::of(&self.world, &self.command(words).output().expect("tine"))
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let printed = self.run(words);
        assert_eq!(printed.code, 0, "tine {words:?}: {printed:?}");
        serde_json::from_str(&printed.raw).unwrap_or_else(|error| panic!("{error} in {}", printed.raw))
    }

    #[track_caller]
    pub(crate) fn start(&self, name: &str) -> u32 {
        let known = self.terminal.panes();
        self.tine(&["start", name, "--in", self.terminal.terminal.as_str()]);
        let new = self.terminal.panes().into_iter().find(|pane| !known.contains(pane));
        new.unwrap_or_else(|| panic!("no pane was opened for {name}"))
    }

    pub(crate) fn state(&self, name: &str) -> String {
        self.tine(&["status", name]).trim().to_owned()
    }
}

/// WezTerm's and Zellij's lists name no process, and titles are the agent's to change.
#[test]
fn a_session_without_a_prompt_is_found_in_its_pane() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        let pane = panes.start("one");
        assert_eq!(panes.state("one"), "idle", "{terminal:?}");
        panes.tine(&["focus", "one"]);
        assert_eq!(panes.terminal.focused(), Some(pane), "{terminal:?}");
        assert!(panes.tine(&["read", "one", "--screen"]).contains('❯'), "{terminal:?}");
        assert_eq!(panes.tine(&["send", "one", "hello", "--wait"]), "to hello\n", "{terminal:?}");
        panes.start("two");
        panes.tine(&["stop", "two"]);
        wait_until("its pane to close", PATIENCE, || panes.terminal.panes() == [pane]);
        assert!(panes.run(&["status", "two"]).err.contains("not found"), "{terminal:?}");
    }
}

/// An agent that was started by hand in a pane has no record, but its environment and its device tell.
#[test]
fn a_session_that_was_started_by_hand_in_a_pane_is_found() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        let pane = panes.terminal.run(&panes.world.command(["start", "by-hand", "--in", "here"]));
        wait_until("the agent", PATIENCE, || panes.terminal.screen(pane).contains('❯'));
        assert_eq!(panes.state("by-hand"), "idle", "{terminal:?}");
        assert_eq!(panes.tine(&["send", "by-hand", "hello", "--wait"]), "to hello\n", "{terminal:?}");
        wait_until("the answer on the screen", PATIENCE, || panes.terminal.screen(pane).contains("to hello"));
    }
}

/// Its number is given to another program when the terminal is started anew, and then nothing may be typed there.
#[test]
fn a_pane_whose_agent_has_ended_belongs_to_nobody() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        let pane = panes.start("one");
        panes.tine(&["send", "one", "hello", "--wait"]);
        let agent = panes.terminal.process(pane).expect("a process");
        assert!(Command::new("kill").args(["-9", &agent.to_string()]).status().expect("kill").success());
        wait_until("stopped", PATIENCE, || panes.state("one") == "stopped");
        let output = panes.run(&["focus", "one"]);
        assert!(output.err.contains("is not running"), "{terminal:?}: {output:?}");
    }
}
