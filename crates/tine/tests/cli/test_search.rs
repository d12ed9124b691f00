//! `tine search` and `tine index`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession};

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

fn cache(world: &World) -> PathBuf {
    let found = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_CACHE_HOME");
    Path::new(&found.unwrap().1).join("tine")
}

fn index(world: &World) -> PathBuf {
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
fn changes_are_noticed() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("apricot").text("one"));
    let path = session.write(&claude);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    // Grown.
    let session = session.turn(|turn| turn.prompt("blueberry").text("two"));
    session.write(&claude);
    assert_eq!(found(&world, &["blueberry"]), [(LOGIN.to_owned(), 2)]);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    session.turn(|turn| turn.prompt("cranberry").text("three")).write(&claude);
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 3)]);
    assert_eq!(found(&world, &["blueberry"]), [(LOGIN.to_owned(), 2)]);
    let documents = world.json(["index", "--status", "--json"])["documents"].clone();
    assert_eq!(documents, 3);
    // Rewritten.
    ClaudeSession::new(LOGIN).cwd(&world.shop).seed(9).turn(|turn| turn.prompt("damson").text("one")).write(&claude);
    assert_eq!(found(&world, &["damson"]), [(LOGIN.to_owned(), 1)]);
    assert!(ids(&world, &["+cranberry"]).is_empty());
    // Moved.
    let elsewhere = path.parent().unwrap().with_file_name("-elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::rename(&path, elsewhere.join(path.file_name().unwrap())).unwrap();
    assert_eq!(ids(&world, &["damson"]), [LOGIN]);
    // Deleted.
    fs::remove_dir_all(&elsewhere).unwrap();
    assert!(ids(&world, &["+damson"]).is_empty());
    assert_eq!(world.json(["index", "--status", "--json"])["documents"], 0);
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
fn a_damaged_index_is_built_anew_and_said_so() {
    let world = World::new();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    let files =
        || -> Vec<PathBuf> { fs::read_dir(index(&world)).unwrap().flatten().map(|entry| entry.path()).collect() };
    for damage in [&b""[..], b"garbage that is not an index at all, but long enough to be one"] {
        for kind in ["idx", "term", "fast", "fieldnorm", "store", "meta.json", "table-"] {
            let has = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(kind);
            let Some(path) = files().into_iter().find(has) else { continue };
            fs::write(&path, damage).unwrap();
            let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
            assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{path:?} {answer}");
            assert!(messages(&answer).contains("rebuil"), "{path:?} {answer}");
        }
    }
    // One bit.
    let path = files().into_iter().find(|path| path.extension().is_some_and(|kind| kind == "idx")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[3] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
    assert!(messages(&answer).contains("rebuil"), "{answer}");
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    // Without its beginning.
    fs::remove_file(index(&world).join("meta.json")).unwrap();
    let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
    assert!(messages(&answer).contains("rebuil"), "{answer}");
    // Deleted.
    fs::remove_dir_all(cache(&world)).unwrap();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    // A newer tine's is left alone.
    let newer = index(&world).with_file_name("words-99");
    fs::create_dir(&newer).unwrap();
    assert_eq!(world.run(["index", "--rebuild"]).code, 0);
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    assert!(newer.exists());
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_index() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    assert_eq!(world.run(["index"]).code, 0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&index(&world)), 0o700);
    for entry in fs::read_dir(index(&world)).unwrap().flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
}

#[test]
fn several_at_once_find_the_same() {
    let world = World::new();
    for number in 0..30 {
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(100 + number)
            .turn(|turn| turn.prompt(format!("pomegranate {number}")).text("yes"))
            .write(&world.sandbox.claude_home());
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ids(&world, &["pomegranate", "-n", "100"]).len(), 30));
        }
    });
    let status = world.json(["index", "--status", "--json"]);
    assert_eq!((&status["sessions"], &status["missing"]["sessions"]), (&json!(34), &json!(0)));
}

