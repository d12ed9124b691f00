//! The JSON of a fork: of its plan, and the same with a session on disk. It is a contract.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use transcript::translate::ReceiptView;
use transcript::{Agent, SessionId, SessionName, SessionView, State};

use super::{CodeView, EmptyClone, Forked, Method, Plan, PlannedCode, WindowSource, Workspace, WorkspaceKind};
use crate::run::drive::Opened;
use crate::run::place::{Place, PlaceView};
use crate::run::profile::{Profile, shown_variables};

/// A fork, planned or made.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkView {
    /// The fork.
    pub session: ForkSession,
    /// The session that it was forked from.
    pub parent: ForkParent,
    /// The method.
    pub method: Method,
    /// The reason for the method, in one sentence.
    pub why: String,
    /// Where it works.
    pub workspace: WorkspaceView,
    /// Where its agent runs.
    pub place: PlaceView,
    /// How its agent is launched, without passwords.
    pub profile: Profile,
    /// Its first prompt.
    pub prompt: Option<String>,
    /// Its model, if known.
    pub model: Option<String>,
    /// Model requests that are sent while it is made or opened.
    pub requests: Vec<String>,
    /// Model requests that are sent when it is first resumed.
    pub later_requests: Vec<String>,
    /// The command that resumes it, without secrets; nothing where its id isn't known yet.
    pub command: Option<Vec<String>>,
    /// The variables for that command, except those that hold a password.
    pub environment: BTreeMap<String, String>,
    /// About how many tokens its history has.
    pub tokens: Option<u64>,
    /// The model's context window.
    pub context_window: Option<u64>,
    /// Where the size of the window comes from.
    pub context_window_source: Option<WindowSource>,
    /// What becomes of the parts of the conversation, if it is translated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptView>,
    /// What it lacks of its source.
    pub losses: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Whether the user has to confirm: uncommitted changes stay in the source's directory, or it is not certain what the
    /// files were.
    pub needs_confirmation: bool,
    /// The files that its worktree begins with, if they are those of its last turn.
    pub code: Option<CodeView>,
    /// The operation that made it, which `undo` reverses.
    pub operation: Option<i64>,
    /// What its agent answered without a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The session of a fork.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ForkSession {
    /// It is on disk.
    Made(Box<SessionView>),
    /// It has no transcript yet.
    Planned(Box<PlannedSession>),
}

impl ForkSession {
    /// Its name.
    pub fn name(&self) -> Option<&SessionName> {
        match self {
            ForkSession::Made(view) => view.name.as_ref(),
            ForkSession::Planned(planned) => Some(&planned.name),
        }
    }

    /// Its id, if known.
    pub fn id(&self) -> Option<&SessionId> {
        match self {
            ForkSession::Made(view) => Some(&view.id),
            ForkSession::Planned(planned) => planned.id.as_ref(),
        }
    }

    /// Its agent.
    pub fn agent(&self) -> Agent {
        match self {
            ForkSession::Made(view) => view.agent,
            ForkSession::Planned(planned) => planned.agent,
        }
    }
}

/// A session without a transcript, in the shape of one that has it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedSession {
    agent: Agent,
    id: Option<SessionId>,
    name: SessionName,
    title: SessionName,
    cwd: String,
    branch: Option<String>,
    path: Option<String>,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
    turns: u32,
    state: State,
    parent: Option<PlannedParent>,
}

/// The parent of a planned session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlannedParent {
    agent: Agent,
    id: Option<SessionId>,
    name: Option<SessionName>,
    turn: u32,
}

/// The source of a fork, and the turn after which it was forked.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkParent {
    /// The session.
    #[serde(flatten)]
    pub session: ForkSession,
    /// The last turn that the fork has of it.
    pub turn: u32,
}

/// The directory of a fork.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceView {
    /// `same`, `existing`, `worktree` or `copy`.
    pub kind: WorkspaceKind,
    /// The directory.
    pub path: String,
    /// The branch checked out there.
    pub branch: Option<String>,
}

impl From<&Workspace> for WorkspaceView {
    fn from(workspace: &Workspace) -> Self {
        let path = workspace.path.to_string_lossy().into_owned();
        WorkspaceView { kind: workspace.kind, path, branch: workspace.branch.clone() }
    }
}

