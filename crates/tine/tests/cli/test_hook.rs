//! `tine hook`: what agents tell, right or wrong, alone or all at once.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::build::ClaudeSession;
use testkit::poll::poll;
use testkit::process::end;
use testkit::sandbox::{install_program, text};

use crate::world::{COOKIE, EXPORT, LOGIN, World};

/// Calls a hook as an agent does: from a process of its own, with a payload on standard input.
fn call(world: &World, event: &str, payload: &[u8], environment: &[(&str, &str)]) -> Child {
    let mut command = world.sandbox.command("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_tine"), "hook", event, "--agent", "claude"]);
    command.envs(environment.iter().copied()).current_dir(&world.shop);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine");
    // A hook that does not listen closes its end.
    let _ = child.stdin.take().expect("its input").write_all(payload);
    child
}

fn hook(world: &World, event: &str, payload: &Value, environment: &[(&str, &str)]) -> Output {
    let output = call(world, event, payload.to_string().as_bytes(), environment).wait_with_output().expect("its end");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""), "{}", text(&output.stderr));
    output
}

fn payload(id: &str, path: &Path, source: &str) -> Value {
    json!({"session_id": id, "transcript_path": path, "cwd": "/work", "hook_event_name": "SessionStart", "source": source})
}

fn path_of(world: &World, session: &str) -> PathBuf {
    world.json(["info", session, "--json"])["path"].as_str().unwrap().into()
}

#[test]
fn a_hook_never_fails_and_says_nothing() {
    let world = World::new();
    let long = format!(r#"{{"session_id":"{LOGIN}","prompt":"{}"}}"#, "x".repeat(3 << 20));
    let inputs: [&[u8]; 7] =
        [b"", b"nonsense", b"{}", b"[1]", b"\xff\xfe\x00", br#"{"session_id":"../../etc"}"#, long.as_bytes()];
    for event in ["session-start", "stop", "no-such-event", ""] {
        for input in inputs {
            let output = call(&world, event, input, &[]).wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{event}");
            assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()), "{event}");
        }
    }
    // What went wrong is in a file, for whoever looks for it.
    let log = fs::read_to_string(world.sandbox.root().join("data/tine/hook.log")).unwrap();
    assert!(log.contains("no such event") && log.contains("invalid payload"), "{log}");
    // A registry that cannot be opened is no trouble of the agent's.
    let registry = world.sandbox.root().join("data/tine");
    fs::remove_dir_all(&registry).unwrap();
    fs::write(&registry, "in the way").unwrap();
    hook(&world, "session-start", &payload(LOGIN, Path::new("/x.jsonl"), "startup"), &[]);
}

#[test]
fn a_hook_does_not_wait_for_an_input_that_nobody_closes() {
    let world = World::new();
    let path = path_of(&world, COOKIE);
    let call = |payload: &str| {
        let mut child = world
            .command(["hook", "session-start", "--agent", "claude"])
            .env("TINE_SESSION", "auth")
            .stdin(Stdio::piped())
            .spawn()
            .expect("tine");
        let mut input = child.stdin.take().expect("its input");
        input.write_all(payload.as_bytes()).expect("a payload");
        let began = Instant::now();
        let ended = poll(Duration::from_secs(60), || child.try_wait().expect("its end"));
        end(&mut child);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        began.elapsed()
    };
    let without_payload = call("");
    call(r#"{"session_id":"#);
    // The event counts as soon as its payload is complete.
    world.run(["adopt", LOGIN, "auth"]);
    let with_payload = call(&payload(COOKIE, &path, "fork").to_string());
    assert!(with_payload < Duration::from_secs(3), "{with_payload:?}, without a payload {without_payload:?}");
    assert_eq!(world.json(["info", "auth-fork-1", "--json"])["id"], COOKIE);
}

#[test]
fn a_fork_is_named_after_the_session_that_was_launched() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let env_file = world.sandbox.root().join("env-file");
    let variables = [("TINE_SESSION", "auth"), ("CLAUDE_ENV_FILE", env_file.to_str().unwrap())];
    let path = path_of(&world, COOKIE);
    let output = hook(&world, "session-start", &payload(COOKIE, &path, "fork"), &variables);
    assert_eq!(text(&output.stderr), "tine: this session is now auth-fork-1, a fork of auth\n");
    assert_eq!(fs::read_to_string(&env_file).unwrap(), "export TINE_SESSION=auth-fork-1\n");
    let fork = world.json(["info", "auth-fork-1", "--json"]);
    assert_eq!((&fork["id"], &fork["parent"]["name"]), (&json!(COOKIE), &json!("auth")));
    // TineOutput twice, it happened once.
    hook(&world, "session-start", &payload(COOKIE, &path, "fork"), &variables);
    assert_eq!(world.json(["info", "auth-fork-1", "--json"])["id"], COOKIE);
    assert_eq!(world.run(["info", "auth-fork-2"]).code, 1);
    assert_eq!(world.json(["info", "auth", "--json"])["id"], LOGIN);
}

