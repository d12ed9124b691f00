//! Attacks on tine: damaged transcripts, hostile arguments and payloads, kills at any moment, corrupted files of its own,
//! and exhausted resources.
//!
//! Each attack runs a number of rounds, and each round has a seed. `./test` runs a few rounds with fixed seeds. `bench/attack`
//! runs many with new ones. A failing round prints the command that repeats it.

mod corruption;
mod fuzz;
mod kill;
mod limits;
mod snapshot;
#[path = "../cli/world.rs"]
#[allow(dead_code, reason = "the tests of the command line use more of it")]
mod world;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use std::{env, fs};

use serde_json::Value;
use testkit::build::Random;
use testkit::process::run_within;
use testkit::sandbox::text;

use crate::world::is_harmless;

/// How long one command may take. Nothing here takes more than a second on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs an attack: as many rounds as asked for, each with its own seed.
#[expect(clippy::print_stderr, reason = "tells how to repeat a failure")]
fn rounds(attack: &str, usual: u64, round: impl Fn(&mut Random)) {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("TINE_ATTACK_SEED").unwrap_or(1);
    for seed in first..first + number("TINE_ATTACK_ROUNDS").unwrap_or(usual) {
        let result = catch_unwind(AssertUnwindSafe(|| round(&mut Random::new(seed))));
        if let Err(panic) = result {
            eprintln!("repeat: TINE_ATTACK_SEED={seed} TINE_ATTACK_ROUNDS=1 cargo test -p tine --test attack {attack}");
            resume_unwind(panic);
        }
    }
}

/// Runs a command that may fail, but never crash, hang or print anything that could control a terminal.
#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = run_within(command, PATIENCE);
    let shown = format!("{command:?}\n{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    assert!(matches!(output.status.code(), Some(0..=2)), "crashed: {shown}");
    for (name, bytes) in [("standard output", &output.stdout), ("standard error", &output.stderr)] {
        // Arguments can hold any bytes, but what is printed is text.
        let printed = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{name}: {error}: {shown}"));
        assert!(is_harmless(&printed.replace('\t', " ")), "{name} can control a terminal: {printed:?}");
    }
    output
}

/// Runs a command that has to succeed and print JSON.
#[track_caller]
fn json(command: &mut Command) -> Value {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Every file below some folders, with its content.
fn files_in<'a>(folders: impl IntoIterator<Item = &'a Path>) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left: Vec<PathBuf> = folders.into_iter().map(Path::to_owned).collect();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    drop(files.insert(entry.path(), fs::read(entry.path()).unwrap_or_default()));
                }
                _ => {}
            }
        }
    }
    files
}

/// Panics where one of these files is gone or has another content.
#[track_caller]
fn assert_untouched(before: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, content) in before {
        let now = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(now == *content, "{} was changed", path.display());
    }
}

/// Names that tine gives to what isn't complete yet.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(".tine-") {
            found.push(entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(unfinished(&entry.path()));
        }
    }
    found
}

/// A command-line word, hostile ones included. Arguments can't hold a NUL byte.
fn hostile_word(random: &mut Random) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    let text = random.choose(&testkit::damage::HOSTILE_TEXTS).replace('\0', "");
    match random.below(4) {
        0 => OsString::from_vec([text.as_bytes(), b"\xff\x9b2J\xfe"].concat()),
        1 => OsString::from(text.repeat(random.below(2_000))),
        _ => OsString::from(text),
    }
}
