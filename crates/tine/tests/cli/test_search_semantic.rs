//! `tine search` by meaning, and the vectors that `tine index` makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession};

use crate::world::{COOKIE, EXPORT, LOGIN, World};

/// What is asked shares no word with what was said.
const QUESTION: &str = "users are stuck signing in over and over";

/// Three conversations, of which one is meant.
fn world() -> World {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    login(&world).write(&claude);
    ClaudeSession::new(COOKIE)
        .cwd(&world.shop)
        .seed(2)
        .turn(|turn| {
            turn.prompt("The invoice PDF has the wrong font.").text("I embedded the typeface into the document.")
        })
        .write(&claude);
    CodexSession::new(EXPORT)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Make the nightly backup compress its archive.").text("It uses zstd now."))
        .write(&world.sandbox.codex_home());
    world
}

fn login(world: &World) -> ClaudeSession {
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Hello there, my friend.").text("Hello! What shall we do?"))
        .turn(|turn| {
            turn.prompt("The login page redirects in a loop after the password is entered.")
                .text("The authentication cookie was never set, so every visit began at the login form.")
        })
}

fn search(world: &World, arguments: &[&str]) -> Value {
    world.json(["search", "--json"].iter().chain(arguments))
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["results"].as_array().unwrap().iter().map(|one| one["session"]["id"].as_str().unwrap()).collect()
}

fn messages(answer: &Value) -> String {
    let errors = answer["errors"].as_array().unwrap();
    errors.iter().map(|error| error["message"].as_str().unwrap().to_owned() + "\n").collect()
}

fn vectors(world: &World) -> PathBuf {
    let found = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_CACHE_HOME");
    engine::vectors_file(&Path::new(&found.unwrap().1).join("tine"))
}

fn status(world: &World) -> Value {
    world.json(["index", "--status", "--json"])["vectors"].clone()
}

#[test]
fn what_was_said_in_other_words_is_found_by_meaning_and_not_by_words() {
    let world = world();
    let before = world.agents_files();
    world.json(["index", "--json"]);
    let answer = search(&world, &[QUESTION]);
    assert_eq!((&answer["engine"], &answer["results"][0]["turn"]), (&json!("hybrid"), &json!(2)), "{answer}");
    assert_eq!(ids(&answer)[0], LOGIN, "{answer}");
    assert!(answer["results"][0]["snippet"].as_str().unwrap().contains("log"), "{answer}");
    assert!(messages(&answer).lines().all(|line| line.starts_with("no session contains")), "{answer}");
    let answer = search(&world, &[QUESTION, "--engine", "hybrid"]);
    assert_eq!((ids(&answer)[0], &answer["engine"]), (LOGIN, &json!("hybrid")));
    let answer = search(&world, &[QUESTION, "--engine", "words"]);
    assert!(!ids(&answer).contains(&LOGIN) && answer["engine"] == "words", "{answer}");
    // Signs and filters still hold.
    assert!(ids(&search(&world, &[&format!("+marmalade {QUESTION}")])).is_empty());
    assert!(!ids(&search(&world, &[&format!("agent:codex {QUESTION}")])).contains(&LOGIN));
    assert!(!ids(&search(&world, &[QUESTION, "--until", "2020-01-01"])).contains(&LOGIN));
    assert_eq!(world.agents_files(), before);
}

