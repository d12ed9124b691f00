//! Vectors of texts: how fast they are made, what the first one costs, and how fast they are searched.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use meaning::{DIMENSIONS, Embedder, Key, Vector, VectorFile, VectorWriter, chunks};

use crate::Bench;
use crate::measure::{best, report, report_memory};

/// The process that `run` starts to measure a whole one.
pub(crate) const QUERY: &str = "meaning-query";

const RUNS: usize = 7;
/// Texts per measured run.
const TEXTS: usize = 32;
const VECTORS: u64 = 50_000;
/// Multiplications with weights for one token: six layers of four 384 × 384 and two 384 × 1536 matrices.
const WEIGHTS: usize = 6 * (4 * 384 * 384 + 2 * 384 * 1536);

pub(crate) fn run(bench: &Bench) {
    println!();
    fs::create_dir_all(&bench.folder).expect("the folder");
    embedding();
    cutting();
    searching(bench);
    whole_process(bench);
}

/// Loads, embeds one question and searches, as a process of its own.
pub(crate) fn query(bench: &Bench) {
    let question = Embedder::new().embed("why does the login page redirect in a loop");
    let found = VectorFile::open(&file(bench)).expect("vectors").nearest(&question, 50, |_| true);
    println!("{:?}", found.hits.first());
}

/// Chunks of 64 tokens a second and core. Time of the processor, not of the clock, so that it is a core's and not a share of
/// one. The floor is the same number of multiplications, done with two vectors that lie in the cache.
fn embedding() {
    let texts: Vec<String> = (0..TEXTS).map(text_of_64_tokens).collect();
    let embedder = Embedder::new();
    let begun = Instant::now();
    black_box(embedder.embed("why does the login page redirect in a loop"));
    told("the first text, loading included", begun.elapsed());
    let begun = Instant::now();
    black_box(embedder.embed_all(&texts[..4], 1));
    told("laying out the weights for many, four chunks", begun.elapsed());
    let (one, other) = (vector(1), vector(2));
    let multiply = || {
        for _ in 0..64 * WEIGHTS / DIMENSIONS {
            black_box(black_box(&one).cosine(&other));
        }
    };
    let (mut floor, mut cpu, mut clock, mut two) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let begun = cpu_time();
        multiply();
        floor.push(cpu_time() - begun);
        let begun = (cpu_time(), Instant::now());
        black_box(embedder.embed_all(&texts, 1));
        cpu.push((cpu_time() - begun.0) / TEXTS as u32);
        clock.push(begun.1.elapsed() / TEXTS as u32);
        let begun = Instant::now();
        black_box(embedder.embed_all(&texts, 2));
        two.push(begun.elapsed() / TEXTS as u32);
    }
    let cpu = Times::of(cpu);
    report("a chunk of 64 tokens", cpu.median, "multiplying", Times::of(floor).median, None);
    rate("chunks a second and core", cpu, Some(50.0));
    rate("chunks a second by the clock, one thread", Times::of(clock), None);
    rate("chunks a second by the clock, two threads", Times::of(two), None);
}

/// Cutting prose into chunks, against copying it character by character in small letters.
fn cutting() {
    let text: String = (0..20_000).map(text_of_64_tokens).collect();
    let (mut taken, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let begun = Instant::now();
        black_box(text.chars().flat_map(char::to_lowercase).collect::<String>());
        floor.push(begun.elapsed());
        let begun = Instant::now();
        black_box(chunks(&text).count());
        taken.push(begun.elapsed());
    }
    let what = format!("{:.1} MB of prose into chunks", text.len() as f64 / 1e6);
    report(&what, Times::of(taken).median, "small letters", Times::of(floor).median, None);
}

