//! `tine start`, `resume`, `adopt`, `rename`: sessions by name.

use std::fs;

use serde_json::{Value, json};
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

/// A world in which both agents are installed, as programs that do nothing.
fn world() -> World {
    let world = World::new();
    for agent in ["claude", "codex"] {
        world.sandbox.script(agent, "#!/bin/sh\nexit 0\n");
    }
    world
}

fn start(world: &World, arguments: &[&str]) -> Value {
    world.json(["start", "--in", "none", "--json"].iter().chain(arguments))
}

#[test]
fn a_session_is_started_under_a_name() {
    let world = world();
    let made = start(&world, &["auth"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["command"], json!(["claude", "--session-id", id, "--name", "auth"]));
    // Without a name: the branch, which is taken the second time.
    assert_eq!(start(&world, &[])["name"], "main");
    assert_eq!(start(&world, &[])["name"], "main-2");
    let directory = world.sandbox.directory("no-repository");
    let told = world.run_in(&directory, ["start", "--in", "none", "--json"]);
    let named: Value = serde_json::from_str(&told.raw).unwrap();
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
fn a_profile_is_kept_without_session_flags_and_with_its_files() {
    let mut world = world();
    world.sandbox.set("HTTPS_PROXY", "http://127.0.0.1:8888").set("ANTHROPIC_API_KEY", "a-secret");
    let settings = world.sandbox.write("settings.json", r#"{"model": "x"}"#);
    let settings = settings.to_str().unwrap();
    let made = start(
        &world,
        &["auth", "--model", "opus", "--settings", settings, "--", "--resume", "x", "--verbose", "--add-dir", "a b"],
    );
    let copy = made["profile"]["files"][0]["copy"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(&copy).unwrap(), r#"{"model": "x"}"#);
    let args = json!(["--verbose", "--add-dir", "a b", "--model", "opus", "--settings", copy]);
    assert_eq!(made["profile"]["args"], args);
    assert_eq!(made["profile"]["environment"]["HTTPS_PROXY"], "http://127.0.0.1:8888");
    assert!(!made.to_string().contains("a-secret"));
    let command: Vec<&str> = made["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(command.iter().filter(|word| **word == "--settings").count(), 1, "{command:?}");
    assert!(!command.contains(&"--resume"));
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
fn a_session_is_resumed_where_it_works() {
    let world = world();
    let told = world.run_in(&world.blog, ["resume", LOGIN]);
    assert_eq!(told.out, format!("cd [ROOT]/work/shop && claude --resume {LOGIN}\n"), "{}", told.err);
    let told = world.json(["resume", EXPORT, "--prompt", "-go 'on'", "--json", "--", "--search"]);
    let shop = world.shop.canonicalize().unwrap();
    let expected = json!(["codex", "resume", EXPORT, "-C", shop, "--search", "--", "-go 'on'"]);
    assert_eq!(told["command"], expected);
    // A directory that was moved is found again.
    let moved = world.sandbox.work().join("elsewhere");
    fs::create_dir(&moved).unwrap();
    fs::rename(&world.shop, moved.join("shop")).unwrap();
    insta::assert_snapshot!("gone", world.run_in(&world.blog, ["resume", LOGIN]).whole());
    let told = world.run_in(&world.blog, ["resume", LOGIN, "--to", "../elsewhere/shop"]);
    assert!(told.out.starts_with("cd "), "{}", told.whole());
}

#[test]
fn sessions_are_adopted_once() {
    let world = world();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    insta::assert_snapshot!("again", world.run(["adopt", LOGIN, "other"]).whole());
    insta::assert_snapshot!("taken by another", world.run(["adopt", EXPORT, "auth"]).whole());
    // Without a name it gets one from its title; a parent can be told.
    let adopted = world.json(["adopt", STREAM, "--parent", "auth", "--json"]);
    assert_eq!(adopted[0]["name"], "orders-need-a-csv-export");
    assert_eq!(world.json(["info", STREAM, "--json"])["parent"]["name"], "auth");
    let before = world.json(["list", "--all", "--json"]);
    let planned = world.json(["adopt", "--all", "--dry-run", "--json"]);
    assert_eq!(planned.as_array().unwrap().len(), 2, "{planned:#}");
    assert_eq!(world.json(["list", "--all", "--json"]), before);
    let adopted = world.json(["adopt", "--all", "--json"]);
    assert_eq!(adopted, planned);
    assert_eq!(world.json(["adopt", "--all", "--json"]), json!([]));
    // It can be taken back.
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["adopt", "--all", "--dry-run", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_new_name_is_shown_by_the_agent_too() {
    let world = world();
    world.run(["adopt", COOKIE, "cookies"]);
    let path = world.json(["info", "cookies", "--json"])["path"].as_str().unwrap().to_owned();
    let told = world.run(["rename", "cookies", "biscuits"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let info = world.json(["info", "biscuits", "--json"]);
    assert_eq!((&info["id"], &info["custom_title"]), (&json!(COOKIE), &json!("biscuits")));
    assert!(fs::read_to_string(path).unwrap().ends_with("}\n"));
    assert_eq!(world.run(["info", "cookies"]).code, 1);
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["info", "cookies", "--json"])["id"], COOKIE);
    world.run(["adopt", LOGIN, "auth"]);
    insta::assert_snapshot!("rename to one that is taken", world.run(["rename", "cookies", "auth"]).whole());
}

#[test]
fn a_session_in_which_nothing_was_said_is_cloned_with_its_directory() {
    let world = world();
    fs::write(world.shop.join("work in progress"), "half").unwrap();
    start(&world, &["unbegun"]);
    let twin = world.shop.with_file_name("twin");
    let words = ["clone", "unbegun", "twin", "--to", "../twin", "--json"];
    let plan = world.json(words.iter().chain(&["--plan"]));
    assert!(!twin.exists());
    let told = world.run(["clone", "unbegun", "twin", "--to", "../twin", "--plan"]);
    assert!(told.code == 0 && told.out.contains("nothing was said yet"), "{told:?}");
    let made = world.json(words);
    // Programs find everything where it is of any other fork.
    let fork = world.json(["fork", LOGIN, "--plan", "--json"]);
    for field in fork.as_object().unwrap().keys() {
        assert!(plan.get(field).is_some() && made.get(field).is_some(), "{field}: {made:#}");
    }
    for field in fork["session"].as_object().unwrap().keys() {
        assert!(made["session"].get(field).is_some() && made["parent"].get(field).is_some(), "{field}: {made:#}");
    }
    assert_eq!((&plan["operation"], &made["operation"]), (&json!(null), &json!(1)));
    assert_eq!(made["parent"]["name"], "unbegun");
    let session = &made["session"];
    assert_eq!((&session["name"], session["cwd"].as_str()), (&json!("twin"), twin.canonicalize().unwrap().to_str()));
    assert_eq!(fs::read_to_string(twin.join("work in progress")).unwrap(), "half");
    assert_eq!(made["command"][1], "--session-id");
    let home = world.sandbox.claude_home();
    let said = ClaudeSession::new(session["id"].as_str().unwrap()).cwd(twin.canonicalize().unwrap());
    let path = said.turn(|turn| turn.prompt("hi").text("ok")).write(&home);
    let told = world.run(["undo"]);
    assert!(told.code == 1 && told.err.contains("has grown since"), "{told:?}");
    fs::remove_file(path).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!twin.exists());
    assert_eq!(world.run(["clone", "nobody"]).code, 1);
}

#[test]
fn names_without_a_conversation_can_be_had_again() {
    let world = world();
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
    let told = world.run(["info", "gone"]);
    assert!(told.code == 1 && told.err.contains("the transcript of `gone` is gone"), "{told:?}");
    world.sandbox.set_now("2026-11-15T13:00:00Z");
    assert_eq!(world.run(["fork", COOKIE, "gone", "--plan"]).code, 0);
    let told = world.run(["info", "gone"]);
    assert!(told.err.contains("the transcript of `gone` is gone"), "a plan takes no name away: {told:?}");
    let told = world.run(["rename", COOKIE, "gone"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(world.json(["info", "gone", "--json"])["id"], COOKIE);
    // A file outside of the agents' folders is found by the name that it was adopted under.
    let outside = world.sandbox.root().join("outside.jsonl");
    fs::copy(world.json(["info", COOKIE, "--json"])["path"].as_str().unwrap(), &outside).unwrap();
    assert_eq!(world.run(["adopt", outside.to_str().unwrap(), "from-outside"]).code, 0);
    assert_eq!(world.json(["info", "from-outside", "--json"])["path"], outside.to_str().unwrap());
}

#[test]
fn an_adoption_is_planned_as_it_is_done() {
    let world = world();
    // Three with the same title get three names.
    let planned = world.json(["adopt", "--all", "--dry-run", "--json"]);
    let done = world.json(["adopt", "--all", "--json"]);
    assert_eq!(planned, done);
    let names: std::collections::HashSet<_> =
        done.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), done.as_array().unwrap().len());
    let world = self::world();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    for refused in [[LOGIN, "more"], [COOKIE, "auth"]] {
        for dry in [true, false] {
            let mut words = vec!["adopt", refused[0], refused[1]];
            words.extend(dry.then_some("--dry-run"));
            assert_eq!(world.run(words).code, 1, "{refused:?}");
        }
    }
    // Nobody comes from itself.
    let told = world.run(["adopt", EXPORT, "self", "--parent", EXPORT]);
    assert!(told.code == 1 && told.err.contains("which comes from it"), "{told:?}");
    let told = world.run(["adopt", EXPORT, "self", "--parent", STREAM]);
    assert_eq!(told.code, 1, "{told:?}");
    // What a person said of a parent is taken back with the adoption.
    assert_eq!(world.run(["adopt", EXPORT, "csv", "--parent", "auth"]).code, 0);
    assert_eq!(world.json(["info", "csv", "--json"])["parent"]["name"], "auth");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["info", EXPORT, "--json"])["parent"], Value::Null);
}