#[test]
fn a_name_from_outside_is_believed_only_for_its_own_session() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    // A session that was there before is resumed in a shell that still has the other one's name.
    let path = path_of(&world, COOKIE);
    let output = hook(&world, "session-start", &payload(COOKIE, &path, "startup"), &[("TINE_SESSION", "auth")]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(world.json(["info", COOKIE, "--json"])["name"], Value::Null);
    assert_eq!(world.json(["info", "auth", "--json"])["id"], LOGIN);
}

/// A process that is taken for an agent, with these words on its command line. It calls one hook after the other.
fn agent(world: &World, agent: &str, words: &[&str], hooks: &[(&str, Value)], environment: &[(&str, &str)]) -> String {
    let program = world.sandbox.root().join("agents").join(agent);
    if !program.exists() {
        install_program(&program, &fs::read("/bin/sh").unwrap());
    }
    let mut script = String::new();
    for (number, (event, payload)) in hooks.iter().enumerate() {
        let file = world.sandbox.root().join(format!("payload-{number}"));
        fs::write(&file, payload.to_string()).unwrap();
        let tine = env!("CARGO_BIN_EXE_tine");
        script += &format!("'{tine}' hook {event} --agent {agent} < '{}'\n", file.display());
    }
    // The last command of a shell takes its place, unless another one follows.
    script += ":\n";
    let mut command = world.sandbox.command(&program);
    command.envs(environment.iter().copied()).current_dir(&world.shop).args(["-c", &script, agent]).args(words);
    let output = command.output().expect("a shell");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()), "{}", text(&output.stderr));
    text(&output.stderr)
}

fn prompt(id: &str, path: &Path) -> Value {
    json!({"session_id": id, "transcript_path": path, "cwd": "/work", "prompt": "words"})
}

#[test]
fn the_command_line_says_what_is_forked() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    world.run(["adopt", COOKIE, "other"]);
    let place = path_of(&world, COOKIE);
    let new = |number: u32| {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let path = place.with_file_name(format!("{id}.jsonl"));
        (id, path)
    };
    let inherited = [("TINE_SESSION", "auth")];
    let (id, path) = new(1);
    let words = ["-p", "--resume", COOKIE, "--fork-session"];
    let output = agent(&world, "claude", &words, &[("session-start", payload(&id, &path, "fork"))], &inherited);
    assert_eq!(output, "tine: this session is now other-fork-1, a fork of other\n");
    // An older client begins under the id of what it forks.
    let (id, path) = new(2);
    let words = [format!("--resume={}", place.display()), "--fork-session".to_owned()];
    let hooks = [("session-start", payload(COOKIE, &place, "resume")), ("user-prompt-submit", prompt(&id, &path))];
    let output = agent(&world, "claude", &words.each_ref().map(String::as_str), &hooks, &inherited);
    assert_eq!(output, "tine: this session is now other-fork-2, a fork of other\n");
    // What it does later has nothing to do with its command line.
    let (id, path) = new(3);
    let hooks = [
        ("session-start", payload(LOGIN, &path_of(&world, LOGIN), "resume")),
        ("session-start", payload(&id, &path, "fork")),
    ];
    let output = agent(&world, "claude", &["--resume", COOKIE, "--fork-session"], &hooks, &[]);
    assert_eq!(output, "tine: this session is now auth-fork-1, a fork of auth\n");
    assert_eq!(world.json(["info", "other", "--json"])["id"], COOKIE);
}

#[test]
fn what_was_missed_is_not_guessed() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let login = path_of(&world, LOGIN);
    let unheard = login.with_file_name("unheard.jsonl");
    let hooks =
        [("session-start", payload(LOGIN, &login, "resume")), ("user-prompt-submit", prompt("unheard", &unheard))];
    assert_eq!(agent(&world, "claude", &[], &hooks, &[("TINE_SESSION", "auth")]), "");
    assert_eq!(
        world.json(["list", "--json"]).as_array().unwrap().iter().filter(|one| !one["name"].is_null()).count(),
        1
    );
}

