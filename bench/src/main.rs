//! Measures tine against floors in the same run. See bench/README.md.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

mod code;
mod evaluate;
mod fork;
mod hook;
mod list;
mod mcp;
mod meaning;
mod measure;
mod panes;
mod rebuild;
mod search;
mod show;
mod terminal;
mod words;
mod workbench;

use std::path::PathBuf;

/// What every benchmark needs.
pub(crate) struct Bench {
    /// The binary that is measured.
    tine: PathBuf,
    /// Where corpora are kept between runs.
    folder: PathBuf,
    /// How many sessions the corpus has.
    sessions: usize,
    /// How large the corpus of the search is.
    megabytes: u64,
}

fn main() {
    let mut wanted: Vec<String> = Vec::new();
    let mut sessions = 10_000;
    let mut megabytes = 500;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--sessions" => sessions = words.next().and_then(|count| count.parse().ok()).expect("a number of sessions"),
            "--megabytes" => megabytes = words.next().and_then(|count| count.parse().ok()).expect("a number of MB"),
            _ => wanted.push(word),
        }
    }
    if wanted.is_empty() {
        wanted = vec![
            "list".into(),
            "show".into(),
            "fork".into(),
            "hook".into(),
            "rebuild".into(),
            "code".into(),
            "panes".into(),
            "workbench".into(),
            "mcp".into(),
            "search".into(),
            "words".into(),
            "meaning".into(),
        ];
    }
    let own = std::env::current_exe().expect("the benchmark's own path");
    let target = own.parent().expect("a folder");
    let tine = target.join("tine");
    let needs_tine = wanted.iter().any(|name| !name.starts_with("meaning"));
    assert!(!needs_tine || tine.exists(), "{} is missing: cargo build --profile dist -p tine", tine.display());
    let folder = target.parent().expect("the target folder").join("bench");
    let bench = Bench { tine, folder, sessions, megabytes };
    for name in wanted {
        match name.as_str() {
            "list" => list::run(&bench),
            "show" => show::run(&bench),
            "fork" => fork::run(&bench),
            "hook" => hook::run(&bench),
            "rebuild" => rebuild::run(&bench),
            "code" => code::run(&bench),
            "panes" => panes::run(&bench),
            "workbench" => workbench::run(&bench),
            "mcp" => mcp::run(&bench),
            "search" => search::run(&bench),
            "words" => words::run(&bench),
            "meaning" => meaning::run(&bench),
            "evaluate" => evaluate::run(&bench),
            "--verbose" => {}
            meaning::QUERY => meaning::query(&bench),
            other => {
                panic!(
                    "no benchmark `{other}`; there are list, show, fork, rebuild, hook, code, panes, workbench, mcp, search, words, meaning and evaluate"
                )
            }
        }
    }
}
