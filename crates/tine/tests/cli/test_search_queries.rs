//! What is asked of `tine search`, and what is answered where it is not what was meant.

use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession};

use crate::test_search::{found, ids, messages};
use crate::world::{COOKIE, EXPORT, LOGIN, World};

#[test]
fn the_options_of_a_pasted_command_exclude_nothing() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("Is the rollout through?")
                .tool("Read", json!({"file_path": "/home/me/shop/src/transfer.rs"}), "fn main() {}")
                .tool("Bash", json!({"command": "kubectl -n staging rollout status deploy/events-consumer"}), "done")
                .text("Yes.")
        })
        .write(&world.sandbox.claude_home());
    for query in [
        &["kubectl -n staging rollout status deploy/events-consumer"][..],
        &["file:src/transfer.rs:118"],
        &["--file", "src/transfer.rs:118:5"],
        &["agent: is the rollout through"],
    ] {
        assert_eq!(ids(&world, query), [LOGIN], "{query:?}");
    }
}

#[test]
fn a_phrase_that_is_nowhere_is_named_and_its_words_are_looked_for() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("It says: failed to dial target host \"localhost:8080\": context deadline exceeded").text("Hm.")
        })
        .write(&world.sandbox.claude_home());
    let pasted = "Failed to dial target host \"localhost:9090\": context deadline exceeded";
    let answer = world.json(["search", "--json", "--engine", "words", pasted]);
    assert_eq!(answer["results"][0]["session"]["id"], LOGIN, "{answer}");
    let output = messages(&answer);
    assert!(output.contains("\"localhost:9090\" was not found; searched for its words instead\n"), "{output}");
    let answer = world.json(["search", "--json", "--engine", "words", "\"purple marmalade\""]);
    assert_eq!(answer["results"], json!([]));
    assert!(messages(&answer).contains("\"purple marmalade\" was not found\n"), "{answer}");
}

#[test]
fn a_long_trace_is_searched_by_its_first_words() {
    let world = World::new();
    let frames: String = (0..2_000).map(|number| format!("frame{number}x -v \"oops ")).collect();
    let answer = world.json(["search", "--json", "--engine", "words", &format!("hidden field {frames}")]);
    assert_eq!(answer["results"][0]["session"]["id"], LOGIN, "{}", messages(&answer));
    assert!(messages(&answer).contains("only its first 64 different words were used"), "{}", messages(&answer));
}

#[test]
fn what_keeps_everything_out_is_named() {
    let world = World::new();
    for (arguments, expected) in [
        (["redirect", "--dir", "/nowhere"], "directory /nowhere not found"),
        (["redirect", "--branch", "nobodys"], "no session worked on branch `nobodys`"),
        (["redirect", "--tool", "Hammer"], "no session used the tool `Hammer`"),
        (["redirect", "--file", "no.rs"], "no session touched the file `no.rs`"),
    ] {
        let output = world.run(["search"].iter().chain(&arguments));
        assert!(output.err.contains(expected), "{output:?}");
    }
    for (arguments, expected) in [
        (&["redirect", "--since", "1d", "--until", "3d"][..], "the time range from"),
        (&["--agent", "claude", "agent:codex cache"], "`agent:` is given twice"),
    ] {
        let output = world.run(["search"].iter().chain(arguments));
        assert!(output.code == 1 && output.err.contains(expected), "{output:?}");
    }
    for command in ["search", "smart-fork"] {
        let output = world.run([command, "cache", "-stampede"]);
        assert!(output.code == 2 && output.err.contains("quote words that begin with"), "{output:?}");
    }
}

#[test]
fn of_a_run_without_spaces_only_what_is_missing_is_named() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("头像在手机上不显示").text("好的。"))
        .write(&world.sandbox.claude_home());
    // Of seven pairs, three are there.
    let answer = world.json(["search", "--json", "--engine", "words", "手机上看不到头像"]);
    let output = messages(&answer);
    assert!(output.is_empty() || output.contains("no session contains `上看不到头`"), "{answer}");
}

