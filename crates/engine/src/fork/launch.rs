//! Where the agent runs after a fork: in this terminal, without one, or not at all.

use std::path::Path;
use std::process::Command;

use agents::{HeadlessMessage, Program, ProgramError, SessionRef};
use transcript::{Agent, SessionView};

use super::unstarted::start_words;
use super::{Place, Plan};
use crate::context::MARK;
use crate::ctx::Ctx;
use crate::fork::Result;
use crate::program::{as_configured, program, send};
use crate::registry::SessionKey;
use crate::run::launch::{launch, program_as};

/// The same for making a fork, found again by its mark.
pub(super) fn marked_program(ctx: &Ctx, agent: Agent, mark: &str) -> Result<Program> {
    let mut program = program(ctx, agent)?;
    program.environment.push((MARK.to_owned(), mark.to_owned()));
    Ok(program)
}

/// The arguments that resume a fork, with the first prompt unless it has been sent already.
pub(crate) fn resume_words(ctx: &Ctx, plan: &Plan, fork: &SessionView) -> Vec<String> {
    if plan.keeps_seed {
        return start_words(plan);
    }
    let prompt = plan.prompt.as_deref().filter(|_| plan.place != Place::Headless);
    let fork = SessionRef { id: &fork.id, path: &fork.path };
    let words = ctx.adapter(plan.agent).resume_command(fork, &plan.workspace.path, &plan.profile.args, prompt);
    as_configured(ctx, plan.agent, words)
}

/// The command that opens a fork in this terminal.
pub(super) fn open_command(ctx: &Ctx, plan: &Plan, words: &[String]) -> Result<Command> {
    Ok(launch(ctx, plan.agent, &plan.workspace.path, words, &plan.profile, Some(&plan.name))?)
}

/// Says something in a session without a terminal and returns the answer.
pub(crate) fn prompt_headless(ctx: &Ctx, plan: &Plan, fork: &SessionView, text: &str) -> Result<String> {
    let (directory, options) = (&plan.workspace.path, plan.profile.args.as_slice());
    let session = Some(SessionRef { id: &fork.id, path: &fork.path });
    let message = HeadlessMessage { session, id: None, title: None, directory, options, text };
    let program = program_as(ctx, plan.agent, &plan.profile, Some(&plan.name))?;
    Ok(send(ctx, plan.agent, &program, &message)?.answer)
}

/// Adds a fork to the agent's own list. A failure is not an error: the fork can be resumed without it.
pub(super) fn announce(ctx: &Ctx, fork: &SessionKey, name: &str, directory: &Path) {
    let Ok(program) = program(ctx, fork.agent) else {
        return;
    };
    let told: std::result::Result<(), ProgramError> =
        ctx.adapter(fork.agent).announce(&program, &fork.id, name, directory);
    if let Err(error) = told {
        ctx.warn(format!("the fork appears in the agent's own session list only after you resume it: {error}"));
    }
}
