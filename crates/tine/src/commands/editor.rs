//! `tine editor`: the editor of the agents that tine runs. It hands them messages; users get their own editor.

use std::path::PathBuf;
use std::process::ExitCode;

use super::become_program;
use crate::Outcome;
use crate::environment;
use crate::failure::Failure;

/// Hand a message to an agent, or open your own editor; called by the agents
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to edit
    #[arg(required = true, allow_hyphen_values = true)]
    pub files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let context = environment::context()?;
    if let Some(file) = args.files.last()
        && engine::fetch_message(&context, file).map_err(Failure::Output)?
    {
        return Ok(ExitCode::SUCCESS);
    }
    become_program(engine::users_editor(&context, &args.files))
}
