//! What tine installs in the agents, so that they tell it what happens: plan, then apply; and how it stands.
//!
//! Each agent's file says where things belong; what is installed is a list of steps, each of which changes one thing that
//! a person is shown. How a text is edited is left to
//! `jsonc` and `hooks`, how a file is kept safe to `file`.

mod claude;
mod codex;
mod file;
mod hooks;
mod jsonc;
mod plugin;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use transcript::Agent;

use crate::Tine;
use crate::error::{Error, Result};
use crate::private;
use file::Edit;
use hooks::Found;
use jsonc::Problem;
pub use server::SetupServer;

/// For whom something is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The person, in all projects.
    User,
    /// Everybody who works in this project.
    Project,
    /// The person, as a plugin of Claude Code.
    Plugin,
}

impl Scope {
    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Plugin => "plugin",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct SetupRequest {
    /// In which agents.
    pub agents: Vec<Agent>,
    /// For whom; nothing for wherever it is, or else the person.
    pub scope: Option<Scope>,
    /// Whether tine's things are to be taken out.
    pub uninstall: bool,
}

/// What will be changed. Making it changes nothing.
#[derive(Debug)]
pub struct SetupPlan {
    request: SetupRequest,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What is worth knowing.
    pub notes: Vec<(Agent, String)>,
}

/// One change, and how it is made.
#[derive(Debug)]
pub struct Step {
    /// What a person is told.
    pub change: Change,
    action: Action,
}

/// What happens to one file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Whose it is.
    pub agent: Agent,
    /// For whom.
    pub scope: Scope,
    /// The file or folder.
    pub path: PathBuf,
    /// What is put in (`+`), put right (`~`) and taken out (`-`).
    pub what: Vec<String>,
}

#[derive(Debug)]
enum Action {
    Edit(Edit),
    Trust { hooks: PathBuf, moves: codex::Moves },
    InstallPlugin { files: plugin::Files, is_known: bool },
    RemovePlugin,
    CodexServer,
}

/// How things stand in one agent.
#[derive(Debug, Serialize)]
pub struct SetupStatus {
    /// The agent.
    pub agent: Agent,
    /// Whether tine is told of everything that it wants to know, by a program that is there.
    pub installed: bool,
    /// Where entries are.
    pub places: Vec<SetupPlace>,
    /// Where the MCP server is.
    pub servers: Vec<SetupServer>,
    /// What the agent has told so far.
    pub events: Vec<SetupEvent>,
}

/// Entries in one place.
#[derive(Debug, Serialize)]
pub struct SetupPlace {
    /// For whom.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// The program that they call.
    pub program: PathBuf,
    /// Whether it is there and can be run.
    pub exists: bool,
    /// Whether it is this very program.
    pub is_this: bool,
    /// What tine should be told of, and is not.
    pub missing: Vec<&'static str>,
    /// Whether the agent runs the entries; nothing where that is no question or cannot be asked.
    pub trusted: Option<bool>,
    /// What else keeps the agent from running them.
    pub obstacles: Vec<String>,
}

impl SetupPlace {
    /// Whether tine is told of everything by these entries, as far as is known.
    pub(crate) fn works(&self) -> bool {
        self.exists && self.missing.is_empty() && self.trusted != Some(false) && self.obstacles.is_empty()
    }
}

/// One thing that an agent tells.
#[derive(Debug, Serialize)]
pub struct SetupEvent {
    /// What it is called on the command line.
    pub event: &'static str,
    /// When it was told last.
    pub last: Option<Timestamp>,
}

impl Tine {
    /// The agents that are there: the program, or at least its folder.
    pub fn agents_here(&self) -> Vec<Agent> {
        let is_here = |agent: &Agent| self.program(*agent).is_ok() || self.store(*agent).home().is_dir();
        Agent::ALL.into_iter().filter(is_here).collect()
    }

    /// Decides what has to be changed.
    pub fn plan_setup(&self, request: &SetupRequest) -> Result<SetupPlan> {
        let mut plan = SetupPlan { request: request.clone(), steps: Vec::new(), notes: Vec::new() };
        for agent in &request.agents {
            match agent {
                Agent::Claude => self.plan_claude(request, &mut plan)?,
                Agent::Codex => self.plan_codex(request, &mut plan)?,
            }
        }
        Ok(plan)
    }

