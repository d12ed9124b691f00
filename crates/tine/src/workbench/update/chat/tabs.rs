//! Opening, restoring, switching and closing tabs.

use engine::Session;
use engine::chat::Action as ChatAction;
use jiff::tz::TimeZone;
use transcript::Agent;

use super::super::refuse;
use crate::workbench::chat::{ChatTab, Driver};
use crate::workbench::event::Effect;
use crate::workbench::list::is_waiting;
use crate::workbench::state::{ChatChoice, Choose, Popup, Screen, State};

/// Shows the tab of a session, and creates it if needed.
pub(in crate::workbench::update) fn open(state: &mut State, session: Session) -> Vec<Effect> {
    let id = &session.view.id;
    let is_its = |tab: &&ChatTab| tab.agent == session.view.agent && tab.id.as_ref() == Some(id);
    if let Some(number) = state.tabs.iter().find(is_its).map(|tab| tab.number) {
        return show(state, number);
    }
    open_new(state, session, false)
}

/// Creates a tab for a session that has none, such as a new fork, and shows it.
pub(in crate::workbench::update) fn open_new(
    state: &mut State,
    session: Session,
    hides_acknowledgement: bool,
) -> Vec<Effect> {
    let number = add(state, |number, looks| ChatTab { hides_acknowledgement, ..ChatTab::of(number, session, looks) });
    let mut effects = read(state, number);
    effects.extend(follow(state, number));
    effects.extend(show(state, number));
    effects.push(remember(state));
    effects
}

/// The tabs that were open when the workbench was closed. Their agents are started by their next prompts.
pub(in crate::workbench::update) fn restored(state: &mut State, sessions: Vec<Session>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for session in sessions {
        let number = add(state, |number, looks| ChatTab::of(number, session, looks));
        effects.extend(read(state, number));
        effects.extend(follow(state, number));
    }
    effects
}

/// Follows a session that runs elsewhere.
fn follow(state: &mut State, number: u64) -> Vec<Effect> {
    match state.tab_mut(number).map(|tab| tab.driver == Driver::Pane) {
        Some(true) => super::start(state, number),
        _ => Vec::new(),
    }
}

/// Adds a tab and returns its number.
fn add(state: &mut State, new: impl FnOnce(u64, (bool, TimeZone)) -> ChatTab) -> u64 {
    let number = state.next_ticket();
    state.tabs.push(new(number, (state.color, state.zone.clone())));
    number
}

pub(super) fn remember(state: &State) -> Effect {
    Effect::RememberTabs(state.tabs.iter().filter_map(ChatTab::record).collect())
}

/// Shows a tab.
pub(in crate::workbench::update) fn show(state: &mut State, number: u64) -> Vec<Effect> {
    state.screen = Screen::Chat(number);
    state.popup = None;
    let width = state.size.0.saturating_sub(2);
    if let Some(tab) = state.chat_mut() {
        tab.has_news = false;
        let full = tab.full;
        tab.log.lay_out(width, full);
    }
    Vec::new()
}

/// Shows the list of sessions.
pub(in crate::workbench::update) fn show_sessions(state: &mut State) -> Vec<Effect> {
    state.screen = Screen::Sessions { filtering: false };
    vec![Effect::LoadSessions]
}

/// Reads a session's transcript for its tab.
pub(super) fn read(state: &mut State, number: u64) -> Vec<Effect> {
    let session = state.tab_mut(number).and_then(|tab| tab.session.clone());
    session.map(|session| read_as(state, number, session)).unwrap_or_default()
}

fn read_as(state: &mut State, number: u64, session: Session) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.size.0.saturating_sub(2);
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    tab.ticket = ticket;
    let (full, hide_acknowledgement) = (tab.full, tab.hides_acknowledgement);
    vec![Effect::ReadTab { ticket, session: Box::new(session), width, full, hide_acknowledgement }]
}

/// The terminal has another size.
pub(in crate::workbench::update) fn resized(state: &mut State) -> Vec<Effect> {
    let width = state.size.0.saturating_sub(2);
    let mut stale = Vec::new();
    for tab in &mut state.tabs {
        let full = tab.full;
        tab.log.lay_out(width, full);
        if tab.history.is_some() {
            stale.push(tab.number);
        }
    }
    // The history ends where it did, with the turn before the first live one.
    stale.into_iter().flat_map(|number| reread(state, number)).collect()
}

