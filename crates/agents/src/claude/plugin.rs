//! Plugins from a local folder, put in and taken out by Claude Code's own program, which keeps several files about them.

use std::path::Path;

use crate::program::{Program, ProgramError, START_PATIENCE};

/// Makes a folder known as the marketplace `market` and installs `plugin` from it. Directories are read in place, so later
/// changes of the folder need nothing more.
pub fn install_plugin(program: &Program, folder: &Path, market: &str, plugin: &str) -> Result<(), ProgramError> {
    run(program, folder, &["marketplace", "add", &folder.to_string_lossy()])?;
    run(program, folder, &["install", &format!("{plugin}@{market}")]).inspect_err(|_| {
        let _ = run(program, folder, &["marketplace", "remove", market]);
    })
}

/// Takes a plugin out, and its marketplace.
pub fn remove_plugin(program: &Program, directory: &Path, market: &str, plugin: &str) -> Result<(), ProgramError> {
    run(program, directory, &["uninstall", &format!("{plugin}@{market}")])?;
    run(program, directory, &["marketplace", "remove", market])
}

fn run(program: &Program, directory: &Path, arguments: &[&str]) -> Result<(), ProgramError> {
    let mut command = program.command(directory);
    command.arg("plugin").args(arguments);
    program.run(command, "", START_PATIENCE).map(drop)
}