impl Plan {
    /// The JSON of the plan.
    pub fn view(&self) -> ForkView {
        let source = &self.source;
        let planned = PlannedSession {
            agent: self.agent,
            id: self.id_is_chosen.then(|| self.id.clone()),
            name: self.name.clone(),
            title: self.name.clone(),
            cwd: self.workspace.path.to_string_lossy().into_owned(),
            branch: self.workspace.branch.clone(),
            path: self.id_is_chosen.then(|| self.target.to_string_lossy().into_owned()),
            created: None,
            updated: None,
            turns: self.turns,
            state: State::Stopped,
            parent: Some(PlannedParent {
                agent: source.agent,
                id: Some(source.id.clone()),
                name: source.name.clone(),
                turn: self.turns,
            }),
        };
        let command = (self.id_is_chosen || self.keeps_seed).then(|| self.profile.shown_words(&self.command));
        ForkView {
            session: ForkSession::Planned(Box::new(planned)),
            parent: ForkParent { session: ForkSession::Made(Box::new(source.clone())), turn: self.turns },
            method: self.method,
            why: self.why.clone(),
            workspace: (&self.workspace).into(),
            place: self.place.view(None),
            profile: self.profile.shown(),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            requests: self.requests.clone(),
            later_requests: self.later_requests.clone(),
            command,
            environment: shown_variables(&self.variables()),
            tokens: self.tokens,
            context_window: self.context_window,
            context_window_source: self.window_source,
            receipt: self.translation.as_ref().map(|translation| translation.receipt.view()),
            losses: self.losses.clone(),
            warnings: self.warnings.clone(),
            needs_confirmation: self.needs_confirmation(),
            code: self.code.as_ref().map(PlannedCode::view),
            operation: None,
            answer: None,
        }
    }

    /// The variables with which the fork is opened.
    pub fn variables(&self) -> BTreeMap<String, String> {
        match self.keeps_seed {
            // tine itself sets them when it starts the fork.
            true => BTreeMap::new(),
            false => self.profile.variables(Some(&self.name)),
        }
    }
}

impl Forked {
    /// The JSON of a fork whose agent was opened.
    pub fn view(&self, opened: &Opened) -> ForkView {
        let session = opened.session.as_ref().unwrap_or(&self.session).clone();
        ForkView {
            session: ForkSession::Made(Box::new(session)),
            place: self.plan.place.view(opened.pane.as_ref()),
            command: Some(self.plan.profile.shown_words(&opened.command)),
            operation: Some(self.operation),
            answer: opened.answer.clone(),
            ..self.plan.view()
        }
    }
}

impl EmptyClone {
    /// The JSON of the clone: planned, or made by an operation. It runs in `place`.
    pub fn view(&self, place: Place, operation: Option<i64>) -> ForkView {
        let start = &self.start;
        let session = |id: Option<&SessionId>, name: &SessionName, directory: &std::path::Path, parent| {
            ForkSession::Planned(Box::new(PlannedSession {
                agent: start.agent,
                id: id.cloned(),
                name: name.clone(),
                title: name.clone(),
                cwd: directory.to_string_lossy().into_owned(),
                branch: self.workspace.branch.clone(),
                path: None,
                created: None,
                updated: None,
                turns: 0,
                state: State::Stopped,
                parent,
            }))
        };
        let from =
            PlannedParent { agent: start.agent, id: self.source_id.clone(), name: Some(self.source.clone()), turn: 0 };
        ForkView {
            session: session(start.id.as_ref(), &start.name, &self.workspace.path, Some(from)),
            parent: ForkParent {
                session: session(self.source_id.as_ref(), &self.source, &self.directory, None),
                turn: 0,
            },
            method: Method::Copy,
            why: "the session has no messages yet, so the clone starts empty, in a copy of its directory".into(),
            workspace: (&self.workspace).into(),
            place: place.view(None),
            profile: start.profile.shown(),
            prompt: None,
            model: None,
            requests: Vec::new(),
            later_requests: Vec::new(),
            command: Some(start.words.clone()),
            environment: shown_variables(&start.profile.variables(Some(&start.name))),
            tokens: Some(0),
            context_window: None,
            context_window_source: None,
            receipt: None,
            losses: Vec::new(),
            warnings: Vec::new(),
            needs_confirmation: false,
            code: None,
            operation,
            answer: None,
        }
    }
}
