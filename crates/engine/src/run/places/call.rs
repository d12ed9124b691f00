//! Calling a terminal's own program: arguments as a vector, text on standard input, with a time limit.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;

use super::Terminal;
use crate::context::Context;
use crate::run::{Error, Result};

/// How long the program may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The program of a terminal.
pub(crate) struct TerminalProgram<'a> {
    context: &'a Context,
    terminal: Terminal,
    program: PathBuf,
}

impl<'a> TerminalProgram<'a> {
    pub(super) fn new(context: &'a Context, terminal: Terminal) -> Result<Self> {
        let program = context.find_program(terminal.as_str()).ok_or(Error::NoTerminalProgram(terminal))?;
        Ok(TerminalProgram { context, terminal, program })
    }

    /// Calls it and returns what it printed.
    pub(super) fn call(&self, words: &[&str], input: &str, variables: &[(&str, &str)]) -> Result<String> {
        let failed = |message: String| Error::Terminal { terminal: self.terminal, message };
        let mut command = Command::new(&self.program);
        command.args(words).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = input.to_owned();
        // All three in parallel, so that neither side waits for the other. A stuck thread ends with the child.
        thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let out = thread::spawn(move || read(stdout));
        let err = thread::spawn(move || read(stderr));
        let begun = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if begun.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(1)),
                _ => {
                    child.kill().or_log("kill a process");
                    child.wait().or_log("wait for a process");
                    return Err(failed(format!("it did not answer within {} seconds", TIMEOUT.as_secs())));
                }
            }
        };
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match status.success() {
            true => Ok(out),
            false => Err(failed(transcript::text::one_line(err.trim()))),
        }
    }

    pub(super) fn context(&self) -> &Context {
        self.context
    }

    pub(super) fn failed(&self, message: impl Into<String>) -> Error {
        Error::Terminal { terminal: self.terminal, message: message.into() }
    }
}

fn read(source: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut source) = source {
        source.read_to_end(&mut bytes).or_log("read what the terminal printed");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
