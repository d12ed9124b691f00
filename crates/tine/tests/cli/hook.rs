//! `tine hook`: what agents tell, right or wrong, alone or all at once.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};
use testkit::build::ClaudeSession;
use testkit::sandbox::text;

use crate::world::{COOKIE, LOGIN, World};

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
    assert!(log.contains("no such event") && log.contains("the payload"), "{log}");
    // A registry that cannot be opened is no trouble of the agent's.
    let registry = world.sandbox.root().join("data/tine");
    fs::remove_dir_all(&registry).unwrap();
    fs::write(&registry, "in the way").unwrap();
    hook(&world, "session-start", &payload(LOGIN, Path::new("/x.jsonl"), "startup"), &[]);
}

#[test]
fn a_fork_is_named_after_the_session_that_was_launched() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let env_file = world.sandbox.root().join("env-file");
    let variables = [("TINE_SESSION", "auth"), ("CLAUDE_ENV_FILE", env_file.to_str().unwrap())];
    let path = path_of(&world, COOKIE);
    let output = hook(&world, "session-start", &payload(COOKIE, &path, "fork"), &variables);
    assert_eq!(text(&output.stderr), "tine: this is now auth-fork-1, forked from auth\n");
    assert_eq!(fs::read_to_string(&env_file).unwrap(), "export TINE_SESSION=auth-fork-1\n");
    let fork = world.json(["info", "auth-fork-1", "--json"]);
    assert_eq!((&fork["id"], &fork["parent"]["name"]), (&json!(COOKIE), &json!("auth")));
    // Told twice, it happened once.
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

#[test]
fn a_named_session_gets_its_notes_where_that_is_wanted() {
    let world = World::new();
    world.run(["adopt", LOGIN, "auth"]);
    let started = payload(LOGIN, &path_of(&world, LOGIN), "resume").to_string();
    let told = |event: &str| {
        let output = call(&world, event, started.as_bytes(), &[]).wait_with_output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    world.sandbox.write(world.sandbox.home().join("notes/auth.md"), "Mind the cookies.\n");
    assert_eq!(told("session-start"), (Some(0), String::new()), "off by default");
    let config = world.sandbox.root().join("config/tine/config.toml");
    world.sandbox.write(&config, "[hooks]\nnotes = \"~/notes/{name}.md\"\n");
    assert_eq!(told("session-start"), (Some(0), "Mind the cookies.\n".into()));
    assert_eq!(told("stop"), (Some(0), String::new()));
    world.sandbox.write(&config, "broken [");
    assert_eq!(told("session-start"), (Some(0), String::new()));
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
        assert!(text(&output.stderr).starts_with("tine: this is now "), "{}", text(&output.stderr));
    }
    let sessions = world.json(["list", "--json"]);
    let named = |session: &Value| session["name"].as_str().map(str::to_owned);
    let names: HashSet<String> = sessions.as_array().unwrap().iter().filter_map(named).collect();
    assert_eq!(names.len(), 201, "every session has a name of its own");
    assert!((1..=100).all(|number| names.contains(&format!("base-fork-{number}"))));
    assert!(!world.sandbox.root().join("data/tine/hook.log").exists());
}
