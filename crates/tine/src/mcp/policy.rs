//! Decides what agents may do through tine.
//!
//! They may start and fork sessions in the project in which the server runs and in its worktrees. Anything else needs
//! the user's permission, in the configuration file or on request.

use std::path::{Component, Path};

use engine::{McpConfig, Permission, Project};

use super::tool::CallError;

/// The policy for one call.
pub(super) struct Policy<'a> {
    pub config: McpConfig,
    pub project: Project,
    /// Asks the user; `None` if the client cannot ask.
    pub ask: &'a dyn Fn(&str) -> Option<bool>,
    /// Whether the client can ask.
    pub can_ask: bool,
}

impl Policy<'_> {
    /// The same policy for listings: no question is asked, and what would need one counts as allowed.
    pub(super) fn without_asking(&self) -> Policy<'static> {
        let ask: &dyn Fn(&str) -> Option<bool> = if self.can_ask { &|_| Some(true) } else { &|_| None };
        Policy { config: self.config.clone(), project: self.project.clone(), ask, can_ask: self.can_ask }
    }

    /// Checks that an agent may run, or a session may be created, in a directory.
    pub(super) fn check_start(&self, directory: &Path, what: &str) -> Result<(), CallError> {
        self.check(self.config.start, "start", what)?;
        self.check_directory(directory, what)
    }

    /// Checks that a message may be sent to an agent whose directory is unknown.
    pub(super) fn check_start_somewhere(&self, what: &str) -> Result<(), CallError> {
        self.check(self.config.start, "start", what)?;
        self.check(self.config.elsewhere, "elsewhere", &format!("{what}, whose directory is unknown"))
    }

    /// Checks that an agent may skip permission prompts.
    pub(super) fn check_skipping(&self) -> Result<(), CallError> {
        self.check(self.config.skip_permissions, "skip_permissions", "start an agent that skips permission prompts")
    }

    /// Checks that an agent may be stopped.
    pub(super) fn check_stop(&self, directory: Option<&Path>, what: &str) -> Result<(), CallError> {
        self.check(self.config.stop, "stop", what)?;
        directory.map_or(Ok(()), |directory| self.check_directory(directory, what))
    }

    /// Checks that a directory belongs to this project, after resolving links and dots in its path.
    fn check_directory(&self, directory: &Path, what: &str) -> Result<(), CallError> {
        let real = directory.canonicalize();
        // The path of a missing directory must not contain `..`.
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

    fn check(&self, permission: Permission, key: &str, what: &str) -> Result<(), CallError> {
        let hint =
            |value: &str| format!("the user can allow it with `mcp.{key} = \"{value}\"` in tine's configuration file");
        match permission {
            Permission::On => Ok(()),
            Permission::Off => Err(CallError::refused(format!("agents are not allowed to {what}"), hint("on"))),
            Permission::Ask => match (self.ask)(&format!("Allow an agent to {what}?")) {
                Some(true) => Ok(()),
                Some(false) => Err(CallError::refused(
                    format!("the user did not allow the agent to {what}"),
                    "don't try again unless the user asks for it",
                )),
                None => Err(CallError::refused(
                    format!("agents need permission to {what}, and this client cannot ask the user"),
                    hint("on"),
                )),
            },
        }
    }
}
