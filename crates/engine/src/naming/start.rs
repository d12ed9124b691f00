//! Starting a session under a name, and resuming it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use agents::{HeadlessMessage, SessionRef};
use diagnostics::OrLog;
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

use crate::ctx::Ctx;
use crate::names;
use crate::naming::{Error, Result};
use crate::operations::free_names;
use crate::program;
use crate::registry;
use crate::registry::{Launcher, NewStart, Process, SessionKey};
use crate::run;
use crate::run::drive::open::open_in;
use crate::run::drive::{OpenAt, Opened, Opening};
use crate::run::headless::{self, check_format, warn_of_other_tip};
use crate::run::launch;
use crate::run::place::{Place, PlaceView};
use crate::run::profile::{self, Launch, LaunchRequest, Profile, shown_variables};
use crate::sessions::moved;
use crate::sessions::project;
use crate::sessions::session::Session;

/// A session that is about to be started.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its agent.
    pub agent: Agent,
    /// Its name.
    pub name: SessionName,
    /// Its id, if the agent lets it be chosen.
    pub id: Option<SessionId>,
    /// Where it works.
    pub directory: PathBuf,
    /// How it is launched.
    pub profile: Profile,
    /// The arguments of this launch.
    options: Vec<String>,
    /// The command that starts it in a terminal.
    pub words: Vec<String>,
    /// Its first prompt.
    prompt: Option<String>,
    key: SessionKey,
}

/// Decides how a new session is started. Without a name it is named after the git branch, or gets a made-up name.
pub(crate) fn plan_start_in(
    ctx: &Ctx,
    directory: &Path,
    agent: Agent,
    name: Option<SessionName>,
    launch: Launch,
) -> Result<Start> {
    program::program(ctx, agent)?;
    let names = ctx.registry().names()?;
    let taken: HashSet<&str> = names.values().map(SessionName::as_str).collect();
    let directory = directory.to_owned();
    let name = match name {
        Some(name) => {
            // The user probably wants to resume it.
            if ctx.registry().named(&name)?.is_some_and(|row| agents::is_there(&row.key.path)) {
                return Err(Error::AlreadyStarted(name));
            }
            free_names::check_name(ctx, &name)?;
            name
        }
        None => project::current_branch(&directory)
            .and_then(|branch| names::from_text(&branch, &taken))
            .or_else(|| names::readable(|name| taken.contains(name)))
            .ok_or(Error::NoNameLeft)?,
    };
    let adapter = ctx.adapter(agent);
    let now = ctx.context().clock.now();
    let id = match launch.id.clone() {
        Some(id) if is_known_id(ctx, agent, &id)? => return Err(Error::IdTaken(id)),
        Some(id) => id,
        None => ctx.adapter(agent).new_id(now),
    };
    let options = launch.options();
    let words = adapter.start_command(&id, name.as_str(), &directory, &options, launch.prompt.as_deref());
    let words = program::as_configured(ctx, agent, words);
    let key = match adapter.accepts_ids() {
        true => SessionKey { agent, id: id.clone(), path: adapter.path_for(&id, &directory, now) },
        // The agent chooses the id when it starts.
        false => SessionKey { agent, id: id.clone(), path: PathBuf::new() },
    };
    let id = adapter.accepts_ids().then_some(id);
    let Launch { profile, prompt, .. } = launch;
    Ok(Start { agent, name, id, directory, profile, options, words, prompt, key })
}

/// Whether a session has this id, or one that was started and has no messages yet.
fn is_known_id(ctx: &Ctx, agent: Agent, id: &SessionId) -> Result<bool> {
    let is_its = |file: &agents::SessionFile| file.ids().any(|own| own == id.as_str());
    let is_started = ctx.registry().starts()?.iter().any(|row| row.agent == agent && row.id.recorded() == id);
    Ok(is_started || ctx.adapter(agent).discover().files.iter().any(is_its))
}

