//! The JSON of commands is as `docs/schemas` describes it.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::schema;

use crate::world::{EXPORT, LOGIN, STREAM, World};

#[track_caller]
fn check(world: &World, words: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{}.json", words[0]));
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let printed = world.json(words.iter().copied().chain(["--json"]));
    if let Err(difference) = schema::check(&schema, &printed) {
        panic!("`tine {}`: {difference}", words.join(" "));
    }
}

#[test]
fn output_is_as_the_schemas_say() {
    let world = World::new();
    for words in [
        &["show", LOGIN][..],
        &["show", EXPORT],
        &["show", STREAM],
        &["list", "--all"],
        &["info", LOGIN],
        &["tree", "--all"],
        &["search", "redirect", "--engine", "words"],
        &["fork", LOGIN, "schema-check", "--plan"],
        &["fork", LOGIN, "schema-check", "--in", "none"],
        &["log"],
        &["status"],
        &["status", LOGIN],
        &["doctor"],
    ] {
        check(&world, words);
    }
}
