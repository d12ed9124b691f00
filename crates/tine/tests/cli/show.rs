//! `tine show`.

use std::io::Read;
use std::process::Stdio;

use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

#[test]
fn a_transcript_reads_well() {
    let world = World::new();
    insta::assert_snapshot!("claude", world.run(["show", LOGIN]).out);
    insta::assert_snapshot!("claude with tools", world.run(["show", LOGIN, "--tools"]).out);
    insta::assert_snapshot!("codex fork by reference", world.run(["show", STREAM]).out);
    insta::assert_snapshot!("markdown", world.run(["show", EXPORT, "--markdown"]).out);
}

#[test]
fn json_holds_everything() {
    let world = World::new();
    let shown = world.json(["show", LOGIN, "--json"]);
    assert_eq!(shown["session"]["id"], LOGIN);
    let turns = shown["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 3);
    let kinds: Vec<&str> =
        turns[0]["blocks"].as_array().unwrap().iter().map(|block| block["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "call", "output", "answer"]);
    assert_eq!(turns[0]["prompt"], "Why do users land on /undefined after login?");
}

#[test]
fn html_needs_nothing_else() {
    let world = World::new();
    let page = world.run(["show", LOGIN, "--html", "--tools"]).out;
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(page.contains("id=\"turn-3\"") && page.contains("rg redirect src"));
    for outside in ["<script", "<link", "src=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_point_cuts_the_transcript() {
    let world = World::new();
    let prompts = |spec: &str| {
        let shown = world.json(["show", spec, "--json"]);
        shown["turns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| turn["prompt"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(prompts(&format!("{LOGIN}@2")).len(), 2);
    assert_eq!(prompts(&format!("{LOGIN}@-1")).len(), 2);
    assert_eq!(prompts(&format!("{LOGIN}@-2")), ["Why do users land on /undefined after login?"]);
    assert_eq!(prompts(&format!("{COOKIE}@3"))[2], "Try a cookie.");
    assert_eq!(prompts(&format!("{STREAM}@1")), ["Orders need a CSV export."]);
    let one = world.json(["show", LOGIN, "--turn", "2", "--json"]);
    assert_eq!(one["turns"].as_array().unwrap().len(), 1);
    assert_eq!(one["turns"][0]["number"], 2);
    insta::assert_snapshot!(world.run(["show", &format!("{LOGIN}@40")]).whole());
    insta::assert_snapshot!(world.run(["show", LOGIN, "--turn", "9"]).whole());
    insta::assert_snapshot!(world.run(["show", &format!("{LOGIN}@x")]).whole());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let world = World::empty();
    let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop);
    for _ in 0..400 {
        session = session.turn(|turn| turn.prompt("again").text("words ".repeat(400)));
    }
    session.write(&world.sandbox.claude_home());
    for arguments in [&["show", LOGIN][..], &["show", LOGIN, "--json"], &["show", LOGIN, "--html"]] {
        let mut child = world.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine");
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
