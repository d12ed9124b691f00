//! `tine show`.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;
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

#[test]
fn a_part_of_a_session_is_not_headed_with_all_its_turns() {
    let world = World::new();
    let check = |arguments: &[&str], expected: &str| {
        for format in [&[][..], &["--markdown"], &["--html"]] {
            let output = world.run([&["show"], arguments, format].concat());
            assert_eq!(output.code, 0, "{output:?}");
            let output = output.out.replace("<dd>", "").replace("</dt>", " ");
            assert!(output.contains(expected), "{expected}: {output}");
            assert!(!output.contains("· 3 turns") && !output.contains("turns: 3"), "{output}");
        }
    };
    check(&[&format!("{LOGIN}@1")], "turn 1 of 3");
    check(&[&format!("{LOGIN}@2")], "turns 1–2 of 3");
    check(&[LOGIN, "--turn", "2"], "turn 2 of 3");
    assert!(world.run(["show", &format!("{LOGIN}@3")]).out.contains("3 turns"));
}

#[test]
fn a_turn_after_the_point_is_not_shown() {
    let world = World::new();
    let output = world.run(["show", &format!("{LOGIN}@1"), "--turn", "2"]);
    assert_eq!((output.code, output.out.as_str()), (1, ""), "{output:?}");
    let label = &LOGIN[..8];
    assert!(output.err.contains(&format!("session `{label}@1` has no turn 2")), "{}", output.err);
    assert!(output.err.contains("ends at turn 1"), "{}", output.err);
    assert_eq!(world.run(["show", &format!("{LOGIN}@2"), "--turn", "2"]).code, 0);
}

#[test]
fn what_is_shared_has_no_secrets_unless_they_are_wanted() {
    let world = World::empty();
    let secret = format!("ghp_{}", "a1b2c3d4e5f6g7h8".repeat(2));
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        // Secrets in titles are masked when they are read, wherever they are shown.
        .title("Keys")
        .turn(|turn| {
            turn.prompt(format!("Is this a key?\n{secret}"))
                .tool("Bash", json!({"command": format!("login {secret}")}), format!("it\n{secret}\n"))
                .text(format!("`{secret}` it is"))
        })
        .write(&world.sandbox.claude_home());
    for (format, masks) in [("--markdown", true), ("--html", true), ("--json", false), ("--color=never", false)] {
        let output = world.run(["show", LOGIN, "--tools", format]);
        assert_eq!(output.out.contains("[secret]"), masks, "{format}: {}", output.out);
        assert_eq!(output.out.contains(&secret), !masks, "{format}: {}", output.out);
        assert_eq!(output.err.contains("redacted 4 secrets"), masks, "{format}: {}", output.err);
        let kept = world.run(["show", LOGIN, "--tools", format, "--keep-secrets"]);
        assert!(kept.out.contains(&secret) && !kept.out.contains("[secret]") && kept.err.is_empty(), "{kept:?}");
    }
}

#[test]
fn a_seed_is_folded_but_never_lost() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("[TINE_FORK_SEED]\nwhat was said before").text("Ready."))
        .turn(|turn| turn.prompt("go on").text("done"))
        .write(&world.sandbox.claude_home());
    for format in ["--color=never", "--markdown", "--html"] {
        let output = world.run(["show", LOGIN, format]).out;
        assert!(!output.contains("what was said before"), "{format}: {output}");
        assert!(output.contains("(transcript of another session)") && output.contains("Ready."), "{format}: {output}");
        let whole = world.run(["show", LOGIN, format, "--seed"]).out;
        assert!(whole.contains("what was said before") && whole.contains("Ready."), "{format}: {whole}");
        assert!(whole.to_lowercase().contains("transcript handed over by tine"), "{format}: {whole}");
    }
    let shown = world.json(["show", LOGIN, "--json"]);
    assert_eq!(shown["turns"][0]["prompt"], "[TINE_FORK_SEED]\nwhat was said before");
    assert_eq!((&shown["turns"][0]["seed"], &shown["turns"][1]["seed"]), (&json!(true), &json!(null)));
    assert_eq!(shown["turns"][0]["blocks"][0]["text"], "Ready.");
    assert_eq!(world.run(["export", "out"]).code, 0);
    let exported = std::fs::read_to_string(world.shop.join(format!("out/claude-{LOGIN}.md"))).unwrap();
    assert!(exported.contains("> what was said before") && exported.contains("Ready."), "{exported}");
    assert!(exported.contains("*Transcript handed over by tine:*"), "{exported}");
}

#[test]
fn a_fresh_seeded_fork_has_no_answer_yet() {
    let world = World::empty();
    let session = ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("[TINE_FORK_SEED]\nwhat was said before").text("Ready."));
    session.write(&world.sandbox.claude_home());
    insta::assert_snapshot!(world.run(["read", LOGIN]).whole());
    session.turn(|turn| turn.prompt("go on").text("done")).write(&world.sandbox.claude_home());
    assert_eq!(world.run(["read", LOGIN]).out, "done\n");
}
