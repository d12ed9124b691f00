//! What agents may do through tine.
//!
//! They may start and fork sessions in the project in which the server runs and in its worktrees. Anything else is for the
//! person to allow, in the configuration file or when asked.

use std::path::{Component, Path};

use engine::{McpConfig, Permission, Project};

use super::tool::Trouble;

/// What holds for one call.
pub(super) struct Policy<'a> {
    pub config: McpConfig,
    pub project: Project,
    /// Asks the person; nothing where the client cannot.
    pub ask: &'a dyn Fn(&str) -> Option<bool>,
    /// Whether the client can ask.
    pub can_ask: bool,
}

impl Policy<'_> {
    /// The same policy for what is only listed: nobody is asked, and what would be asked counts as allowed.
    pub(super) fn without_asking(&self) -> Policy<'static> {
        let ask: &dyn Fn(&str) -> Option<bool> = if self.can_ask { &|_| Some(true) } else { &|_| None };
        Policy { config: self.config.clone(), project: self.project.clone(), ask, can_ask: self.can_ask }
    }

    /// Whether an agent may run, or a session be made, in a directory.
    pub(super) fn check_start(&self, directory: &Path, what: &str) -> Result<(), Trouble> {
        self.check(self.config.start, "start", what)?;
        self.check_directory(directory, what)
    }

    /// Whether an agent may be spoken to of which nobody knows where it works.
    pub(super) fn check_start_somewhere(&self, what: &str) -> Result<(), Trouble> {
        self.check(self.config.start, "start", what)?;
        self.check(self.config.elsewhere, "elsewhere", &format!("{what}, whose directory is unknown"))
    }

    /// Whether an agent may run without asking for permissions.
    pub(super) fn check_skipping(&self) -> Result<(), Trouble> {
        self.check(self.config.skip_permissions, "skip_permissions", "start an agent that skips permission prompts")
    }

    /// Whether an agent may be ended.
    pub(super) fn check_stop(&self, directory: Option<&Path>, what: &str) -> Result<(), Trouble> {
        self.check(self.config.stop, "stop", what)?;
        directory.map_or(Ok(()), |directory| self.check_directory(directory, what))
    }

    /// Whether a directory is of this project: the one that is meant, whatever links and dots its path has.
    fn check_directory(&self, directory: &Path, what: &str) -> Result<(), Trouble> {
        let real = directory.canonicalize();
        // One that is gone has to say plainly where it was.
        let is_plain = || directory.components().all(|part| part != Component::ParentDir);
        let is_here = match &real {
            Ok(real) => self.project.contains(real),
            Err(_) => is_plain() && self.project.contains(directory),
        };
        if is_here {
            return Ok(());
        }
        let what =
            format!("{what} in {}, which is outside this project", real.as_deref().unwrap_or(directory).display());
        self.check(self.config.elsewhere, "elsewhere", &what)
    }

    fn check(&self, permission: Permission, key: &str, what: &str) -> Result<(), Trouble> {
        let hint =
            |value: &str| format!("the user can allow it with `mcp.{key} = \"{value}\"` in tine's configuration file");
        match permission {
            Permission::On => Ok(()),
            Permission::Off => Err(Trouble::refused(format!("agents are not allowed to {what}"), hint("on"))),
            Permission::Ask => match (self.ask)(&format!("Allow an agent to {what}?")) {
                Some(true) => Ok(()),
                Some(false) => Err(Trouble::refused(
                    format!("the user did not allow the agent to {what}"),
                    "don't try again unless the user asks for it",
                )),
                None => Err(Trouble::refused(
                    format!("agents need permission to {what}, and this client cannot ask the user"),
                    hint("on"),
                )),
            },
        }
    }
}
