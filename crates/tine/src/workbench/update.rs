//! How an event changes the state. Pure: side effects are returned.

use engine::{Request, Where};
use transcript::{Agent, SessionName};

use super::event::{Effect, Event, Trouble};
use super::keys::Key;
use super::state::{ForkDialog, Message, Popup, Reader, Scope, Screen, SearchState, State};

/// Handles an event and returns its effects.
pub(crate) fn update(state: &mut State, event: Event) -> Vec<Effect> {
    match event {
        Event::Key(key) => pressed(state, key),
        Event::Paste(text) => text.chars().filter(|c| !c.is_control()).flat_map(|c| pressed_text(state, c)).collect(),
        Event::Resize(width, height) => {
            state.resize((width, height));
            state.arrange();
            let mut effects = preview(state);
            effects.extend(reread(state));
            effects
        }
        Event::Sessions(sessions, project) => {
            (state.sessions, state.project) = (Some(sessions), project);
            state.arrange();
            preview(state)
        }
        Event::Transcript { ticket, document } => {
            let height = state.body_height();
            let readers = [state.preview.as_mut(), reader(&mut state.screen)];
            for reader in readers.into_iter().flatten().filter(|reader| reader.ticket == ticket) {
                let turn = reader.chosen.or(document.turns.last().map(|(turn, _)| *turn));
                reader.document = Some(document.clone());
                if let Some(turn) = turn {
                    reader.show(turn, height);
                }
            }
            Vec::new()
        }
        Event::Found { ticket, hits, complete } => {
            if let Screen::Search(search) = &mut state.screen
                && search.ticket == ticket
            {
                search.selected = search.selected.min(hits.len().saturating_sub(1));
                (search.hits, search.is_running) = (hits, !complete);
            }
            Vec::new()
        }
        Event::Planned { ticket, plan } => {
            let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
            if dialog.ticket != ticket {
                return Vec::new();
            }
            if plan.is_err() && !dialog.workspace_is_chosen {
                // Not everybody works in a repository.
                (dialog.request.workspace, dialog.workspace_is_chosen) = (Where::Same, true);
                return replan(state);
            }
            dialog.plan = Some(plan);
            Vec::new()
        }
        Event::Forked(forked) => {
            let name = forked.plan.name.as_str().to_owned();
            state.popup = None;
            state.message = Some(Message::Done(format!("forked as {name}; u undoes it")));
            vec![Effect::LoadSessions]
        }
        Event::Done(text) => {
            state.message = Some(Message::Done(text));
            vec![Effect::LoadSessions]
        }
        Event::Failed(trouble) => {
            state.message = Some(Message::Failed(trouble));
            Vec::new()
        }
        Event::Ignored => Vec::new(),
    }
}

fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    if key == Key::Ctrl('c') {
        return vec![Effect::Quit];
    }
    state.message = None;
    match (&mut state.popup, &mut state.screen) {
        (Some(Popup::Help), _) => {
            state.popup = None;
            Vec::new()
        }
        (Some(Popup::Fork(_)), _) => fork_dialog(state, key),
        (Some(Popup::Rename { .. }), _) => rename_dialog(state, key),
        (None, Screen::Sessions { filtering: true }) => filter(state, key),
        (None, Screen::Sessions { .. }) => sessions(state, key),
        (None, Screen::Transcript(_)) => transcript(state, key),
        (None, Screen::Search(_)) => search(state, key),
    }
}

/// Pasted text goes where letters would go; elsewhere it is no row of commands.
fn pressed_text(state: &mut State, c: char) -> Vec<Effect> {
    let takes_text = match (&state.popup, &state.screen) {
        (Some(Popup::Help), _) => false,
        (Some(_), _) => true,
        (None, Screen::Sessions { filtering }) => *filtering,
        (None, Screen::Search(_)) => true,
        (None, Screen::Transcript(_)) => false,
    };
    if takes_text { pressed(state, Key::Char(c)) } else { Vec::new() }
}

