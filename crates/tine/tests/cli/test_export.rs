//! `tine export`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, World};

fn files(world: &World) -> BTreeMap<String, String> {
    let entries = fs::read_dir(world.shop.join("out")).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn every_session_becomes_a_file_with_its_facts_at_the_top() {
    let world = World::new();
    let before = world.agents_files();
    assert_eq!(world.run(["export", "out"]).out, "4 written, 0 unchanged\n");
    let files = files(&world);
    assert_eq!(files.len(), 4);
    let login = &files[&format!("claude-{LOGIN}.md")];
    assert!(login.starts_with("---\ntine: "), "{login}");
    let cwd = world.shop.canonicalize().unwrap();
    for line in [
        format!("session: \"{LOGIN}\""),
        "agent: claude".into(),
        format!("directory: \"{}\"", cwd.display()),
        "created: \"2026-11-10T12:00:00.001Z\"".into(),
        "## Turn 3".into(),
    ] {
        assert!(login.lines().any(|other| other == line), "{line}\n{login}");
    }
    assert!(files.contains_key(&format!("codex-{EXPORT}.md")));
    assert_eq!(world.agents_files(), before);
}

#[test]
fn only_what_changed_is_written_again() {
    let world = World::new();
    assert_eq!(world.run(["export", "out"]).code, 0);
    assert_eq!(world.run(["export", "out"]).out, "0 written, 4 unchanged\n");
    assert_eq!(world.run(["rename", LOGIN, "login-fix"]).code, 0);
    // Its fork names it, too.
    assert_eq!(world.run(["export", "out"]).out, "2 written, 2 unchanged\n");
    assert!(files(&world)[&format!("claude-{LOGIN}.md")].contains("name: \"login-fix\""));
    assert_eq!(world.run(["export", "out", "--agent", "claude", "--tools"]).out, "2 written, 0 unchanged\n");
    assert!(files(&world)[&format!("claude-{LOGIN}.md")].contains("res.redirect(next)"));
    assert_eq!(world.run(["export", "out", "--since", "2026-11-11"]).out, "0 written, 2 unchanged\n");
    assert_eq!(world.run(["export", "out", "--dir", "../blog"]).out, "0 written, 0 unchanged\n");
}

#[test]
fn deleted_sessions_go_on_request_and_nothing_else_does() {
    let world = World::new();
    assert_eq!(world.run(["export", "out"]).code, 0);
    fs::write(world.shop.join("out/notes.md"), "mine").unwrap();
    let path = world.json(["info", COOKIE, "--json"])["path"].as_str().unwrap().to_owned();
    fs::remove_file(path).unwrap();
    assert_eq!(world.run(["export", "out", "--agent", "codex"]).out, "0 written, 2 unchanged\n");
    assert_eq!(files(&world).len(), 5);
    assert_eq!(world.run(["export", "out", "--agent", "codex", "--prune"]).out, "0 written, 2 unchanged, 1 removed\n");
    let left = files(&world);
    assert!(left.len() == 4 && left.contains_key("notes.md") && left.contains_key(&format!("claude-{LOGIN}.md")));
    // A file that is not tine's is not written over.
    fs::write(world.shop.join(format!("out/claude-{LOGIN}.md")), "mine, too").unwrap();
    let output = world.run(["export", "out", "--json"]);
    assert_eq!(output.code, 1);
    assert!(output.out.contains("was not written by tine"), "{}", output.out);
    assert_eq!(files(&world)[&format!("claude-{LOGIN}.md")], "mine, too");
}

#[test]
fn secrets_stay_behind() {
    let world = World::empty();
    let secret = format!("ghp_{}", "a1b2c3d4e5f6g7h8".repeat(2));
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .title(&format!("key {secret}"))
        .turn(|turn| {
            turn.prompt(format!("the key is {secret} here"))
                .tool("Bash", json!({"command": "login", "password": "hunter2hunter2"}), format!("it\n{secret}\n"))
                .tool("Write", json!({"content": format!("it\n{secret}\n")}), "written")
                .text("ok")
        })
        .write(&world.sandbox.claude_home());
    assert_eq!(world.run(["export", "out", "--tools"]).out, "1 written, 0 unchanged, 4 secrets redacted\n");
    let text = &files(&world)[&format!("claude-{LOGIN}.md")];
    assert!(text.contains("[secret]") && !text.contains("a1b2c3d4") && !text.contains("hunter2"), "{text}");
    assert_eq!(world.run(["export", "out", "--tools", "--keep-secrets"]).out, "1 written, 0 unchanged\n");
    let text = &files(&world)[&format!("claude-{LOGIN}.md")];
    assert!(text.contains(&format!("the key is {secret}")) && text.contains("hunter2"), "{text}");
}

/// The hint asked whether the disk is full.
#[test]
fn a_file_in_the_place_of_the_folder_is_named() {
    let world = World::new();
    fs::write(world.shop.join("out"), "mine").unwrap();
    for folder in ["out", "out/below"] {
        let output = world.run(["export", folder]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.err.contains("hint: that is a file; choose a folder"), "{}", output.err);
    }
    assert_eq!(fs::read_to_string(world.shop.join("out")).unwrap(), "mine");
}