/// Decides how a new session is started in `place`, and registers its name. If another process takes a made-up name at the
/// same time, the next one is used.
pub(crate) fn begin(
    ctx: &Ctx,
    agent: Agent,
    name: Option<&SessionName>,
    request: &LaunchRequest,
    place: Place,
) -> Result<Start> {
    let launch = profile::launch_for(ctx, agent, request)?;
    launch.check_prompt(place)?;
    // A listing frees the names of sessions that were started and abandoned.
    crate::sessions::survey::all_sessions(ctx, &crate::sessions::catalog::Quiet)?;
    loop {
        let start = plan_start_in(ctx, &ctx.context().cwd, agent, name.cloned(), launch.clone())?;
        match register_start(ctx, &start, place == Place::Here) {
            Err(Error::Registry(registry::Error::NameTaken(_))) if name.is_none() => {}
            registered => return registered.map(|()| start),
        }
    }
}

/// Registers a session that is about to be started. With `becomes_agent`, this process turns into the agent.
pub(crate) fn register_start(ctx: &Ctx, start: &Start, becomes_agent: bool) -> Result<()> {
    let now = ctx.context().clock.now();
    free_names::release_name(ctx, &start.name)?;
    let process = becomes_agent.then(Process::current).flatten();
    let launcher = process.map_or(Launcher::Anybody, Launcher::Process);
    let Start { agent, id, key, name, directory, profile, .. } = start;
    let new = NewStart { agent: *agent, key, id_is_pending: id.is_none(), name, directory, profile };
    if !ctx.registry().register_start(&new, &launcher, now)? {
        return Err(registry::Error::NameTaken(start.name.clone()).into());
    }
    moved::note_repository(ctx, &start.directory);
    ctx.back_up();
    Ok(())
}

/// Starts the agent of a session that was begun. `prompt` is its first prompt if it was begun without one.
pub(crate) fn open_start(ctx: &Ctx, start: &Start, prompt: Option<&str>, at: OpenAt) -> Result<Opened> {
    let mut opened = Opened { command: start.words.clone(), ..Opened::default() };
    match (at.place, start.prompt.as_deref().or(prompt)) {
        (Place::Headless, Some(prompt)) => opened.answer = Some(start_headless(ctx, start, prompt)?),
        (Place::In(spot), _) => opened.pane = Some(open_in(ctx, spot, &opening_of(start, at))?),
        (Place::Here, _) => {
            let Start { agent, directory, words, profile, name, .. } = start;
            opened.here = Some(launch::launch(ctx, *agent, directory, words, profile, Some(name))?);
        }
        (Place::Headless, None) | (Place::None, _) => {}
    }
    Ok(opened)
}

fn opening_of(start: &Start, at: OpenAt) -> Opening<'_> {
    Opening {
        agent: start.agent,
        id: start.id.as_ref(),
        name: Some(&start.name),
        label: start.name.as_str(),
        directory: &start.directory,
        words: &start.words,
        profile: &start.profile,
        focus: at.focus,
        ready_within: at.ready_within,
        turns_before_prompt: start.prompt.as_ref().map(|_| 0),
    }
}

/// Starts it without a terminal: sends the first prompt, and returns the answer.
fn start_headless(ctx: &Ctx, start: &Start, text: &str) -> Result<String> {
    let message = HeadlessMessage {
        session: None,
        id: start.id.as_ref(),
        title: Some(start.name.as_str()),
        directory: &start.directory,
        options: &start.options,
        text,
    };
    let program = launch::program_as(ctx, start.agent, &start.profile, Some(&start.name))?;
    let said = match program::send(ctx, start.agent, &program, &message) {
        Ok(said) => said,
        Err(source) => {
            // An agent that failed may still have created the session; its files show that.
            let sessions = crate::sessions::survey::all_sessions(ctx, &crate::sessions::catalog::Quiet)?;
            ctx.registry().forget_start(&start.key)?;
            let is_there = sessions.iter().any(|session| session.view.name.as_ref() == Some(&start.name));
            return Err(run::Error::NotAnswered { session: is_there.then(|| start.name.to_string()), source }.into());
        }
    };
    if let Some(path) = ctx.adapter(start.agent).find_transcript(&said.id, &start.directory) {
        ctx.registry().record_transcript(&start.key, &said.id, &path)?;
        ctx.adapter(start.agent)
            .set_title(Some(&program), &said.id, &path, start.name.as_str())
            .or_log("set the title of the session");
    }
    Ok(said.answer)
}