#[test]
fn a_daemon_that_works_for_many_is_not_believed() {
    let world = World::new();
    world.run(["adopt", EXPORT, "alpha"]);
    let stranger = "01a1e268-0000-7000-8000-000000000001";
    let path =
        world.sandbox.codex_home().join(format!("sessions/2026/11/16/rollout-2026-11-16T00-00-00-{stranger}.jsonl"));
    let hooks = [
        ("user-prompt-submit", prompt(stranger, &path)),
        ("session-start", payload("01a1e268-0000-7000-8000-000000000002", &path, "clear")),
    ];
    assert_eq!(agent(&world, "codex", &["app-server"], &hooks, &[("TINE_SESSION", "alpha")]), "");
    assert_eq!(world.json(["info", "alpha", "--json"])["id"], EXPORT);
    assert_eq!(world.json(["info", "alpha", "--json"])["previous_ids"], json!([]));
    assert_eq!(world.run(["info", "alpha-fork-1"]).code, 1);
}

#[test]
fn a_cleared_session_stays_in_its_family() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    world.run(["adopt", COOKIE, "cookie"]);
    let cookie = path_of(&world, COOKIE);
    let new = "00000000-0000-4000-8000-000000000001";
    let session = ClaudeSession::new(new).cwd(&world.shop).turn(|turn| turn.prompt("fresh").text("yes"));
    let path = session.write(&world.sandbox.claude_home());
    let hooks =
        [("session-start", payload(COOKIE, &cookie, "resume")), ("session-start", payload(new, &path, "clear"))];
    assert_eq!(agent(&world, "claude", &[], &hooks, &[]), "");
    let output = world.json(["info", "cookie", "--json"]);
    assert_eq!((&output["id"], &output["parent"]["name"]), (&json!(new), &json!("auth")));
    // What it was before is not another fork.
    let forks = &world.json(["info", "auth", "--json"])["forks"];
    assert_eq!(forks.as_array().unwrap().len(), 1, "{forks:#}");
    assert_eq!(forks[0]["id"], new);
    for asked in ["auth", COOKIE] {
        let trees = world.json(["tree", asked, "--json"]);
        let children = trees[0]["children"].as_array().unwrap();
        let ids: Vec<&Value> = children.iter().map(|child| &child["id"]).collect();
        assert_eq!(ids, [new], "{asked}");
    }
    // And what was forked from it before is its fork still.
    let fork = world.json(["fork", COOKIE, "later", "--json"]);
    assert_eq!(fork["parent"]["id"], COOKIE);
    let output = world.run(["tree", "auth"]);
    assert_eq!(output.code, 0);
    let line = |name: &str| output.out.lines().position(|line| line.contains(&format!(" {name} "))).unwrap();
    assert_eq!(line("later"), line("cookie") + 1, "{}", output.out);
    assert_eq!(world.json(["info", "later", "--json"])["parent"]["name"], "cookie");
    assert_eq!(world.json(["info", "cookie", "--json"])["forks"][0]["name"], "later");
    // A name makes it a session of its own again.
    assert_eq!(world.run(["rename", COOKIE, "old-cookie"]).code, 0);
    assert_eq!(world.json(["info", "cookie", "--json"])["previous_ids"], json!([]));
    // The session is found by its name, whatever its id and place.
    assert_eq!(world.run(["rename", "cookie", "biscuit"]).code, 0);
    let last = "00000000-0000-4000-8000-000000000002";
    let hooks = [
        ("session-start", payload(new, &path, "resume")),
        ("session-start", payload(last, &path.with_file_name(format!("{last}.jsonl")), "clear")),
    ];
    agent(&world, "claude", &[], &hooks, &[]);
    fs::copy(&path, path.with_file_name(format!("{last}.jsonl"))).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.json(["info", "cookie", "--json"])["id"], last);
}

#[test]
fn what_is_told_twice_happened_once() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let path = path_of(&world, LOGIN);
    let start = payload(LOGIN, &path, "resume");
    let end = json!({"session_id": LOGIN, "transcript_path": path, "reason": "prompt_input_exit"});
    let hooks = [
        ("session-start", start.clone()),
        ("session-start", start),
        ("session-end", end.clone()),
        ("session-end", end),
    ];
    agent(&world, "claude", &[], &hooks, &[]);
    assert_eq!(world.run(["events", "--json"]).out.lines().count(), 2);
}

#[test]
fn a_hook_waits_for_nobody_for_long() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let registry = world.sandbox.root().join("data/tine/registry.db");
    let connection = rusqlite::Connection::open(&registry).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = std::time::Instant::now();
    hook(&world, "session-start", &payload(LOGIN, &path_of_locked(&world), "resume"), &[]);
    // Two seconds are its patience; a person who waits for a listing has thirty.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(connection);
    // Nor where its directory is gone.
    let gone = world.sandbox.directory("gone");
    let mut command = world.sandbox.command("sh");
    let tine = env!("CARGO_BIN_EXE_tine");
    command.args(["-c", "rmdir \"$PWD\"; exec \"$@\"", "sh", tine, "hook", "stop", "--agent", "claude"]);
    command.current_dir(&gone).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = json!({"session_id": LOGIN, "transcript_path": path_of(&world, LOGIN)});
    child.stdin.take().unwrap().write_all(output.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(world.run(["events", "--json"]).out.contains("\"idle\""));
}

