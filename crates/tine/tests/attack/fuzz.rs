//! Foreign input that nobody should have written: transcripts, arguments, hook payloads and MCP messages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Dialect, GeminiSession, Random, Turn};
use testkit::damage::{damage_bytes, damage_records, damage_value, odd_value};
use testkit::process::run_within;

use crate::world::{LOGIN, World};
use crate::{PATIENCE, assert_untouched, hostile_word, rounds, run, unfinished};

/// One session of each kind that the agents write.
fn write_sessions(world: &World, random: &mut Random) -> Vec<PathBuf> {
    let (claude, codex) = (world.sandbox.claude_home(), world.sandbox.codex_home());
    let turn = |turn: Turn, number: usize| {
        turn.prompt(format!("prompt {number}"))
            .thinking("a thought")
            .tool("Bash", json!({"command": "ls"}), "README.md")
            .text(format!("answer {number}"))
    };
    let mut paths = Vec::new();
    for (number, version) in ["2.1.325", "2.1.197"].into_iter().enumerate() {
        let session = ClaudeSession::new(&random.uuid()).cwd(&world.shop).version(version).seed(number as u64);
        let session = session
            .turn(|it| turn(it, 1).subagent("help", |it| it.prompt("look").text("found")))
            .turn(|it| turn(it, 2))
            .compact("what was said before")
            .turn(|it| turn(it, 3))
            .turn(|it| turn(it, 4))
            .rewind_to(3)
            .turn(|it| turn(it, 5));
        paths.push(session.branch(&random.uuid()).title("A title").write(&claude));
        paths.push(session.write(&claude));
    }
    for dialect in [Dialect::Paginated, Dialect::Legacy] {
        let session = CodexSession::new(&random.uuid_at(1_794_312_000_000)).cwd(&world.shop).dialect(dialect);
        let session = session.turn(|it| turn(it, 1)).turn(|it| turn(it, 2)).compact("so far").turn(|it| turn(it, 3));
        paths.push(session.fork(&random.uuid_at(1_794_312_100_000)).turn(|it| turn(it, 4)).write(&codex));
        paths.push(session.write(&codex));
    }
    for is_old in [false, true] {
        let session = GeminiSession::new(&random.uuid()).cwd(&world.shop).turn(|it| turn(it, 1)).resumed();
        let session = session.turn(|it| turn(it, 2).subagent("help", |it| it.prompt("look").text("found")));
        let session = session.turn(|it| turn(it, 3)).rewound_to(3).turn(|it| turn(it, 4));
        paths.push(if is_old { session.old() } else { session }.write(&world.sandbox.gemini_home()));
    }
    paths
}

#[test]
fn damaged_transcripts_are_read_as_well_as_they_can_be() {
    rounds("damaged_transcripts", 6, |random| {
        let world = World::empty();
        let paths = write_sessions(&world, random);
        for path in &paths {
            let content = fs::read(path).unwrap();
            let damaged = match random.below(5) {
                0 => content,
                1 => damage_bytes(&content, random),
                _ => damage_records(&content, random),
            };
            fs::write(path, damaged).unwrap();
        }
        let before = world.agents_files();
        for words in [&["list", "--all", "--json"][..], &["tree", "--all", "--json"], &["search", "answer", "--json"]] {
            let output = run(&mut world.command(words));
            assert!(output.status.success(), "{words:?}: {output:?}");
            serde_json::from_slice::<Value>(&output.stdout).unwrap();
        }
        for words in [&["list", "--all"][..], &["tree", "--all"], &["search", "prompt"], &["export", "../exported"]] {
            run(&mut world.command(words));
        }
        let mut forked = 0;
        for path in &paths {
            let path = path.to_str().unwrap();
            let point = format!("{path}@{}", 1 + random.below(4));
            let shown: [&[&str]; 6] = [
                &["show", path],
                &["show", path, "--tools", "--json"],
                &["show", path, "--html"],
                &["show", &point, "--markdown"],
                &["info", path, "--json"],
                &["fork", &point, "--plan", "--json"],
            ];
            for words in shown {
                run(&mut world.command(words));
            }
            assert!(world.agents_files() == before || forked > 0, "reading changed something");
            let target = if random.below(2) == 0 { path } else { &point };
            forked += usize::from(run(&mut world.command(["fork", target, "--yes"])).status.success());
        }
        assert_untouched(&before);
        // A fork is complete or it leaves nothing behind.
        let transcripts = |files: &std::collections::BTreeMap<PathBuf, Vec<u8>>| {
            let is_main = |path: &&PathBuf| {
                path.extension().is_some_and(|end| end == "jsonl") && !path.iter().any(|part| part == "subagents")
            };
            files.keys().filter(is_main).filter(|path| !path.ends_with("session_index.jsonl")).count()
        };
        assert_eq!(transcripts(&world.agents_files()), transcripts(&before) + forked);
        assert_eq!(unfinished(world.sandbox.root()), [] as [PathBuf; 0]);
    });
}

