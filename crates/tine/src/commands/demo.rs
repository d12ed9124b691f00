//! `tine demo`: what this is, in a minute, without touching anything of the user's.

use crate::Outcome;
use crate::demo;
use crate::environment::Surface;

/// Show what tine does, on sample sessions in a throw-away home
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs no agent and no network, and touches nothing of yours.

Examples:
  tine demo
  tine demo --keep        keep the sample home to play with")]
pub(crate) struct Args {
    /// Keep the sample home and say how to use it
    #[arg(long)]
    pub keep: bool,
}

pub(crate) fn run(args: &Args, surface: &Surface) -> Outcome {
    demo::run(args.keep, surface)
}
