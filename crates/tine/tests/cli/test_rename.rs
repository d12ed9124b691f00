//! `tine rename`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

#[test]
fn a_new_name_is_shown_by_the_agent_too() {
    let world = World::with_agents();
    world.run(["adopt", COOKIE, "cookies"]);
    let path = world.json(["info", "cookies", "--json"])["path"].as_str().unwrap().to_owned();
    let output = world.run(["rename", "cookies", "biscuits"]);
    assert_eq!(output.code, 0, "{}", output.err);
    let info = world.json(["info", "biscuits", "--json"]);
    assert_eq!((&info["id"], &info["custom_title"]), (&json!(COOKIE), &json!("biscuits")));
    assert!(fs::read_to_string(path).unwrap().ends_with("}\n"));
    assert_eq!(world.run(["info", "cookies"]).code, 1);
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["info", "cookies", "--json"])["id"], COOKIE);
    world.run(["adopt", LOGIN, "auth"]);
    insta::assert_snapshot!("rename to one that is taken", world.run(["rename", "cookies", "auth"]).whole());
}

/// The title stayed in the transcript, and `adopt --all` took it for a name.
#[test]
fn undoing_a_renaming_leaves_no_title_behind() {
    let world = World::with_agents();
    let path = PathBuf::from(world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap());
    let (before, modified) = (world.agents_files(), fs::metadata(&path).unwrap().modified().unwrap());
    for name in ["biscuits", "cakes"] {
        assert_eq!(world.run(["rename", LOGIN, name]).code, 0);
    }
    for _ in 0..2 {
        let output = world.run(["undo"]);
        assert_eq!((output.code, output.err.contains("warning")), (0, false), "{}", output.whole());
    }
    assert_eq!(world.agents_files(), before);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    let adopted = world.json(["adopt", "--all", "--plan", "--json"]).to_string();
    assert!(!adopted.contains("biscuits") && !adopted.contains("cakes"), "{adopted}");

    // What was said since stays, and the title doesn't count any more.
    assert_eq!(world.run(["rename", LOGIN, "biscuits"]).code, 0);
    let said = format!(
        "{{\"type\":\"user\",\"sessionId\":\"{LOGIN}\",\"uuid\":\"x\",\"message\":{{\"role\":\"user\",\"content\":\"more\"}}}}\n"
    );
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(said.as_bytes()).unwrap();
    let grown = fs::read_to_string(&path).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(fs::read_to_string(&path).unwrap().starts_with(&grown));
    assert_eq!(world.json(["info", LOGIN, "--json"])["custom_title"], json!(null));
    // A title that somebody gave it is there again.
    let own = format!("{{\"type\":\"custom-title\",\"customTitle\":\"my own\",\"sessionId\":\"{LOGIN}\"}}\n");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(own.as_bytes()).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(world.run(["rename", LOGIN, "biscuits"]).code, 0);
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(world.json(["info", LOGIN, "--json"])["custom_title"], "my own");
}

/// Codex takes no empty name. Its list shows how a thread without a name begins.
#[test]
fn undoing_a_renaming_leaves_no_name_in_codexs_list() {
    const CODEX: &str = r#"#!/bin/sh
[ "$1" = app-server ] || exit 0
value() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"*\([^,}\"]*\).*/\1/p"; }
while read -r line; do
    case $line in *thread/name/set*)
        printf '{"id":"%s","thread_name":"%s"}\n' "$(value threadId)" "$(value name)" >> "$CODEX_HOME/session_index.jsonl"
        echo "$(value name)" >> "$CODEX_HOME/../names" ;;
    esac
    case $line in *'"id"'*) printf '{"id":%s,"result":{"thread":{"preview":"how it begins"}}}\n' "$(value id)" ;; esac
done
"#;
    let world = World::with_agents();
    world.sandbox.script("codex", CODEX);
    let index = world.sandbox.codex_home().join("session_index.jsonl");
    let names = || fs::read_to_string(world.sandbox.root().join("home/names")).unwrap();
    let title = || world.json(["info", EXPORT, "--json"])["custom_title"].clone();
    let before = world.agents_files();
    assert_eq!(world.run(["rename", EXPORT, "sheets"]).code, 0);
    assert_eq!(title(), "sheets");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(names(), "sheets\nhow it begins\n");
    assert!(!index.exists(), "{:?}", fs::read_to_string(&index));
    assert!(world.agents_files() == before);

    let own = format!("{{\"id\":\"{EXPORT}\",\"thread_name\":\"my own\"}}\n");
    fs::write(&index, &own).unwrap();
    assert_eq!(world.run(["rename", EXPORT, "sheets"]).code, 0);
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(fs::read_to_string(&index).unwrap(), own);
    assert!(names().ends_with("sheets\nmy own\n"));
    // Another thread was named meanwhile: all stays, and the last name counts.
    assert_eq!(world.run(["rename", EXPORT, "sheets"]).code, 0);
    let other = format!("{{\"id\":\"{STREAM}\",\"thread_name\":\"other\"}}\n");
    fs::OpenOptions::new().append(true).open(&index).unwrap().write_all(other.as_bytes()).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(title(), "my own");
    assert_eq!(world.json(["info", STREAM, "--json"])["custom_title"], "other");
}
