//! `tine adopt`.

use serde_json::{Value, json};

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

#[test]
fn sessions_are_adopted_once() {
    let world = World::with_agents();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    insta::assert_snapshot!("again", world.run(["adopt", LOGIN, "other"]).whole());
    insta::assert_snapshot!("taken by another", world.run(["adopt", EXPORT, "auth"]).whole());
    // Without a name it gets one from its title; a parent can be told.
    let adopted = world.json(["adopt", STREAM, "--parent", "auth", "--json"]);
    assert_eq!(adopted[0]["name"], "orders-need-a-csv-export");
    assert_eq!(world.json(["info", STREAM, "--json"])["parent"]["name"], "auth");
    let before = world.json(["list", "--all", "--json"]);
    let planned = world.json(["adopt", "--all", "--plan", "--json"]);
    assert_eq!(planned.as_array().unwrap().len(), 2, "{planned:#}");
    assert_eq!(world.json(["list", "--all", "--json"]), before);
    let adopted = world.json(["adopt", "--all", "--json"]);
    assert_eq!(adopted, planned);
    assert_eq!(world.json(["adopt", "--all", "--json"]), json!([]));
    // It can be taken back.
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["adopt", "--all", "--plan", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn an_adoption_is_planned_as_it_is_done() {
    let world = World::with_agents();
    // Three with the same title get three names.
    let planned = world.json(["adopt", "--all", "--plan", "--json"]);
    assert_eq!(world.json(["adopt", "--all", "--dry-run", "--json"]), planned, "the former name of the option");
    let done = world.json(["adopt", "--all", "--json"]);
    assert_eq!(planned, done);
    let names: std::collections::HashSet<_> =
        done.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), done.as_array().unwrap().len());
    let world = World::with_agents();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    for refused in [[LOGIN, "more"], [COOKIE, "auth"]] {
        for dry in [true, false] {
            let mut words = vec!["adopt", refused[0], refused[1]];
            words.extend(dry.then_some("--plan"));
            assert_eq!(world.run(words).code, 1, "{refused:?}");
        }
    }
    // Nobody comes from itself.
    let output = world.run(["adopt", EXPORT, "self", "--parent", EXPORT]);
    assert!(output.code == 1 && output.err.contains("its own descendant"), "{output:?}");
    let output = world.run(["adopt", EXPORT, "self", "--parent", STREAM]);
    assert_eq!(output.code, 1, "{output:?}");
    // What a person said of a parent is taken back with the adoption.
    assert_eq!(world.run(["adopt", EXPORT, "csv", "--parent", "auth"]).code, 0);
    assert_eq!(world.json(["info", "csv", "--json"])["parent"]["name"], "auth");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["info", EXPORT, "--json"])["parent"], Value::Null);
}