fn path_of_locked(world: &World) -> PathBuf {
    world.sandbox.claude_home().join("projects/x/y.jsonl")
}

#[test]
fn the_environment_file_of_another_session_is_left_alone() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let folder = world.sandbox.root().join("session-env");
    let old = folder.join(LOGIN).join("hook-1.sh");
    world.sandbox.write(&old, "export OTHER=1\n");
    let path = path_of(&world, COOKIE);
    hook(
        &world,
        "session-start",
        &payload(COOKIE, &path, "fork"),
        &[("TINE_SESSION", "auth"), ("CLAUDE_ENV_FILE", old.to_str().unwrap())],
    );
    assert_eq!(fs::read_to_string(&old).unwrap(), "export OTHER=1\n");
    let own = folder.join(COOKIE).join("hook-1.sh");
    assert_eq!(fs::read_to_string(own).unwrap(), "export TINE_SESSION=auth-fork-1\n");
}

#[test]
fn a_named_session_gets_its_notes_where_that_is_wanted() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let started = payload(LOGIN, &path_of(&world, LOGIN), "resume").to_string();
    let printed = |event: &str| {
        let output = call(&world, event, started.as_bytes(), &[]).wait_with_output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    world.sandbox.write(world.sandbox.home().join("notes/auth.md"), "Mind the cookies.\n");
    assert_eq!(printed("session-start"), (Some(0), String::new()), "off by default");
    let config = world.sandbox.root().join("config/tine/config.toml");
    world.sandbox.write(&config, "[hooks]\nnotes = \"~/notes/{name}.md\"\n");
    assert_eq!(printed("session-start"), (Some(0), "Mind the cookies.\n".into()));
    assert_eq!(printed("stop"), (Some(0), String::new()));
    world.sandbox.write(&config, "broken [");
    assert_eq!(printed("session-start"), (Some(0), String::new()));
}

#[test]
fn sessions_with_one_id_in_two_projects_are_kept_apart() {
    let world = World::empty();
    let write = |directory: &Path, prompt: &str| {
        let session = ClaudeSession::new(LOGIN).cwd(directory).turn(|turn| turn.prompt(prompt).text("yes"));
        session.write(&world.sandbox.claude_home())
    };
    let (shop, blog) = (write(&world.shop, "in the shop"), write(&world.blog, "in the blog"));
    assert_eq!(world.run(["adopt", shop.to_str().unwrap(), "of-the-shop"]).code, 0);
    hook(&world, "session-start", &payload(LOGIN, &blog, "resume"), &[]);
    assert_eq!(world.json(["info", "of-the-shop", "--json"])["path"], shop.to_str().unwrap());
    assert_eq!(world.run(["adopt", blog.to_str().unwrap(), "of-the-blog"]).code, 0);
    assert_eq!(world.json(["info", "of-the-blog", "--json"])["path"], blog.to_str().unwrap());
}

#[test]
fn two_hundred_hooks_at_once_lose_nothing() {
    let world = World::empty();
    let session =
        |id: &str| ClaudeSession::new(id).cwd(&world.shop).turn(|turn| turn.prompt(format!("of {id}")).text("yes"));
    session(LOGIN).write(&world.sandbox.claude_home());
    assert_eq!(world.run(["adopt", LOGIN, "base"]).code, 0);
    let forks: Vec<(String, PathBuf)> = (0..200)
        .map(|number| {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            (id.clone(), session(&id).write(&world.sandbox.claude_home()))
        })
        .collect();
    let children: Vec<Child> = forks
        .iter()
        .map(|(id, path)| {
            let payload = payload(id, path, "fork").to_string();
            call(&world, "session-start", payload.as_bytes(), &[("TINE_SESSION", "base")])
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stderr).starts_with("tine: this session is now "), "{}", text(&output.stderr));
    }
    let sessions = world.json(["list", "--json"]);
    let named = |session: &Value| session["name"].as_str().map(str::to_owned);
    let names: HashSet<String> = sessions.as_array().unwrap().iter().filter_map(named).collect();
    assert_eq!(names.len(), 201, "every session has a name of its own");
    assert!((1..=100).all(|number| names.contains(&format!("base-fork-{number}"))));
    assert!(!world.sandbox.root().join("data/tine/hook.log").exists());
}