/// Lays the history out again. The turns since the tab was opened are in the log, so they are left out.
pub(super) fn reread(state: &mut State, number: u64) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    let (Some(session), Some(history)) = (tab.session.clone(), &tab.history) else { return Vec::new() };
    let mut session = session;
    // The history ended where the log began.
    session.view.turns = history.turns.last().map_or(0, |(turn, _)| *turn);
    read_as(state, number, session)
}

/// The next or previous tab. The list of sessions is the first.
pub(in crate::workbench::update) fn switch(state: &mut State, steps: isize) -> Vec<Effect> {
    let count = state.tabs.len() + 1;
    let now = match state.screen {
        Screen::Chat(number) => state.tabs.iter().position(|tab| tab.number == number).map_or(0, |place| place + 1),
        _ => 0,
    };
    let next = (now + count).saturating_add_signed(steps) % count;
    match next.checked_sub(1).and_then(|place| state.tabs.get(place)) {
        Some(tab) => {
            let number = tab.number;
            show(state, number)
        }
        None => show_sessions(state),
    }
}

/// The next chat or session that waits for the user.
pub(in crate::workbench::update) fn next_waiting(state: &mut State) -> Vec<Effect> {
    let now = match state.screen {
        Screen::Chat(number) => state.tabs.iter().position(|tab| tab.number == number),
        _ => None,
    };
    let start = now.map_or(0, |place| place + 1);
    let count = state.tabs.len();
    let waits = |place: &usize| !state.tabs[*place].requests.is_empty();
    if let Some(place) = (0..count).map(|step| (start + step) % count.max(1)).find(waits) {
        let number = state.tabs[place].number;
        return show(state, number);
    }
    let here = state.chat().and_then(|tab| tab.id.clone());
    let waiting: Vec<&Session> = state.sessions.iter().flatten().filter(|session| is_waiting(&session.view)).collect();
    let here = waiting.iter().position(|session| here.as_ref() == Some(&session.view.id));
    let next = here.map_or(0, |place| place + 1) % waiting.len().max(1);
    match waiting.get(next).map(|session| (*session).clone()) {
        Some(session) => open(state, session),
        None => refuse(state, "no session needs you", None),
    }
}

/// Asks for the agent of a new chat.
pub(in crate::workbench::update) fn new_chat(state: &mut State) -> Vec<Effect> {
    let is_missing = |agent: Agent| state.agents.as_ref().is_some_and(|found| !found.contains(&agent));
    let label = |agent: Agent| match is_missing(agent) {
        true => format!("{} (not installed)", agent.product_name()),
        false => agent.product_name().to_owned(),
    };
    let values = Agent::ALL.map(|agent| (agent.to_string(), label(agent))).to_vec();
    let last = state.chat().map(|tab| tab.agent).or_else(|| state.selection().map(|session| session.view.agent));
    let selected = last.and_then(|agent| Agent::ALL.iter().position(|other| *other == agent)).unwrap_or(0);
    state.popup = Some(Popup::Choose(Box::new(Choose { tab: 0, what: ChatChoice::Agent, values, selected })));
    Vec::new()
}

/// Something was chosen.
pub(in crate::workbench::update) fn chosen(state: &mut State) -> Vec<Effect> {
    let Some(Popup::Choose(choose)) = state.popup.take() else { return Vec::new() };
    let Choose { tab, what, values, selected } = *choose;
    let Some((value, _)) = values.into_iter().nth(selected) else { return Vec::new() };
    match what {
        ChatChoice::Agent => {
            let agent = Agent::ALL.into_iter().find(|agent| agent.as_str() == value).unwrap_or(Agent::ALL[0]);
            let directory = state.directory.clone();
            let label = format!("new {agent}");
            let number = add(state, |number, looks| ChatTab::new(number, agent, label, directory, looks));
            show(state, number)
        }
        ChatChoice::Model | ChatChoice::Mode => {
            let action =
                if what == ChatChoice::Model { ChatAction::SetModel(value) } else { ChatAction::SetMode(value) };
            vec![Effect::Act { tab, action }]
        }
    }
}

pub(super) fn close(state: &mut State) -> Vec<Effect> {
    let Some(place) = state.tabs.iter().position(|tab| state.screen.is_chat(tab.number)) else { return Vec::new() };
    let tab = state.tabs.remove(place);
    let next = state.tabs.get(place.min(state.tabs.len().saturating_sub(1))).map(|tab| tab.number);
    let mut effects = match next {
        Some(number) => show(state, number),
        None => show_sessions(state),
    };
    effects.push(Effect::CloseChat { tab: tab.number });
    effects.push(remember(state));
    effects
}
