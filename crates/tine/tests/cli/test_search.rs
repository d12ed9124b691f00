//! `tine search` and `tine index`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World, is_harmless};

/// The ids and turns that a search by words finds, best first.
pub fn found(world: &World, arguments: &[&str]) -> Vec<(String, u64)> {
    let answer = world.json(["search", "--json", "--engine", "words"].iter().chain(arguments));
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .map(|one| (one["session"]["id"].as_str().unwrap().to_owned(), one["turn"].as_u64().unwrap()))
        .collect()
}

pub fn ids(world: &World, arguments: &[&str]) -> Vec<String> {
    found(world, arguments).into_iter().map(|(id, _)| id).collect()
}

pub fn messages(answer: &Value) -> String {
    answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["message"].as_str().unwrap().to_owned() + "\n")
        .collect()
}

pub(crate) fn cache(world: &World) -> PathBuf {
    let found = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_CACHE_HOME");
    Path::new(&found.unwrap().1).join("tine")
}

pub(crate) fn index(world: &World) -> PathBuf {
    cache(world).join("index/words-6")
}

#[test]
fn who_has_no_sessions_is_told_so() {
    let world = World::empty();
    for command in [["search", "login"], ["smart-fork", "login"]] {
        let output = world.run(command);
        assert!(output.whole().contains("no sessions yet"), "{output:?}");
        assert!(!output.whole().contains("no session contains"), "{output:?}");
    }
}

#[test]
fn what_was_said_is_found_with_its_turn() {
    let world = World::new();
    let before = world.agents_files();
    assert_eq!(found(&world, &["hidden field"]), [(LOGIN.to_owned(), 2)]);
    assert_eq!(found(&world, &["stream"])[0], (STREAM.to_owned(), 2));
    assert_eq!(found(&world, &["a test that passes"])[0], (LOGIN.to_owned(), 3));
    assert_eq!(found(&world, &["agent:codex", "export"])[0], (EXPORT.to_owned(), 1));
    assert_eq!(world.agents_files(), before);
    insta::assert_snapshot!(world.run(["search", "--engine", "words", "redirect", "login"]).whole());
    let json = world.run(["search", "--engine", "words", "redirect", "login", "--json"]).out;
    insta::assert_snapshot!(json);
}

#[test]
fn a_shared_history_is_found_once_with_its_forks_named() {
    let world = World::new();
    let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    let (first, second) =
        (&answer["results"][0], if answer["results"][0]["session"]["id"] == LOGIN { COOKIE } else { LOGIN });
    assert_eq!(first["forks"].as_array().unwrap().len(), 1);
    assert!(second.starts_with(first["forks"][0].as_str().unwrap()), "{first}");
    // Codex's fork refers to its source.
    let answer = world.json(["search", "--json", "--engine", "words", "CSV"]);
    assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["results"][0]["session"]["id"], EXPORT);
    // When the session is gone in which it was said, the fork has it.
    let owner = PathBuf::from(
        world.json(["search", "--json", "--engine", "words", "undefined"])["results"][0]["session"]["path"]
            .as_str()
            .unwrap(),
    );
    fs::remove_file(owner).unwrap();
    assert_eq!(ids(&world, &["undefined"]), [second]);
}

#[test]
fn a_fork_is_shown_where_only_it_is_asked_for() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let source =
        ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("the marmalade question").text("yes"));
    source.write(&claude);
    source.branch(COOKIE).cwd(&world.blog).turn(|turn| turn.prompt("more").text("yes")).write(&claude);
    assert_eq!(ids(&world, &["marmalade"]), [LOGIN]);
    assert_eq!(ids(&world, &["marmalade", "--dir", "../blog"]), [COOKIE]);
}

#[test]
fn a_snippet_shows_as_many_of_the_words_as_it_can() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let noise = "lorem ipsum dolor sit amet\n".repeat(1600);
    let bash = |command: &str| json!({ "command": command });
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            let turn = turn.prompt("please look at alphaword now").tool("Bash", bash("x"), &noise);
            turn.text("The bravoword and charlieword were both wrong.")
        })
        .turn(|turn| {
            let turn = turn.prompt("look into the foxtrotx").tool("Bash", bash("y"), &noise);
            turn.tool("Bash", bash("z"), "golfx foxtrotx hotelx trace").text("Yes.")
        })
        .turn(|turn| {
            let turn = turn.prompt("fix the loginx redirectx");
            turn.tool("Bash", bash("w"), "loginx redirectx failed with errcode4711").text("Done.")
        })
        .turn(|turn| {
            let turn = turn.prompt("Let the admin page requeue dead jobs.");
            turn.tool("Bash", bash("v"), "fn requeue_dead_letter() {}").text("Every letter is there.")
        })
        .write(&claude);
    let other = ClaudeSession::new(COOKIE).seed(5).cwd(&world.shop);
    other.turn(|turn| turn.prompt("deltaword echoword here").text("ok")).write(&claude);
    let snippet = |query: &str| {
        let answer = world.json(["search", "--json", "--engine", "words", query]);
        let results = answer["results"].as_array().unwrap();
        let one = results.iter().find(|one| one["session"]["id"] == LOGIN).unwrap();
        one["snippet"].to_string()
    };
    for (query, shown) in [
        ("alphaword bravoword charlieword deltaword echoword", "charlieword"),
        ("foxtrotx golfx hotelx", "hotelx"),
        ("loginx redirectx errcode4711", "errcode4711"),
        ("loginx redirectx", "fix the"),
        ("requeue_dead_letter", "requeue_dead_letter"),
        ("tool:Bash", "please look"),
    ] {
        assert!(snippet(query).contains(shown), "{query}: {}", snippet(query));
    }
}

