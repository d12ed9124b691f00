//! Processes with a deadline, and an end to those that a test left behind.
//!
//! Only processes that the test kit started are ended, by their id: children it waits for, and their descendants,
//! which are known by the sandbox's own home in their environment.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::poll::poll;
use crate::sandbox::text;

/// Runs a command to its end and returns what it printed.
///
/// # Panics
/// When it cannot be started, or has not ended in time; it is ended then.
#[track_caller]
pub fn run_within(command: &mut Command, timeout: Duration) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{:?} could not be started: {error}", command.get_program()));
    let stdout = read_aside(child.stdout.take().expect("a pipe"));
    let stderr = read_aside(child.stderr.take().expect("a pipe"));
    let status = poll(timeout, || child.try_wait().expect("waiting for a child"));
    if status.is_none() {
        end(&mut child);
    }
    let (stdout, stderr) = (stdout.collect(), stderr.collect());
    match status {
        Some(status) => Output { status, stdout, stderr },
        None => {
            panic!("{command:?} had not ended after {timeout:?}\nstdout: {}\nstderr: {}", text(&stdout), text(&stderr))
        }
    }
}

/// Ends a child and waits for its end.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The processes whose home is in a directory: everything that was started in a sandbox and still runs.
pub fn processes_at_home_in(home: &Path) -> Vec<u32> {
    let mine = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != mine && has_home(*id, home)).collect()
}

/// Ends the processes whose home is in a directory. They may start others meanwhile, so it looks more than once.
pub(crate) fn end_processes_at_home_in(home: &Path) {
    for _ in 0..5 {
        let left = processes_at_home_in(home);
        if left.is_empty() {
            return;
        }
        for id in &left {
            if let Some(id) = i32::try_from(*id).ok().and_then(Pid::from_raw) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
        poll(Duration::from_secs(1), || processes_at_home_in(home).is_empty().then_some(()));
    }
}

fn has_home(id: u32, home: &Path) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let wanted = format!("HOME={}", home.display());
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// What a pipe brings, read by a thread so that no pipe fills up.
struct Aside {
    content: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

fn read_aside(mut pipe: impl Read + Send + 'static) -> Aside {
    let content = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&content);
    let reader = thread::spawn(move || {
        let mut chunk = [0_u8; 16 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            shared.lock().expect("the content of a pipe").extend_from_slice(&chunk[..count]);
        }
    });
    Aside { content, reader }
}

impl Aside {
    /// A descendant may hold the pipe open after the child has ended, so the end of the pipe is not waited for long.
    fn collect(self) -> Vec<u8> {
        poll(Duration::from_secs(2), || self.reader.is_finished().then_some(()));
        self.content.lock().expect("the content of a pipe").clone()
    }
}
