//! `tine` alone on a terminal: the workbench, in a real one.

use testkit::Tmux;

use crate::world::World;

#[test]
fn the_workbench_opens_reads_searches_forks_and_leaves_the_terminal_as_it_was() {
    let world = World::new();
    let tmux = Tmux::new(&world.sandbox);
    let mut command = world.sandbox.command("sh");
    command.args(["-c", "echo before; \"$1\"; echo code $?; read end", "sh", env!("CARGO_BIN_EXE_tine")]);
    let pane = tmux.run(command.current_dir(&world.shop));
    let screen = pane.wait_for_text("tab scope");
    assert!(!screen.contains("before"), "the alternate screen: {screen}");
    pane.wait_for_text("Write it.");
    pane.send_keys(["Enter"]);
    pane.wait_for_text("f fork at this turn");
    pane.send_keys(["M-F"]);
    pane.wait_for(|screen| screen.contains("enter fork") && screen.contains("Cache "));
    pane.send_text("from-the-bench");
    pane.wait_for(|screen| screen.contains("from-the-bench") && screen.contains("Cache "));
    pane.send_keys(["Enter"]);
    // The fork gets a tab of its own.
    pane.wait_for_text("Fork created; waiting for your next prompt.");
    assert_eq!(world.json(["info", "from-the-bench", "--json"])["name"], "from-the-bench");
    pane.send_keys(["M-s"]);
    pane.wait_for(|screen| screen.contains("from-the-bench") && screen.contains("tab scope"));
    pane.send_keys(["/"]);
    pane.wait_for_text("search:");
    pane.send_text("redirects to a target");
    pane.wait_for_text("turn 1 of");
    pane.press_until("Escape", |screen| screen.contains("tab scope"));
    pane.send_keys(["q"]);
    let screen = pane.wait_for_text("code 0");
    assert!(screen.contains("before") && !screen.contains("tab scope"), "{screen}");
}

#[test]
fn without_a_terminal_there_is_help() {
    let world = World::new();
    let told = world.run(Vec::<&str>::new());
    assert_eq!(told.code, 2);
    assert!(told.err.contains("Usage: tine"), "{told:?}");
}
