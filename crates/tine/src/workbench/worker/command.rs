//! Runs commands of tine for the command line.

use std::process::{Command, Stdio};

use engine::Context;

use crate::workbench::event::{ErrorText, Event};

/// Runs a command of tine, as in a shell without a terminal.
pub(super) fn run(context: &Context, words: Vec<String>) -> Event {
    let mut command = Command::new(&context.program);
    command.args(&words).current_dir(&context.cwd).stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            let output_text = if out.trim().is_empty() { err } else { out };
            Event::Ran { words, success: output.status.success(), output: output_text }
        }
        Err(error) => Event::Failed(ErrorText { message: format!("cannot run tine: {error}"), hint: None }),
    }
}