fn sessions(state: &mut State, key: Key) -> Vec<Effect> {
    let page = state.body_height() as isize;
    match key {
        Key::Char('q') | Key::Escape if state.filter.is_empty() => return vec![Effect::Quit],
        Key::Escape => {
            state.filter.clear();
            state.arrange();
        }
        Key::Down | Key::Char('j') => state.select(1),
        Key::Up | Key::Char('k') => state.select(-1),
        Key::PageDown => state.select(page),
        Key::PageUp => state.select(-page),
        Key::Home | Key::Char('g') => state.select(isize::MIN),
        Key::End | Key::Char('G') => state.select(isize::MAX),
        Key::Char('/') => {
            state.screen = Screen::Search(SearchState::default());
            return Vec::new();
        }
        Key::Char('i') => state.screen = Screen::Sessions { filtering: true },
        Key::Tab => {
            state.scope = if state.scope == Scope::Here { Scope::Everywhere } else { Scope::Here };
            state.arrange();
        }
        Key::Char('a') => {
            state.agent = next_agent(state.agent);
            state.arrange();
        }
        Key::Enter => return open(state, None),
        Key::Char('f') | Key::Alt('F') => {
            return state
                .selection()
                .cloned()
                .map(|session| open_fork(state, Request::of(session)))
                .unwrap_or_default();
        }
        Key::Char('r') => {
            let session = state.selection().cloned();
            state.popup = session.map(|session| {
                let name = session.view.name.as_ref().map(ToString::to_string).unwrap_or_default();
                Popup::Rename { session: Box::new(session), name }
            });
        }
        Key::Char('u') => return vec![Effect::Undo],
        Key::Ctrl('l') => return vec![Effect::LoadSessions],
        Key::Char('?') | Key::Function(1) => state.popup = Some(Popup::Help),
        _ => {}
    }
    preview(state)
}

fn filter(state: &mut State, key: Key) -> Vec<Effect> {
    match key {
        Key::Enter => state.screen = Screen::Sessions { filtering: false },
        Key::Escape => {
            state.filter.clear();
            state.screen = Screen::Sessions { filtering: false };
        }
        Key::Down => state.select(1),
        Key::Up => state.select(-1),
        _ if edit(&mut state.filter, key) => {}
        _ => return Vec::new(),
    }
    state.arrange();
    preview(state)
}

fn transcript(state: &mut State, key: Key) -> Vec<Effect> {
    let height = state.body_height();
    let page = height as isize;
    let Screen::Transcript(reader) = &mut state.screen else { return Vec::new() };
    match key {
        Key::Char('q') | Key::Escape => state.screen = Screen::Sessions { filtering: false },
        Key::Down | Key::Char('j') => reader.scroll(1, height),
        Key::Up | Key::Char('k') => reader.scroll(-1, height),
        Key::PageDown | Key::Char(' ') => reader.scroll(page, height),
        Key::PageUp => reader.scroll(-page, height),
        Key::Home | Key::Char('g') => reader.scroll(isize::MIN, height),
        Key::End | Key::Char('G') => reader.scroll(isize::MAX, height),
        Key::Char(']') | Key::Char('n') => reader.jump(true, height),
        Key::Char('[') | Key::Char('p') => reader.jump(false, height),
        Key::Char('t') => {
            reader.full = !reader.full;
            reader.chosen = reader.turn();
            return reread(state);
        }
        Key::Char('f') | Key::Alt('F') => {
            let request = Request { turns: reader.turn(), ..Request::of(reader.session.clone()) };
            return open_fork(state, request);
        }
        Key::Char('?') | Key::Function(1) => state.popup = Some(Popup::Help),
        _ => {}
    }
    Vec::new()
}

fn search(state: &mut State, key: Key) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    match key {
        Key::Escape => {
            state.screen = Screen::Sessions { filtering: false };
            Vec::new()
        }
        Key::Down => {
            search.selected = (search.selected + 1).min(search.hits.len().saturating_sub(1));
            Vec::new()
        }
        Key::Up => {
            search.selected = search.selected.saturating_sub(1);
            Vec::new()
        }
        Key::Enter => open(state, None),
        Key::Alt('F') => {
            let hit = search.hits.get(search.selected).cloned();
            let request = hit.map(|hit| Request { turns: Some(hit.turn), ..Request::of(hit.session) });
            request.map(|request| open_fork(state, request)).unwrap_or_default()
        }
        Key::Function(1) => {
            state.popup = Some(Popup::Help);
            Vec::new()
        }
        _ if edit(&mut search.query, key) => {
            search.selected = 0;
            let query = search.query.trim().to_owned();
            search.is_running = !query.is_empty();
            if query.is_empty() {
                search.hits.clear();
            }
            let ticket = state.next_ticket();
            if let Screen::Search(search) = &mut state.screen {
                search.ticket = ticket;
            }
            if query.is_empty() { Vec::new() } else { vec![Effect::Search { ticket, query }] }
        }
        _ => Vec::new(),
    }
}

