//! `tine completions`: the script that teaches a shell to complete commands, options and session names.

use std::process::ExitCode;

use clap::ValueEnum;
use clap_complete::env::{Bash, EnvCompleter, Fish, Powershell, Zsh};

use crate::Outcome;
use crate::complete;
use crate::environment;
use crate::failure::Failure;
use crate::ui;

/// Print the completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Session names are completed as well: the script asks tine for them.

Examples:
  tine completions bash > ~/.local/share/bash-completion/completions/tine
  tine completions zsh > ~/.zfunc/_tine
  tine completions fish > ~/.config/fish/completions/tine.fish
  tine completions powershell >> $PROFILE")]
pub(crate) struct Args {
    /// The shell
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
    };
    let own = environment::own_path();
    let own = own.to_str().ok_or_else(|| Failure::Other {
        kind: "own_path",
        message: "tine's own path is not UTF-8".into(),
        hint: Some("install it under another path".into()),
    })?;
    shell.write_registration(complete::VARIABLE, "tine", "tine", own, &mut ui::out())?;
    Ok(ExitCode::SUCCESS)
}
