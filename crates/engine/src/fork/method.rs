//! Chooses the method for a request, with a reason.

use agents::Feature;
use transcript::{Agent, DefectKind};

use super::{Method, Place, Request, Workspace, WorkspaceKind};
use crate::ctx::Ctx;
use crate::fork::{Error, Result};
use crate::program;
use crate::run;

/// The requested method, or one that supports everything; with the reason in one sentence.
pub(super) fn choose_method(
    ctx: &Ctx,
    request: &Request,
    agent: Agent,
    whole: bool,
    workspace: &Workspace,
) -> Result<(Method, String)> {
    let source = &request.source.view;
    let native = &agents::about(agent).native_fork;
    let limit = agents::about(agent).limit(Feature::NativeFork);
    let other = agent != source.agent;
    let is_old = request.source.details.defects.count(DefectKind::OldFormat) > 0;
    match request.method {
        Some(method @ (Method::Native | Method::Copy)) if other => {
            Err(Error::OtherAgent { from: source.agent, to: agent, method: method.as_str() })
        }
        Some(Method::Seed) => Ok((Method::Seed, "requested".into())),
        Some(Method::Translate) if !other => Err(Error::TranslateSameAgent(agent)),
        Some(Method::Translate) => Ok((Method::Translate, "requested".into())),
        None if other => {
            let to = agent.product_name();
            Ok((Method::Translate, format!("{to} gets the conversation in its own format")))
        }
        Some(Method::Native | Method::Copy) if is_old => Err(run::Error::OldFormat(agent).into()),
        None if is_old => {
            let agent = agent.product_name();
            Ok((Method::Seed, format!("{agent} no longer reads this session's format, so it receives the transcript")))
        }
        Some(Method::Native) if limit.is_some() => {
            let what = format!("{} can't fork this by itself: {}", agent.product_name(), limit.unwrap_or_default());
            Err(Error::NativeDiffers { agent, what })
        }
        // Earlier turns would be missing, and turns would be counted from there.
        Some(Method::Native) if !native.keeps_compacted && request.source.details.compacted => {
            let what = "the agent's own fork drops the turns before a compaction".to_owned();
            Err(Error::NativeDiffers { agent, what })
        }
        Some(Method::Native) if request.source.details.tip.is_some() => {
            let what = "the agent's own fork cannot follow another branch".to_owned();
            Err(Error::NativeDiffers { agent, what })
        }
        Some(Method::Native) if !native.keeps_gaps && has_gaps(request) => {
            let what = "the agent's own fork drops everything before a gap in the history".to_owned();
            Err(Error::NativeDiffers { agent, what })
        }
        Some(Method::Native) if request.source.details.tip_differs => {
            let what = "the agent's own fork continues from the last record of the file and loses the conversation";
            Err(Error::NativeDiffers { agent, what: what.to_owned() })
        }
        Some(Method::Native) => Ok((Method::Native, "requested".into())),
        Some(Method::Copy) => Ok((Method::Copy, "requested".into())),
        None => Ok(best_method(ctx, request, agent, whole, workspace)),
    }
}

fn best_method(ctx: &Ctx, request: &Request, agent: Agent, whole: bool, workspace: &Workspace) -> (Method, String) {
    let is_about_to_run = match request.place {
        Place::Here | Place::In(_) => true,
        Place::Headless => request.prompt.is_some(),
        Place::None => false,
    };
    let copy = |why: &str| (Method::Copy, why.to_owned());
    match workspace.kind {
        _ if !whole => copy("a copy can be cut at any turn"),
        _ if request.source.details.tip.is_some() => copy("a copy can follow another branch of the session"),
        WorkspaceKind::Same if request.source.details.compacted => copy("a copy keeps the turns before a compaction"),
        WorkspaceKind::Same if request.source.details.disordered => {
            copy("a copy reorders records that the agent wrote out of order and might not read")
        }
        WorkspaceKind::Same if has_gaps(request) => copy("a copy keeps the records before a gap in the history"),
        WorkspaceKind::Same if request.source.details.tip_differs => {
            copy("a copy continues from the last message, which the agent itself doesn't find")
        }
        WorkspaceKind::Same if agents::about(agent).limit(Feature::NativeFork).is_some() => {
            copy("a copy is safer than the agent's own fork")
        }
        WorkspaceKind::Same if !is_about_to_run => copy("a copy does not need to start the agent"),
        WorkspaceKind::Same if program::program(ctx, agent).is_err() => {
            copy("a copy does not need the agent to be installed")
        }
        WorkspaceKind::Same => {
            (Method::Native, "the agent is about to run, and its own fork supports everything requested".into())
        }
        _ => copy("a copy can work in another directory"),
    }
}

/// Whether records name parents that are missing.
fn has_gaps(request: &Request) -> bool {
    request.source.details.defects.count(DefectKind::BrokenLink) > 0
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 4] = [Method::Native, Method::Copy, Method::Translate, Method::Seed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Native => "native",
            Method::Copy => "copy",
            Method::Translate => "translate",
            Method::Seed => "seed",
        }
    }
}
