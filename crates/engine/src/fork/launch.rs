//! Where the agent runs after a fork: in this terminal, without one, or not at all.

use std::path::Path;
use std::process::Command;

use agents::{Message, Program, ProgramError, Resumed, is_of_a_surrounding_agent};
use transcript::{Agent, SessionName, SessionView};

use super::{Place, Plan};
use crate::Tine;
use crate::doctor::version_of;
use crate::drive::hand_over;
use crate::error::{Error, Result};
use crate::profile::Profile;

/// The variable that marks the agents which make a fork.
pub(crate) const MARK: &str = "TINE_FORK";

/// The oldest version of an agent that tine is known to work with.
pub(crate) fn oldest_known(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "2.1.197",
        Agent::Codex => "0.140.0",
    }
}

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

impl Tine {
    /// The same error, which says so where the agent that failed is older than those that are known to work.
    pub(super) fn with_age(&self, agent: Agent, error: Error) -> Error {
        let trouble = match error {
            Error::Program(trouble @ (ProgramError::Failed { .. } | ProgramError::Unable { .. })) => trouble,
            other => return other,
        };
        let version = self.program(agent).ok().and_then(|program| version_of(&program.path));
        match version.as_deref().and_then(version_in).zip(version_in(oldest_known(agent))) {
            Some(([major, minor, patch], oldest)) if [major, minor, patch] < oldest => {
                Error::TooOld { agent, version: format!("{major}.{minor}.{patch}"), trouble }
            }
            _ => Error::Program(trouble),
        }
    }

    /// An agent's program, as the configuration names it or as a shell would find it.
    pub fn program(&self, agent: Agent) -> Result<Program> {
        let program = self.config()?.agents.command(agent, &self.context().surroundings.home);
        let path = match program.components().count() {
            0 | 1 => self.context().find_program(&program.to_string_lossy()),
            _ => Some(self.context().cwd.join(&program)).filter(|path| path.is_file()),
        };
        let path = path.ok_or_else(|| Error::NoAgent { agent, program: program.to_string_lossy().into_owned() })?;
        let set = self.context().environment.0.iter().map(|(name, _)| name);
        let hidden = set.filter(|variable| is_of_a_surrounding_agent(variable));
        Ok(Program {
            path,
            hidden: hidden.cloned().collect(),
            environment: Vec::new(),
            cancel: self.context().cancel.clone(),
        })
    }

    /// The same for making a fork, found again by its mark.
    pub(super) fn marked_program(&self, plan: &Plan) -> Result<Program> {
        let mut program = self.program(plan.agent)?;
        program.environment.push((MARK.to_owned(), plan.id.to_string()));
        Ok(program)
    }

    /// The same, with a session's environment: its profile's, and the name under which it is started.
    pub(crate) fn program_as(&self, agent: Agent, profile: &Profile, name: Option<&SessionName>) -> Result<Program> {
        let mut program = self.program(agent)?;
        program.environment.extend(profile.variables(name));
        Ok(program)
    }

    /// A command of an agent, as a session's profile has it.
    pub(crate) fn launch(
        &self,
        agent: Agent,
        directory: &Path,
        words: &[String],
        profile: &Profile,
        name: Option<&SessionName>,
    ) -> Result<Command> {
        let program = self.program_as(agent, profile, name)?;
        let mut command = program.command(directory);
        command.envs(hand_over::variables(self.context())).envs(program.environment).args(&words[1..]);
        Ok(command)
    }

    /// The words of the command that resumes a fork; with the first prompt, unless that was said already.
    pub fn resume_words(&self, plan: &Plan, fork: &SessionView) -> Vec<String> {
        let prompt = plan.prompt.as_deref().filter(|_| plan.place != Place::Headless);
        let fork = Resumed { id: &fork.id, path: &fork.path };
        let words = self.store(plan.agent).resume_command(fork, &plan.workspace.path, &plan.profile.args, prompt);
        self.as_configured(plan.agent, words)
    }

    /// The words of a command with the program that the configuration names.
    pub(crate) fn as_configured(&self, agent: Agent, mut words: Vec<String>) -> Vec<String> {
        if let (Ok(config), Some(first)) = (self.config(), words.first_mut()) {
            *first = config.agents.command(agent, &self.context().surroundings.home).to_string_lossy().into_owned();
        }
        words
    }

    /// The command that opens a fork in this terminal.
    pub fn open_command(&self, plan: &Plan, fork: &SessionView) -> Result<Command> {
        let words = self.resume_words(plan, fork);
        self.launch(plan.agent, &plan.workspace.path, &words, &plan.profile, Some(&plan.name))
    }

    /// Says something in a session without a terminal and returns the answer.
    pub fn say(&self, plan: &Plan, fork: &SessionView, text: &str) -> Result<String> {
        let (directory, options) = (&plan.workspace.path, plan.profile.args.as_slice());
        let session = Some(Resumed { id: &fork.id, path: &fork.path });
        let message = Message { session, id: None, title: None, directory, options, text };
        let program = self.program_as(plan.agent, &plan.profile, Some(&plan.name))?;
        Ok(self.store(plan.agent).say(&program, &message)?.answer)
    }

    /// Makes a fork known to the agent's own list. That it is not there is no reason to fail: the fork can be resumed.
    pub(super) fn announce(&self, plan: &Plan, fork: &SessionView) {
        let Ok(program) = self.program(plan.agent) else {
            return;
        };
        let told: std::result::Result<(), ProgramError> =
            self.store(plan.agent).announce(&program, &fork.id, plan.name.as_str(), &plan.workspace.path);
        if let Err(error) = told {
            self.warn(format!("the fork is not in the agent's own list until it is resumed: {error}"));
        }
    }
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
