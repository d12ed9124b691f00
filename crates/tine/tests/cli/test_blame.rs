//! `tine blame`.
#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};

use crate::edits::{EDITS, Edits};
use crate::world::World;

/// A session that wrote a file in its first turn and changed it in its second.
fn session(world: &World) {
    let edits = Edits::new(world).turn("write \u{1b}[31mnotes").write("notes.txt", "one\ntwo\n");
    edits.turn("change two").write("notes.txt", "one\nTWO\n").finish();
    fs::write(world.shop.join("notes.txt"), "one\nTWO\nby hand\n").unwrap();
}

#[test]
fn lines_have_the_turn_that_wrote_them() {
    let world = World::new();
    session(&world);
    let file = world.shop.join("notes.txt");
    let output = world.run(["blame", file.to_str().unwrap(), "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let blame: Value = serde_json::from_str(&output.out).unwrap();
    let turns: Vec<&Value> = blame["lines"].as_array().unwrap().iter().map(|line| &line["author"]["turn"]).collect();
    assert_eq!(turns, [&json!(1), &json!(2), &Value::Null]);
    assert_eq!(blame["lines"][1]["author"]["fork"], json!(["tine", "fork", "77777777@2"]));

    let line = world.run(["blame", &format!("{}:1", file.display())]);
    assert!(line.out.starts_with("one\n") && line.out.contains("turn 1"), "{}", line.out);
    assert!(line.out.contains("tine fork 77777777@1") && !line.out.contains('\u{1b}'), "{}", line.out);
    assert!(world.run(["blame", &format!("{}:3", file.display())]).out.contains("no session recorded this line"));
    let missing = world.run(["blame", &format!("{}:9", file.display())]);
    assert_eq!((missing.code, missing.err.contains("has no line 9")), (1, true), "{missing:?}");
    assert_eq!(world.run(["blame", "nowhere.txt"]).code, 1);
}

#[test]
fn turns_that_changed_files_are_marked() {
    let world = World::new();
    session(&world);
    let shown = world.run(["show", EDITS]);
    assert!(shown.out.contains("changed: +2 −0 notes.txt"), "{}", shown.out);
    assert!(shown.out.contains("changed: +1 −1 notes.txt"), "{}", shown.out);
    let json: Value = serde_json::from_str(&world.run(["show", EDITS, "--json"]).out).unwrap();
    assert!(json.to_string().contains(r#""notice":"files""#), "{json:#}");
    assert!(world.run(["show", EDITS, "--markdown"]).out.contains("+1 −1 notes.txt"));
    assert!(world.run(["show", EDITS, "--html"]).out.contains("+1 −1 notes.txt"));
}
