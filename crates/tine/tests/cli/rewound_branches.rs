//! Other branches of a session: counted, listed, shown and forked.

use serde_json::Value;
use testkit::build::ClaudeSession;

use crate::world::World;

const ID: &str = "0ddba11e-0000-4000-8000-000000000001";

/// A session in which the second turn was given up for another one.
fn rewound() -> World {
    let world = World::empty();
    ClaudeSession::new(ID)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Where is the quince?").text("In the larder."))
        .turn(|turn| turn.prompt("Bake a tart").text("The tart is baked."))
        .rewind_to(1)
        .turn(|turn| turn.prompt("Cook a jelly").text("The jelly is cooked."))
        .turn(|turn| turn.prompt("Taste it").text("Sweet."))
        .write(&world.sandbox.claude_home());
    world
}

fn prompts(world: &World, spec: &str) -> Vec<String> {
    let shown = world.json(["show", spec, "--json"]);
    let turns = shown["turns"].as_array().unwrap().iter();
    turns.filter_map(|turn| Some(turn["prompt"].as_str()?.to_owned())).collect()
}

#[test]
fn a_branch_given_up_is_counted_listed_shown_and_forked() {
    let world = rewound();
    let before = world.agents_files();
    assert_eq!(world.json(["info", ID, "--json"])["branches"], 1);
    assert!(world.run(["info", ID]).out.contains("1 other; `tine show 0ddba11e --branches` lists them"));
    let branches = world.json(["show", ID, "--branches", "--json"]);
    let branch = &branches[0];
    assert_eq!(branches.as_array().unwrap().len(), 1, "{branches:#}");
    assert_eq!((&branch["turns"], &branch["shared"]), (&2.into(), &1.into()), "{branches:#}");
    assert_eq!(branch["prompt"], "Bake a tart");
    let handle = branch["handle"].as_str().unwrap();
    let listed = world.run(["show", ID, "--branches"]).out;
    assert_eq!(listed, format!("0ddba11e@{handle}  2 turns, 1 shared  Bake a tart\n"));

    let spec = format!("{ID}@{handle}");
    assert_eq!(prompts(&world, ID), ["Where is the quince?", "Cook a jelly", "Taste it"]);
    assert_eq!(prompts(&world, &spec), ["Where is the quince?", "Bake a tart"]);
    assert_eq!(prompts(&world, &format!("{spec}@1")), ["Where is the quince?"]);
    for (spec, expected) in [(spec.clone(), 2), (format!("{spec}@1"), 1)] {
        let fork = world.json(["fork", &spec, "--json"]);
        assert_eq!(fork["method"], "copy", "{fork:#}");
        let id = fork["session"]["id"].as_str().unwrap_or_else(|| panic!("{fork:#}"));
        assert_eq!(prompts(&world, id), ["Where is the quince?", "Bake a tart"][..expected]);
        assert_eq!(world.json(["info", id, "--json"])["defects"], Value::Object(serde_json::Map::new()));
    }
    let after = world.agents_files();
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "the source is as it was");
}

#[test]
fn a_branch_that_is_not_there_and_one_that_means_nothing_are_refused() {
    let world = rewound();
    let unknown = world.run(["show", &format!("{ID}@beef")]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.err.contains("session `0ddba11e` has no branch `beef`"), "{unknown:?}");
    assert!(unknown.err.contains("`tine show 0ddba11e --branches` lists its branches"), "{unknown:?}");
    let branches = world.json(["show", ID, "--branches", "--json"]);
    let spec = format!("{ID}@{}", branches[0]["handle"].as_str().unwrap());
    let resumed = world.run(["resume", &spec, "--in", "none"]);
    assert_eq!(resumed.code, 1, "{resumed:?}");
    let native = world.run(["fork", &spec, "--method", "native"]);
    assert_eq!(native.code, 1, "{native:?}");
}

#[test]
fn what_was_said_on_another_branch_is_found_and_marked() {
    let world = rewound();
    let handle = world.json(["show", ID, "--branches", "--json"])[0]["handle"].clone();
    for engine in ["words", "auto"] {
        let found = world.json(["search", "tart", "--engine", engine, "--json"]);
        let result = &found["results"][0];
        assert_eq!((&result["branch"], &result["turn"]), (&handle, &2.into()), "{engine}: {found:#}");
        assert!(result["snippet"].as_str().unwrap().contains("Bake a tart"), "{engine}: {found:#}");
        let found = world.json(["search", "jelly", "--engine", engine, "--json"]);
        let result = &found["results"][0];
        assert_eq!((&result["branch"], &result["turn"]), (&Value::Null, &2.into()), "{engine}: {found:#}");
    }
    let line = world.run(["search", "tart", "--engine", "words"]).out;
    assert!(line.contains(&format!("turn 2 of 2 on another branch, @{}", handle.as_str().unwrap())), "{line}");
    // What both branches have is found once, in the history.
    let found = world.json(["search", "quince", "--engine", "words", "--json"]);
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found:#}");
    assert_eq!((&found["results"][0]["branch"], &found["results"][0]["turn"]), (&Value::Null, &1.into()));
}

/// Records with ids that are no UUIDs, or UUIDs that begin alike: tools that write transcripts make them up.
#[test]
fn branches_with_odd_ids_are_named_by_what_is_printed() {
    for prefix in ["", "msg-", "0ddba11e-0000-4000-8000-00000000000"] {
        let world = World::empty();
        let record = |kind: &str, id: u32, parent: u32, text: &str| {
            let parent = (parent > 0).then(|| format!("{prefix}{parent}"));
            let content = match kind {
                "user" => Value::from(text),
                _ => serde_json::json!([{"type": "text", "text": text}]),
            };
            serde_json::json!({"type": kind, "uuid": format!("{prefix}{id}"), "parentUuid": parent, "sessionId": ID,
                "cwd": world.shop, "timestamp": format!("2026-11-10T12:00:0{id}.000Z"),
                "message": {"role": kind, "id": format!("m{id}"), "content": content}})
        };
        let lines = [
            record("user", 1, 0, "Peel the pears"),
            record("assistant", 2, 1, "They are peeled."),
            record("user", 3, 2, "Bake them"),
            record("assistant", 4, 3, "They are baked."),
            record("user", 5, 2, "Stew them"),
            record("assistant", 6, 5, "They are stewed."),
            record("user", 7, 2, "Eat them"),
            record("assistant", 8, 7, "They are eaten."),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        world.sandbox.write(world.sandbox.claude_home().join(format!("projects/-x/{ID}.jsonl")), &text);
        let branches = world.json(["show", ID, "--branches", "--json"]);
        let handles: Vec<&str> =
            branches.as_array().unwrap().iter().map(|branch| branch["handle"].as_str().unwrap()).collect();
        assert_eq!(handles.len(), 2, "{branches:#}");
        for (handle, last) in handles.iter().zip(["Stew them", "Bake them"]) {
            assert_eq!(prompts(&world, &format!("{ID}@{handle}")), ["Peel the pears", last]);
            let fork = world.json(["fork", &format!("{ID}@{handle}"), "--json"]);
            assert_eq!(fork["parent"]["turn"], 2, "{fork:#}");
        }
        if prefix.starts_with("0ddba11e") {
            let several = world.run(["show", &format!("{ID}@0ddba11e-0000")]);
            assert_eq!(several.code, 1, "{several:?}");
            assert!(
                several.err.contains("several branches of session `0ddba11e` begin with `0ddba11e-0000`"),
                "{several:?}"
            );
            assert!(handles.iter().all(|handle| several.err.contains(&format!("`0ddba11e@{handle}`"))), "{several:?}");
        }
    }
}
