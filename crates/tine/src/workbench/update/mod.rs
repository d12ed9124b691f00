//! How an event changes the state. Pure: side effects are returned.

mod chat;
mod fork;
mod mouse;
mod popup;
mod search;
mod sessions;
mod transcript;

use crate::keymap::{Action, Context};
use crate::workbench::chat::Driver;
pub(super) use popup::palette_actions;

use super::event::{Effect, ErrorText, Event};
use super::state::{Message, Popup, Screen, State};
use crate::keymap::{Key, Keymap};

/// Handles an event and returns its effects.
pub(crate) fn update(state: &mut State, event: Event) -> Vec<Effect> {
    // An event that changes nothing on the screen must not draw it, so that an idle workbench costs nothing.
    let is_quiet = matches!(event, Event::Ignored | Event::SessionsChanged | Event::Sessions(..));
    state.is_stale |= !is_quiet;
    match event {
        Event::Key(key) => pressed(state, key),
        Event::Mouse(mouse) => mouse::moved(state, mouse),
        Event::Paste(text) => pasted(state, &text),
        Event::Resize(width, height) => {
            state.resize((width, height));
            state.arrange();
            let mut effects = sessions::preview(state);
            effects.extend(transcript::lay_out_all(state));
            effects.extend(chat::resized(state));
            effects
        }
        Event::Configured(config) => {
            match Keymap::new(&config.keys) {
                Ok(keymap) => state.keymap = keymap,
                Err(error) => drop(refuse(state, format!("cannot use the configured keys: {error}"), None)),
            }
            state.mouse = config.mouse;
            vec![Effect::SetMouse(config.mouse)]
        }
        Event::Sessions(sessions, project) => {
            state.is_loading = false;
            if !state.take_sessions(sessions, project) {
                return Vec::new();
            }
            state.is_stale = true;
            let mut effects = sessions::preview(state);
            effects.extend(fork::source_changed(state));
            effects
        }
        Event::Agents(agents) => {
            state.agents = Some(agents);
            Vec::new()
        }
        Event::SessionsChanged if state.is_loading => Vec::new(),
        Event::SessionsChanged => {
            state.is_loading = true;
            vec![Effect::LoadSessions]
        }
        Event::Minute => Vec::new(),
        Event::Terminated => vec![Effect::Quit],
        Event::Page { ticket, wish, page } => transcript::arrived(state, ticket, wish, page.map(|page| *page)),
        Event::LaidOut { ticket, layouts } => {
            let height = state.body_height();
            if let Some(reader) = transcript::reader_of(state, ticket) {
                reader.take_layouts(layouts, height);
            }
            Vec::new()
        }
        Event::Highlighted => transcript::lay_out_all(state),
        Event::Found { ticket, hits, notices, complete } => search::found(state, ticket, hits, notices, complete),
        Event::Planned { ticket, plan, source } => fork::planned(state, ticket, plan, *source),
        Event::Turns { session, turns } => fork::turns(state, &session, turns),
        Event::Forking(progress) => fork::goes_on(state, progress),
        Event::ForkFailed(trouble) => fork::failed(state, trouble),
        Event::Forked { forked, session, prompt } => fork::forked(state, &forked, session, prompt),
        Event::Done(text) => {
            state.message = Some(Message::Done(text));
            vec![Effect::LoadSessions]
        }
        Event::Failed(trouble) => {
            state.message = Some(Message::Failed(trouble));
            Vec::new()
        }
        Event::Ran { words, success, output } => popup::ran(state, &words, success, &output),
        Event::Chat { tab, event } => chat::apply_event(state, tab, event),
        Event::ChatOpened { tab, name, follows } => chat::opened(state, tab, name, follows),
        Event::ChatClosed { tab } => chat::closed(state, tab),
        Event::ChatFailed { tab, trouble } => {
            if let Some(tab) = state.tab_mut(tab) {
                tab.failed(trouble);
            }
            Vec::new()
        }
        Event::TabSession { tab, session } => chat::refreshed(state, tab, session.map(|session| *session)),
        Event::TabHistory { ticket, document, prompts } => {
            if let Some(tab) = state.tabs.iter_mut().find(|tab| tab.ticket == ticket) {
                if tab.history.is_none() {
                    prompts.into_iter().for_each(|prompt| tab.prompt.remember(prompt));
                }
                tab.history = Some(document);
            }
            Vec::new()
        }
        Event::Tabs(sessions) => chat::restored(state, sessions),
        Event::Changed(path) => transcript::changed(state, &path),
        Event::Taken(text) => vec![Effect::Copy(text)],
        Event::Copied { lines, program } => {
            state.message = Some(Message::Done(format!("copied {} to {program}", count_lines(lines))));
            Vec::new()
        }
        Event::NotCopied(text) => {
            // Nothing tells whether the terminal took it.
            let lines = count_lines(text.lines().count());
            state.message = Some(Message::Done(format!("sent {lines} to the terminal's clipboard")));
            vec![Effect::TerminalClipboard(text)]
        }
        Event::CommandCompletions { words, choices } => popup::completed(state, &words, choices),
        Event::Completions { tab, word, choices } => {
            if let Some(tab) = state.tab_mut(tab)
                && tab.prompt.word().as_deref() == Some(word.as_str())
            {
                tab.prompt.offer(word, choices);
            }
            Vec::new()
        }
        Event::Picture { tab, image } => {
            if let Some(tab) = state.tab_mut(tab) {
                tab.prompt.images.push(image);
            }
            Vec::new()
        }
        Event::Edited { tab, text } => {
            if let Some(tab) = state.tab_mut(tab) {
                tab.prompt.set(&text);
            }
            Vec::new()
        }
        Event::Returned { tab } => chat::returned(state, tab),
        Event::Ignored => Vec::new(),
    }
}

fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    state.message = None;
    state.may_leave = std::mem::take(&mut state.is_leaving);
    // It works in dialogs and text fields, too.
    if !matches!(key, Key::Char(_)) && state.keymap.action(state.context(), key) == Some(Action::Quit) {
        return leave(state);
    }
    if state.popup.is_some() {
        return popup::pressed(state, key);
    }
    match &state.screen {
        Screen::Sessions { filtering: true } => sessions::filter(state, key),
        Screen::Transcript(reader) if matches!(reader.find, Some((_, true))) => transcript::finding(state, key),
        Screen::Sessions { .. } | Screen::Transcript(_) => bound(state, key),
        Screen::Search(_) => search::pressed(state, key),
        Screen::Chat(_) => chat::pressed(state, key),
    }
}

/// Leaves the workbench. Busy agents would end with it, so that needs the key twice.
fn leave(state: &mut State) -> Vec<Effect> {
    let count = state.tabs.iter().filter(|tab| !tab.is_settled() && tab.driver == Driver::Stream).count();
    if count == 0 || state.may_leave {
        return vec![Effect::Quit];
    }
    state.is_leaving = true;
    let message = if count == 1 { "an agent is busy" } else { "some agents are busy" };
    refuse(state, message, Some("again: leave and end what they are doing"))
}

/// Carries out the action of a key.
fn bound(state: &mut State, key: Key) -> Vec<Effect> {
    match state.keymap.action(state.context(), key) {
        Some(action) => perform(state, action),
        None => Vec::new(),
    }
}

/// Carries out an action, wherever it comes from.
pub(crate) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => leave(state),
        Action::Help => {
            state.popup = Some(Popup::Help);
            Vec::new()
        }
        Action::Palette => popup::open_palette(state, ""),
        Action::CommandLine => popup::open_palette(state, ":"),
        Action::NextTab => chat::switch(state, 1),
        Action::PreviousTab => chat::switch(state, -1),
        Action::NextWaiting => chat::next_waiting(state),
        Action::NewChat => chat::new_chat(state),
        Action::Mouse => mouse::switch(state),
        _ => perform_here(state, action),
    }
}

fn perform_here(state: &mut State, action: Action) -> Vec<Effect> {
    match crate::keymap::info(action).context {
        Context::Everywhere => Vec::new(),
        Context::Sessions => sessions::perform(state, action),
        Context::Transcript => transcript::perform(state, action),
        Context::Search => search::perform(state, action),
        Context::Chat => chat::perform(state, action),
        Context::Request => chat::answer(state, action),
    }
}

/// Pasted text goes where typed text would go. Elsewhere it is ignored instead of running as commands.
fn pasted(state: &mut State, text: &str) -> Vec<Effect> {
    if state.popup.is_none() && matches!(state.screen, Screen::Chat(_)) {
        return chat::pasted(state, text);
    }
    let takes_text = match (&state.popup, &state.screen) {
        (Some(Popup::Fork(_) | Popup::Rename { .. }), _) => true,
        (Some(_), _) => false,
        (None, Screen::Sessions { filtering }) => *filtering,
        (None, Screen::Search(_)) => true,
        (None, Screen::Transcript(_) | Screen::Chat(_)) => false,
    };
    if !takes_text {
        return Vec::new();
    }
    text.chars().filter(|c| !c.is_control()).flat_map(|c| pressed(state, Key::Char(c))).collect()
}

/// Edits a line of text at its end. Returns whether the key was used.
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

fn count_lines(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}

/// Shows why something isn't possible now.
fn refuse(state: &mut State, message: impl Into<String>, hint: Option<&str>) -> Vec<Effect> {
    state.message = Some(Message::Failed(ErrorText { message: message.into(), hint: hint.map(str::to_owned) }));
    Vec::new()
}