/// Opening the file and looking at all of it, against reading it.
fn searching(bench: &Bench) {
    let path = file(bench);
    let vectors: Vec<Vector> = (0..1000).map(vector).collect();
    let mut writer = VectorWriter::create_or_replace(&path).expect("a writer");
    let begun = Instant::now();
    for batch in 0..VECTORS / 1000 {
        let keyed =
            (0..).zip(&vectors).map(|(number, vector)| (Key { document: 1000 * batch + number, part: 0 }, vector));
        writer.append(keyed).expect("appended");
    }
    told("50,000 vectors appended, 1,000 at a time", begun.elapsed());
    drop(writer);
    let (mut reading, mut opening, mut again, mut verifying) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..3 * RUNS as u64 {
        let begun = Instant::now();
        black_box(fs::read(&path).expect("bytes"));
        reading.push(begun.elapsed());
        let begun = Instant::now();
        let file = VectorFile::open(&path).expect("vectors");
        black_box(file.nearest(&vector(run), 50, |_| true));
        opening.push(begun.elapsed());
        let begun = Instant::now();
        black_box(file.nearest(&vector(run), 50, |_| true));
        again.push(begun.elapsed());
        let begun = Instant::now();
        file.verify().expect("intact");
        verifying.push(begun.elapsed());
    }
    let floor = Times::of(reading).median;
    report("50,000 vectors: open and search", Times::of(opening).median, "reading", floor, Some(2.0));
    report("50,000 vectors: search again", Times::of(again).median, "reading", floor, None);
    report("50,000 vectors: verify", Times::of(verifying).median, "reading", floor, None);
}

/// A process that loads the model, embeds a question and searches 50,000 vectors, against reading what it needs.
fn whole_process(bench: &Bench) {
    let own = std::env::current_exe().expect("the benchmark's own path");
    let floor = best(RUNS, || {
        let mut command = Command::new("cat");
        command.arg(&own).arg(file(bench));
        command
    });
    let taken = best(RUNS, || {
        let mut command = Command::new(&own);
        command.arg(QUERY);
        command
    });
    report("a question, from nothing to its hits", taken.time, "cat", floor.time, None);
    report_memory("its peak memory, mapped files included", taken.memory, 100_000_000);
}

/// Adds vectors of no session until there are 50,000, and tells how many there are.
pub(crate) fn fill(path: &Path) -> u64 {
    let mut writer = VectorWriter::open(path).expect("vectors");
    let more = VECTORS.saturating_sub(writer.len());
    let made = (0..more).map(|number| (Key { document: number << 20, part: 0 }, vector(number)));
    writer.append(made).expect("appended");
    writer.len()
}

fn file(bench: &Bench) -> PathBuf {
    bench.folder.join("vectors")
}

/// 62 words that are one token each; two more stand around every text.
fn text_of_64_tokens(number: usize) -> String {
    const WORDS: [&str; 23] = [
        "the", "file", "is", "read", "again", "when", "a", "test", "fails", "and", "then", "we", "write", "it", "to",
        "another", "place", "because", "of", "that", "old", "lock", "problem",
    ];
    let words = (0..62).map(|index| WORDS[(index * (number % 20 + 1) + number) % WORDS.len()]);
    words.collect::<Vec<_>>().join(" ") + "\n"
}

fn vector(seed: u64) -> Vector {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut values = [0.0; DIMENSIONS];
    for value in &mut values {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *value = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    }
    Vector::new(&values)
}

#[derive(Clone, Copy)]
struct Times {
    best: Duration,
    median: Duration,
}

impl Times {
    fn of(mut taken: Vec<Duration>) -> Times {
        taken.sort();
        Times { best: taken[0], median: taken[taken.len() / 2] }
    }
}

fn rate(what: &str, each: Times, least: Option<f64>) {
    let [best, median] = [each.best, each.median].map(|time| 1.0 / time.as_secs_f64());
    let verdict = match least {
        Some(least) if median >= least => format!("at least {least}: holds"),
        Some(least) if best >= least => format!("at least {least}: holds in the best run only"),
        Some(least) => format!("at least {least}: DOES NOT HOLD"),
        None => String::new(),
    };
    println!("{what:<44} {median:>6.1} (best {best:.1})                    {verdict}");
}

fn told(what: &str, time: Duration) {
    println!("{what:<44} {:>6.1} ms", time.as_secs_f64() * 1e3);
}

/// What all threads of this process have used.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
