//! `tine send` to sessions without a terminal: background processes that fail, are killed or are cancelled.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::Terminal;
use testkit::poll::{PATIENCE, wait_until};
use testkit::process::processes_at_home_in;

use crate::panes::Panes;
use crate::world::TineOutput;

fn headless(name: &str) -> Panes {
    let panes = Panes::new(Terminal::Tmux);
    panes.tine(&["start", name, "--in", "headless", "--prompt", "first"]);
    panes
}

/// The command lines of what runs in the sandbox and has a word in it.
fn running(panes: &Panes, word: &str) -> Vec<(u32, String)> {
    let command_line = |pid: u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&words).replace('\0', " ")))
    };
    let all = processes_at_home_in(&panes.world.sandbox.home()).into_iter().filter_map(command_line);
    all.filter(|(_, words)| words.split(' ').any(|other| other == word || other.ends_with(&format!("/{word}"))))
        .collect()
}

fn let_it_answer(panes: &Panes) {
    panes.world.sandbox.write(panes.world.sandbox.home().join("go"), "");
}

fn error_of(output: &TineOutput) -> Value {
    assert_eq!(output.code, 1, "{output:?}");
    serde_json::from_str::<Value>(&output.raw).unwrap_or_else(|error| panic!("{error} in {output:?}"))["error"].take()
}

/// Makes the agent fail before it begins.
fn break_the_agent(panes: &Panes) {
    let config = panes.world.sandbox.root().join("config/tine/config.toml");
    panes.world.sandbox.write(config, "[agents.claude]\ncommand = \"/bin/false\"\n");
}

#[test]
fn a_failure_in_the_background_keeps_its_kind_message_and_hint() {
    let panes = headless("one");
    break_the_agent(&panes);
    let waited = error_of(&panes.run(&["send", "one", "second", "--wait", "--json"]));
    let sent = error_of(&panes.run(&["send", "one", "second", "--json"]));
    assert_eq!(sent, waited);
    assert!(sent["kind"] == "agent_failed" && sent["hint"].is_string(), "{sent:#}");
}

#[test]
fn why_a_message_in_the_background_was_not_answered_is_known_until_the_next_one() {
    let panes = headless("one");
    panes.tine(&["send", "one", "fall over"]);
    panes.tine(&["wait", "one"]);
    let failed = "the last turn of `one` ended without an answer: ";
    let read = panes.run(&["read", "one"]);
    assert!(read.err.contains(failed) && read.err.contains("claude failed: exit status: 1"), "{read:?}");
    panes.tine(&["send", "one", "take your time"]);
    assert!(!panes.run(&["read", "one"]).err.contains(failed));
}

/// The agent of a worker that was killed goes on, and the next message waits for it.
#[test]
fn a_killed_worker_neither_loses_nor_repeats_a_message() {
    let panes = headless("one");
    panes.tine(&["send", "one", "take your time"]);
    let first = running(&panes, "worker");
    assert_eq!(first.len(), 1, "{first:?}");
    panes.tine(&["send", "one", "second"]);
    panes.tine(&["send", "one", "third"]);
    assert_eq!(running(&panes, "worker").len(), 3);
    let kill = |pid: u32| Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success();
    assert!(kill(first[0].0));
    wait_until("the end of the worker", PATIENCE, || running(&panes, "worker").len() == 2);
    assert_eq!(panes.state("one"), "busy");
    let_it_answer(&panes);
    panes.tine(&["wait", "one"]);
    let shown = panes.tine(&["show", "one", "--markdown"]);
    let answers = ["to first\n", "to take your time\n", "to second\n", "to third\n"];
    let places: Vec<_> =
        answers.iter().map(|answer| shown.match_indices(answer).map(|found| found.0).collect()).collect();
    assert!(places.iter().all(|found: &Vec<usize>| found.len() == 1) && places.is_sorted(), "{places:?} in {shown}");
    wait_until("the end of all workers", PATIENCE, || running(&panes, "worker").is_empty());
    assert_eq!(running(&panes, "claude"), []);
}

