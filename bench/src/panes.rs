//! `tine status` of fifty sessions that run, against tmux's own list of its panes.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::build::ClaudeSession;

use crate::Bench;
use crate::measure::report;

const SESSIONS: usize = 50;
const RUNS: usize = 60;

pub(crate) fn run(bench: &Bench) {
    println!();
    let home = bench.folder.join("panes");
    let _ = fs::remove_dir_all(&home);
    let config = home.join(".claude");
    fs::create_dir_all(config.join("sessions")).expect("the folder");
    let socket = home.join("tmux.sock");
    let tmux = |words: &[&str]| {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&socket).args(["-f", "/dev/null"]).args(words);
        command
    };
    for number in 0..SESSIONS {
        let words = match number {
            0 => vec!["new-session", "-d", "-P", "-F", "#{pane_pid}", "sleep", "600"],
            _ => vec!["new-window", "-d", "-P", "-F", "#{pane_pid}", "sleep", "600"],
        };
        let output = tmux(&words).output().expect("tmux");
        let pid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let id = format!("00000000-0000-4000-8000-{number:012}");
        ClaudeSession::new(&id).cwd("/work").turn(|turn| turn.prompt("hello").text("yes")).write(&config);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("its state");
        let start = stat.rsplit_once(')').expect("fields").1.split_ascii_whitespace().nth(19).expect("its start");
        let told = format!(
            r#"{{"pid":{pid},"sessionId":"{id}","cwd":"/work","procStart":"{start}","kind":"interactive","status":"idle"}}"#
        );
        fs::write(config.join(format!("sessions/{pid}.json")), told).expect("its file");
    }
    let status = || {
        let mut command = Command::new(&bench.tine);
        command.arg("status").env_clear().env("HOME", &home).current_dir("/");
        command
    };
    let told = status().output().expect("tine");
    assert_eq!(String::from_utf8_lossy(&told.stdout).lines().count(), SESSIONS, "all of them run");
    // In turns, so that whatever else the machine does slows down both.
    let mut best = [Duration::MAX; 2];
    for _ in 0..RUNS {
        for (command, best) in [tmux(&["list-panes", "-a"]), status()].into_iter().zip(&mut best) {
            *best = (*best).min(time(command));
        }
    }
    report("status of 50 sessions", best[1], "tmux list-panes", best[0], Some(2.0));
    let _ = tmux(&["kill-server"]).status();
}

fn time(mut command: Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    assert!(command.status().expect("the command").success());
    begun.elapsed()
}
