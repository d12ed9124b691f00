//! `tine start`.

use std::fs;

use serde_json::{Value, json};
use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::Panes;
use crate::world::{COOKIE, LOGIN, World};

fn start(world: &World, arguments: &[&str]) -> Value {
    world.json(["start", "--in", "none", "--json"].iter().chain(arguments))
}

#[test]
fn a_session_is_started_under_a_name() {
    let world = World::with_agents();
    let made = start(&world, &["auth"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["command"], json!(["claude", "--session-id", id, "--name", "auth"]));
    // Without a name: the branch, which is taken the second time.
    assert_eq!(start(&world, &[])["name"], "main");
    assert_eq!(start(&world, &[])["name"], "main-2");
    let directory = world.sandbox.directory("no-repository");
    let output = world.run_in(&directory, ["start", "--in", "none", "--json"]);
    let named: Value = serde_json::from_str(&output.raw).unwrap();
    assert_eq!(named["name"].as_str().unwrap().split('-').count(), 3, "{named:#}");
    let codex = start(&world, &["by-codex", "--agent", "codex"]);
    assert_eq!((&codex["id"], &codex["command"][0]), (&Value::Null, &json!("codex")));
    insta::assert_snapshot!("taken", world.run(["start", "auth"]).whole());
    let text = world.run(["start", "with a space", "--in", "none"]);
    assert_eq!(text.code, 2);
    fs::remove_file(world.sandbox.bin().join("claude")).unwrap();
    insta::assert_snapshot!("no agent", world.run(["start", "another"]).whole());
    // What was not begun is not listed.
    assert_eq!(world.run(["list", "--all"]).out.lines().count(), 4);
}

#[test]
fn a_profile_is_kept_with_its_files() {
    let mut world = World::with_agents();
    world.sandbox.set("HTTPS_PROXY", "http://127.0.0.1:8888").set("ANTHROPIC_API_KEY", "a-secret");
    let settings = world.sandbox.write("settings.json", r#"{"model": "x"}"#);
    let settings = settings.to_str().unwrap();
    let made =
        start(&world, &["auth", "--model", "opus", "--settings", settings, "--", "--verbose", "--add-dir", "a b"]);
    let copy = made["profile"]["files"][0]["copy"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(&copy).unwrap(), r#"{"model": "x"}"#);
    let args = json!(["--verbose", "--add-dir", "a b", "--model", "opus", "--settings", copy]);
    assert_eq!(made["profile"]["args"], args);
    assert_eq!(made["profile"]["environment"]["HTTPS_PROXY"], "http://127.0.0.1:8888");
    assert!(!made.to_string().contains("a-secret"));
    let command: Vec<&str> = made["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(command.iter().filter(|word| **word == "--settings").count(), 1, "{command:?}");
    insta::assert_snapshot!(
        "codex takes no settings",
        world.run(["start", "x2", "--agent", "codex", "--settings", settings]).whole()
    );
    insta::assert_snapshot!("no such profile", world.run(["start", "x2", "--profile", "careful"]).whole());
    world.sandbox.write(
        world.sandbox.root().join("config/tine/config.toml"),
        "[profiles.careful]\nagent = \"claude\"\nargs = [\"--permission-mode\", \"plan\"]\nenv = { EXTRA = \"1\" }\n",
    );
    let made = start(&world, &["x2", "--profile", "careful"]);
    assert_eq!(made["profile"]["args"], json!(["--permission-mode", "plan"]));
    assert_eq!(made["profile"]["environment"]["EXTRA"], "1");
    insta::assert_snapshot!(
        "of another agent",
        world.run(["start", "x3", "--agent", "codex", "--profile", "careful"]).whole()
    );
}

#[test]
fn names_without_a_conversation_can_be_had_again() {
    let world = World::with_agents();
    // Started and never used.
    start(&world, &["idle-start"]);
    insta::assert_snapshot!("unbegun", world.run(["info", "idle-start"]).whole());
    assert_eq!(world.run(["start", "idle-start", "--in", "none"]).code, 1);
    assert_eq!(world.run(["delete", "idle-start", "--yes"]).code, 0);
    start(&world, &["idle-start"]);
    // The transcript was removed by somebody else.
    assert_eq!(world.run(["adopt", LOGIN, "gone"]).code, 0);
    let mut world = world;
    fs::remove_file(world.json(["info", "gone", "--json"])["path"].as_str().unwrap()).unwrap();
    let output = world.run(["info", "gone"]);
    assert!(output.code == 1 && output.err.contains("the transcript of `gone` no longer exists"), "{output:?}");
    world.sandbox.set_now("2026-11-15T13:00:00Z");
    assert_eq!(world.run(["fork", COOKIE, "gone", "--plan"]).code, 0);
    let output = world.run(["info", "gone"]);
    assert!(output.err.contains("the transcript of `gone` no longer exists"), "a plan takes no name away: {output:?}");
    let output = world.run(["rename", COOKIE, "gone"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(world.json(["info", "gone", "--json"])["id"], COOKIE);
    // A file outside of the agents' folders is found by the name that it was adopted under.
    let outside = world.sandbox.root().join("outside.jsonl");
    fs::copy(world.json(["info", COOKIE, "--json"])["path"].as_str().unwrap(), &outside).unwrap();
    assert_eq!(world.run(["adopt", outside.to_str().unwrap(), "from-outside"]).code, 0);
    assert_eq!(world.json(["info", "from-outside", "--json"])["path"], outside.to_str().unwrap());
}

#[test]
fn a_start_under_a_name_that_is_taken_says_how_to_resume_it() {
    let world = World::with_agents();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    let output = world.run(["start", "auth"]);
    assert_eq!(output.code, 1);
    assert_eq!(
        output.err,
        "error: the name `auth` is taken\n\
         hint: `tine resume auth` continues that session; choose another name for a new one\n"
    );
}

#[test]
fn a_place_that_does_not_exist_is_refused() {
    let world = World::with_agents();
    insta::assert_snapshot!("not installed", world.run(["start", "of-wezterm", "--in", "wezterm"]).whole());
    insta::assert_snapshot!("no such place", world.run(["start", "of-screen", "--in", "screen"]).whole());
    // Neither left a name behind, and `auto` finds no terminal around it.
    let forked = world.run(["fork", LOGIN, "auto-one", "--in", "auto", "--yes"]);
    insta::assert_snapshot!("nothing around", forked.whole());
}

/// Only a person decides whether a folder is trusted.
#[test]
fn a_trust_dialog_is_reported_and_not_answered() {
    let panes = Panes::new(Terminal::Tmux);
    let home = panes.world.sandbox.home();
    panes.world.sandbox.write(home.join("untrusted"), "");
    let output = panes.run(&["start", "strange", "--in", "tmux"]);
    assert!(output.code == 1 && output.err.contains("folder trust prompt"), "{output:?}");
    let [pane] = panes.terminal.panes()[..] else { panic!("one pane is open") };
    assert!(panes.terminal.screen(pane).contains("❯ 1. Yes"), "{}", panes.terminal.screen(pane));
    assert_eq!(panes.state("strange"), "waiting");
    let output = panes.run(&["send", "strange", "hello"]);
    assert!(output.code == 1 && output.err.contains("folder trust prompt"), "{output:?}");
    panes.terminal.type_in(pane, "\r");
    wait_until("the agent", PATIENCE, || panes.state("strange") == "idle");
    assert_eq!(panes.tine(&["send", "strange", "hello", "--wait"]), "to hello\n");
}
