//! The workbench on a pseudo-terminal: its first frame, keys while a chat streams, what it costs when nothing happens,
//! and memory. The agent is a stand-in that streams as fast as it is read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::build::ClaudeSession;

use crate::Bench;
use crate::list::corpus;
use crate::measure::{once, report, report_memory};
use crate::show;
use crate::terminal::Terminal;

/// How large a streamed answer is, in KB.
const ANSWER: usize = 200;
const PRESSES: usize = 300;
/// The header says this once the sessions are known: none or thousands of them.
const LOADED: &str = "0 sessions";
/// A frame of a screen with 60 frames a second.
const FRAME: Duration = Duration::from_millis(16);

pub(crate) fn run(bench: &Bench) {
    println!();
    first_frame(bench);
    keys_while_streaming(bench);
    answers(bench);
    memory(bench);
}

fn workbench(bench: &Bench, home: &Path, directory: &Path) -> Command {
    let mut command = Command::new(&bench.tine);
    let path = format!("{}/bin:/usr/bin:/bin", home.display());
    command.env_clear().env("HOME", home).env("PATH", path).env("TERM", "xterm-256color").current_dir(directory);
    command
}

/// A home with an agent, and a directory for its sessions.
fn home(bench: &Bench, name: &str) -> (PathBuf, PathBuf) {
    let home = bench.folder.join(name);
    let _ = fs::remove_dir_all(&home);
    let work = home.join("work");
    fs::create_dir_all(&work).expect("a folder");
    fs::create_dir_all(home.join("bin")).expect("a folder");
    symlink(testkit::stand_in::program(), home.join("bin/claude")).expect("the stand-in");
    (home, work)
}

fn first_frame(bench: &Bench) {
    let home = corpus(bench, "list", None);
    let list = || {
        let mut command = workbench(bench, &home, &home);
        command.args(["list", "--all"]);
        command
    };
    once(&mut list());
    let (mut frame, mut floor) = (Duration::MAX, Duration::MAX);
    for _ in 0..7 {
        floor = floor.min(once(&mut list()).time);
        let mut terminal = Terminal::start(workbench(bench, &home, &home));
        let drawn = terminal.wait_for(LOADED).duration_since(terminal.begun);
        frame = frame.min(drawn);
        terminal.quit();
    }
    report("workbench, first frame with all sessions", frame, "list --all", floor, Some(1.5));
    let mut terminal = Terminal::start(workbench(bench, &home, &home));
    terminal.wait_for(LOADED);
    terminal.settle(Duration::from_secs(3));
    let before = terminal.cpu();
    let bytes = terminal.draws_within(Duration::from_secs(5));
    let used = terminal.cpu().saturating_sub(before);
    let verdict = if bytes == 0 && used <= Duration::from_millis(20) { "holds" } else { "DOES NOT HOLD" };
    println!(
        "idle for 5 s: {bytes} bytes drawn, {} ms of the processor; nothing and at most 20 ms: {verdict}",
        used.as_millis()
    );
    report_memory("workbench with all sessions", terminal.memory(), 150_000_000);
    terminal.quit();
}