#[test]
fn a_word_inside_of_a_run_without_spaces_is_found() {
    let world = World::empty();
    for (number, (id, said)) in (1..).zip([(LOGIN, "缓存雪崩之后数据库很慢。"), (COOKIE, "报表里的日期不对。")])
    {
        ClaudeSession::new(id)
            .cwd(&world.shop)
            .seed(number)
            .turn(|turn| turn.prompt(said).text("好的。"))
            .write(&world.sandbox.claude_home());
    }
    for (asked, expected) in [("如何防止雪崩", LOGIN), ("缓存问题", LOGIN), ("报表错误", COOKIE), ("报表错", COOKIE)]
    {
        let answer = world.json(["search", "--json", asked]);
        assert_eq!(answer["results"][0]["session"]["id"], expected, "{asked}: {answer}");
    }
    // More of it is better, and what must be there or must not be is more than a part of it.
    let both = world.json(["search", "--json", "报表缓存雪崩"]);
    let ids: Vec<&str> =
        both["results"].as_array().unwrap().iter().map(|one| one["session"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [LOGIN, COOKIE], "{both}");
    for asked in ["+报表错误", "日期 -报表错误"] {
        let count = world.json(["search", "--json", "--", asked])["results"].as_array().unwrap().len();
        assert_eq!(count, usize::from(asked.contains('-')), "{asked}");
    }
}

#[test]
fn an_option_of_a_command_hides_nothing_and_what_is_left_out_is_told() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Run gdb -batch -ex bt on the core.").text("The keychain error is -25308."))
        .write(&world.sandbox.claude_home());
    for asked in ["gdb -batch -ex bt", "gdb -batch --args x", "keychain error -25308", "-25308"] {
        let answer = world.json(["search", "--json", "--engine", "words", "--", asked]);
        assert_eq!(answer["results"][0]["session"]["id"], LOGIN, "{asked}: {answer}");
        assert!(!messages(&answer).contains("left out"), "{asked}: {answer}");
    }
    let answer = world.json(["search", "--json", "--engine", "words", "--", "gdb -batch"]);
    assert_eq!(
        (answer["results"].as_array().unwrap().len(), messages(&answer)),
        (0, "excluded turns that contain `batch`\n".into())
    );
    let answer = world.json(["search", "--json", "--engine", "words", "--", "gdb -bundle"]);
    assert_eq!((answer["results"].as_array().unwrap().len(), messages(&answer)), (1, String::new()));
}

#[test]
fn a_proper_word_is_no_slip_and_what_an_ordinary_one_lacks_is_not_told() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("The connection to the database is updated; its state is detected.").text("It is."))
        .write(&world.sandbox.claude_home());
    let asked = |asked: &str| {
        let answer = world.json(["search", "--json", "--engine", "words", asked]);
        (answer["results"].as_array().unwrap().len(), messages(&answer))
    };
    assert_eq!(asked("garbage collection database rejected outdated stale"), (1, String::new()));
    // Of few words each is meant; a slip is one, and so is a word that is all that was asked.
    assert_eq!(asked("database collection"), (1, "no session contains `collection`\n".into()));
    let corrected = "no session contains `conection`; searched for `connection` instead\n";
    assert_eq!(asked("why does the database conection garbage collection stop"), (1, corrected.into()));
    assert_eq!(
        asked("collection"),
        (1, "no session contains `collection`; searched for `connection` instead\n".into())
    );
    // Nothing was found: every word tells why.
    assert_eq!(
        asked("some garbage heap piano"),
        (0, "no session contains `some` or `garbage` or `heap` or `piano`\n".into())
    );
}

#[test]
fn a_name_that_is_found_has_no_slips_in_it() {
    let world = World::empty();
    CodexSession::new(EXPORT)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Is that right? What is the prize?").text("It is."))
        .write(&world.sandbox.codex_home());
    assert_eq!(world.run(["rename", EXPORT, "price-fight"]).code, 0);
    let answer = world.json(["search", "--json", "--engine", "words", "price-fight"]);
    let first = &answer["results"][0]["session"]["id"];
    assert_eq!((first, messages(&answer)), (&json!(EXPORT), String::new()), "{answer}");
}

#[test]
fn names_that_were_made_up_for_forks_find_nothing() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("uploads that time out should be tried again").text("They are."))
        .write(&world.sandbox.claude_home());
    for _ in 0..2 {
        assert_eq!(world.run(["fork", LOGIN, "--in", "none"]).code, 0);
    }
    for engine in ["words", "hybrid"] {
        let answer = world.json(["search", "--json", "--engine", engine, "uploads that time out"]);
        let results = answer["results"].as_array().unwrap();
        assert_eq!((results.len(), &results[0]["session"]["id"]), (1, &json!(LOGIN)), "{answer}");
    }
}