    /// Does what was planned; another tine that does the same at the same time is waited for.
    pub fn apply_setup(&self, plan: &SetupPlan) -> Result<()> {
        let _lock = self.setup_lock();
        // What the other one has done needs not be done again; anything else was not agreed to.
        let fresh = self.plan_setup(&plan.request)?;
        for step in &fresh.steps {
            if !plan.steps.iter().any(|shown| shown.change == step.change) {
                return Err(Error::ChangedMeanwhile(step.change.path.clone()));
            }
        }
        for step in &fresh.steps {
            match &step.action {
                Action::Edit(edit) => file::apply(&mut self.registry(), edit, self.context().clock.now())?,
                Action::Trust { hooks, moves } => self.trust_or_take_back(hooks, &step.change.path, moves)?,
                Action::InstallPlugin { files, is_known } => {
                    if let Err(error) = self.install_plugin(files, *is_known) {
                        self.put_hooks_back(&fresh)?;
                        return Err(error);
                    }
                }
                Action::RemovePlugin => self.remove_plugin()?,
                Action::CodexServer => self.add_codex_server(&step.change.path)?,
            }
        }
        Ok(())
    }

    /// Without the plugin, the entries that gave way to it are there again.
    fn put_hooks_back(&self, plan: &SetupPlan) -> Result<()> {
        let user = self.claude_settings();
        if plan.steps.iter().any(|step| step.change.path == user)
            && let Some(Step { action: Action::Edit(edit), .. }) =
                self.plan_hooks(Agent::Claude, Scope::User, &user, false, &mut Vec::new())?
        {
            file::apply(&mut self.registry(), &edit, self.context().clock.now())?;
        }
        Ok(())
    }

    /// How things stand in an agent.
    pub fn setup_status(&self, agent: Agent) -> Result<SetupStatus> {
        let places = self.setup_places(agent, true)?;
        let events = hooks::events(agent).iter().map(|event| {
            let last = self.registry().last_heard(agent, *event)?;
            let last = last.and_then(|time| Timestamp::from_millisecond(time).ok());
            Ok(SetupEvent { event: event.as_str(), last })
        });
        let events = events.collect::<Result<_>>()?;
        let installed = places.iter().any(SetupPlace::works);
        let servers = self.servers(agent)?;
        Ok(SetupStatus { agent, installed, places, servers, events })
    }

    /// Where an agent has entries of tine. Whether it trusts them is found out by starting it.
    pub(crate) fn setup_places(&self, agent: Agent, asks_agent: bool) -> Result<Vec<SetupPlace>> {
        let mut files = Vec::new();
        match agent {
            Agent::Claude => {
                let user = self.claude_settings();
                let project = Some(self.project_settings()).filter(|project| *project != user);
                let has_plugin = plugin::is_enabled(file::read(&user)?.as_deref());
                files.push((Scope::User, user));
                files.extend(project.map(|project| (Scope::Project, project)));
                files.extend(has_plugin.then(|| (Scope::Plugin, self.plugin_folder().join("hooks/hooks.json"))));
            }
            Agent::Codex => files.push((Scope::User, self.store(agent).home().join("hooks.json"))),
        }
        let mut places = Vec::new();
        for (scope, path) in files {
            let entries = self.entries(agent, &path)?;
            let Some(program) = entries.iter().find_map(|entry| entry.program.clone()) else {
                continue;
            };
            let obstacles = self.obstacles(agent, &path)?;
            let is_told = |key: &str| entries.iter().any(|entry| entry.key == key);
            let missing =
                hooks::events(agent).iter().map(|event| hooks::key(*event)).filter(|key| !is_told(key)).collect();
            let trusted = (agent == Agent::Codex && asks_agent).then(|| self.codex_trusts(&path)).flatten();
            let program =
                self.context().find_program(hooks::BY_NAME).filter(|_| program.is_relative()).unwrap_or(program);
            let exists = program.is_absolute() && crate::context::is_executable(&program);
            let same = |program: &Path| program.canonicalize().ok();
            let is_this = exists && same(&program) == same(&self.context().program);
            places.push(SetupPlace { scope, path, program, exists, is_this, missing, trusted, obstacles });
        }
        Ok(places)
    }

    /// The program that entries call. What a project's call is the same for everybody.
    fn program_for(&self, scope: Scope) -> Result<String> {
        match scope {
            Scope::Project => Ok(hooks::BY_NAME.to_owned()),
            Scope::User | Scope::Plugin => self.hook_program(),
        }
    }

