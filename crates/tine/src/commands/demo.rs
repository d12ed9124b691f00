//! `tine demo`: what this is, in a minute, without touching anything of the user's.

use crate::Outcome;
use crate::demo;
use crate::environment::Streams;

/// Take a one-minute tour with sample sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs no agent and no network, and doesn't touch your files.

Examples:
  tine demo
  tine demo --workbench   skip the tour and open the workbench
  tine demo --keep        keep the sample home directory to play with")]
pub(crate) struct Args {
    /// Keep the sample home directory and print how to use it
    #[arg(long)]
    pub keep: bool,
    /// Skip the tour and open the workbench on the sample sessions
    #[arg(long)]
    pub workbench: bool,
}

pub(crate) fn run(args: &Args, surface: &Streams) -> Outcome {
    demo::run(args.keep, args.workbench, surface)
}