/// A session with so many turns, each with an answer of 10 KB.
fn write_session(home: &Path, work: &Path, id: &str, turns: usize) {
    let text = "An answer with several words in it. ".repeat(280);
    let session = (0..turns).fold(ClaudeSession::new(id).cwd(work), |session, number| {
        session.turn(|turn| turn.prompt(format!("prompt {number}")).text(&text))
    });
    session.write(&home.join(".claude"));
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Opens a tab on the only session.
fn tab(bench: &Bench, home: &Path, work: &Path) -> Terminal {
    let mut terminal = Terminal::start(workbench(bench, home, work));
    terminal.wait_for(" session");
    terminal.press("c");
    terminal.wait_for("idle");
    terminal.settle(Duration::from_millis(500));
    terminal
}

fn keys_while_streaming(bench: &Bench) {
    let (home, work) = home(bench, "workbench-keys");
    write_session(&home, &work, &id(1), 10);
    let mut terminal = tab(bench, &home, &work);
    terminal.press("tell 4000\r");
    terminal.wait_for("word");
    // Each letter is another one that the answer doesn't have.
    let letters: Vec<char> = (0x0430..0x0450).filter_map(char::from_u32).collect();
    let mut taken: Vec<Duration> = Vec::new();
    for number in 0..PRESSES {
        let letter = letters[number % letters.len()].to_string();
        let begun = std::time::Instant::now();
        terminal.press(&letter);
        taken.push(terminal.wait_for(&letter).duration_since(begun));
        if number % letters.len() == letters.len() - 1 {
            terminal.press("\u{15}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    taken.sort_unstable();
    let at = |share: usize| taken[(PRESSES * share / 100).min(PRESSES - 1)];
    report("a key to its frame while a chat streams, median", at(50), "16 ms", FRAME, None);
    report("a key to its frame while a chat streams, 99 %", at(99), "16 ms", FRAME, Some(1.0));
    terminal.quit();
}

/// An answer costs what it costs, however long the transcript is.
fn answers(bench: &Bench) {
    let cost = |name: &str, turns: usize, kilobytes: usize| {
        let (home, work) = home(bench, name);
        write_session(&home, &work, &id(1), turns);
        let mut terminal = tab(bench, &home, &work);
        // The first one starts the agent.
        terminal.press("hello\r");
        terminal.wait_for("to hello");
        terminal.settle(Duration::from_millis(700));
        let before = terminal.cpu();
        terminal.press(&format!("tell {kilobytes}\r"));
        terminal.wait_for("told");
        terminal.settle(Duration::from_millis(700));
        let used = terminal.cpu().saturating_sub(before);
        let memory = terminal.memory();
        terminal.quit();
        (used, memory)
    };
    let (short, _) = cost("workbench-short", 5, ANSWER);
    let (long, memory) = cost("workbench-long", 1500, ANSWER);
    let (twice, _) = cost("workbench-twice", 5, 2 * ANSWER);
    report("a streamed answer of 200 KB, 15 MB before it", long, "50 KB before", short, Some(1.5));
    report("a streamed answer of 400 KB", twice, "200 KB", short, Some(2.6));
    report_memory("a tab with a transcript of 15 MB", memory, 150_000_000);
}

fn memory(bench: &Bench) {
    let (home, work) = home(bench, "workbench-tabs");
    (1..=10).for_each(|number| write_session(&home, &work, &id(number), 100));
    let mut terminal = Terminal::start(workbench(bench, &home, &work));
    terminal.wait_for(" sessions");
    terminal.settle(Duration::from_millis(500));
    for number in 0..10 {
        terminal.press("c");
        terminal.wait_for("idle");
        terminal.press(&format!("tell {ANSWER}\r"));
        terminal.wait_for("told");
        terminal.press("\u{1b}s");
        terminal.settle(Duration::from_millis(300));
        for _ in 0..=number {
            terminal.press("j");
        }
        terminal.settle(Duration::from_millis(300));
    }
    report_memory("ten tabs, each with 1 MB and an answer", terminal.memory(), 150_000_000);
    terminal.quit();

    let (home, _) = show::sessions(bench);
    // The catalog knows it by now, as after any listing.
    once(workbench(bench, &home, &home).args(["list", "--all"]));
    let mut terminal = Terminal::start(workbench(bench, &home, &home));
    terminal.wait_for(" session");
    terminal.settle(Duration::from_millis(500));
    terminal.press("A\r");
    terminal.settle(Duration::from_secs(2));
    (0..40).for_each(|_| terminal.press("\u{1b}[5~"));
    terminal.settle(Duration::from_secs(2));
    report_memory("a transcript of 1 GB, scrolled", terminal.memory(), 100_000_000);
    terminal.quit();
}
