//! `tine index` and `tine search` over 500 MB: against `cat | wc -l` and `rg -c` over the same files.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::build::Corpus;

use crate::Bench;
use crate::list::size;
use crate::meaning;
use crate::measure::{in_turns, once, report, report_memory};

const RUNS: usize = 7;

pub(crate) fn run(bench: &Bench) {
    let home = corpus(bench, "search", None);
    let trees = [home.join(".claude/projects"), home.join(".codex/sessions")];
    let bytes = size(&trees);
    println!("\n{:.0} MB of transcripts", bytes as f64 / 1e6);
    let wc = || {
        let mut command = Command::new("sh");
        command.args(["-c", "find \"$@\" -type f -print0 | xargs -0 cat | wc -l", "sh"]).args(&trees);
        command
    };
    let rg = || {
        let mut command = Command::new("rg");
        command.args(["-c", "--no-config", "needle7x"]).args(&trees);
        command
    };
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").args(arguments).current_dir(&home);
        command
    };
    let cache = home.join(".cache/tine");
    let anew = || {
        let _ = fs::remove_dir_all(cache.join("index"));
    };
    once(&mut tine(&["list", "--all"]));
    let (floor, build) = in_turns(5, wc, || {
        anew();
        tine(&["index", "--words"])
    });
    report("index, all text", build.time, "cat | wc -l", floor.time, Some(10.0));
    report_memory("index, peak memory", build.memory, 300_000_000);
    let (floor, prose) = in_turns(5, wc, || {
        anew();
        tine(&["search", "--engine", "words", "handler"])
    });
    report("index, until prose is searchable", prose.first, "cat | wc -l", floor.time, Some(2.5));
    once(&mut tine(&["index", "--words"]));
    let index = size(&[cache.join("index")]);
    println!(
        "{:<44} {:>6.2} × the transcripts ({:.1} MB)  at most 0.25 ×: {}",
        "index, size",
        index as f64 / bytes as f64,
        index as f64 / 1e6,
        if index * 4 <= bytes { "holds" } else { "DOES NOT HOLD" }
    );
    let limit = if bytes > 1_500_000_000 { 0.15 } else { 0.3 };
    let queries = [
        ("one word", "handler"),
        ("AND", "handler AND error"),
        ("a sentence", "why does the request handler return an error after the session was closed"),
    ];
    for (name, query) in queries {
        let (floor, found) = in_turns(RUNS, rg, || tine(&["search", "--engine", "words", query]));
        report(&format!("search, {name}"), found.time, "rg -c", floor.time, Some(limit));
        report_memory(&format!("search, {name}, peak memory"), found.memory, 300_000_000);
    }
    println!("making vectors; for 500 MB, that takes minutes");
    once(&mut tine(&["index"]));
    let count = meaning::fill(&engine::vectors_file(&cache));
    let (floor, found) = in_turns(RUNS, rg, || tine(&["search", "--engine", "hybrid", queries[2].1]));
    report(&format!("search, words and meaning, {count} vectors"), found.time, "rg -c", floor.time, Some(1.0));
    report_memory("search, words and meaning, peak memory", found.memory, 300_000_000);
    let path = one_of_a_megabyte(&trees);
    let mut number = 0;
    let (floor, changed) = in_turns(RUNS, rg, || {
        number += 1;
        append(&path, number);
        tine(&["search", "--engine", "words", "handler"])
    });
    report("search, one file of 1 MB changed", changed.time, "rg -c", floor.time, Some(0.7));
}

/// A transcript of Claude Code of about a megabyte.
fn one_of_a_megabyte(trees: &[PathBuf]) -> PathBuf {
    let mut files = Vec::new();
    collect(&trees[0], &mut files);
    let near =
        files.into_iter().min_by_key(|path| fs::metadata(path).map_or(u64::MAX, |m| m.len()).abs_diff(1_000_000));
    near.expect("a transcript")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// Lets the session say one thing more, by saying its last prompt again with another word and another id.
fn append(path: &Path, number: u32) {
    let content = fs::read_to_string(path).expect("the transcript");
    let last = content.lines().rev().find(|line| line.contains("\"uuid\"")).expect("a record");
    let uuid =
        |line: &str| line.split("\"uuid\":\"").nth(1).and_then(|rest| rest.get(..36)).unwrap_or_default().to_owned();
    let prompt = content.lines().find(|line| line.contains("\"type\":\"user\"") && !line.contains("tool_result"));
    let prompt = prompt.expect("a prompt");
    let own = format!("00000000-0000-4000-8000-{:012}", u64::from(std::process::id()) * 1000 + u64::from(number));
    let parent =
        prompt.split("\"parentUuid\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap_or("null");
    let line = prompt
        .replacen(&format!("\"parentUuid\":{parent}"), &format!("\"parentUuid\":\"{}\"", uuid(last)), 1)
        .replace(&uuid(prompt), &own);
    let mut file = OpenOptions::new().append(true).open(path).expect("the transcript");
    writeln!(file, "{line}").expect("a line");
}

/// The corpus, made once and kept.
pub(crate) fn corpus(bench: &Bench, name: &str, vocabulary: Option<usize>) -> PathBuf {
    let home = bench.folder.join(format!("{name}-{}", bench.megabytes));
    let done = home.join("complete");
    if !done.exists() {
        println!("making {} MB in {}", bench.megabytes, home.display());
        let _ = fs::remove_dir_all(&home);
        let corpus = Corpus::new(1).bytes(bench.megabytes * 1_000_000).projects(40);
        let corpus = vocabulary.map_or_else(|| corpus.clone(), |words| corpus.clone().vocabulary(words));
        corpus.write(&home.join(".claude"), &home.join(".codex"), &home.join("work"));
        fs::write(done, "").expect("the mark");
    }
    home
}