#[test]
fn a_session_is_found_by_every_branch_that_it_was_on() {
    let world = World::new();
    let listed = world.json(["list", "--json"]);
    let login = listed.as_array().unwrap().iter().find(|session| session["id"] == LOGIN).unwrap();
    let path = login["path"].as_str().unwrap();
    let content = fs::read_to_string(path).unwrap();
    fs::write(path, content.replacen("\"gitBranch\":\"fix/login\"", "\"gitBranch\":\"try/login\"", 2)).unwrap();
    for branch in ["try/login", "fix/login"] {
        assert_eq!(ids(&world, &["redirect", "--branch", branch]), [LOGIN], "{branch}");
    }
    assert_eq!(ids(&world, &["redirect", "--branch", "login"]), [""; 0]);
    assert_eq!(world.json(["info", LOGIN, "--json"])["branch"], "fix/login", "it works on the last one");
}

#[test]
fn filters_stand_beside_the_query_and_inside() {
    let world = World::new();
    let check = |arguments: &[&str], expected: &[&str]| assert_eq!(ids(&world, arguments), expected, "{arguments:?}");
    check(&["redirect", "--agent", "codex"], &[]);
    check(&["redirect agent:claude"], &[LOGIN]);
    check(&["redirect", "--branch", "fix/login"], &[LOGIN]);
    check(&["redirect branch:main"], &[]);
    check(&["redirect", "--dir", "../blog"], &[]);
    check(&["redirect dir:."], &[LOGIN]);
    check(&["--tool", "bash"], &[LOGIN]);
    check(&["tool:exec_command"], &[EXPORT]);
    check(&["redirect since:1w"], &[LOGIN]);
    check(&["redirect", "--since", "2026-11-12"], &[]);
    check(&["redirect", "--until", "2026-11-12"], &[LOGIN]);
    check(&["redirect -login"], &[]);
    check(&["\"hidden field\""], &[LOGIN]);
    check(&["\"field hidden\""], &[LOGIN]);
    check(&["done -\"hidden field\""], &[]);
    check(&["\"a target that the form\""], &[LOGIN]);
    check(&["+cookie +undefined"], &[]);
}

#[test]
fn identifiers_paths_commands_and_tool_output_are_found() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("Where is it?")
                .tool(
                    "Read",
                    json!({"file_path": "/home/me/shop/src/auth/tokenStore.ts"}),
                    "export function parseConfigFile(a_b) {}",
                )
                .tool(
                    "Bash",
                    json!({"command": "cargo test --package zebra && cat docs/plan.md"}),
                    "error[E0308]: mismatched types",
                )
                .text("There.")
        })
        .write(&world.sandbox.claude_home());
    for query in
        ["parseConfigFile", "parse_config_file", "parseconfigfile", "config", "E0308", "zebra", "tokenstore", "store"]
    {
        assert_eq!(ids(&world, &[query]), [LOGIN], "{query}");
    }
    for file in [
        "src/auth/tokenStore.ts",
        "tokenStore.ts",
        "/home/me/shop/src/auth/tokenStore.ts",
        "docs/plan.md",
        "./docs/plan.md",
    ] {
        assert_eq!(ids(&world, &["--file", file]), [LOGIN], "{file}");
    }
    assert!(ids(&world, &["--file", "store.ts"]).is_empty());
}

#[test]
fn prose_ranks_before_tool_output() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Look.").tool("Bash", json!({"command": "x"}), "walrus walrus walrus").text("Seen."))
        .write(&claude);
    ClaudeSession::new(COOKIE).cwd(&world.shop).turn(|turn| turn.prompt("Is it a walrus?").text("Yes.")).write(&claude);
    assert_eq!(ids(&world, &["walrus"]), [COOKIE, LOGIN]);
}

