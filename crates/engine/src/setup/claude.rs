//! Claude Code: entries in the person's settings, in a project's settings, or in a plugin.
//!
//! Claude Code runs everything that it finds in any of them. So there is one place at a time: asking for the plugin moves
//! the entries there, a project needs none where the person has them, and a project's entries give way to a person's.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use transcript::Agent;

use super::file;
use super::hooks;
use super::jsonc;
use super::{Action, Change, Scope, SetupPlan, SetupRequest, Step, plugin};
use crate::error::Result;
use crate::{Tine, project};

impl Tine {
    /// Decides what is done for Claude Code.
    pub(super) fn plan_claude(&self, request: &SetupRequest, plan: &mut SetupPlan) -> Result<()> {
        let agent = Agent::Claude;
        let user = self.claude_settings();
        let has_plugin = plugin::is_enabled(file::read(&user)?.as_deref());
        let scope = request.scope.unwrap_or(if has_plugin && !request.uninstall { Scope::Plugin } else { Scope::User });
        if request.uninstall {
            if scope == Scope::Project {
                let project = self.project_settings();
                plan.steps.extend(self.plan_hooks(agent, scope, &project, true, &mut plan.notes)?);
                return Ok(());
            }
            // Claude Code writes the settings when the plugin goes; tine's own entries go first.
            if scope == Scope::User {
                plan.steps.extend(self.plan_hooks(agent, scope, &user, true, &mut plan.notes)?);
                self.plan_server(true, plan)?;
            }
            if has_plugin {
                plan.steps.push(self.plugin_step("- the plugin", Action::RemovePlugin));
            }
            self.note_project(plan)?;
            return Ok(());
        }
        match scope {
            Scope::User => {
                let step = self.plan_hooks(agent, scope, &user, false, &mut plan.notes)?;
                plan.steps.extend(step);
                self.plan_server(false, plan)?;
                self.note_project(plan)?;
            }
            Scope::Project => {
                let project = self.project_settings();
                let broader =
                    self.entries(agent, &user)?.first().map(|_| user).or(has_plugin.then(|| self.plugin_folder()));
                if let Some(broader) = broader {
                    let note = format!("{} has the hooks for all projects; nothing is needed here", broader.display());
                    plan.notes.push((agent, note));
                    return Ok(());
                }
                plan.steps.extend(self.plan_hooks(agent, scope, &project, false, &mut plan.notes)?);
                if self.context().find_program(hooks::BY_NAME).is_none() {
                    let note = "tine is not on the PATH, so a project's hooks do nothing here";
                    plan.notes.push((agent, note.into()));
                }
            }
            Scope::Plugin => {
                if !has_plugin {
                    // Its own program installs it, and writes the settings.
                    self.program(agent)?;
                    file::check_writable(&user)?;
                }
                plan.steps.extend(self.plan_hooks(agent, Scope::User, &user, true, &mut plan.notes)?);
                self.plan_server(true, plan)?;
                let files = plugin::files(&self.hook_program()?);
                let folder = self.plugin_folder();
                if !has_plugin || !plugin::is_written(&folder, &files) {
                    let what = if has_plugin {
                        "~ the plugin"
                    } else {
                        "+ the plugin: hooks, the MCP server, and a command /tine:tine"
                    };
                    plan.steps.push(self.plugin_step(what, Action::InstallPlugin { files, is_known: has_plugin }));
                }
                self.note_project(plan)?;
            }
        }
        Ok(())
    }

    /// The person's settings.
    pub(super) fn claude_settings(&self) -> PathBuf {
        self.store(Agent::Claude).home().join("settings.json")
    }

    /// The settings of the project around the current directory.
    pub(super) fn project_settings(&self) -> PathBuf {
        let cwd = &self.context().cwd;
        project::top(cwd).unwrap_or_else(|| cwd.clone()).join(".claude/settings.json")
    }

    /// Where the plugin is: beside the registry.
    pub(super) fn plugin_folder(&self) -> PathBuf {
        self.context().paths.registry.parent().unwrap_or(Path::new("/")).join("claude-plugin")
    }

    fn plugin_step(&self, what: &str, action: Action) -> Step {
        let (path, what) = (self.plugin_folder(), vec![what.to_owned()]);
        Step { change: Change { agent: Agent::Claude, scope: Scope::Plugin, path, what }, action }
    }

    /// Says that the project around has entries of an older tine, too, which do not give way; they may be a colleague's.
    fn note_project(&self, plan: &mut SetupPlan) -> Result<()> {
        let path = self.project_settings();
        if path == self.claude_settings() {
            return Ok(());
        }
        let entries = self.entries(Agent::Claude, &path)?;
        let gives_way = |entry: &hooks::Found| entry.program.as_deref() == Some(Path::new(hooks::BY_NAME));
        if !entries.iter().all(gives_way) {
            let path = path.display();
            let note =
                format!("{path} has hooks of tine, too; `tine setup claude --project --uninstall` takes them out");
            plan.notes.push((Agent::Claude, note));
        }
        Ok(())
    }
}

/// Whether settings switch all hooks off.
pub(super) fn switched_off(root: &Value<'_>) -> bool {
    let switch = jsonc::member(root, "disableAllHooks").and_then(Value::as_boolean_lit);
    switch.is_some_and(|switch| switch.value)
}
