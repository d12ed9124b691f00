//! `tine search` as people really ask: names, pasted messages, files, other scripts, slips.

use serde_json::json;
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

/// A world of four sessions: what each was asked, and answered.
fn world(said: [(&str, &str); 4]) -> World {
    let world = World::empty();
    for (id, (prompt, answer)) in [LOGIN, COOKIE, EXPORT, STREAM].into_iter().zip(said) {
        let session = ClaudeSession::new(id).cwd(&world.shop).turn(|turn| turn.prompt(prompt).text(answer));
        session.write(&world.sandbox.claude_home());
    }
    world
}

fn ids(world: &World, arguments: &[&str]) -> Vec<String> {
    let answer = world.json(["search", "--json"].iter().chain(arguments));
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|one| one["session"]["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_name_does_not_outrank_what_was_said() {
    let world = world([
        ("Why do the tomatoes rot?", "Too much water."),
        ("The csv export of invoices fails, fix it", "Done, the invoices are exported."),
        ("Another thing", "Yes."),
        ("Walrus?", "No."),
    ]);
    assert_eq!(world.run(["rename", LOGIN, "fix"]).code, 0);
    assert_eq!(world.run(["rename", STREAM, "sea-animals"]).code, 0);
    assert_eq!(ids(&world, &["fix the csv export of invoices"])[0], COOKIE);
    // A name is found by itself, by a word of it, and by all of them in another order.
    for query in ["sea-animals", "animals", "animals sea"] {
        assert_eq!(ids(&world, &["--engine", "words", query])[0], STREAM, "{query}");
    }
    // An id is all that is asked for, also beside a filter.
    for query in [LOGIN.to_owned(), LOGIN[..8].to_owned(), format!("{LOGIN} agent:claude")] {
        let answer = world.json(["search", "--json", &query]);
        assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{answer:#}");
        assert_eq!((&answer["results"][0]["session"]["id"], &answer["errors"]), (&json!(LOGIN), &json!([])));
    }
    // Names of forks say only whose forks they are.
    assert_eq!(world.run(["fork", "sea-animals", "--yes"]).code, 0);
    let answer = world.json(["search", "--json", "--engine", "words", "walrus animals"]);
    assert_eq!(answer["results"][0]["session"]["name"], "sea-animals", "{answer:#}");
}

#[test]
fn what_was_pasted_is_no_query_language() {
    let world = world([
        ("sqlite says NOT NULL constraint failed: users.email", "The column has no default."),
        ("Why is the sky blue?", "Scattering."),
        ("Another thing", "Yes."),
        ("Walrus?", "No."),
    ]);
    assert_eq!(ids(&world, &["NOT NULL constraint failed: users.email"])[0], LOGIN);
    assert_eq!(ids(&world, &["error:\"constraint failed\""])[0], LOGIN);
    let frames: String = (0..90).map(|number| format!("at frame{number}.run ")).collect();
    assert_eq!(ids(&world, &[&format!("constraint failed {frames}")])[0], LOGIN);
    // Filters need no words.
    assert_eq!(ids(&world, &["agent:claude"]).len(), 4);
    assert!(ids(&world, &["--agent", "codex"]).is_empty());
}

#[test]
fn scripts_without_spaces_are_found_by_their_parts() {
    let world = world([
        ("登录之后浏览器不断重定向，怎么办？", "修改了 cookie 的路径。"),
        ("ログイン画面からのリダイレクトが止まらない", "直しました。"),
        ("로그인하면 리디렉션이 반복됩니다", "고쳤습니다."),
        ("导出的表格里全是乱码", "改用了带签名的编码。"),
    ]);
    for (query, id) in [
        ("登录重定向问题", LOGIN),
        ("导出表格乱码", STREAM),
        ("ログインのリダイレクト問題", COOKIE),
        ("리디렉션 반복", EXPORT),
        // One character, at the beginning of a word, inside of it and at its end.
        ("登", LOGIN),
        ("签", STREAM),
        ("码", STREAM),
        ("直", COOKIE),
        ("画面", COOKIE),
    ] {
        assert_eq!(ids(&world, &["--engine", "words", query]).first().map(String::as_str), Some(id), "{query}");
    }
    assert_eq!(ids(&world, &["--engine", "words", "猫"]), [""; 0]);
}

#[test]
fn files_are_found_by_their_names_and_sessions_by_their_files() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let patch = "*** Begin Patch\n*** Update File: my docs/read me.md\n@@\n-x\n+y\n*** End Patch";
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("Change them.")
                .tool("Edit", json!({"file_path": "/w/internal/hasher.go"}), "ok")
                .tool("Bash", json!({"command": "docker build -f deploy/Dockerfile ."}), "ok")
                .tool("apply_patch", json!({"input": patch}), "ok")
                .text("Done.")
        })
        .turn(|turn| turn.prompt("And the kangaroo?").text("It jumps."))
        .write(&claude);
    ClaudeSession::new(COOKIE)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("Let us go, the hasher is slow; go go go").text("A hasher in go."))
        .turn(|turn| turn.prompt("A kangaroo").text("Another one."))
        .write(&claude);
    assert_eq!(ids(&world, &["--engine", "words", "hasher.go"])[0], LOGIN);
    for file in ["deploy/Dockerfile", "dockerfile", "my docs/read me.md", "read me.md", "hasher.go"] {
        assert_eq!(ids(&world, &["--file", file]), [LOGIN], "{file}");
    }
    // The word was said in another turn than the one that touched the file.
    assert_eq!(ids(&world, &["kangaroo file:internal/hasher.go"]), [LOGIN]);
}

#[test]
fn slips_in_identifiers_and_in_other_alphabets_are_understood() {
    let world = world([
        ("What does parseConfig do?", "It reads."),
        ("Почему появляется ошибка при оплате заказа?", "Нет ключа."),
        ("Another thing", "Yes."),
        ("Walrus?", "No."),
    ]);
    for (query, id) in [("parseConifg", LOGIN), ("ошбка", COOKIE), ("заказ", COOKIE)] {
        let answer = world.json(["search", "--json", "--engine", "words", query]);
        assert_eq!(answer["results"][0]["session"]["id"], id, "{answer:#}");
        let output = answer["errors"][0]["message"].as_str().unwrap();
        assert!(output.contains("instead"), "{output}");
    }
}

#[test]
fn a_secret_is_not_shown_without_what_it_is_called() {
    let padding = "so many words of no interest at all ".repeat(5);
    let said = format!("password = Tr0ub4dor3xyz {padding} marsupial {padding}");
    let world = world([(&said, "Yes."), ("B", "b"), ("C", "c"), ("D", "d")]);
    for word in ["marsupial", "interest"] {
        let output = world.run(["search", "--engine", "words", word]);
        assert!(output.out.contains(word) && !output.out.contains("Tr0ub4dor3xyz"), "{}", output.out);
    }
    let output = world.run(["search", "--engine", "words", "marsupial", "--json"]);
    assert!(!output.out.contains("Tr0ub4dor3xyz"), "{}", output.out);
}

#[test]
fn titles_are_found_by_phrases_and_in_their_time() {
    let world = World::new();
    let check = |arguments: &[&str], expected: &[&str]| assert_eq!(ids(&world, arguments), expected, "{arguments:?}");
    check(&["\"Login by cookie\""], &[COOKIE]);
    let other = world.run(["search", "--engine", "words", "\"cookie by login\""]);
    assert!(other.err.contains("\"cookie by login\" was not found; searched for its words"), "{other:?}");
    check(&["\"Login by cookie\" until:2020-01-01"], &[]);
}
