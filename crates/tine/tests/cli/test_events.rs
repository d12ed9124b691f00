//! `tine events`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::world::{LOGIN, World};

fn tell(world: &World, event: &str, more: &Value) {
    let path = world.json(["info", LOGIN, "--json"])["path"].clone();
    let mut payload = json!({"session_id": LOGIN, "transcript_path": path, "cwd": "/work"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = world.command(["hook", event, "--agent", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn kinds(lines: &[String]) -> Vec<String> {
    let parsed = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.map(|event| format!("{} {}", event["event"].as_str().unwrap(), event["name"].as_str().unwrap())).collect()
}

#[test]
fn what_happened_is_told_in_order_to_everybody() {
    let world = World::new();
    assert_eq!(world.run(["events"]).code, 0);
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    tell(&world, "session-start", &json!({"source": "resume"}));
    tell(&world, "user-prompt-submit", &json!({"prompt_id": "1"}));
    tell(&world, "permission-request", &json!({}));
    tell(&world, "stop", &json!({"prompt_id": "1"}));
    let output = world.run(["events", "--json"]);
    let lines: Vec<String> = output.out.lines().map(str::to_owned).collect();
    let all = ["session_started auth", "busy auth", "waiting auth", "answered auth", "idle auth"];
    assert_eq!(kinds(&lines), all);
    let last = world.run(["events", "--last", "1", "--json"]);
    assert_eq!(last.out.lines().count(), 1, "{}", last.out);
    assert_eq!(world.run(["events", "--last", "0"]).whole(), world.run(["events", "--last", "0", "--json"]).whole());
    // Two who follow see the same, each from where it began.
    let mut followers: Vec<Child> = (0..2)
        .map(|_| {
            let mut command = world.command(["events", "--follow", "--json", "--last", "1"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut readers: Vec<_> =
        followers.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()).lines()).collect();
    let mut next = |count: usize| -> Vec<Vec<String>> {
        readers.iter_mut().map(|lines| lines.take(count).map(Result::unwrap).collect()).collect()
    };
    for seen in next(1) {
        assert_eq!(kinds(&seen), ["idle auth"]);
    }
    tell(&world, "user-prompt-submit", &json!({"prompt_id": "2"}));
    tell(&world, "session-end", &json!({"reason": "prompt_input_exit"}));
    for seen in next(2) {
        assert_eq!(kinds(&seen), ["busy auth", "stopped auth"]);
    }
    for mut child in followers {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_fork_is_told_with_its_parent() {
    let world = World::new();
    assert_eq!(world.run(["adopt", LOGIN, "auth"]).code, 0);
    world.json(["fork", "auth", "twig", "--json", "--yes"]);
    assert_eq!(world.run(["events", "--last", "1"]).out, "12:00:00  forked           twig  claude  from auth\n");
}
