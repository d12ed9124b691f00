//! Whether a session that was found can be forked as asked, and which one is forked without a question. Every front end
//! follows the same rule.

use transcript::{State, text};

use crate::advice::Advice;
use crate::ctx::Ctx;
use crate::fork::{Request, Where, Workspace, plan};
use crate::search::error::Error;
use crate::search::show::Found;
use crate::{program, sessions};

/// A result that fits less well than this part of the best one is about something else.
const AS_GOOD: f32 = 0.5;

/// Why a session can't be forked as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A word for programs, as errors have one.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let error: Error = error.into();
        let Advice { kind, hint } = error.advice();
        Refusal { kind, message: text::one_line(&error.to_string()), hint }
    }
}

/// Whether a session can be forked as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CanFork {
    /// It can.
    Yes,
    /// It can't, for this reason.
    No(Refusal),
}

impl From<Result<(), Refusal>> for CanFork {
    fn from(checked: Result<(), Refusal>) -> Self {
        checked.map_or_else(CanFork::No, |()| CanFork::Yes)
    }
}

/// A session that was found, and whether it can be forked as asked.
#[derive(Debug)]
pub struct Choice {
    /// The session.
    pub found: Found,
    /// Whether it can be forked.
    pub can_fork: CanFork,
}

impl Choice {
    /// Whether it can be forked as asked.
    pub fn can_fork(&self) -> bool {
        self.can_fork == CanFork::Yes
    }

    /// Why it can't be forked as asked.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.can_fork {
            CanFork::Yes => None,
            CanFork::No(refusal) => Some(refusal),
        }
    }

    /// What is wrong with the session, or with forking it as asked.
    pub fn warning(&self) -> Option<&str> {
        let refusal = self.refusal().map(|refusal| refusal.message.as_str());
        self.found.warning.as_deref().or(refusal)
    }
}

/// Where a fork of a session that was found would work, or why it can't be forked as asked; without a request, as a whole
/// and in its own directory.
pub(crate) fn check_found(ctx: &Ctx, found: &Found, request: Option<&Request>) -> Result<Workspace, Refusal> {
    let plain;
    let request = match request {
        Some(request) => request,
        None => {
            plain = plain_request(found);
            &plain
        }
    };
    let view = &found.session.view;
    // If another agent is to receive the transcript and isn't installed, nothing else about the session matters.
    if let Some(agent) = request.agent.filter(|agent| *agent != view.agent) {
        program::program(ctx, agent)?;
    }
    if found.warning.is_some() || view.turns == 0 {
        let why = found.warning.as_deref().unwrap_or("it has no turns");
        return Err(Refusal {
            kind: "cannot_fork",
            message: format!("{} cannot be forked: {why}", view.label()),
            hint: Some("choose another session".into()),
        });
    }
    match (&request.workspace, &view.cwd) {
        (Where::Same | Where::Worktree { .. } | Where::Copy(_), Some(cwd)) if !cwd.is_dir() => {
            let hint = Some(format!("`tine fork {} --to DIR` continues it in another directory", view.label()));
            let gone =
                sessions::Error::DirectoryGone { session: view.label().to_owned(), path: cwd.clone(), now: None };
            Err(Refusal { hint, ..gone.into() })
        }
        _ => Ok(plan::check_fork(ctx, request)?),
    }
}

/// A request for a fork of the whole session in its own directory. A busy session can be forked once it is idle.
fn plain_request(found: &Found) -> Request {
    let mut request = Request::of(found.session.clone());
    request.waits = matches!(found.session.view.state, State::Busy | State::Waiting);
    request
}

/// The best session that can be forked as requested. Each is planned before it is chosen; if its plan fails, it is
/// refused and the next one is tried.
pub(crate) fn choose(ctx: &Ctx, choices: &mut [Choice], request: impl Fn(&Found) -> Request) -> Option<usize> {
    let least = choices.first()?.found.score * AS_GOOD;
    let fitting = choices.iter_mut().enumerate().filter(|(_, choice)| choice.found.score >= least);
    for (at, choice) in fitting.filter(|(_, choice)| choice.can_fork()) {
        match plan::plan_fork(ctx, &request(&choice.found)) {
            Ok(_) => return Some(at),
            Err(error) => choice.can_fork = CanFork::No(error.into()),
        }
    }
    None
}
