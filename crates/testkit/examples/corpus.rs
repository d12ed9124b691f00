//! Writes a corpus of synthetic sessions for benchmarks.
//!
//! `cargo run --release -p tine-testkit --example corpus -- DIRECTORY 500M` fills `DIRECTORY/claude` and
//! `DIRECTORY/codex`, which serve as `CLAUDE_CONFIG_DIR` and `CODEX_HOME`; a plain number is a number of sessions.
//! `... -- FILE.jsonl 10G` writes one session of that size instead, Codex's when its name begins with `rollout-`.
#![allow(clippy::print_stderr, reason = "an example that people run by hand")]

use std::path::PathBuf;

use testkit::build::{Corpus, big_claude_session, big_codex_session};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let target = PathBuf::from(arguments.next().expect("a directory or a file to write"));
    let size = arguments.next().expect("a size such as 500M, or a number of sessions");
    let started = std::time::Instant::now();
    let bytes = bytes(&size);
    if target.extension().is_some_and(|kind| kind == "jsonl") {
        let write = if target.to_string_lossy().contains("rollout-") { big_codex_session } else { big_claude_session };
        write(&target, bytes.expect("a size such as 10G"));
        eprintln!("{} in {:.1?}", target.display(), started.elapsed());
        return;
    }
    let corpus = Corpus::new(1).projects(40);
    let corpus = match bytes {
        Some(bytes) => corpus.bytes(bytes),
        None => corpus.sessions(size.parse().expect("a number of sessions")),
    };
    let work = target.join("work");
    let sessions = corpus.write(&target.join("claude"), &target.join("codex"), &work);
    let total: u64 = sessions.iter().map(|session| session.bytes).sum();
    eprintln!("{} sessions, {} MB in {:.1?}", sessions.len(), total / 1_000_000, started.elapsed());
}

/// `500M` and `10G` as bytes; nothing for a plain number.
fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = size.split_at(size.len() - 1);
    let factor = match unit {
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    Some(number.parse::<u64>().expect("a number before the unit") * factor)
}