/// Resumes a session in `directory`.
pub(crate) fn open_session(
    ctx: &Ctx,
    session: &Session,
    directory: &Path,
    launch: &Launch,
    at: OpenAt,
) -> Result<Opened> {
    let view = &session.view;
    if let (Place::Headless, Some(prompt)) = (at.place, &launch.prompt) {
        let answer = Some(headless::resume_headless(ctx, session, directory, launch, prompt)?);
        return Ok(Opened { answer, ..Opened::default() });
    }
    check_format(session)?;
    warn_of_other_tip(ctx, session);
    moved::check_directory(ctx, session, directory)?;
    let resumed = SessionRef { id: &view.id, path: &view.path };
    let prompt = launch.prompt.as_deref();
    let words = ctx.adapter(view.agent).resume_command(resumed, directory, &launch.options(), prompt);
    let words = program::as_configured(ctx, view.agent, words);
    let command = launch::launch(ctx, view.agent, directory, &words, &launch.profile, view.name.as_ref())?;
    let pane = match at.place {
        Place::In(spot) => {
            let opening = Opening {
                agent: view.agent,
                id: Some(&view.id),
                name: view.name.as_ref(),
                label: view.label(),
                directory,
                words: &words,
                profile: &launch.profile,
                focus: at.focus,
                ready_within: at.ready_within,
                turns_before_prompt: prompt.map(|_| view.turns),
            };
            Some(open_in(ctx, spot, &opening)?)
        }
        Place::Here | Place::Headless | Place::None => None,
    };
    let here = (at.place == Place::Here).then_some(command);
    Ok(Opened { pane, answer: None, command: words, here, session: None })
}

/// A session that was started, in JSON.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartView {
    agent: Agent,
    id: Option<SessionId>,
    name: SessionName,
    cwd: String,
    profile: Profile,
    place: PlaceView,
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    answer: Option<String>,
}

/// A session that was resumed, in JSON.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ResumeView {
    /// It answered without a terminal.
    Answered {
        /// The session.
        session: Box<SessionView>,
        /// The answer.
        answer: String,
    },
    /// It runs in a terminal, or can.
    Opened {
        /// The session.
        session: Box<SessionView>,
        /// Where it runs.
        place: PlaceView,
        /// The command that resumes it, without secrets.
        command: Vec<String>,
        /// The variables for that command, except those that hold a password.
        environment: BTreeMap<String, String>,
    },
}

impl ResumeView {
    /// The JSON of a session that was resumed in `place`.
    pub fn new(session: &Session, launch: &Launch, place: Place, opened: &Opened) -> Self {
        let (view, profile) = (Box::new(session.view.clone()), &launch.profile);
        match &opened.answer {
            Some(answer) => ResumeView::Answered { session: view, answer: answer.clone() },
            None => ResumeView::Opened {
                place: place.view(opened.pane.as_ref()),
                command: profile.shown_words(&opened.command),
                environment: shown_variables(&profile.variables(session.view.name.as_ref())),
                session: view,
            },
        }
    }
}

impl Start {
    /// Its JSON; it was opened in `place`.
    pub fn view(&self, place: Place, opened: &Opened) -> StartView {
        StartView {
            agent: self.agent,
            id: self.id.clone(),
            name: self.name.clone(),
            cwd: self.directory.to_string_lossy().into_owned(),
            profile: self.profile.shown(),
            place: place.view(opened.pane.as_ref()),
            command: self.words.clone(),
            environment: shown_variables(&self.profile.variables(Some(&self.name))),
            answer: opened.answer.clone(),
        }
    }

    /// The arguments of this launch.
    pub(crate) fn options(&self) -> &[String] {
        &self.options
    }

    /// Its key in the registry.
    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }
}
