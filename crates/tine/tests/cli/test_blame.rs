//! `tine blame`.
#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};
use testkit::build::claude_project_directory;

use crate::world::World;

const ID: &str = "77777777-7777-4777-8777-777777777777";

/// A session that wrote a file in its first turn and changed it in its second.
fn session(world: &World) {
    let file = world.shop.join("notes.txt");
    let mut lines: Vec<Value> = Vec::new();
    let mut add = |kind: &str, content: Value, result: Value| {
        let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let (number, parent) = (lines.len(), lines.len().checked_sub(1).map(id));
        lines.push(json!({
            "type": kind, "uuid": id(number), "parentUuid": parent, "sessionId": ID, "cwd": world.shop, "version": "2.1.325",
            "timestamp": format!("2026-11-15T10:00:{number:02}.000Z"), "toolUseResult": result,
            "message": {"role": kind, "id": format!("m{number}"), "content": content},
        }));
    };
    let call = |name: &str| json!([{"type": "tool_use", "id": "t", "name": name, "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
    add("user", json!("write \u{1b}[31mnotes"), Value::Null);
    add("assistant", call("Write"), Value::Null);
    let wrote = json!({"type": "create", "filePath": file, "content": "one\ntwo\n", "originalFile": null, "structuredPatch": []});
    add("user", result.clone(), wrote);
    add("user", json!("change two"), Value::Null);
    add("assistant", call("Edit"), Value::Null);
    let patch =
        json!([{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+TWO"]}]);
    let edited = json!({"filePath": file, "oldString": "two", "newString": "TWO", "originalFile": "one\ntwo\n", "structuredPatch": patch});
    add("user", result, edited);
    let folder = claude_project_directory(&world.sandbox.claude_home(), world.shop.to_str().unwrap());
    fs::create_dir_all(&folder).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join(format!("{ID}.jsonl")), text).unwrap();
    fs::write(&file, "one\nTWO\nby hand\n").unwrap();
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
    assert_eq!(blame["lines"][1]["author"]["fork"], json!(["tine", "fork", format!("{ID}@2")]));

    let line = world.run(["blame", &format!("{}:1", file.display())]);
    assert!(line.out.starts_with("one\n") && line.out.contains("turn 1"), "{}", line.out);
    assert!(line.out.contains(&format!("tine fork {ID}@1")) && !line.out.contains('\u{1b}'), "{}", line.out);
    assert!(world.run(["blame", &format!("{}:3", file.display())]).out.contains("no session recorded this line"));
    let missing = world.run(["blame", &format!("{}:9", file.display())]);
    assert_eq!((missing.code, missing.err.contains("has no line 9")), (1, true), "{missing:?}");
    assert_eq!(world.run(["blame", "nowhere.txt"]).code, 1);
}

#[test]
fn turns_that_changed_files_are_marked() {
    let world = World::new();
    session(&world);
    let shown = world.run(["show", ID]);
    assert!(shown.out.contains("changed: +2 −0 notes.txt"), "{}", shown.out);
    assert!(shown.out.contains("changed: +1 −1 notes.txt"), "{}", shown.out);
    let json: Value = serde_json::from_str(&world.run(["show", ID, "--json"]).out).unwrap();
    assert!(json.to_string().contains(r#""notice":"files""#), "{json:#}");
    assert!(world.run(["show", ID, "--markdown"]).out.contains("+1 −1 notes.txt"));
    assert!(world.run(["show", ID, "--html"]).out.contains("+1 −1 notes.txt"));
}
