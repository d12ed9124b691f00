//! `tine mcp` and clients that leave, stall or come in crowds; `tests/real/mcp.rs` has the tools and the official client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::process::end;

use crate::world::World;

/// What a client reads that sends these requests at once and closes its end.
pub(crate) fn answers(world: &World, requests: &[Value]) -> Vec<Value> {
    let info =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let mut messages = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    messages.extend_from_slice(requests);
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let mut child = world.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tine");
    // The last line has no line break.
    child.stdin.take().expect("its input").write_all(lines.join("\n").as_bytes()).expect("requests");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[test]
fn requests_still_running_after_end_of_input_are_answered() {
    let world = World::new();
    // Longer than the 5 seconds after which rmcp drops a request.
    world.sandbox.script("qmd", "#!/bin/sh\n[ \"$1\" != query ] || sleep 6\necho '[]'\n");
    let call = json!({"name": "smart_fork", "arguments": {"intent": "redirect"}});
    let mut answers = answers(
        &world,
        &[
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        ],
    );
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2)]);
    assert_eq!(answers[1]["result"]["isError"], false, "{}", answers[1]);
}

/// A server that ends with the test.
struct Listening {
    child: Child,
    port: u16,
}

impl Listening {
    /// Starts a server that may have this many files open.
    fn start(world: &World, files: usize) -> Self {
        let mut command = world.sandbox.command("sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_tine"), "mcp"]);
        let mut child = command.arg("--http").stderr(Stdio::piped()).spawn().expect("tine");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("its messages")).read_line(&mut line).expect("a line");
        let port = line.trim_end().trim_end_matches("/mcp").rsplit(':').next().expect("a port");
        let port = port.parse().unwrap_or_else(|_| panic!("no port in {line:?}"));
        Listening { child, port }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("a connection")
    }

    /// The processor time that it has used, in ticks.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its state");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        fields[11].parse::<u64>().expect("ticks") + fields[12].parse::<u64>().expect("ticks")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn more_connections_than_files_may_be_open_do_not_spin() {
    let world = World::empty();
    let server = Listening::start(&world, 32);
    let crowd: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\n").expect("half a request");
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let before = server.ticks();
    std::thread::sleep(Duration::from_secs(2));
    let used = server.ticks() - before;
    // One that spins uses 100 ticks a second.
    assert!(used < 20, "{used} ticks in 2 seconds");
    drop(crowd);
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}
