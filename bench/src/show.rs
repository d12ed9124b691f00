//! `tine show` of very long sessions: the first output, and memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testkit::build::{big_claude_session, big_codex_session};

use crate::Bench;
use crate::measure::{best, once, report, report_memory};

const BYTES: u64 = 1 << 30;
const CLAUDE: &str = ".claude/projects/-home-me-app/11111111-1111-4111-8111-111111111111.jsonl";
const CODEX: &str = ".codex/sessions/2026/11/01/rollout-2026-11-01T12-00-00-01a19a00-0000-7000-8000-000000000001.jsonl";

pub(crate) fn run(bench: &Bench) {
    let (home, claude) = sessions(bench);
    let codex = home.join(CODEX);
    println!();
    for (agent, path) in [("claude", &claude), ("codex", &codex)] {
        let cat = best(3, || {
            let mut command = Command::new("cat");
            command.arg(path);
            command
        });
        let show = |arguments: &[&str]| {
            let mut command = Command::new(&bench.tine);
            command.env_clear().env("HOME", &home).arg("show").arg(path).args(arguments).current_dir(&home);
            command
        };
        let _ = fs::remove_dir_all(home.join(".cache"));
        let cold = once(&mut show(&[]));
        let brief = best(3, || show(&[]));
        let full = once(&mut show(&["--tools"]));
        let json = once(&mut show(&["--json"]));
        report(&format!("show {agent} 1 GB, first byte, never seen"), cold.first, "cat", cat.time, None);
        report(&format!("show {agent} 1 GB, first byte"), brief.first, "cat", cat.time, None);
        report(&format!("show {agent} 1 GB, all of it"), brief.time, "cat", cat.time, None);
        report(&format!("show {agent} 1 GB --tools"), full.time, "cat", cat.time, None);
        report(&format!("show {agent} 1 GB --json"), json.time, "cat", cat.time, None);
        let memory = [cold, brief, full, json].iter().map(|taken| taken.memory).max().unwrap_or_default();
        report_memory(&format!("show {agent} 1 GB, peak memory"), memory, 64_000_000);
    }
}

/// A home with two sessions of 1 GB, made once and kept, and the one of Claude Code.
pub(crate) fn sessions(bench: &Bench) -> (PathBuf, PathBuf) {
    let home = bench.folder.join("show");
    let (claude, codex) = (home.join(CLAUDE), home.join(CODEX));
    let done = home.join("complete");
    if !done.exists() {
        println!("making two sessions of 1 GB in {}", home.display());
        let _ = fs::remove_dir_all(&home);
        for path in [&claude, &codex] {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        }
        big_claude_session(&claude, BYTES);
        big_codex_session(&codex, BYTES);
        fs::write(done, "").expect("the mark");
    }
    (home, claude)
}
