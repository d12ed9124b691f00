//! The command that runs a session's agent, with the session's profile.

use std::path::Path;
use std::process::Command;

use agents::Program;
use transcript::{Agent, SessionName};

use crate::ctx::Ctx;
use crate::program::program;
use crate::registry::Profile;
use crate::run::Result;
use crate::run::drive::editor;

/// An agent's program with the environment of a session: the variables of its profile, and its name.
pub(crate) fn program_as(ctx: &Ctx, agent: Agent, profile: &Profile, name: Option<&SessionName>) -> Result<Program> {
    let mut program = program(ctx, agent)?;
    program.environment.extend(profile.variables(name));
    Ok(program)
}

/// The command that runs an agent in a terminal, with a session's profile.
pub(crate) fn launch(
    ctx: &Ctx,
    agent: Agent,
    directory: &Path,
    words: &[String],
    profile: &Profile,
    name: Option<&SessionName>,
) -> Result<Command> {
    let program = program_as(ctx, agent, profile, name)?;
    let mut command = program.command(directory);
    command.envs(editor::editor_variables(ctx.context())).envs(program.environment).args(&words[1..]);
    Ok(command)
}