/// Commands that start no agent and end by themselves.
const COMMANDS: [&str; 24] = [
    "list",
    "tree",
    "show",
    "info",
    "search",
    "smart-fork",
    "index",
    "status",
    "read",
    "wait",
    "interrupt",
    "stop",
    "focus",
    "events",
    "resume",
    "fork",
    "clone",
    "adopt",
    "rename",
    "undo",
    "log",
    "doctor",
    "completions",
    "no-such-command",
];

#[test]
fn hostile_arguments_are_refused_or_taken_as_text() {
    rounds("hostile_arguments", 60, |random| {
        let world = World::new();
        let mut command = world.command([random.choose(&COMMANDS)]);
        for _ in 0..=random.below(4) {
            match random.below(6) {
                0 => command.arg("--json"),
                1 => command.arg(LOGIN),
                2 => {
                    let options = ["--agent", "--dir", "--in", "--worktree", "--to", "--since", "--limit", "--timeout"];
                    command.arg(random.choose(&options))
                }
                _ => command.arg(hostile_word(random)),
            };
        }
        if random.below(4) == 0 {
            let names = ["TINE_CACHE", "TINE_CONFIG", "TINE_NOW", "TZ", "LANG", "COLUMNS", "TERM", "CLAUDE_CONFIG_DIR"];
            command.env(random.choose(&names), hostile_word(random));
        }
        let before = world.agents_files();
        run(&mut command);
        assert_untouched(&before);
        assert!(!world.shop.join("broken").exists(), "an argument reached a shell: {command:?}");
    });
}

#[test]
fn hostile_payloads_never_disturb_the_agent() {
    rounds("hostile_payloads", 60, |random| {
        let world = World::new();
        let path = world.json(["info", LOGIN, "--json"])["path"].clone();
        let mut payload = json!({
            "session_id": LOGIN, "transcript_path": path, "cwd": world.shop, "hook_event_name": "SessionStart",
            "source": random.choose(&["startup", "resume", "fork", "clear", "compact"]), "prompt": "hello",
            "prompt_id": "p1", "turn_id": "t1", "notification_type": "permission_prompt", "model": "m",
        });
        for _ in 0..=random.below(3) {
            damage_value(&mut payload, random);
        }
        let mut bytes = payload.to_string().into_bytes();
        if random.below(3) == 0 {
            bytes = damage_bytes(&bytes, random);
        }
        let events = ["session-start", "user-prompt-submit", "stop", "notification", "session-end", "no-such-event"];
        let before = world.agents_files();
        let (event, agent) = (*random.choose(&events), *random.choose(&["claude", "codex", "gemini"]));
        let mut command = world.command(["hook", event, "--agent", agent]);
        feed(&mut command, &bytes);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&bytes));
        assert!(world.agents_files() == before, "a hook changed the agents' files");
        assert_eq!(world.run(["list", "--all"]).code, 0);
    });
}

#[test]
fn hostile_messages_do_not_end_the_server() {
    rounds("hostile_messages", 20, |random| {
        let world = World::new();
        let call = |id: usize, name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let mut input = Vec::new();
        let mut send = |message: &Value| input.extend(format!("{message}\n").into_bytes());
        send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "attack", "version": "1"}}}));
        send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let tools =
            ["smart_fork", "search_sessions", "list_sessions", "get_session", "plan_fork", "read_session", "nothing"];
        for id in 1..10 {
            let tool = *random.choose(&tools);
            let mut message = match random.below(4) {
                0 => odd_value(random),
                1 => call(id, tool, odd_value(random)),
                _ => call(id, tool, json!({"query": "login", "session": LOGIN, "intent": "login"})),
            };
            damage_value(&mut message, random);
            send(&message);
        }
        send(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"}));
        let before = world.agents_files();
        let mut command = world.command(["mcp"]);
        feed(&mut command, &input);
        // Its output is read by a program, so it may hold any character.
        let output = run_within(&mut command, PATIENCE);
        assert!(output.status.success(), "{output:?}");
        let answers = String::from_utf8(output.stdout).unwrap();
        let is_last = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|answer| answer["id"] == 99);
        assert!(answers.lines().any(is_last), "the last request was not answered: {answers}");
        assert_untouched(&before);
    });
}

/// Gives a command these bytes as its standard input.
fn feed(command: &mut Command, bytes: &[u8]) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    command.stdin(Stdio::from(file));
}
