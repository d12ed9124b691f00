//! `tine pane`: becomes the agent in a pane that another tine has opened. People have no use for it.

use std::path::PathBuf;

use super::become_program;
use crate::Outcome;
use crate::environment;

/// Run the agent of a pane; called by tine
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File that describes what to run
    pub file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let ran = environment::context()
        .and_then(|context| Ok(engine::pane_command(&context, &args.file)?))
        .and_then(become_program);
    ran.inspect_err(|failure| engine::record_launch_failure(&args.file, &failure.to_string()))
}
