//! `tine mcp`: until it answers, against `tine --version`; and what a thousand searches on one connection leave in
//! memory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::build::Corpus;

use crate::Bench;
use crate::measure::{once, report};

const RUNS: usize = 100;
/// After how many searches memory is looked at first, and in the end.
const SEARCHES: [usize; 2] = [100, 1_000];
/// Each search asks for something else.
const WORDS: [&str; 8] =
    ["handler", "retry timeout", "invoice rounding", "lock queue", "schema", "cookie", "voltage", "fence"];

pub(crate) fn run(bench: &Bench) {
    println!();
    let home = corpus(bench);
    // In turns, so that whatever else the machine does slows down both.
    let mut best = [Duration::MAX; 2];
    for _ in 0..RUNS {
        let mut version = tine(bench, &home, &["--version"]);
        version.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        assert!(version.status().expect("tine").success());
        best[0] = best[0].min(begun.elapsed());
        let begun = Instant::now();
        let server = Server::start(bench, &home);
        best[1] = best[1].min(begun.elapsed());
        server.end();
    }
    report("mcp, until it answers", best[1], "--version", best[0], Some(3.0));

    once(&mut tine(bench, &home, &["index", "--words"]));
    let mut server = Server::start(bench, &home);
    let mut memory = Vec::new();
    let begun = Instant::now();
    for number in 1..=SEARCHES[1] {
        let query = format!("{} {}", WORDS[number % WORDS.len()], WORDS[number / WORDS.len() % WORDS.len()]);
        let answer = server.call("tools/call", &json!({"name": "search_sessions", "arguments": {"query": query}}));
        assert!(answer["result"]["structuredContent"]["results"].is_array(), "{answer:#}");
        if SEARCHES.contains(&number) {
            memory.push(server.memory());
        }
    }
    let each = begun.elapsed() / SEARCHES[1] as u32;
    server.end();
    let ratio = memory[1] as f64 / memory[0] as f64;
    println!(
        "{:<44} {ratio:>6.2} × {:<12} ({:.1} MB / {:.1} MB)  at most 1.1 ×: {}",
        format!("mcp, {} sessions, memory after 1,000 searches", bench.sessions),
        "after 100",
        memory[1] as f64 / 1e6,
        memory[0] as f64 / 1e6,
        if ratio <= 1.1 { "holds" } else { "DOES NOT HOLD" }
    );
    println!("{:<44} {:>6.1} ms", "mcp, one search", each.as_secs_f64() * 1e3);
}

fn tine(bench: &Bench, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(&bench.tine);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").args(arguments).current_dir(home);
    command
}

/// Many short sessions, made once and kept.
fn corpus(bench: &Bench) -> PathBuf {
    let home = bench.folder.join(format!("mcp-{}", bench.sessions));
    let done = home.join("complete");
    if !done.exists() {
        println!("making {} sessions in {}", bench.sessions, home.display());
        let _ = fs::remove_dir_all(&home);
        let corpus = Corpus::new(7).sessions(bench.sessions).projects(bench.sessions.div_ceil(50)).median(1_500);
        corpus.write(&home.join(".claude"), &home.join(".codex"), &home.join("work"));
        // What is measured is answering; the vectors of all this take some minutes.
        let indexed = tine(bench, &home, &["index"]).stdout(Stdio::null()).status().expect("tine index");
        assert!(indexed.success());
        fs::write(done, "").expect("the mark");
    }
    home
}

/// A server that has answered who it is.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Server {
    fn start(bench: &Bench, home: &Path) -> Self {
        let mut command = tine(bench, home, &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tine mcp");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut server = Server { child, input, output, calls: 0 };
        let client = json!({"name": "bench", "version": "1"});
        let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let told = server.call("initialize", &begin);
        assert_eq!(told["result"]["serverInfo"]["name"], "tine");
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).expect("its input");
    }

    /// What it holds in memory now, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("its memory") * 1024
    }

    /// Ends it as a client does, by saying no more.
    fn end(self) {
        let Server { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().expect("the end").success());
    }
}