#[test]
fn a_huge_prompt_is_sent_whole_and_on_no_command_line() {
    let panes = headless("one");
    let prompt = format!("begin {} end", "long words ".repeat(300_000));
    let mut command = panes.command(&["send", "one", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine");
    child.stdin.take().expect("its input").write_all(prompt.as_bytes()).expect("written");
    for (_, words) in running(&panes, "worker").into_iter().chain(running(&panes, "claude")) {
        assert!(words.len() < 4000, "{words}");
    }
    let output = child.wait_with_output().expect("tine");
    assert!(output.status.success(), "{output:?}");
    panes.tine(&["wait", "one"]);
    assert_eq!(panes.tine(&["read", "one"]).trim_end(), format!("to {prompt}"));
}

#[test]
fn without_a_cache_folder_messages_are_sent_and_failures_reported() {
    let panes = headless("one");
    let without_cache = |words: &[&str]| {
        let mut command = panes.command(words);
        TineOutput::of(&panes.world, &command.env("TINE_CACHE", "/dev/full/cache").output().expect("tine"))
    };
    assert_eq!(without_cache(&["send", "one", "second"]).code, 0);
    wait_until("the answer", PATIENCE, || panes.run(&["read", "one"]).out == "to second\n");
    break_the_agent(&panes);
    assert_eq!(error_of(&without_cache(&["send", "one", "third", "--json"]))["kind"], "agent_failed");
}

/// The limit fails every write, as a full disk does.
#[test]
fn on_a_full_disk_the_failure_is_reported() {
    let panes = headless("one");
    let mut command = panes.world.sandbox.command("sh");
    let info = panes.json(&["info", "one", "--json"]);
    let (tine, id) = (env!("CARGO_BIN_EXE_tine"), info["id"].as_str().expect("an id"));
    command.args(["-c", "ulimit -f 0; exec \"$@\"", "sh", tine, "send", id, "second", "--json"]);
    let output = command.current_dir(&panes.world.shop).output().expect("tine");
    let error = error_of(&TineOutput::of(&panes.world, &output));
    assert_eq!(error["kind"], "registry", "{error:#}");
    assert_eq!(panes.tine(&["send", "one", "third", "--wait"]), "to third\n");
}

/// tine as an MCP server.
struct Server(std::process::Child);

impl Server {
    fn start(panes: &Panes) -> Self {
        let mut command = panes.world.command(["mcp"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("tine");
        let mut server = Server(child);
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.write(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.0.stdin.as_mut().expect("its input");
        writeln!(stdin, "{message}").and_then(|()| stdin.flush()).expect("written");
    }

    fn call(&mut self, id: u32, tool: &str, arguments: &Value) {
        let call = json!({"name": tool, "arguments": arguments});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
    }

    fn cancel(&mut self, id: u32) {
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_cancelled_call_over_mcp_ends_the_agents_it_started() {
    let panes = headless("one");
    let mut server = Server::start(&panes);
    let slow = "take your time";
    let calls = [
        ("send_message", json!({"sessions": ["one"], "message": slow, "wait": "all"})),
        (
            "spawn_workers",
            json!({"layout": "headless", "workers": [
                {"name": "two", "prompt": slow}, {"name": "three", "resume_session_id": "one", "fork_session": true, "prompt": slow},
            ]}),
        ),
    ];
    for (id, (tool, arguments)) in (1..).zip(calls) {
        server.call(id, tool, &arguments);
        wait_until("an agent", PATIENCE, || !running(&panes, "claude").is_empty());
        server.cancel(id);
        wait_until("the end of the agents", PATIENCE, || {
            running(&panes, "claude").is_empty() && running(&panes, "worker").is_empty()
        });
    }
    assert_eq!(panes.state("one"), "stopped");
}

/// A message that another one queued belongs to whoever queued it.
#[test]
fn a_cancelled_call_over_mcp_leaves_the_messages_of_others() {
    let panes = headless("one");
    panes.tine(&["send", "one", "take your time"]);
    let mut server = Server::start(&panes);
    server.call(1, "send_message", &json!({"sessions": ["one"], "message": "second", "wait": "all"}));
    wait_until("both workers", PATIENCE, || running(&panes, "worker").len() == 2);
    server.cancel(1);
    wait_until("the end of one", PATIENCE, || running(&panes, "worker").len() == 1);
    let_it_answer(&panes);
    panes.tine(&["wait", "one"]);
    assert_eq!(panes.tine(&["read", "one"]), "to take your time\n");
}
