//! The agents' own programs: where they are, and how old they may be.

pub(crate) mod error;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents::{HeadlessMessage, Program, ProgramError, Reply, about, is_set_by_running_agent};
use diagnostics::OrLog;
use transcript::{Agent, text};

use crate::context::MARK;
use crate::ctx::Ctx;
pub use error::Error;

type Result<T> = std::result::Result<T, Error>;

/// The first version that a text names.
fn version_in(text: &str) -> Option<[u32; 3]> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.find_map(|word| {
        let mut numbers = word.split('.').map(str::parse);
        match (numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()) {
            (Ok(major), Ok(minor), Ok(patch), None) => Some([major, minor, patch]),
            _ => None,
        }
    })
}

/// The error of an agent's program; it names the version if tine no longer supports it.
pub(crate) fn with_age(ctx: &Ctx, agent: Agent, trouble: ProgramError) -> Error {
    if !matches!(trouble, ProgramError::Failed { .. } | ProgramError::Unable { .. }) {
        return trouble.into();
    }
    let version = program(ctx, agent).ok().and_then(|program| version_of(&program.path));
    match version.as_deref().and_then(version_in).zip(version_in(about(agent).oldest_version)) {
        Some(([major, minor, patch], oldest)) if [major, minor, patch] < oldest => {
            Error::TooOld { agent, version: format!("{major}.{minor}.{patch}"), trouble }
        }
        _ => trouble.into(),
    }
}

/// An agent's program, from the configuration or found as a shell would.
pub(crate) fn program(ctx: &Ctx, agent: Agent) -> Result<Program> {
    let program = ctx.config()?.agents.command(agent, &ctx.context().surroundings.home);
    let path = match program.components().count() {
        0 | 1 => ctx.context().find_program(&program.to_string_lossy()),
        _ => Some(ctx.context().cwd.join(&program)).filter(|path| path.is_file()),
    };
    let path = path.ok_or_else(|| Error::NoAgent { agent, program: program.to_string_lossy().into_owned() })?;
    let set = ctx.context().environment.0.iter().map(|(name, _)| name);
    let hidden = set.filter(|variable| is_set_by_running_agent(variable) || *variable == MARK);
    Ok(Program {
        path,
        hidden: hidden.cloned().collect(),
        environment: Vec::new(),
        cancel: ctx.context().cancel.clone(),
    })
}

/// Has an agent answer a message without a terminal, and notes what it reports of its models.
pub(crate) fn send(
    ctx: &Ctx,
    agent: Agent,
    program: &Program,
    message: &HeadlessMessage<'_>,
) -> std::result::Result<Reply, ProgramError> {
    let reply = ctx.adapter(agent).send(program, message)?;
    let now = ctx.context().clock.now();
    ctx.registry()
        .note_windows(agent, &reply.id, &reply.windows, now)
        .or_log("note the context windows that the agent reported");
    Ok(reply)
}

/// The words of a command with the program that the configuration names.
pub(crate) fn as_configured(ctx: &Ctx, agent: Agent, mut words: Vec<String>) -> Vec<String> {
    if let (Ok(config), Some(first)) = (ctx.config(), words.first_mut()) {
        *first = config.agents.command(agent, &ctx.context().surroundings.home).to_string_lossy().into_owned();
    }
    words
}

/// What `program --version` prints on its first line, if it does so soon.
pub(crate) fn version_of(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .or_log(format_args!("run {} --version", program.display()))?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().or_log("wait for --version")?.is_none() {
        if Instant::now() > deadline {
            child.kill().or_log("kill a process");
            child.wait().or_log("wait for a process");
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().or_log("read what --version printed")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = text::one_line(printed.lines().next()?);
    Some(text::clip(&line, 60)).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_agents_print() {
        let check = |text: &str, expected: Option<[u32; 3]>| assert_eq!(version_in(text), expected, "{text}");
        check("2.1.197 (Claude Code)", Some([2, 1, 197]));
        check("codex-cli 0.140.0", Some([0, 140, 0]));
        check("codex-cli 0.150.0-alpha.3", Some([0, 150, 0]));
        check("1.2 and 1.2.3.4", None);
        check("hello", None);
        check("", None);
    }
}
