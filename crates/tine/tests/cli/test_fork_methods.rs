//! Every method of forking in every place for every agent, with tine's hooks in the agent and without, of sources with a
//! name and without. Programs stand in for the agents; `tests/real/fork_with_hooks.rs` does the same with the real ones.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Dialect};
use testkit::stand_in::{install_claude, install_codex};
use testkit::{StandIn, Terminal};

use crate::world::{EXPORT, LOGIN, TineOutput, World};

const SOURCES: [(&str, &str); 2] = [("claude", LOGIN), ("codex", EXPORT)];

/// A world with one session of each agent, and stand-ins for the agents.
pub(crate) fn world(hooks: bool) -> World {
    let mut world = World::empty();
    world.sandbox.unset("TINE_NOW");
    install_claude(&world.sandbox);
    install_codex(&world.sandbox);
    if hooks {
        assert_eq!(world.run(["setup", "claude", "--yes"]).code, 0);
        world.sandbox.set("STAND_IN_HOOKS", env!("CARGO_BIN_EXE_tine"));
    }
    let say = |number: u32| format!("prompt {number}");
    let claude = ClaudeSession::new(LOGIN).cwd(&world.shop);
    claude
        .turn(|turn| turn.prompt(say(1)).text("one"))
        .turn(|turn| turn.prompt(say(2)).text("two"))
        .write(&world.sandbox.claude_home());
    let codex = CodexSession::new(EXPORT).cwd(&world.shop).dialect(Dialect::Legacy);
    codex
        .turn(|turn| turn.prompt(say(1)).text("one"))
        .turn(|turn| turn.prompt(say(2)).text("two"))
        .write(&world.sandbox.codex_home());
    world
}

/// Every name in use.
fn names(world: &World) -> BTreeSet<String> {
    let sessions = world.json(["list", "--all", "--json"]);
    let name = |session: &Value| session["name"].as_str().map(str::to_owned);
    sessions.as_array().unwrap().iter().filter_map(name).collect()
}

fn forked_events(world: &World) -> Vec<Value> {
    let output = world.run(["events", "--json", "--last", "1000"]);
    let events = output.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "forked").collect()
}

#[test]
fn hooks_in_the_agent_do_not_get_in_the_way_of_a_fork() {
    for (hooks, is_named) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = world(hooks);
        let terminal = StandIn::start(&world.sandbox, Terminal::Tmux);
        let mut expected = BTreeSet::new();
        for (agent, id) in SOURCES.iter().filter(|_| is_named) {
            let name = format!("{agent}-source");
            assert_eq!(world.run(["adopt", id, &name]).code, 0);
            expected.insert(name);
        }
        for (agent, id) in SOURCES {
            for method in ["native", "copy", "seed"] {
                for (place, more) in [("none", None), ("headless", Some("go on")), ("tmux:window", None)] {
                    let case = format!("{agent} {method} {place}, hooks: {hooks}, named: {is_named}");
                    let name = format!("{agent}-{method}-{}", expected.len());
                    let mut command = world.command(["fork", id, &name, "--method", method, "--in", place]);
                    command
                        .args(["--json", "--yes"])
                        .args(more.map(|prompt| ["--prompt", prompt]).into_iter().flatten());
                    let output = TineOutput::of(&world, &command.envs(terminal.environment()).output().unwrap());
                    assert_eq!(output.code, 0, "{case}: {output:?}");
                    let fork: Value = serde_json::from_str(&output.raw).unwrap();
                    let made = (&fork["method"], &fork["session"]["name"]);
                    assert_eq!(made, (&method.into(), &name.clone().into()), "{case}");
                    let parent = &world.json(["info", &name, "--json"])["parent"];
                    assert_eq!((&parent["id"], &parent["source"]), (&id.into(), &"tine".into()), "{case}");
                    expected.insert(name);
                    assert_eq!(names(&world), expected, "{case}");
                }
            }
        }
        // Each fork happened once, and says what it was forked from.
        let events = forked_events(&world);
        assert_eq!(events.len(), 18, "{events:#?}");
        for event in &events {
            let (agent, id) = SOURCES.into_iter().find(|(agent, _)| event["agent"] == *agent).unwrap();
            let name = is_named.then(|| format!("{agent}-source"));
            assert_eq!(event["parent"], json!({"agent": agent, "id": id, "name": name}), "{event:#}");
        }
    }
}

#[test]
fn a_fork_that_fails_leaves_no_name_behind() {
    let mut world = world(true);
    world.sandbox.set("STAND_IN_FAILS", "1");
    // Notes of running processes, which one that fails leaves behind.
    let live = world.sandbox.claude_home().join("sessions");
    for (agent, id) in SOURCES {
        assert_eq!(world.run(["adopt", id, agent]).code, 0);
        let files = || world.agents_files().into_keys().filter(|path| !path.starts_with(&live)).collect::<Vec<_>>();
        let before = files();
        let output = world.run(["fork", agent, "twig", "--method", "native", "--json", "--yes"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert_eq!(files(), before);
    }
    assert_eq!(names(&world), BTreeSet::from(["claude".to_owned(), "codex".to_owned()]));
    assert_eq!(forked_events(&world), Vec::<Value>::new());
    for name in ["claude-fork-1", "codex-fork-1", "twig"] {
        assert_eq!(world.run(["info", name]).code, 1, "{name}");
    }
}
