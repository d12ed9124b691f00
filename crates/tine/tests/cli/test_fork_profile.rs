//! The options that a fork inherits from an agent that runs.

use serde_json::json;
use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::Panes;
use crate::test_mcp_smart_fork::call;

/// Runs the agent in a new pane, as somebody would who does not know tine, and says something there.
fn by_hand(panes: &Panes, arguments: &[&str]) -> u32 {
    let mut claude = panes.world.sandbox.command(panes.world.sandbox.bin().join("claude"));
    claude.args(arguments).current_dir(&panes.world.shop).env("HTTPS_PROXY", "http://bob:word@127.0.0.1:1");
    let pane = panes.terminal.run(&claude);
    wait_until("the agent", PATIENCE, || panes.terminal.screen(pane).contains('❯'));
    panes.terminal.type_in(pane, "hello\r");
    wait_until("an answer", PATIENCE, || panes.terminal.screen(pane).contains("to hello"));
    pane
}

#[test]
fn a_fork_inherits_the_options_of_an_agent_that_was_started_by_hand() {
    let id = "5b0e1c2d-3f4a-4b5c-8d6e-7f8a9b0c1d2e";
    let panes = Panes::new(Terminal::Tmux);
    panes.world.sandbox.write(panes.world.shop.join("own.json"), r#"{"a": 1}"#);
    let inline = r#"{"env": {"API_KEY": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}}"#;
    let chosen = ["--session-id", id, "--dangerously-skip-permissions", "--model", "opus", "--settings", "own.json"];
    let more = ["--settings", inline, "--settings", "gone.json", "--not-yet-known", "-w", "tree", "--", "hello"];
    let pane = by_hand(&panes, &[&chosen[..], &more].concat());
    let registry = panes.world.sandbox.root().join("data/tine");
    let plan = panes.json(&["fork", id, "copy", "--plan", "--json"]);
    assert!(!registry.join("profiles").exists(), "a plan writes nothing");
    let copy = plan["profile"]["files"][0]["copy"].as_str().expect("a file").to_owned();
    let masked = r#"{"env": {"API_KEY": "[secret]"}}"#;
    let expected = ["--dangerously-skip-permissions", "--model", "opus", "--settings", &copy, "--settings", masked];
    assert_eq!(plan["profile"]["args"], json!(expected), "{plan:#}");
    assert_eq!(plan["profile"]["environment"]["HTTPS_PROXY"], "http://bob:[secret]@127.0.0.1:1");
    assert!(!plan.to_string().contains("sk-ant"), "{plan:#}");
    let losses = plan["losses"].to_string();
    for loss in
        ["`--settings gone.json`: the file no longer exists", "`--not-yet-known`: tine doesn't know this option"]
    {
        assert!(losses.contains(loss), "{losses}");
    }
    let made = panes.run(&["fork", id, "copy"]);
    assert!(made.out.contains("--dangerously-skip-permissions --model opus"), "{made:?}");
    assert!(
        made.err.contains("an option with a secret is not printed; `tine resume copy` still passes it"),
        "{made:?}"
    );
    assert!(!made.whole().contains("sk-ant"), "{made:?}");
    assert_eq!(std::fs::read_to_string(&copy).expect("the copy"), r#"{"a": 1}"#);
    // The agent itself is given what was masked.
    panes.tine(&["resume", "copy", "--in", "tmux"]);
    let running = panes.json(&["info", "copy", "--json"]);
    let command = std::fs::read(format!("/proc/{}/cmdline", running["pid"])).expect("a command line");
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    assert!(command.contains(inline), "{command}");
    // A source that has ended tells nothing any more, and its fork still knows.
    panes.terminal.type_in(pane, "fall over\r");
    wait_until("stopped", PATIENCE, || panes.state(id) == "stopped");
    assert_eq!(panes.json(&["fork", id, "--plan", "--json"])["profile"]["args"], json!([]));
    assert_eq!(panes.json(&["fork", "copy", "--plan", "--json"])["profile"]["args"], plan["profile"]["args"]);
}

/// An agent that forks over MCP could get a worker that asks for nothing, whatever the configuration said.
#[test]
fn a_fork_over_mcp_asks_for_permissions_unless_the_person_allows_otherwise() {
    let id = "5b0e1c2d-3f4a-4b5c-8d6e-7f8a9b0c1d2e";
    let panes = Panes::new(Terminal::Tmux);
    by_hand(&panes, &["--session-id", id, "--dangerously-skip-permissions", "--model", "opus"]);
    let plan = || call(&panes.world, "plan_fork", &json!({"session": id, "open": false}));
    let plain = plan();
    assert_eq!(plain["profile"]["args"], json!(["--model", "opus"]), "{plain:#}");
    let losses = plain["losses"].to_string();
    assert!(
        losses.contains("`--dangerously-skip-permissions` is not inherited: the fork asks for permissions"),
        "{losses}"
    );
    let config = panes.world.sandbox.root().join("config/tine/config.toml");
    panes.world.sandbox.write(config, "[mcp]\nskip_permissions = \"on\"\n");
    let allowed = plan();
    let expected = json!(["--dangerously-skip-permissions", "--model", "opus"]);
    assert_eq!(allowed["profile"]["args"], expected, "{allowed:#}");
}

#[test]
fn what_was_given_for_one_run_only_is_not_inherited_in_silence() {
    let panes = Panes::new(Terminal::Tmux);
    panes.tine(&["start", "one", "--in", "tmux", "--", "--model", "opus"]);
    panes.tine(&["send", "one", "hello", "--wait"]);
    assert_eq!(panes.json(&["fork", "one", "--plan", "--json"])["losses"], json!([]));
    panes.tine(&["stop", "one"]);
    panes.tine(&["resume", "one", "--in", "tmux", "--", "--verbose"]);
    let plan = panes.json(&["fork", "one", "--plan", "--json"]);
    assert_eq!(plan["profile"]["args"], json!(["--model", "opus"]));
    assert_eq!(plan["losses"], json!(["`--verbose`: it was given for this run only"]));
}
