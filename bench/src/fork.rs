//! `tine fork`: a very long session against `cp` and a flush, a short one against git and `cp`, a worktree against git.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::build::ClaudeSession;

use crate::Bench;
use crate::measure::{Taken, best, once, report, report_memory};
use crate::show;

const SMALL: &str = "22222222-2222-4222-8222-222222222222";

pub(crate) fn run(bench: &Bench) {
    println!();
    let (home, big) = show::sessions(bench);
    let copy = home.join("copy.jsonl");
    let cp = |from: &Path| {
        best(3, || {
            let mut command = Command::new("sh");
            command.args(["-c", "cp \"$1\" \"$2\" && sync \"$2\"", "sh"]).arg(from).arg(&copy);
            command
        })
    };
    let id = big.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin:/usr/local/bin").current_dir(&home);
        command.args(arguments);
        command
    };
    let forked = |spec: &str, arguments: &[&str], runs: usize| {
        let mut taken: Option<Taken> = None;
        for _ in 0..runs {
            let mut words = vec!["fork", spec, "--yes"];
            words.extend(arguments);
            let run = once(&mut tine(&words));
            once(&mut tine(&["undo"]));
            taken = Some(taken.map_or(run, |best| if run.time < best.time { run } else { best }));
        }
        taken.expect("a run")
    };
    once(&mut tine(&["list", "--all"]));
    let directory = home.to_string_lossy().into_owned();
    let floor = cp(&big);
    let fork = forked(&id, &["--to", &directory], 3);
    report("fork of 1 GB", fork.time, "cp + sync", floor.time, Some(1.5));
    report_memory("fork of 1 GB, peak memory", fork.memory, 32_000_000);

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
    let (mut floor, mut fork): (Option<Taken>, Option<Taken>) = (None, None);
    let quicker =
        |known: Option<Taken>, run: Taken| known.map_or(run, |known| if run.time < known.time { run } else { known });
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