#[test]
fn secrets_are_neither_indexed_nor_shown() {
    let world = World::empty();
    let secret = format!("ghp_{}", "a1b2c3d4e5f6g7h8".repeat(2));
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt(format!("the quince key is {secret} here"))
                .tool("Bash", json!({"command": format!("curl -H {secret}")}), format!("quince\n{secret}\n"))
                .tool("Write", json!({"content": format!("quince\n{secret}\n")}), format!("quince \u{1b}[1m{secret}"))
                .text("ok")
        })
        .write(&world.sandbox.claude_home());
    let output = world.run(["search", "quince"]);
    assert!(output.out.contains("[secret]") && !output.out.contains(&secret), "{}", output.out);
    assert!(ids(&world, &[&format!("+{}", &secret[4..])]).is_empty());
    for entry in fs::read_dir(index(&world)).unwrap().flatten() {
        let bytes = fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(20).any(|window| window == &secret.as_bytes()[4..24]), "{:?}", entry.path());
    }
}

#[test]
fn nothing_of_a_transcript_controls_the_terminal() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .title("\u{1b}]0;owned\u{7}title")
        .turn(|turn| turn.prompt("\u{1b}[2Jred \u{9b}31mpapaya\u{202e}\r\n\u{8}").text("\u{1b}]52;c;aGk=\u{7}papaya"))
        .write(&world.sandbox.claude_home());
    for arguments in [
        &["search", "papaya"][..],
        &["search", "papaya", "--json"],
        &["search", "\u{1b}[31mpapaya"],
        &["search", "title"],
    ] {
        let output = world.run(arguments);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.out.contains("papaya") || output.out.contains("title"), "{output:?}");
        assert!(is_harmless(&output.raw) && is_harmless(&output.err), "{output:?}");
    }
}

#[test]
fn names_and_ids_are_found() {
    let world = World::new();
    assert_eq!(world.run(["rename", EXPORT, "csv-work"]).code, 0);
    assert_eq!(ids(&world, &["csv-work"])[0], EXPORT);
    assert_eq!(ids(&world, &["work on csv"])[0], EXPORT);
    assert_eq!(ids(&world, &[LOGIN])[0], LOGIN);
    assert_eq!(ids(&world, &[&COOKIE[..8]])[0], COOKIE);
    for asked in [&COOKIE[..5], &COOKIE.to_uppercase(), &format!("{} since:2020-01-01", &COOKIE[..8])] {
        assert_eq!(ids(&world, &[asked]), [COOKIE], "{asked}");
    }
    assert_eq!(ids(&world, &[&format!("{} until:2020-01-01", &COOKIE[..8])]), [""; 0]);
    assert_eq!(ids(&world, &["Login by cookie"])[0], COOKIE);
}

#[test]
fn a_slip_finds_something_and_says_so() {
    let world = World::new();
    let answer = world.json(["search", "--json", "--engine", "words", "undefimed"]);
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    assert_eq!(messages(&answer), "no session contains `undefimed`; searched for `undefined` instead\n");
    let answer = world.json(["search", "--json", "--engine", "words", "xylophonist", "redirect"]);
    assert_eq!(answer["results"][0]["session"]["id"], LOGIN);
    assert_eq!(messages(&answer), "no session contains `xylophonist`\n");
    insta::assert_snapshot!(world.run(["search", "--engine", "words", "xylophonist"]).whole());
}

#[test]
fn bad_queries_are_told_with_the_place() {
    let world = World::new();
    for (name, query) in [
        ("a quote", "login \"not closed"),
        ("an agent", "login agent:codx"),
        ("a time", "since:soon login"),
        ("nothing", "  "),
        ("common words", "how to do it"),
        ("signs", ".*+?^${}()|[]\\"),
    ] {
        insta::assert_snapshot!(name, world.run(["search", query]).whole());
    }
}

#[test]
fn subagents_belong_to_their_parents_turn() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("first").text("yes"))
        .turn(|turn| {
            turn.prompt("second")
                .subagent("explore", |sub| sub.prompt("look for it").text("a persimmon was there"))
                .text("ok")
        })
        .write(&world.sandbox.claude_home());
    assert_eq!(found(&world, &["persimmon"]), [(LOGIN.to_owned(), 2)]);
}

#[test]
fn a_session_whose_history_is_gone_says_so() {
    let world = World::new();
    let base = PathBuf::from(world.json(["info", EXPORT, "--json"])["path"].as_str().unwrap());
    fs::remove_file(base).unwrap();
    let answer = world.json(["search", "--json", "--engine", "words", "streams"]);
    let first = &answer["results"][0];
    assert_eq!((&first["session"]["id"], &first["can_fork"]), (&json!(STREAM), &json!(false)), "{answer}");
    assert!(first["warning"].as_str().unwrap().contains("is missing"), "{answer}");
}
