//! The fork dialog, and the results of a fork.

use engine::{Forked, Method, Plan, Request, Session, SessionKey, TurnSummary, Where};

use super::chat;
use crate::keymap::Key;
use crate::workbench::event::{Effect, ErrorText};
use crate::workbench::fork_dialog::{ForkDialog, ForkField};
use crate::workbench::state::{Message, Popup, State};

/// How many turns a page of the picker has.
const PAGE: i64 = 10;

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
    let source = Box::new(request.source.clone());
    state.popup = Some(Popup::Fork(Box::new(ForkDialog::new(request, edit, workspace_is_chosen))));
    let mut effects = replan(state);
    effects.push(Effect::ReadTurns(source));
    effects
}

pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    if dialog.progress.is_some() {
        // It can be undone, but not stopped half-way.
        return Vec::new();
    }
    let is_turn = dialog.field == ForkField::Turn;
    match key {
        Key::Escape => {
            state.popup = None;
            return Vec::new();
        }
        Key::Enter => {
            let Some(Ok(plan)) = &dialog.plan else { return Vec::new() };
            let plan = plan.clone();
            let edit = dialog.edit.map(|turn| (turn, Box::new(dialog.request.source.clone())));
            (dialog.progress, dialog.failure) = (Some(String::new()), None);
            return vec![Effect::Fork { plan, edit }];
        }
        Key::Down | Key::Tab => {
            dialog.move_to(true);
            return Vec::new();
        }
        Key::Up | Key::BackTab => {
            dialog.move_to(false);
            return Vec::new();
        }
        Key::Left | Key::Right if dialog.text().is_some() => return Vec::new(),
        Key::Left => dialog.change(false),
        Key::Right => dialog.change(true),
        Key::PageUp if is_turn => dialog.choose_turn(i64::from(dialog.turn()) - PAGE),
        Key::PageDown if is_turn => dialog.choose_turn(i64::from(dialog.turn()) + PAGE),
        Key::Home if is_turn => dialog.choose_turn(1),
        Key::End if is_turn => dialog.choose_turn(i64::MAX),
        Key::Alt(letter @ ('m' | 'a' | 'c' | 'w')) => {
            let before = dialog.field;
            dialog.field = match letter {
                'm' => ForkField::Method,
                'a' => ForkField::Agent,
                'c' => ForkField::Changes,
                _ => ForkField::Workspace,
            };
            dialog.change(true);
            dialog.field = before;
        }
        _ => {
            // Letters are the name, unless another text is being typed.
            if dialog.text().is_none() && matches!(key, Key::Char(_)) {
                dialog.field = ForkField::Name;
            }
            let Some(text) = dialog.text() else { return Vec::new() };
            if !super::edit(text, key) {
                return Vec::new();
            }
            let home = state.home.clone();
            if let Err(trouble) = dialog.apply_text(&home) {
                dialog.plan = Some(Err(trouble));
                // The answer to what was asked before must not hide it.
                dialog.ticket = 0;
                return Vec::new();
            }
        }
    }
    replan(state)
}

pub(super) fn planned(
    state: &mut State,
    ticket: u64,
    plan: Result<Box<Plan>, ErrorText>,
    source: Session,
) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    if dialog.ticket != ticket {
        return Vec::new();
    }
    dialog.request.source = source;
    if plan.is_err() && !dialog.workspace_is_chosen && !dialog.waits_for_source() {
        // Not everybody works in a repository.
        (dialog.request.workspace, dialog.workspace_is_chosen) = (Where::Same, true);
        return replan(state);
    }
    // Once a worktree is possible, later errors are about something else.
    dialog.workspace_is_chosen |= plan.is_ok();
    dialog.plan = Some(plan);
    Vec::new()
}

/// The turns of the source were read.
pub(super) fn turns(state: &mut State, session: &SessionKey, turns: Vec<TurnSummary>) -> Vec<Effect> {
    if let Some(Popup::Fork(dialog)) = &mut state.popup
        && dialog.request.source.key() == *session
    {
        dialog.turns = turns;
    }
    Vec::new()
}

/// The sessions have changed. A source that was busy may be idle now.
pub(super) fn source_changed(state: &mut State) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    if dialog.progress.is_some() || !dialog.waits_for_source() {
        return Vec::new();
    }
    let key = dialog.request.source.key();
    let now = state.sessions.iter().flatten().find(|session| session.key() == key);
    let Some(now) = now.filter(|now| now.view != dialog.request.source.view) else { return Vec::new() };
    dialog.request.source = now.clone();
    replan(state)
}

/// A fork is under way.
pub(super) fn goes_on(state: &mut State, progress: String) -> Vec<Effect> {
    if let Some(Popup::Fork(dialog)) = &mut state.popup
        && dialog.progress.is_some()
    {
        dialog.progress = Some(progress);
    }
    Vec::new()
}

/// A fork failed, and nothing of it is left. The dialog offers to try again.
pub(super) fn failed(state: &mut State, trouble: ErrorText) -> Vec<Effect> {
    match &mut state.popup {
        Some(Popup::Fork(dialog)) => (dialog.progress, dialog.failure) = (None, Some(trouble)),
        _ => state.message = Some(Message::Failed(trouble)),
    }
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
    effects.extend(chat::open_new(state, *session, is_seeded));
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
