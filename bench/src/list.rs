//! `tine list --all` over many sessions: warm against `find`, cold against `cat`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::build::Corpus;

use crate::Bench;
use crate::measure::{best, in_turns, once, report, report_memory};

const RUNS: usize = 7;

pub(crate) fn run(bench: &Bench) {
    let home = corpus(bench, "list", None);
    let trees = [home.join(".claude/projects"), home.join(".codex/sessions")];
    println!("\n{} sessions, {:.2} GB", bench.sessions, size(&trees) as f64 / 1e9);
    let find = best(RUNS, || {
        let mut command = Command::new("find");
        command.args(&trees).args(["-type", "f", "-printf", "%s %T@ %p\n"]);
        command
    });
    let cat = best(3, || {
        let mut command = Command::new("sh");
        command.args(["-c", "find \"$@\" -type f -print0 | xargs -0 cat > /dev/null", "sh"]).args(&trees);
        command
    });
    let list = || {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").args(["list", "--all"]).current_dir(&home);
        command
    };
    let cold = best(3, || {
        let _ = fs::remove_dir_all(home.join(".cache"));
        list()
    });
    let warm = best(RUNS, list);
    report("list --all, nothing changed", warm.time, "find", find.time, Some(2.0));
    report("list --all, no cache", cold.time, "cat", cat.time, Some(2.0));
    report_memory("list --all, no cache, peak memory", cold.memory, 150_000_000);
    report_memory("list --all, nothing changed, peak memory", warm.memory, 150_000_000);
    small(bench);
}

/// Sessions so small that what is printed of them takes longer than finding them.
fn small(bench: &Bench) {
    let home = corpus(bench, "list-small", Some(3_000));
    let trees = [home.join(".claude/projects"), home.join(".codex/sessions")];
    let find = || {
        let mut command = Command::new("find");
        command.args(&trees).args(["-type", "f", "-printf", "%s %T@ %p\n"]);
        command
    };
    let list = || {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").current_dir(&home);
        command.args(["list", "--all", "--json"]);
        command
    };
    once(&mut list());
    let (floor, taken) = in_turns(3 * RUNS, find, list);
    report("list --all --json, small sessions", taken.time, "find", floor.time, Some(2.0));
}

/// The corpus, made once and kept.
pub(crate) fn corpus(bench: &Bench, name: &str, median: Option<usize>) -> PathBuf {
    let home = bench.folder.join(format!("{name}-{}", bench.sessions));
    let done = home.join("complete");
    if !done.exists() {
        println!("making {} sessions in {}", bench.sessions, home.display());
        let _ = fs::remove_dir_all(&home);
        let corpus = Corpus::new(1).sessions(bench.sessions).projects(bench.sessions.div_ceil(50));
        let corpus = median.map_or_else(|| corpus.clone(), |bytes| corpus.clone().median(bytes));
        corpus.write(&home.join(".claude"), &home.join(".codex"), &home.join("work"));
        fs::write(done, "").expect("the mark");
    }
    home
}

pub(crate) fn size(folders: &[PathBuf]) -> u64 {
    fn below(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => below(&entry.path()),
                Ok(metadata) => metadata.len(),
                Err(_) => 0,
            })
            .sum()
    }
    folders.iter().map(|folder| below(folder)).sum()
}
