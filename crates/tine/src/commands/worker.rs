//! `tine worker`: does a job in the background that another tine passes on standard input. People have no use for it.

use std::io;
use std::process::ExitCode;

use crate::Outcome;
use crate::environment;
use crate::signals;

/// Do a job in the background; tine calls it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> Outcome {
    let context = environment::context()?;
    signals::cancel_when_terminated(context.cancel.clone());
    let is_done = engine::run_worker(context, io::stdin().lock(), io::stdout().lock());
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
