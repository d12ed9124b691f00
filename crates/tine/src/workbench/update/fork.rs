//! The fork dialog, and the results of a fork.

use std::path::PathBuf;

use engine::{Forked, Method, Plan, Request, Session, Where};
use transcript::SessionName;

use super::{chat, sessions};
use crate::keymap::Key;
use crate::workbench::event::{Effect, ErrorText};
use crate::workbench::state::{ForkDialog, Message, Popup, State};

/// Opens the dialog. `edit` is the turn whose prompt the user changes in the fork.
pub(super) fn open(state: &mut State, request: Request, edit: Option<u32>) -> Vec<Effect> {
    let request = Request { workspace: Where::Worktree { branch: None, base: None }, ..request };
    open_with(state, request, edit, false)
}

/// The same with a chosen workspace.
pub(super) fn open_with(
    state: &mut State,
    request: Request,
    edit: Option<u32>,
    workspace_is_chosen: bool,
) -> Vec<Effect> {
    let turns = request.turns.filter(|turns| *turns < request.source.view.turns);
    let request = Request { turns, ..request };
    let dialog = ForkDialog {
        prompt: None,
        request,
        name: String::new(),
        plan: None,
        ticket: 0,
        workspace_is_chosen,
        edit,
        is_running: false,
    };
    state.popup = Some(Popup::Fork(Box::new(dialog)));
    replan(state)
}

pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    if dialog.is_running {
        // It can be undone, but not stopped half-way.
        return Vec::new();
    }
    let turns = dialog.request.source.view.turns;
    match key {
        Key::Escape => {
            state.popup = None;
            return Vec::new();
        }
        Key::Enter => {
            let Some(Ok(plan)) = &dialog.plan else { return Vec::new() };
            let plan = plan.clone();
            let edit = dialog.edit.map(|turn| (turn, Box::new(dialog.request.source.clone())));
            dialog.is_running = true;
            return vec![Effect::Fork { plan, edit }];
        }
        Key::Up | Key::Left => {
            let at = dialog.request.turns.unwrap_or(turns);
            dialog.request.turns = Some(at.saturating_sub(1).max(1));
            dialog.edit = None;
        }
        Key::Down | Key::Right => {
            let at = dialog.request.turns.unwrap_or(turns) + 1;
            dialog.request.turns = (at < turns).then_some(at);
            dialog.edit = None;
        }
        Key::Tab => {
            dialog.workspace_is_chosen = true;
            dialog.request.workspace = match &dialog.request.workspace {
                Where::Same => Where::Worktree { branch: None, base: None },
                Where::Worktree { .. } => Where::Copy(PathBuf::new()),
                _ => Where::Same,
            };
        }
        Key::Alt('c') => dialog.request.carry = !dialog.request.carry,
        Key::Alt('m') => {
            dialog.request.method = match dialog.request.method {
                None => Some(Method::Copy),
                Some(Method::Copy) => Some(Method::Native),
                Some(Method::Native) => Some(Method::Seed),
                Some(_) => None,
            };
        }
        Key::Alt('a') => {
            let now = dialog.request.agent.unwrap_or(dialog.request.source.view.agent);
            dialog.request.agent = sessions::next_agent(Some(now)).or_else(|| sessions::next_agent(None));
        }
        _ if super::edit(&mut dialog.name, key) => match SessionName::new(dialog.name.clone()) {
            Ok(name) => dialog.request.name = Some(name),
            Err(_) if dialog.name.is_empty() => dialog.request.name = None,
            Err(error) => {
                dialog.plan = Some(Err(ErrorText { message: error.to_string(), hint: None }));
                return Vec::new();
            }
        },
        _ => return Vec::new(),
    }
    replan(state)
}

pub(super) fn planned(
    state: &mut State,
    ticket: u64,
    plan: Result<Box<Plan>, ErrorText>,
    prompt: Option<String>,
) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    if dialog.ticket != ticket {
        return Vec::new();
    }
    if plan.is_err() && !dialog.workspace_is_chosen {
        // Not everybody works in a repository.
        (dialog.request.workspace, dialog.workspace_is_chosen) = (Where::Same, true);
        return replan(state);
    }
    (dialog.plan, dialog.prompt) = (Some(plan), prompt);
    Vec::new()
}

/// A fork was created: opens a tab for it.
pub(super) fn forked(
    state: &mut State,
    forked: &Forked,
    session: Option<Box<Session>>,
    prompt: Option<String>,
) -> Vec<Effect> {
    state.popup = None;
    let is_seeded = forked.plan.method == Method::Seed;
    let mut effects = vec![Effect::LoadSessions];
    let Some(session) = session else {
        state.message = Some(Message::Done(format!("forked as {}; u undoes it", forked.plan.name)));
        return effects;
    };
    effects.extend(chat::open_fork(state, *session, is_seeded));
    if let Some(tab) = state.chat_mut() {
        tab.note = Some(match is_seeded {
            true => "Fork created; context injected; waiting for your next prompt.".to_owned(),
            false => "Fork created; waiting for your next prompt.".to_owned(),
        });
        if let Some(prompt) = prompt {
            tab.prompt.set(&prompt);
        }
    }
    effects
}

fn replan(state: &mut State) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    (dialog.ticket, dialog.plan) = (ticket, None);
    vec![Effect::Plan { ticket, request: Box::new(dialog.request.clone()) }]
}