#[test]
fn a_writer_that_was_killed_leaves_no_lock() {
    let world = World::new();
    let mut child = world.command(["index"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    assert_eq!(world.json(["index", "--status", "--json"])["is_written"], false);
}

#[test]
fn what_a_subagent_says_later_is_found_without_a_rebuild() {
    let world = World::empty();
    let begun = || {
        ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("an apricot").text("yes")).turn(|turn| {
            turn.prompt("research it").subagent("explore", |sub| sub.prompt("look").text("a quokka")).text("ok")
        })
    };
    let path = begun().write(&world.sandbox.claude_home());
    let folder = path.with_extension("").join("subagents");
    let helper = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let helper = helper.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let said = fs::read_to_string(&helper).unwrap();
    let goes_on = |word: &str| fs::write(&helper, format!("{said}{}", said.replace("a quokka", word))).unwrap();
    assert_eq!(found(&world, &["quokka"]), [(LOGIN.to_owned(), 2)]);
    // In the turn that started it,
    goes_on("an ibex");
    assert_eq!(found(&world, &["ibex"]), [(LOGIN.to_owned(), 2)]);
    // after it, while nothing else is said,
    let path = begun().turn(|turn| turn.prompt("meanwhile").text("sure")).write(&world.sandbox.claude_home());
    goes_on("an ibex");
    assert_eq!(found(&world, &["meanwhile"]), [(LOGIN.to_owned(), 3)]);
    goes_on("a wombat walks");
    assert_eq!(found(&world, &["wombat"]), [(LOGIN.to_owned(), 2)]);
    // and together with a new turn.
    let before = fs::metadata(&path).unwrap().len();
    begun()
        .turn(|turn| turn.prompt("meanwhile").text("sure"))
        .turn(|turn| turn.prompt("and now?").text("done"))
        .write(&world.sandbox.claude_home());
    assert!(fs::metadata(&path).unwrap().len() > before);
    goes_on("a numbat stands still");
    assert_eq!(found(&world, &["numbat"]), [(LOGIN.to_owned(), 2)]);
    assert_eq!(ids(&world, &["wombat"]), [""; 0]);
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
fn codex_sessions_grow_and_are_read_from_the_middle() {
    let world = World::empty();
    let codex = world.sandbox.codex_home();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("apricot").text("one"));
    session.write(&codex);
    assert_eq!(found(&world, &["apricot"]), [(EXPORT.to_owned(), 1)]);
    session.turn(|turn| turn.prompt("blueberry").text("two")).write(&codex);
    assert_eq!(found(&world, &["blueberry"]), [(EXPORT.to_owned(), 2)]);
    assert!(world.run(["search", "blueberry"]).out.contains("*blueberry*"));
}

#[test]
fn a_rewritten_history_with_the_same_prompts_is_noticed() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let say = |first: &str, turns: usize| {
        let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("one").text(first));
        for number in 1..turns {
            session = session.turn(|turn| turn.prompt(format!("number {number}")).text("ok"));
        }
        session.write(&claude)
    };
    let path = say("an apricot", 3);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    say("now a cranberry", 4);
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 1)]);
    assert!(ids(&world, &["+apricot"]).is_empty());
    // Cut off in the middle of its last turn, and then before it.
    let content = fs::read_to_string(&path).unwrap();
    let at = content.find("number 3").unwrap();
    fs::write(&path, &content[..at]).unwrap();
    assert!(ids(&world, &["+number +3"]).is_empty());
    let at = content.find("number 1").unwrap();
    fs::write(&path, &content[..at]).unwrap();
    assert!(ids(&world, &["+number"]).is_empty());
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 1)]);
    assert_eq!(world.json(["index", "--status", "--json"])["documents"], 1);
}

#[test]
fn a_title_that_codex_keeps_elsewhere_is_found() {
    let world = World::empty();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("hello").text("yes"));
    session.write(&world.sandbox.codex_home());
    assert!(ids(&world, &["+gooseberry"]).is_empty());
    session.name("the gooseberry thread").write(&world.sandbox.codex_home());
    assert_eq!(ids(&world, &["+gooseberry"]), [EXPORT]);
}

#[test]
fn a_transcript_that_cannot_be_read_keeps_nobody_from_the_others() {
    let world = World::new();
    let path = PathBuf::from(world.json(["info", COOKIE, "--json"])["path"].as_str().unwrap());
    fs::remove_file(&path).unwrap();
    // Its first byte cannot be read, whoever asks.
    std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
    let output = world.run(["search", "undefined", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.out.contains(LOGIN), "{output:?}");
    assert_eq!(world.run(["index"]).code, 0);
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_told_once() {
    let world = World::empty();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("hello").text("yes"));
    session.write(&world.sandbox.codex_home());
    let projects = world.sandbox.claude_home().join("projects");
    let _ = fs::remove_dir_all(&projects);
    fs::create_dir_all(projects.parent().unwrap()).unwrap();
    fs::write(&projects, "no folder").unwrap();
    let output = world.run(["index"]);
    assert_eq!(output.err.matches("cannot read claude's folder").count(), 1, "{output:?}");
    assert!(output.out.contains("complete except for 1 folder that can't be read"), "{output:?}");
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

/// A file system of one megabyte that nobody else sees, over the folder of the cache.
#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let words = |from: usize, to: usize| (from..to).map(|number| format!("word{number} ")).collect::<String>();
    for number in 0..20 {
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(number)
            .turn(|turn| turn.prompt("pomegranate").text(words(number as usize * 9000, number as usize * 9000 + 9000)))
            .write(&claude);
    }
    let before = world.agents_files();
    fs::create_dir_all(cache(&world)).unwrap();
    let script = "mount -t tmpfs -o size=400k none \"$1\" && { \"$2\" index --json; echo $?; \"$2\" search pomegranate; echo $?; }";
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(cache(&world)).arg(env!("CARGO_BIN_EXE_tine"));
        command.current_dir(&world.shop).output().unwrap()
    };
    let mut output = run(&["--mount"]);
    if String::from_utf8_lossy(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("No space left") && !err.contains("panicked"), "{out}\n{err}");
    // With room it works again.
    assert_eq!(ids(&world, &["pomegranate", "-n", "100"]).len(), 20);
    assert_eq!(world.agents_files(), before);
}