fn fork_dialog(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    let turns = dialog.request.source.view.turns;
    match key {
        Key::Escape => {
            state.popup = None;
            return Vec::new();
        }
        Key::Enter => {
            return match &dialog.plan {
                Some(Ok(plan)) => vec![Effect::Fork(plan.clone())],
                _ => Vec::new(),
            };
        }
        Key::Up | Key::Left => {
            let at = dialog.request.turns.unwrap_or(turns);
            dialog.request.turns = Some(at.saturating_sub(1).max(1));
        }
        Key::Down | Key::Right => {
            let at = dialog.request.turns.unwrap_or(turns) + 1;
            dialog.request.turns = (at < turns).then_some(at);
        }
        Key::Tab => {
            dialog.workspace_is_chosen = true;
            dialog.request.workspace = match &dialog.request.workspace {
                Where::Same => Where::Worktree { branch: None, base: None },
                _ => Where::Same,
            };
        }
        Key::Alt('c') => dialog.request.carry = !dialog.request.carry,
        Key::Alt('a') => {
            let now = dialog.request.agent.unwrap_or(dialog.request.source.view.agent);
            dialog.request.agent = next_agent(Some(now)).or_else(|| next_agent(None));
        }
        _ if edit(&mut dialog.name, key) => match SessionName::new(dialog.name.clone()) {
            Ok(name) => dialog.request.name = Some(name),
            Err(_) if dialog.name.is_empty() => dialog.request.name = None,
            Err(error) => {
                dialog.plan = Some(Err(Trouble { message: error.to_string(), hint: None }));
                return Vec::new();
            }
        },
        _ => return Vec::new(),
    }
    replan(state)
}

fn rename_dialog(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(Popup::Rename { session, name }) = &mut state.popup else { return Vec::new() };
    match key {
        Key::Escape => state.popup = None,
        Key::Enter => match SessionName::new(name.clone()) {
            Ok(name) => {
                let effect = Effect::Rename(session.clone(), name);
                state.popup = None;
                return vec![effect];
            }
            Err(error) => {
                state.message = Some(Message::Failed(Trouble { message: error.to_string(), hint: None }));
            }
        },
        _ => drop(edit(name, key)),
    }
    Vec::new()
}

/// Opens the selected session, or the hit of a search at its turn.
fn open(state: &mut State, turn: Option<u32>) -> Vec<Effect> {
    let (session, chosen) = match &state.screen {
        Screen::Search(search) => match search.hits.get(search.selected) {
            Some(hit) => (hit.session.clone(), Some(hit.turn)),
            None => return Vec::new(),
        },
        _ => match state.selection() {
            Some(session) => (session.clone(), turn),
            None => return Vec::new(),
        },
    };
    let reader = Reader { session, document: None, top: 0, full: false, chosen, ticket: 0 };
    state.screen = Screen::Transcript(Box::new(reader));
    reread(state)
}

/// Lays the open transcript out again.
fn reread(state: &mut State) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.size.0.saturating_sub(2);
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    reader.ticket = ticket;
    vec![Effect::Read { ticket, session: Box::new(reader.session.clone()), width, full: reader.full }]
}

/// Reads the selected session for the preview, unless it is loaded.
fn preview(state: &mut State) -> Vec<Effect> {
    let Some(session) = state.selection().filter(|_| state.has_preview()).cloned() else {
        state.preview = None;
        return Vec::new();
    };
    let is_same =
        |reader: &Reader| reader.session.key() == session.key() && reader.session.view.updated == session.view.updated;
    if state.preview.as_ref().is_some_and(is_same) {
        return Vec::new();
    }
    let ticket = state.next_ticket();
    let width = (state.size.0 - state.list_width()).saturating_sub(3);
    let boxed = Box::new(session.clone());
    state.preview = Some(Reader { session, document: None, top: 0, full: false, chosen: None, ticket });
    vec![Effect::Read { ticket, session: boxed, width, full: false }]
}

fn open_fork(state: &mut State, request: Request) -> Vec<Effect> {
    let turns = request.turns.filter(|turns| *turns < request.source.view.turns);
    let request = Request { turns, workspace: Where::Worktree { branch: None, base: None }, ..request };
    let dialog = ForkDialog { request, name: String::new(), plan: None, ticket: 0, workspace_is_chosen: false };
    state.popup = Some(Popup::Fork(Box::new(dialog)));
    replan(state)
}

fn replan(state: &mut State) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let Some(Popup::Fork(dialog)) = &mut state.popup else { return Vec::new() };
    (dialog.ticket, dialog.plan) = (ticket, None);
    vec![Effect::Plan { ticket, request: Box::new(dialog.request.clone()) }]
}

fn reader(screen: &mut Screen) -> Option<&mut Reader> {
    match screen {
        Screen::Transcript(reader) => Some(reader),
        _ => None,
    }
}

/// All agents in turn, then none in particular.
fn next_agent(agent: Option<Agent>) -> Option<Agent> {
    let place = agent.and_then(|agent| Agent::ALL.iter().position(|other| *other == agent));
    Agent::ALL.get(place.map_or(0, |place| place + 1)).copied()
}

/// Edits a line of text at its end. Whether the key was one for that.
fn edit(text: &mut String, key: Key) -> bool {
    match key {
        Key::Char(c) => text.push(c),
        Key::Backspace => drop(text.pop()),
        Key::Ctrl('u') => text.clear(),
        Key::Ctrl('w') => {
            let kept = text.trim_end().rfind(char::is_whitespace).map_or(0, |space| space + 1);
            text.truncate(kept);
        }
        _ => return false,
    }
    true
}
