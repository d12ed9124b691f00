//! The process of a chat: one thread reads its output, one writes its input, one reads its errors.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use rustix::process;
use serde_json::Value;

use super::{Action, ChatEvent, Protocol, Received};
use crate::process::{descendants, process_start};
use crate::program::{Program, ProgramError};

/// A longer line isn't kept. Agents put whole files into one, but not this much.
const LONGEST_LINE: usize = 64 << 20;

/// How many lines of what the agent prints besides are kept.
const KEPT_LINES: usize = 20;

/// How long an agent may take to end once its input is closed, and once it was asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const ENDS_WHEN_ASKED_WITHIN: Duration = Duration::from_secs(3);

/// How an agent's program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatEnd {
    /// Its exit code. Nothing if a signal ended it.
    pub code: Option<i32>,
    /// The last lines that it printed to standard error.
    pub printed: String,
}

/// An agent with a structured stream. It ends when this is dropped.
pub struct Chat {
    shared: Arc<Mutex<Shared>>,
    child: Arc<Mutex<Child>>,
    agent: AgentProcess,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    protocol: Box<dyn Protocol>,
    /// Closing it closes the agent's input.
    lines: Option<Sender<Value>>,
}

impl Chat {
    /// Starts the agent. Events go to `report`, which is called on a thread of the chat; the last one is
    /// [`ChatEvent::Ended`].
    pub fn start(
        program: &Program,
        directory: &Path,
        mut protocol: Box<dyn Protocol>,
        report: impl Fn(ChatEvent) + Send + 'static,
    ) -> Result<Self, ProgramError> {
        let mut command = program.command(directory);
        command.args(protocol.arguments()).envs(protocol.environment());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl+C in the workbench is a key, not a wish to end its agents. Without a user, it ends the agent with tine.
        let has_own_group = protocol.is_attended();
        if has_own_group {
            command.process_group(0);
        }
        let mut child = program.spawn(&mut command)?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, lines) = mpsc::channel();
        for line in protocol.open() {
            let _ = sender.send(line);
        }
        let agent = AgentProcess { pid: child.id(), has_own_group };
        let child = Arc::new(Mutex::new(child));
        let shared = Arc::new(Mutex::new(Shared { protocol, lines: Some(sender) }));
        thread::spawn(move || write(input, &lines));
        let errors = thread::spawn(move || last_lines(errors));
        let reader = {
            let (shared, child) = (Arc::clone(&shared), Arc::clone(&child));
            thread::spawn(move || {
                read(output, &shared, &report);
                lock(&shared).lines = None;
                let status = wait(&child, ENDS_WITHIN).or_else(|| agent.end(&child));
                let printed = errors.join().unwrap_or_default();
                report(ChatEvent::Ended(ChatEnd { code: status.and_then(|status| status.code()), printed }));
            })
        };
        Ok(Chat { shared, child, agent, reader: Some(reader) })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.agent.pid
    }

    /// Carries out an action and returns its immediate events.
    pub fn act(&self, action: Action) -> Vec<ChatEvent> {
        let mut shared = lock(&self.shared);
        let received = shared.protocol.act(action);
        shared.send(received)
    }

    /// Lets the agent finish: it gets no more input, and its process ends after the running turn.
    pub fn close(&self) {
        lock(&self.shared).lines = None;
    }
}

impl Shared {
    fn send(&mut self, received: Received) -> Vec<ChatEvent> {
        for line in received.lines {
            // If the channel is closed, the agent has ended, which is reported.
            let _ = self.lines.as_ref().map(|lines| lines.send(line));
        }
        received.events
    }
}

impl Drop for Chat {
    /// Ends the agent and everything that it started.
    fn drop(&mut self) {
        self.close();
        if wait(&self.child, ENDS_WITHIN.min(Duration::from_millis(300))).is_none() {
            self.agent.end(&self.child);
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(input: Option<ChildStdin>, lines: &Receiver<Value>) {
    let Some(mut input) = input else { return };
    while let Ok(line) = lines.recv() {
        if input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

fn read(output: Option<ChildStdout>, shared: &Mutex<Shared>, report: &dyn Fn(ChatEvent)) {
    let Some(output) = output else { return };
    let mut output = BufReader::with_capacity(1 << 16, output);
    let mut line = Vec::new();
    while let Ok(Some(())) = next_line(&mut output, &mut line) {
        // Agents print other lines now and then, such as warnings of their runtime.
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        let events = {
            let mut shared = lock(shared);
            let received = shared.protocol.receive(&message);
            shared.send(received)
        };
        events.into_iter().for_each(report);
    }
}

/// Reads the next line without its end. The rest of one that is too long is skipped, which leaves it unreadable.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<()>> {
    line.clear();
    let read = input.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && read == LONGEST_LINE {
        line.clear();
        let mut rest = Vec::new();
        while input.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut rest)? > 0 && rest.last() != Some(&b'\n')
        {
            rest.clear();
        }
    }
    Ok(Some(()))
}

fn last_lines(errors: Option<ChildStderr>) -> String {
    let mut kept = VecDeque::new();
    let mut input = errors.map(BufReader::new);
    let mut line = Vec::new();
    while let Some(Ok(Some(()))) = input.as_mut().map(|input| next_line(input, &mut line)) {
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
    Vec::from(kept).join("\n")
}

fn wait(child: &Mutex<Child>, patience: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match lock(child).try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < patience => {}
            _ => return None,
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The agent's process.
#[derive(Debug, Clone, Copy)]
struct AgentProcess {
    pid: u32,
    has_own_group: bool,
}

impl AgentProcess {
    /// Ends the agent and all that it started. The agent is asked first.
    fn end(self, child: &Mutex<Child>) -> Option<ExitStatus> {
        // Claude Code starts tools in separate sessions, where a signal to the group doesn't reach them.
        let tools = descendants(Path::new("/proc"), self.pid);
        self.signal(process::Signal::TERM);
        let status = wait(child, ENDS_WHEN_ASKED_WITHIN);
        if status.is_none() || self.has_own_group {
            self.signal(process::Signal::KILL);
        }
        for (tool, start) in tools {
            let id = i32::try_from(tool).ok().and_then(process::Pid::from_raw);
            if let Some(id) = id.filter(|_| process_start(tool).as_deref() == Some(&start)) {
                process::kill_process(id, process::Signal::KILL).or_log("kill a tool of the agent");
            }
        }
        status.or_else(|| wait(child, ENDS_WHEN_ASKED_WITHIN))
    }

    fn signal(self, signal: process::Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(process::Pid::from_raw) else { return };
        let sent = if self.has_own_group {
            process::kill_process_group(pid, signal)
        } else {
            process::kill_process(pid, signal)
        };
        sent.or_log("end the agent");
    }
}
