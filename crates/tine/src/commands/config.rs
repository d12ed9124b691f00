//! `tine config`: shows the configuration.

use std::io::Write;

use clap::{Args as ClapArgs, ValueEnum};

use super::Desk;
use crate::Outcome;
use crate::failure::Failure;
use crate::keymap::{self, Keymap};
use crate::ui;

/// Show the configuration
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  tine config keys               # the workbench's actions and their keys\n  tine config keys | grep fork"
)]
pub(crate) struct Args {
    /// What to show
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// The actions of the workbench with their keys
    Keys,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let What::Keys = args.what;
    let keymap = Keymap::new(&desk.tine.config()?.workbench.keys).map_err(|error| Failure::Other {
        kind: "bad_key",
        message: format!("cannot use the configured keys: {error}"),
        hint: Some("correct `[workbench.keys]` in the configuration".into()),
    })?;
    let rows = keymap::table(&keymap);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let mut out = ui::out();
    for [context, name, keys, what] in &rows {
        writeln!(out, "{context:<first$}  {name:<second$}  {keys:<third$}  {what}")?;
    }
    out.flush()?;
    Ok(std::process::ExitCode::SUCCESS)
}
