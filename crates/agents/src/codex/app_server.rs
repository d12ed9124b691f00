//! `codex app-server`: JSON-RPC over standard input and output, one message a line. It ends when its input does.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Program, ProgramError, START_PATIENCE, end, last_line, printed, text_of};

pub(super) struct AppServer<'a> {
    program: &'a Program,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    /// What it prints besides.
    trouble: Option<File>,
    last: u64,
}

/// How long a server that has closed its output may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

impl<'a> AppServer<'a> {
    /// Starts it in `directory`.
    pub(super) fn start(program: &'a Program, directory: &std::path::Path) -> Result<Self, ProgramError> {
        let not_started = |source| ProgramError::NotStarted { program: program.path.clone(), source };
        let (trouble, to_stderr) = printed().map_err(not_started)?;
        let mut command = program.command(directory);
        command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(to_stderr);
        let mut child = program.spawn(&mut command)?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok);
            // Messages that are not answers are notifications.
            for message in lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok()) {
                if message.get("id").is_some() && message.get("method").is_none() && sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut server = AppServer { program, child, input, answers, trouble: Some(trouble), last: 0 };
        let version = env!("CARGO_PKG_VERSION");
        server.call("initialize", &json!({ "clientInfo": { "name": "tine", "version": version } }))?;
        server.send(&json!({ "method": "initialized" }))?;
        Ok(server)
    }

    /// Calls a method and waits for its answer.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Result<Value, ProgramError> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let begun = Instant::now();
        loop {
            let left = START_PATIENCE.saturating_sub(begun.elapsed());
            let answer = match self.answers.recv_timeout(left) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {
                    let program = self.program.path.clone();
                    return Err(ProgramError::TooSlow { program, patience: START_PATIENCE });
                }
            };
            if answer["id"] != json!(id) {
                continue;
            }
            return match answer["error"]["message"].as_str() {
                Some(message) => Err(self.program.failed(message)),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), ProgramError> {
        let line = format!("{message}\n");
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// That it has ended, and why.
    fn ended(&mut self) -> ProgramError {
        let status = self.program.wait(&mut self.child, ENDS_WITHIN);
        let said = self.trouble.take().map(text_of).unwrap_or_default();
        match (last_line(&said), status) {
            (Some(line), _) => self.program.failed(line),
            (None, Ok(status)) => self.program.failed(format!("it exited immediately ({status})")),
            (None, Err(_)) => self.program.failed("it closed its output"),
        }
    }
}

impl Drop for AppServer<'_> {
    /// Lets it end normally, so that it writes its buffers.
    fn drop(&mut self) {
        drop(self.input.take());
        if self.program.wait(&mut self.child, Duration::from_secs(10)).is_err() {
            end(&mut self.child);
        }
    }
}
