//! What a fork is known by before anything is said in it: where it works, since when it exists, and its place in the family.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Dialect, versions};
use testkit::stand_in::install_codex;

use crate::world::{EXPORT, LOGIN, World};

/// Writes a Codex thread whose records were changed by `change`; what that returns nothing for is left out.
fn write_changed(world: &World, dialect: Dialect, change: impl Fn(Value) -> Option<Value>) -> PathBuf {
    let session = CodexSession::new(EXPORT).cwd(&world.shop).dialect(dialect);
    let path = session
        .turn(|turn| turn.prompt("one").text("first"))
        .turn(|turn| turn.prompt("two").text("second"))
        .write(&world.sandbox.codex_home());
    let text = fs::read_to_string(&path).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<String> = records.filter_map(change).map(|record| record.to_string() + "\n").collect();
    fs::write(&path, lines.concat()).unwrap();
    path
}

/// Forks a Codex session into a worktree, and holds everything that tells its directory against that.
fn check_worktree(world: &World, source: &str, case: &str) {
    let fork = world.json(["fork", source, "twig", "-w", "--method", "copy", "--json", "--yes"]);
    let tree = fork["workspace"]["path"].as_str().unwrap();
    assert_eq!(fork["session"]["cwd"], tree, "{case}");
    assert_eq!(world.json(["info", "twig", "--json"])["cwd"], tree, "{case}");
    assert_eq!(world.json(["resume", "twig", "--in", "none", "--json"])["session"]["cwd"], tree, "{case}");
    let output = world.run_in(Path::new(tree), ["info", ".", "--json"]);
    let here: Value = serde_json::from_str(&output.raw).unwrap_or_else(|error| panic!("{case}: {error}: {output:?}"));
    assert_eq!(here["name"], "twig", "{case}");
    // It goes on there, and afterwards wherever somebody takes it.
    assert_eq!(world.run(["resume", "twig", "--in", "headless", "--prompt", "go on"]).code, 0, "{case}");
    assert_eq!(world.json(["info", "twig", "--json"])["cwd"], tree, "{case}");
    let blog = world.blog.to_str().unwrap();
    assert_eq!(world.run(["resume", "twig", "--to", blog, "--in", "headless", "--prompt", "on"]).code, 0, "{case}");
    assert_eq!(world.json(["info", "twig", "--json"])["cwd"], blog, "{case}");
}

#[test]
fn a_codex_fork_works_in_its_worktree_whatever_its_source_recorded() {
    type Change = fn(Value) -> Option<Value>;
    let changes: [(&str, Change); 4] = [
        ("as it is", Some),
        ("no world state", |record| (record["type"] != "world_state").then_some(record)),
        ("no turn ids", |mut record| {
            record["payload"].as_object_mut()?.remove("turn_id");
            (record["type"] != "world_state").then_some(record)
        }),
        ("turn ids without a time", |mut record| {
            if let Some(id) = record["payload"].get_mut("turn_id") {
                *id = json!("00000000-0000-4000-8000-000000000000");
            }
            (record["type"] != "world_state").then_some(record)
        }),
    ];
    for dialect in [Dialect::Legacy, Dialect::Paginated] {
        for (case, change) in changes {
            let mut world = World::empty();
            world.sandbox.unset("TINE_NOW");
            install_codex(&world.sandbox);
            write_changed(&world, dialect, change);
            check_worktree(&world, EXPORT, &format!("{dialect:?}, {case}"));
        }
    }
    for old in versions::every().into_iter().filter(|old| old.agent == "codex" && old.can_be_copied()) {
        let mut world = World::empty();
        world.sandbox.unset("TINE_NOW");
        install_codex(&world.sandbox);
        let path = world.sandbox.codex_home().join(&old.path);
        let lines: Vec<String> = old.lines.iter().map(|record| record.to_string() + "\n").collect();
        let text = lines.concat().replace("/home/me/app", world.shop.to_str().unwrap());
        world.sandbox.write(&path, &text);
        check_worktree(&world, &old.id, old.versions);
    }
}

#[test]
fn a_new_fork_is_as_old_as_it_is_and_comes_first() {
    let world = World::new();
    for (source, name) in [(LOGIN, "login-twig"), (EXPORT, "export-twig")] {
        let spec = format!("{source}@1");
        let fork = world.json(["fork", &spec, name, "--json", "--yes"]);
        let now = json!("2026-11-15T12:00:00Z");
        assert_eq!((&fork["session"]["created"], &fork["session"]["updated"]), (&now, &now), "{name}");
        let info = world.json(["info", ".", "--json"]);
        assert_eq!((&info["name"], &info["created"], &info["updated"]), (&name.into(), &now, &now));
        assert_eq!(world.json(["list", "--json"])[0]["name"], name);
    }
}

/// Without the registry, a copy for Codex was last changed hours before it was made, and stood below its source.
#[test]
fn a_codex_fork_that_the_registry_forgot_is_not_older_than_itself() {
    let mut world = World::empty();
    world.sandbox.unset("TINE_NOW");
    write_changed(&world, Dialect::Legacy, Some);
    assert_eq!(world.run(["fork", EXPORT, "twig", "--yes"]).code, 0);
    world.sandbox.set("TINE_REGISTRY", world.sandbox.root().join("another.db"));
    let sessions = world.json(["list", "--agent", "codex", "--json"]);
    assert_eq!((&sessions[0]["name"], &sessions[0]["parent"]["id"]), (&Value::Null, &EXPORT.into()), "{sessions:#}");
    assert!(sessions[0]["updated"].as_str() >= sessions[0]["created"].as_str(), "{sessions:#}");
}

/// Claude Code copies records with their times when it forks.
#[test]
fn a_fork_made_inside_claude_code_is_as_old_as_its_file() {
    const UNUSED: &str = "00000000-0000-4000-8000-000000000001";
    let mut world = World::new();
    world.sandbox.unset("TINE_NOW");
    let login = world.json(["info", LOGIN, "--json"]);
    let session = ClaudeSession::new(LOGIN).cwd(&world.shop).seed(1);
    let session = session.turn(|turn| turn.prompt("Why?").text("Because."));
    session.write(&world.sandbox.claude_home());
    session.branch(UNUSED).write(&world.sandbox.claude_home());
    let unused = world.json(["info", UNUSED, "--json"]);
    assert_eq!(unused["parent"]["id"], LOGIN);
    assert!(unused["created"].as_str() > login["updated"].as_str(), "{unused:#}");
    assert!(unused["updated"].as_str() >= unused["created"].as_str(), "{unused:#}");
    assert_eq!(world.json(["list", "--json"])[0]["id"], UNUSED);
}

#[test]
fn siblings_stand_in_the_order_in_which_they_were_made() {
    let world = World::new();
    let names = ["oak", "ash", "elm", "yew", "fir", "box"];
    for name in names {
        world.json(["fork", LOGIN, name, "--json", "--yes"]);
    }
    let trees = world.json(["tree", LOGIN, "--json"]);
    let children = trees[0]["children"].as_array().unwrap();
    let made: Vec<&str> = children.iter().filter_map(|child| child["name"].as_str()).collect();
    assert_eq!(made, names);
}
