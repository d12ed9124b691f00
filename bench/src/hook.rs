//! `tine hook session-start`: the whole process, against a program that does nothing, with few sessions and with many.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::{Registry, SessionKey};
use transcript::{Agent, SessionId, SessionName};

use crate::Bench;
use crate::measure::report;

const RUNS: usize = 300;

pub(crate) fn run(bench: &Bench) {
    println!();
    let payload = bench.folder.join("hook-payload.json");
    fs::create_dir_all(&bench.folder).expect("the folder");
    let told = r#"{"session_id":"11111111-1111-4111-8111-111111111111","transcript_path":"/nowhere/x.jsonl","cwd":"/","hook_event_name":"SessionStart","source":"startup"}"#;
    fs::File::create(&payload).and_then(|mut file| file.write_all(told.as_bytes())).expect("the payload");
    let home = |name: &str, sessions: usize| {
        let home = bench.folder.join(name);
        let _ = fs::remove_dir_all(&home);
        register(&home, sessions);
        home
    };
    let (empty, full) = (home("hook-empty", 0), home("hook-full", bench.sessions));
    let hook = |home: &Path| {
        let mut command = Command::new(&bench.tine);
        command.args(["hook", "session-start", "--agent", "claude"]).env_clear().env("HOME", home);
        command
    };
    // In turns, so that whatever else the machine does slows down all of them.
    let mut best = [Duration::MAX; 3];
    for _ in 0..RUNS {
        let commands = [Command::new("/bin/true"), hook(&empty), hook(&full)];
        for (command, best) in commands.into_iter().zip(&mut best) {
            *best = (*best).min(time(command, &payload));
        }
    }
    let [floor, empty, full] = best;
    report("hook, 10,000 sessions", full, "/bin/true", floor, Some(3.0));
    report("hook, 10,000 sessions", full, "no session", empty, Some(2.0));
}

/// The process alone, without the threads and pipes of the other measures.
fn time(mut command: Command, payload: &Path) -> Duration {
    command.stdin(fs::File::open(payload).expect("the payload")).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().expect("the command");
    let taken = begun.elapsed();
    assert!(status.success());
    taken
}

fn register(home: &Path, sessions: usize) {
    let mut registry = Registry::open(&home.join(".local/share/tine/registry.db")).expect("a registry");
    for number in 0..sessions {
        let key = SessionKey {
            agent: Agent::Claude,
            id: SessionId::new(format!("00000000-0000-4000-8000-{number:012}")).expect("an id"),
            path: format!("/nowhere/{number}.jsonl").into(),
        };
        let name = SessionName::new(format!("session-{number}")).expect("a name");
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        assert!(registry.set_name(&key, Some(&name), now).expect("a name"));
    }
}
