//! Questions before a change. Without a terminal, the command refuses and names the option that answers instead.

use std::io::{self, BufRead, Write};

use crate::environment::Streams;
use crate::failure::Failure;

/// Refuses if the user can't be asked: without a terminal, or if a program reads the output. `what` is the change,
/// `hint` how to confirm it.
pub(crate) fn require_terminal(surface: &Streams, json: bool, what: &str, hint: &str) -> Result<(), Failure> {
    if surface.is_interactive && !json {
        return Ok(());
    }
    let reason = if json { "with `--json`" } else { "without a terminal" };
    Err(Failure::Other {
        kind: "not_confirmed",
        message: format!("{what}; can't ask for confirmation {reason}"),
        hint: Some(hint.to_owned()),
    })
}

/// Asks on standard error and returns the answer in lower case; empty at the end of the input.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_ascii_lowercase())
}

/// Asks a question that only a clear yes confirms.
pub(crate) fn confirmed(question: &str) -> io::Result<bool> {
    Ok(matches!(ask(&format!("{question} [y/N]"))?.as_str(), "y" | "yes"))
}