#[test]
fn a_snippet_shows_what_is_near_in_meaning_where_the_words_are_not_there() {
    let world = world();
    let filler =
        "Here is what the other team told me about the office party on Friday, with cake and music. ".repeat(8);
    ClaudeSession::new("a1a1a1a1-0000-4000-8000-000000000000")
        .cwd(&world.shop)
        .seed(7)
        .turn(|turn| {
            turn.prompt(format!("{filler}Can you check the access list?"))
                .text(format!("{filler}\n\nAccounts of employees who left the company were never deactivated."))
        })
        .write(&world.sandbox.claude_home());
    world.json(["index", "--json"]);
    let answer = search(&world, &["ex-colleagues can still get into the system"]);
    let snippet = answer["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.starts_with("… ") && snippet.contains("employees who left the company"), "{answer}");
}

#[test]
fn the_first_search_finds_no_less_than_the_second() {
    let world = world();
    world.json(["index", "--words", "--json"]);
    assert!(!vectors(&world).exists());
    assert_eq!(status(&world), json!({"vectors": 0, "sessions": 0, "missing": 3, "bytes": 0}));
    let asked = |question: &str| {
        let first = search(&world, &[question]);
        let is_incomplete = messages(&first).contains("embedded yet");
        // A machine that is too busy to embed three sessions says so.
        assert!(is_incomplete || ids(&first).first() == Some(&LOGIN), "{first}");
        assert!(is_incomplete || status(&world)["missing"] == 0, "{first}");
        assert!(is_incomplete || search(&world, &[question]) == first, "{first}");
    };
    asked(QUESTION);
    // A new session opens no gap.
    let fourth = ClaudeSession::new("a1a1a1a1-0000-4000-8000-000000000000").cwd(&world.shop).seed(3);
    fourth
        .turn(|turn| turn.prompt("Rename the shipping label.").text("It says parcel now."))
        .write(&world.sandbox.claude_home());
    asked("nobody can get past the sign-in form");
}

#[test]
fn nothing_is_said_to_be_final_while_another_process_embeds() {
    let world = world();
    world.json(["index", "--words", "--json"]);
    fs::create_dir_all(vectors(&world).parent().unwrap()).unwrap();
    let mut lock = fs::OpenOptions::new().create(true).append(true).open(vectors(&world)).unwrap();
    lock.lock().unwrap();
    let question = QUESTION.replace("users", "visitors");
    let output = world.run(["search", &question]);
    assert!(
        output.err.contains("3 sessions aren't embedded yet") && output.err.contains("no matches so far"),
        "{output:?}"
    );
    drop(lock);
    assert_eq!(ids(&world.json(["smart-fork", "--json", QUESTION]))[0], LOGIN);
    // The new turns of a session that has grown are left out just as much.
    world.json(["index", "--json"]);
    assert_eq!(status(&world)["missing"], 0);
    login(&world)
        .turn(|turn| turn.prompt("Now translate the settings page into French.").text("Bien sûr."))
        .write(&world.sandbox.claude_home());
    lock = fs::OpenOptions::new().append(true).open(vectors(&world)).unwrap();
    lock.lock().unwrap();
    let output = world.run(["search", "localise the preferences"]);
    assert!(output.err.contains("1 session isn't embedded yet"), "{output:?}");
    drop(lock);
    assert_eq!(ids(&world.json(["smart-fork", "--json", QUESTION]))[0], LOGIN);
}

#[test]
fn an_intent_is_understood_before_it_is_answered() {
    let world = world();
    let answer = world.json(["smart-fork", "--json", QUESTION]);
    assert_eq!((ids(&answer)[0], &answer["results"][0]["turn"]), (LOGIN, &json!(2)), "{answer}");
    assert!(messages(&answer).lines().all(|line| line.starts_with("no session contains")), "{answer}");
}

#[test]
fn only_new_chunks_get_vectors_and_what_is_gone_is_dropped() {
    let world = world();
    world.json(["index", "--json"]);
    let first = status(&world);
    assert_eq!((&first["sessions"], &first["missing"]), (&json!(3), &json!(0)));
    let claude = world.sandbox.claude_home();
    // Grown: what was there stays where it is in the file.
    let before = fs::read(vectors(&world)).unwrap();
    let grown =
        login(&world).turn(|turn| turn.prompt("Now translate the settings page into French.").text("Bien sûr."));
    let path = grown.write(&claude);
    assert_eq!(world.json(["index", "--status", "--json"])["vectors"]["missing"], 1);
    world.json(["index", "--json"]);
    let after = fs::read(vectors(&world)).unwrap();
    assert_eq!(&after[64..before.len()], &before[64..]);
    assert_eq!(status(&world)["vectors"].as_u64().unwrap(), first["vectors"].as_u64().unwrap() + 2);
    let answer = search(&world, &["localise the preferences"]);
    assert_eq!((ids(&answer)[0], &answer["results"][0]["turn"]), (LOGIN, &json!(3)), "{answer}");
    // A fork has its own chunks only.
    let fork = grown.branch("a1a1a1a1-0000-4000-8000-000000000000").cwd(&world.shop);
    let fork = fork.turn(|turn| turn.prompt("And into Italian, too.").text("Volentieri, done."));
    let fork = fork.write(&claude);
    world.json(["index", "--json"]);
    assert_eq!(status(&world)["vectors"].as_u64().unwrap(), first["vectors"].as_u64().unwrap() + 4);
    fs::remove_file(fork).unwrap();
    // Rewritten: nothing of what was said before is found.
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .seed(9)
        .turn(|turn| turn.prompt("Paint the fence in the garden green.").text("It is green."))
        .write(&claude);
    let answer = search(&world, &[QUESTION]);
    assert!(!ids(&answer).contains(&LOGIN), "{answer}");
    world.json(["index", "--json"]);
    assert_eq!(ids(&search(&world, &["colour of the hedge around the yard"]))[0], LOGIN);
    assert!(!ids(&search(&world, &[QUESTION])).contains(&LOGIN));
    // Deleted.
    fs::remove_file(path).unwrap();
    world.json(["index", "--json"]);
    let last = status(&world);
    assert_eq!((&last["sessions"], &last["vectors"]), (&json!(2), &json!(4)), "{last}");
}

#[test]
fn damaged_vectors_are_made_anew_and_it_is_said() {
    let world = world();
    world.json(["index", "--json"]);
    let whole = fs::read(vectors(&world)).unwrap();
    let mut bit = whole.clone();
    bit[200] ^= 0x10;
    let cases: [(&str, Vec<u8>); 4] = [
        ("garbage", b"garbage".repeat(40)),
        ("cut", whole[..whole.len() - 100].to_vec()),
        ("a bit", bit),
        ("a header", whole[..30].to_vec()),
    ];
    for (name, bytes) in cases {
        fs::remove_file(vectors(&world)).unwrap();
        fs::write(vectors(&world), &bytes).unwrap();
        let answer = search(&world, &["the login page redirects in a loop"]);
        assert_eq!(ids(&answer)[0], LOGIN, "{name}");
        assert!(messages(&answer).contains("rebuil"), "{name}: {answer}");
        let after = world.json(["index", "--json"])["vectors"].clone();
        assert_eq!((&after["missing"], &after["sessions"]), (&json!(0), &json!(3)), "{name}");
        let answer = search(&world, &[QUESTION]);
        assert_eq!(ids(&answer)[0], LOGIN, "{name}");
        assert!(!messages(&answer).contains("anew"), "{name}: {answer}");
    }
    // Deleted, with and without the table.
    fs::remove_file(vectors(&world)).unwrap();
    assert_eq!(world.json(["index", "--json"])["vectors"]["missing"], 0);
    assert_eq!(ids(&search(&world, &[QUESTION]))[0], LOGIN);
    fs::write(vectors(&world).with_file_name("vectors-2-table"), "nothing").unwrap();
    assert_eq!(world.json(["index", "--json"])["vectors"]["missing"], 0);
    assert_eq!(ids(&search(&world, &[QUESTION]))[0], LOGIN);
}

#[test]
fn a_writer_of_vectors_that_is_killed_leaves_what_it_made() {
    let world = world();
    for number in 0..150u64 {
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(100 + number)
            .turn(|turn| {
                turn.prompt(format!("Count the {number} sheep on the hill, please."))
                    .text("There they are, all of them.")
            })
            .write(&world.sandbox.claude_home());
    }
    world.json(["index", "--words", "--json"]);
    for pause in [150, 700, 1500] {
        let mut child = world.command(["index"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        let _ = child.kill();
        let _ = child.wait();
        let answer = search(&world, &["--engine", "words", "sheep"]);
        assert_eq!(ids(&answer).len(), 10, "{answer}");
    }
    // Many at once: one makes them, all are right.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(world.run(["index"]).code, 0));
        }
    });
    let status = status(&world);
    assert_eq!((&status["missing"], &status["sessions"]), (&json!(0), &json!(153)));
    // Each chunk once, whoever was killed: two per session, and four for the first.
    assert_eq!(status["vectors"], 150 * 2 + 8);
    assert_eq!(ids(&search(&world, &[QUESTION]))[0], LOGIN);
}

