//! `tine fork`: a very long session against `cp` and a flush, a short one against git and `cp`, a worktree against git.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::build::{ClaudeSession, big_claude_session, big_codex_session};

use crate::Bench;
use crate::measure::{Measurement, best, once, report, report_memory};
use crate::show;

const CLAUDE: &str = ".claude/projects/-home-me-app/11111111-1111-4111-8111-111111111111.jsonl";
const CODEX: &str = ".codex/sessions/2026/11/01/rollout-2026-11-01T12-00-00-01a19a00-0000-7000-8000-000000000001.jsonl";
const SMALL: &str = "22222222-2222-4222-8222-222222222222";

pub(crate) fn run(bench: &Bench) {
    println!();
    let (home, _) = show::sessions(bench);
    let copy = home.join("copy.jsonl");
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin:/usr/local/bin").current_dir(&home);
        command.args(arguments);
        command
    };
    let forked = |spec: &str, arguments: &[&str], runs: usize| {
        let mut taken: Option<Measurement> = None;
        for _ in 0..runs {
            let mut words = vec!["fork", spec, "--yes"];
            words.extend(arguments);
            let run = once(&mut tine(&words));
            once(&mut tine(&["undo"]));
            taken = Some(taken.map_or(run, |best| if run.time < best.time { run } else { best }));
        }
        taken.expect("a run")
    };
    for (agent, megabytes) in [("claude", 256), ("claude", 512), ("claude", 1024), ("codex", 1024)] {
        long_session(bench, agent, megabytes);
    }

    once(&mut tine(&["list", "--all"]));
    let repository = repository(&home);
    let small = ClaudeSession::new(SMALL)
        .cwd(&repository)
        .turn(|turn| turn.prompt("one").text("yes"))
        .turn(|turn| turn.prompt("two").text("yes"))
        .write(&home.join(".claude"));
    let floor = best(7, || {
        let mut command = Command::new("sh");
        command.args(["-c", "git rev-parse HEAD && cp \"$1\" \"$2\" && sync \"$2\"", "sh"]).arg(&small).arg(&copy);
        command.current_dir(&repository);
        command
    });
    let fork = forked(SMALL, &[], 7);
    report("fork of a small session", fork.time, "git + cp + sync", floor.time, Some(3.0));
    let tree = repository.with_file_name("tree");
    // In turns, because a disk that is still busy with the files of the last run slows down whoever comes next.
    let (mut floor, mut fork): (Option<Measurement>, Option<Measurement>) = (None, None);
    let quicker = |known: Option<Measurement>, run: Measurement| {
        known.map_or(run, |known| if run.time < known.time { run } else { known })
    };
    for _ in 0..3 {
        let mut add = Command::new("git");
        add.arg("-C").arg(&repository).args(["worktree", "add", "--quiet", "-b", "floor"]).arg(&tree);
        floor = Some(quicker(floor, once(&mut add)));
        let mut remove = Command::new("git");
        once(remove.arg("-C").arg(&repository).args(["worktree", "remove", "--force"]).arg(&tree));
        let mut branch = Command::new("git");
        once(branch.arg("-C").arg(&repository).args(["branch", "--quiet", "-D", "floor"]));
        fork = Some(quicker(fork, forked(SMALL, &["--worktree"], 1)));
    }
    let (floor, fork) = (floor.expect("a run"), fork.expect("a run"));
    report("fork into a worktree of 20,000 files", fork.time, "git worktree", floor.time, Some(1.2));
    let _ = fs::remove_file(copy);
}

/// The fork of a long session that is alone in its home, so that nothing else has to be looked at when tine has not seen
/// it before. Floor and forks take turns, because what a disk does for the last one slows down whoever comes next.
fn long_session(bench: &Bench, agent: &str, megabytes: u64) {
    let home = bench.folder.join(format!("fork-{agent}-{megabytes}"));
    let (path, id) = match agent {
        "claude" => (home.join(CLAUDE), "11111111-1111-4111-8111-111111111111"),
        _ => (home.join(CODEX), "01a19a00-0000-7000-8000-000000000001"),
    };
    if !path.exists() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        match agent {
            "claude" => big_claude_session(&path, megabytes << 20),
            _ => big_codex_session(&path, megabytes << 20),
        }
    }
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin:/usr/local/bin").current_dir(&home);
        command.args(arguments);
        command
    };
    let directory = home.to_string_lossy().into_owned();
    let fork = || {
        let taken = once(&mut tine(&["fork", id, "--yes", "--to", &directory]));
        once(&mut tine(&["undo"]));
        taken
    };
    let copy = home.join("copy.jsonl");
    let (mut floor, mut seen, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let mut command = Command::new("sh");
        command.args(["-c", "cp \"$1\" \"$2\" && sync \"$2\"", "sh"]).arg(&path).arg(&copy);
        floor.push(once(&mut command));
        fs::remove_file(&copy).expect("the floor's copy");
        once(&mut tine(&["list", "--all"]));
        seen.push(fork());
        let _ = fs::remove_dir_all(home.join(".cache"));
        unseen.push(fork());
    }
    let time = |runs: &[Measurement]| runs.iter().map(|run| run.time).min().unwrap_or_default();
    let memory = seen.iter().chain(&unseen).map(|run| run.memory).max().unwrap_or_default();
    let what = format!("fork of {megabytes} MB, {agent}");
    report(&what, time(&seen), "cp + sync", time(&floor), Some(1.5));
    report(&format!("{what}, never seen"), time(&unseen), "cp + sync", time(&floor), None);
    report_memory(&format!("{what}, peak memory"), memory, 32_000_000);
}

/// A repository of 20,000 files, made once and kept.
fn repository(home: &Path) -> std::path::PathBuf {
    let path = home.join("repository");
    if !path.join(".git/complete").exists() {
        let _ = fs::remove_dir_all(&path);
        for number in 0..20_000 {
            let folder = path.join(format!("d{}", number / 200));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(format!("f{number}.txt")), format!("file {number}\n").repeat(20)).expect("a file");
        }
        let script = "git init -q && git add . && git -c user.name=t -c user.email=t@example.invalid commit -qm all";
        once(Command::new("sh").args(["-c", script]).current_dir(&path));
        fs::write(path.join(".git/complete"), "").expect("the mark");
    }
    path
}