#[test]
fn a_title_finds_the_turn_that_it_is_about() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .title("websocket reconnect")
        .turn(|turn| turn.prompt("Good morning.").text("Hello."))
        .turn(|turn| turn.prompt("The websocket dies; please let it reconnect by itself.").text("It tries again now."))
        .turn(|turn| turn.prompt("Thank you.").text("Any time."))
        .write(&claude);
    // Nothing but its title says it: nothing is cut off.
    ClaudeSession::new(COOKIE)
        .cwd(&world.shop)
        .seed(2)
        .title("the gooseberry thread")
        .turn(|turn| turn.prompt("Please begin.").text("Yes."))
        .turn(|turn| turn.prompt("Go on.").text("Done."))
        .write(&claude);
    for engine in ["words", "hybrid"] {
        let answer = world.json(["search", "--json", "--engine", engine, "websocket reconnect"]);
        let first = &answer["results"][0];
        assert_eq!((&first["session"]["id"], &first["turn"]), (&json!(LOGIN), &json!(2)), "{answer}");
        assert!(first["snippet"].as_str().unwrap().contains("dies"), "{answer}");
    }
    assert_eq!(found(&world, &["\"websocket reconnect\""]), [(LOGIN.to_owned(), 3)]);
    assert_eq!(found(&world, &["gooseberry"]), [(COOKIE.to_owned(), 2)]);
}

#[test]
fn what_a_fork_is_called_comes_behind_what_its_source_said() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Good morning.").text("Hello."))
        .turn(|turn| turn.prompt("Why does the consumer lag behind in kafka?").text("One partition is slow."))
        .write(&world.sandbox.claude_home());
    for name in ["kafka-go", "kafka-lag"] {
        assert_eq!(world.run(["fork", LOGIN, name, "--in", "none"]).code, 0);
    }
    let answer = world.json(["search", "--json", "--engine", "words", "kafka lag"]);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["session"]["id"], LOGIN, "{answer}");
    assert_eq!((results.len(), &results[0]["turn"]), (3, &json!(2)), "{answer}");
}

#[test]
fn a_query_of_a_megabyte_is_refused() {
    let world = World::new();
    let mut arguments = vec!["search".to_owned()];
    arguments.extend((0..1000).map(|number| format!("{number:0>1000}")));
    let output = world.run(&arguments);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("too long") && output.err.len() < 500, "{}", output.err);
}

#[test]
fn accents_are_found_however_they_are_written() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Die Größenprüfung im Café ist naïve").text("Ja."))
        .write(&world.sandbox.claude_home());
    for query in [
        "größenprüfung",
        "gro\u{308}ßenpru\u{308}fung",
        "GRÖSSENPRÜFUNG",
        "grossenprufung",
        "cafe",
        "naive",
        "\"im cafe\u{301} ist\"",
    ] {
        let answer = world.json(["search", "--json", "--engine", "words", query]);
        assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{query}: {answer}");
        assert_eq!(messages(&answer), "", "{query}");
    }
    let answer = world.json(["search", "--json", "--engine", "words", "Übelkeit"]);
    assert_eq!(messages(&answer), "no session contains `übelkeit`\n");
}

#[test]
fn a_filter_is_one_in_capitals_too() {
    let world = World::new();
    assert_eq!(ids(&world, &["redirect AGENT:claude"]), [LOGIN]);
    assert!(ids(&world, &["redirect Agent:codex"]).is_empty());
}

#[test]
fn a_session_whose_directory_is_gone_cannot_be_forked() {
    let world = World::empty();
    let gone = world.shop.join("gone");
    ClaudeSession::new(LOGIN)
        .cwd(&gone)
        .turn(|turn| turn.prompt("a pomelo").text("yes"))
        .write(&world.sandbox.claude_home());
    let result = |world: &World| world.json(["search", "--json", "--engine", "words", "pomelo"])["results"][0].clone();
    let output = result(&world);
    assert_eq!(output["can_fork"], json!(false), "{output}");
    assert!(output["warning"].as_str().unwrap().contains("no longer exists: "), "{output}");
    std::fs::create_dir(&gone).unwrap();
    let output = result(&world);
    assert_eq!((&output["can_fork"], &output["warning"]), (&json!(true), &json!(null)), "{output}");
}