#[test]
fn a_language_that_the_model_does_not_know_ranks_by_words() {
    let world = world();
    ClaudeSession::new("b2b2b2b2-0000-4000-8000-000000000000")
        .cwd(&world.shop)
        .seed(3)
        .turn(|turn| turn.prompt("数据库连接池耗尽了 怎么办").text("把最大连接数调高。"))
        .write(&world.sandbox.claude_home());
    world.json(["index", "--json"]);
    let answer = search(&world, &["数据库连接池耗尽了"]);
    assert_eq!(ids(&answer), ["b2b2b2b2-0000-4000-8000-000000000000"], "{answer}");
    assert!(messages(&answer).contains("matched by keyword only"), "{answer}");
    let by_words = search(&world, &["数据库连接池耗尽了", "--engine", "words"]);
    assert_eq!(answer["results"], by_words["results"]);
}

#[cfg(unix)]
#[test]
fn vectors_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    world.json(["index", "--json"]);
    for name in ["vectors-2", "vectors-2-table"] {
        let mode = fs::metadata(vectors(&world).with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(world.run(["index", "--rebuild"]).code, 0);
    assert_eq!(status(&world)["missing"], 0);
    let output = world.run(["index", "--status"]).out;
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("3 sessions, ") && lines[0].ends_with(" KB, complete"), "{output}");
    assert!(lines[1].starts_with("8 vectors, ") && lines[1].ends_with(" KB, complete"), "{output}");
    assert_eq!(lines[2..], ["[ROOT]/cache/tine/index/words-6"]);
}

/// What stands in a tool's output word for word comes before what says a part of it in an answer.
#[test]
fn a_message_that_was_pasted_comes_before_what_has_only_some_of_its_words() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("Run the engine's tests.")
                .tool("Bash", json!({ "command": "make test" }), "assertion failed: hash collision at ply 12")
                .text("One of them does not pass.")
        })
        .write(&claude);
    let others =
        ["The hash of a photo tells duplicates.", "A failed hash lookup is no assertion.", "The collision box."];
    for (number, answer) in others.iter().enumerate() {
        let id = format!("{number:08x}-0000-4000-8000-000000000001");
        let session = ClaudeSession::new(&id).cwd(&world.shop).seed(number as u64 + 7);
        session.turn(|turn| turn.prompt("What about the hash, and the collision?").text(*answer)).write(&claude);
    }
    world.run(["index"]);
    for question in ["assertion failed: hash collision at ply 12", "failed ply"] {
        for engine in ["words", "hybrid"] {
            assert_eq!(ids(&search(&world, &["--engine", engine, question]))[0], LOGIN, "{engine}: {question}");
        }
    }
}
