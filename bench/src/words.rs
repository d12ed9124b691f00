//! `tine search` over transcripts with as many different words as people use, most of them rare: against `rg -c`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use testkit::build::made_up;

use crate::Bench;
use crate::measure::{best, in_turns, once, report};
use crate::search::corpus;

const RUNS: usize = 15;
/// How many different words there are besides the usual ones.
const VOCABULARY: usize = 60_000;
/// How long a person waits for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
const SENTENCE: &str = "why does the request handler return an error after the session was closed";

pub(crate) fn run(bench: &Bench) {
    let home = corpus(bench, "words", Some(VOCABULARY));
    let trees = [home.join(".claude/projects"), home.join(".codex/sessions")];
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
    println!("\n{VOCABULARY} words in {} MB", bench.megabytes);
    once(&mut tine(&["index", "--words"]));
    // From a word that every session has to words that a handful has, and one that none has.
    let mut queries = vec![("a common word".to_owned(), "handler".to_owned())];
    queries.extend([10, 100, 1_000, 10_000, 30_000, 59_000].map(|place| (format!("word {place}"), made_up(place))));
    queries.push(("a word that nobody said".to_owned(), "xylophonist".to_owned()));
    for (name, query) in &queries {
        let (floor, found) = in_turns(RUNS, rg, || tine(&["search", "--engine", "words", query]));
        report(&format!("search, {name}"), found.time, "rg -c", floor.time, Some(0.3));
    }
    let vectors = engine::vectors_file(&home.join(".cache/tine"));
    let found = best(5, || {
        let _ = fs::remove_file(&vectors);
        tine(&["search", "--engine", "hybrid", SENTENCE])
    });
    report("search, words and meaning, no vectors yet", found.time, "a second", PATIENCE, Some(1.0));
}