    /// The path that entries call: the one on the PATH that leads to this program, because it stays when the program is
    /// replaced by another version; else the program's own.
    fn hook_program(&self) -> Result<String> {
        let own = &self.context().program;
        let own = own.canonicalize().unwrap_or_else(|_| own.clone());
        let found = self.context().find_program("tine");
        let found = found.filter(|path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == own));
        let program = found.unwrap_or(own);
        program.into_os_string().into_string().map_err(|program| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "its path is not text");
            Error::NotSetUp { path: program.into(), source }
        })
    }

    /// tine's entries in a file. One that cannot be understood is an error.
    fn entries(&self, agent: Agent, path: &Path) -> Result<Vec<Found>> {
        let text = file::read(path)?.unwrap_or_default();
        let (_, text) = file::split_mark(&text);
        let root = jsonc::parse(text).map_err(|problem| bad(path, problem))?;
        let found = root.map(|root| hooks::found(&root, agent)).unwrap_or_default();
        Ok(found.into_iter().filter(|entry| entry.program.is_some()).collect())
    }

    /// What keeps an agent from running the hooks in a file.
    fn obstacles(&self, agent: Agent, path: &Path) -> Result<Vec<String>> {
        let mut obstacles = Vec::new();
        let text = file::read(path)?.unwrap_or_default();
        let (_, text) = file::split_mark(&text);
        if let Some(line) = jsonc::first_liberty(text).filter(|_| !text.trim().is_empty()) {
            obstacles.push(format!(
                "{} takes nothing of {} as long as it is not plain JSON: a comment or a last comma in line {line}",
                agent.product_name(),
                path.display()
            ));
        }
        match agent {
            Agent::Claude => {
                let root = jsonc::parse(text).ok().flatten();
                if root.is_some_and(|root| claude::switched_off(&root)) {
                    obstacles.push(format!("{} switches all hooks off: `disableAllHooks`", path.display()));
                }
            }
            Agent::Codex => obstacles.extend(self.codex_switch()?),
        }
        Ok(obstacles)
    }

    /// Decides how tine's entries get into a file, or out of it.
    fn plan_hooks(
        &self,
        agent: Agent,
        scope: Scope,
        path: &Path,
        uninstall: bool,
        told: &mut Vec<(Agent, String)>,
    ) -> Result<Option<Step>> {
        let before = file::read(path)?;
        let receipt = self.registry().receipt(path);
        let (mark, text) = file::split_mark(before.as_deref().unwrap_or_default());
        let kept = receipt.as_ref().map(|receipt| receipt.kept.clone()).unwrap_or_default();
        let bare = hooks::uninstall(text, agent, &kept).map_err(|problem| bad(path, problem))?;
        let (edited, edit) = if uninstall {
            let was = before.as_deref().and_then(|text| file::as_it_was(&self.registry(), path, text));
            // What was there before may be an older tine's.
            let is_free = |text: &str| hooks::uninstall(text, agent, &[]).is_ok_and(|edited| edited.removed.is_empty());
            let was = was.filter(|was| was.as_deref().is_none_or(is_free));
            let is_all = hooks::is_blank(&bare.text) && receipt.is_some_and(|receipt| receipt.is_ours);
            let after = was.unwrap_or_else(|| (!is_all).then(|| format!("{mark}{}", bare.text)));
            (bare, Edit { path: path.to_owned(), before, after, kept: None, is_shared: false })
        } else {
            let edited =
                hooks::install(text, &self.program_for(scope)?, agent).map_err(|problem| bad(path, problem))?;
            if !edited.left.is_empty() {
                let left = edited.left.join(", ");
                told.push((agent, format!("{}: {left} calls tine in a way of your own, and stays", path.display())));
            }
            told.extend(self.obstacles(agent, path)?.into_iter().map(|obstacle| (agent, obstacle)));
            let after = Some(format!("{mark}{}", edited.text));
            let kept = Some(hooks::containers(&bare.text));
            (edited, Edit { path: path.to_owned(), before, after, kept, is_shared: scope == Scope::Project })
        };
        let mut what = Vec::new();
        let mut tell = |sign: &str, events: String, rest: &str| {
            if !events.is_empty() {
                what.push(format!("{sign} {events}{rest}"));
            }
        };
        if uninstall {
            tell("-", edited.removed.join(", "), "");
        } else {
            let calls = format!(" call {}", self.program_for(scope)?);
            tell("+", edited.added.join(", "), &calls);
            tell("~", edited.updated.join(", "), &calls);
            tell("-", edited.removed.join(", "), "");
        }
        let change = Change { agent, scope, path: path.to_owned(), what };
        Ok((!change.what.is_empty()).then_some(Step { change, action: Action::Edit(edit) }))
    }

    /// Held while files are changed. Where it cannot be had, one goes on without it.
    fn setup_lock(&self) -> Option<fs::File> {
        let path = self.context().paths.registry.with_file_name("setup.lock");
        private::create_folder(path.parent()?).ok()?;
        let file = private::open_file(&path).ok()?;
        file.lock().ok()?;
        Some(file)
    }
}

fn bad(path: &Path, problem: Problem) -> Error {
    Error::BadSettings { path: path.to_owned(), line: problem.line, message: problem.message }
}
