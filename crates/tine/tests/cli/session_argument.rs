//! What `SESSION` means.

use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession};

use crate::world::{COOKIE, LOGIN, STREAM, World};

#[test]
fn a_session_is_found_by_whatever_tells_it_apart() {
    let world = World::new();
    let id = |spec: &str| world.json(["info", spec, "--json"])["id"].as_str().unwrap().to_owned();
    assert_eq!(id(LOGIN), LOGIN);
    assert_eq!(id("1f3a"), LOGIN);
    assert_eq!(id("b"), COOKIE);
    assert_eq!(id("-"), COOKIE, "the last one used");
    assert_eq!(id("."), STREAM, "the newest here");
    assert_eq!(id("-"), STREAM);
    let path = world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap().to_owned();
    assert_eq!(id(&path), LOGIN);
    // A transcript that lies somewhere else can be read as well.
    let copy = world.shop.join("copy@home.jsonl");
    std::fs::copy(&path, &copy).unwrap();
    let shown = world.json(["show", "./copy@home.jsonl@1", "--json"]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 1);
    assert_eq!(shown["session"]["agent"], "claude");
}

#[test]
fn what_cannot_be_found_is_told_with_what_to_do() {
    let world = World::new();
    insta::assert_snapshot!("no such id", world.run(["info", "ffff"]).whole());
    insta::assert_snapshot!("no such path", world.run(["info", "./nowhere.jsonl"]).whole());
    insta::assert_snapshot!("not a session", world.run(["info", "./README.md"]).whole());
    insta::assert_snapshot!("nothing used yet", World::new().run(["info", "-"]).whole());
    insta::assert_snapshot!("nothing here", world.run_in(&world.blog, ["info", "."]).whole());
    insta::assert_snapshot!("a title", world.run(["info", "cookie"]).whole());
    insta::assert_snapshot!("hostile", world.run(["info", "\u{1b}[31m../../etc/passwd"]).whole());
    assert_eq!(world.run(["info", ""]).code, 1);
}

#[test]
fn several_matches_are_an_error_that_lists_them() {
    let world = World::new();
    insta::assert_snapshot!("a shared beginning", world.run(["info", "019a8"]).whole());
    insta::assert_snapshot!("as JSON", world.run(["info", "019a8", "--json"]).whole());
    // Two projects can hold the same id; only the path tells them apart.
    ClaudeSession::new(LOGIN)
        .cwd(&world.blog)
        .turn(|turn| turn.prompt("elsewhere").text("yes"))
        .write(&world.sandbox.claude_home());
    let output = world.run(["info", LOGIN]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("matches 2 sessions"), "{}", output.err);
    let paths: Vec<String> = world
        .json(["list", "--all", "--json"])
        .as_array()
        .unwrap()
        .iter()
        .filter(|session| session["id"] == LOGIN)
        .map(|session| session["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert_eq!(world.json(["info", &path, "--json"])["path"], path.as_str());
    }
}

#[test]
fn ids_of_one_minute_are_shown_as_long_as_needed() {
    let world = World::empty();
    for id in ["019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37", "019a81f0-3c52-7e11-8a4b-6d1f0c9e2b37"] {
        CodexSession::new(id)
            .cwd(&world.shop)
            .turn(|turn| turn.prompt("hi").text("hello"))
            .write(&world.sandbox.codex_home());
    }
    let listed = world.run(["list"]).out;
    for line in listed.lines() {
        let handle = line.split_whitespace().next().unwrap();
        assert_eq!(world.run(["info", handle]).code, 0, "{handle}");
    }
}

/// Every one of them creates the registry, and writes which session was used last.
#[test]
fn a_hundred_processes_at_once_are_fine() {
    let world = World::new();
    let children: Vec<_> = (0..100)
        .map(|number| {
            let mut command = world.command(["info", if number % 2 == 0 { LOGIN } else { COOKIE }]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("tine")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let last = world.json(["info", "-", "--json"])["id"].as_str().unwrap().to_owned();
    assert!(last == LOGIN || last == COOKIE);
}

#[test]
fn a_person_is_asked_which_one_is_meant() {
    let world = World::new();
    let tmux = testkit::Tmux::new(&world.sandbox);
    // The shell waits at the end, so that the screen stays.
    let mut command = world.sandbox.command("sh");
    command.args(["-c", "\"$1\" info 019a8@1; \"$1\" status 019a8; read end", "sh", env!("CARGO_BIN_EXE_tine")]);
    let pane = tmux.run(command.current_dir(&world.shop));
    pane.wait_for_text("`019a8` matches several sessions:");
    pane.wait_for_text("Which one? [1-2, Enter to cancel]");
    pane.send_keys(["7", "Enter"]);
    pane.wait_for_text("enter a number from 1 to 2");
    pane.send_keys(["2", "Enter"]);
    pane.wait_for_text("names a turn, but this command works on whole sessions");
    pane.wait_for(|screen| screen.matches("Which one?").count() == 3);
    pane.send_keys(["1", "Enter"]);
    pane.wait_for_text("stopped");
}

#[test]
fn a_thread_that_lists_leave_out_is_found_by_its_id() {
    let world = World::new();
    let review = "019b5786-b368-7000-8000-000000000007";
    let empty = "5973b6c0-94b8-487b-a530-2aeb6098ae04";
    let day = world.sandbox.codex_home().join("sessions/2025/12/25");
    std::fs::create_dir_all(&day).unwrap();
    let write = |id: &str, lines: &[serde_json::Value]| {
        let path = day.join(format!("rollout-2025-12-25T22-00-04-{id}.jsonl"));
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    };
    let meta = json!({"id": review, "timestamp": "2025-12-25T22:00:04.000Z", "cwd": "/home/me/app",
        "cli_version": "0.77.0", "source": {"subagent": "review"}});
    let prompt = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Review it"}]});
    write(
        review,
        &[
            json!({"timestamp": "2025-12-25T22:00:04.000Z", "type": "session_meta", "payload": meta}),
            json!({"timestamp": "2025-12-25T22:00:05.000Z", "type": "response_item", "payload": prompt}),
        ],
    );
    let identity = json!({"id": empty, "timestamp": "2025-07-03T12:00:00.000Z", "instructions": null});
    let path = write(empty, &[identity, json!({"record_type": "state"})]);
    let listed = world.json(["list", "--all", "--json"]).to_string();
    assert!(!listed.contains(review) && !listed.contains(empty), "{listed}");

    for word in [review, &review[..8]] {
        assert_eq!(world.json(["show", word, "--json"])["session"]["id"], review);
        assert_eq!(world.json(["info", word, "--json"])["turns"], 1);
    }
    // A file of 2025 in which nobody asked anything is a session, however it is named.
    for word in [empty, &path.to_string_lossy()] {
        assert_eq!(world.json(["info", word, "--json"])["turns"], 0);
        // It can't be sent a message first, and there is no transcript to give to a new session.
        for refused in [world.run(["fork", word]), world.run(["resume", word, "--to", ".", "--in", "none"])] {
            let said = "error: session `5973b6c0` has no messages, and Codex no longer reads its format\n\
                        hint: start a new session with `tine start`\n";
            assert_eq!((refused.code, refused.err.as_str()), (1, said), "{refused:?}");
        }
    }
    assert_eq!(world.run(["show", "019b5786-ffff"]).code, 1);
}
