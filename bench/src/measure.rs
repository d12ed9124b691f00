//! Running a command and measuring it.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measurement {
    /// From start to end.
    pub time: Duration,
    /// Until the first byte of output.
    pub first: Duration,
    /// The most memory it held, in bytes; 0 where the system does not tell.
    pub memory: u64,
}

/// Runs a command to its end, reading its output as a pipe's reader would.
pub(crate) fn once(command: &mut Command) -> Measurement {
    let begun = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command");
    let status_file = format!("/proc/{}/status", child.id());
    let mut output = child.stdout.take().expect("its output");
    let mut buffer = vec![0; 256 << 10];
    let (mut first, mut memory) = (None, 0);
    loop {
        let count = output.read(&mut buffer).expect("output");
        first.get_or_insert_with(|| begun.elapsed());
        if count == 0 {
            break;
        }
        memory = memory.max(peak(&status_file));
    }
    memory = memory.max(peak(&status_file));
    let status = child.wait().expect("the end");
    let time = begun.elapsed();
    assert!(status.success(), "{command:?} failed: {status}");
    Measurement { time, first: first.unwrap_or(time), memory }
}

/// The best of several runs; memory is the worst of them.
pub(crate) fn best(runs: usize, mut command: impl FnMut() -> Command) -> Measurement {
    let taken: Vec<Measurement> = (0..runs).map(|_| once(&mut command())).collect();
    Measurement {
        time: taken.iter().map(|run| run.time).min().unwrap_or_default(),
        first: taken.iter().map(|run| run.first).min().unwrap_or_default(),
        memory: taken.iter().map(|run| run.memory).max().unwrap_or_default(),
    }
}

/// The best of both, measured in turns: whatever else the machine does meets both alike.
pub(crate) fn in_turns(
    runs: usize,
    mut floor: impl FnMut() -> Command,
    mut command: impl FnMut() -> Command,
) -> (Measurement, Measurement) {
    let taken: Vec<(Measurement, Measurement)> =
        (0..runs).map(|_| (once(&mut floor()), once(&mut command()))).collect();
    let best = |of: fn(&(Measurement, Measurement)) -> Measurement| Measurement {
        time: taken.iter().map(|pair| of(pair).time).min().unwrap_or_default(),
        first: taken.iter().map(|pair| of(pair).first).min().unwrap_or_default(),
        memory: taken.iter().map(|pair| of(pair).memory).max().unwrap_or_default(),
    };
    (best(|pair| pair.0), best(|pair| pair.1))
}

/// Prints one measure as a ratio.
pub(crate) fn report(what: &str, taken: Duration, floor_name: &str, floor: Duration, limit: Option<f64>) {
    let ratio = taken.as_secs_f64() / floor.as_secs_f64();
    let verdict = match limit {
        Some(limit) if ratio <= limit => format!("at most {limit} ×: holds"),
        Some(limit) => format!("at most {limit} ×: DOES NOT HOLD"),
        None => String::new(),
    };
    println!(
        "{what:<44} {ratio:>6.2} × {floor_name:<12} ({:.1} ms / {:.1} ms)  {verdict}",
        taken.as_secs_f64() * 1e3,
        floor.as_secs_f64() * 1e3
    );
}

/// Prints a peak of memory.
pub(crate) fn report_memory(what: &str, bytes: u64, limit: u64) {
    let verdict = if bytes <= limit { "holds" } else { "DOES NOT HOLD" };
    println!(
        "{what:<44} {:>6.1} MB                                 at most {} MB: {verdict}",
        bytes as f64 / 1e6,
        limit / 1_000_000
    );
}

fn peak(status_file: &str) -> u64 {
    let status = fs::read_to_string(status_file).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
