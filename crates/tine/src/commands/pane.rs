//! `tine pane`: becomes the agent in a pane that another tine has opened. People have no use for it.

use std::path::PathBuf;

use super::become_program;
use crate::Outcome;
use crate::environment;

/// Run what a pane was opened for; tine calls it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to run
    pub file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let ran = environment::context()
        .and_then(|context| Ok(engine::pane_command(&context, &args.file)?))
        .and_then(become_program);
    ran.inspect_err(|failure| engine::note_trouble(&args.file, &failure.to_string()))
}
