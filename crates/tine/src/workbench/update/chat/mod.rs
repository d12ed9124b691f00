//! Chats in tabs: opening them, writing in them, and answering their agents' requests.

mod request;
mod tabs;

use engine::chat::{Action as ChatAction, ChatEvent, Prompt};
use engine::{ChatRequest, LaunchRequest, Request, Session};
use transcript::SessionName;

pub(super) use self::request::answer;
use self::request::pressed_in_request;
pub(super) use self::tabs::{
    chosen, new_chat, next_waiting, open, open_new, resized, restored, show, show_sessions, switch,
};
use self::tabs::{close, read, remember, reread};
use super::fork;
use crate::keymap::Key;
use crate::keymap::{Action, Context};
use crate::workbench::chat::{ChatTab, Driver, Followup, Log, PendingFork};
use crate::workbench::event::Effect;
use crate::workbench::state::{ChatChoice, Choose, Message, Popup, Screen, State};

/// A key in a chat: for the agent's request, the prompt box or the chat.
pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(tab) = state.chat() else {
        state.screen = Screen::Sessions { filtering: false };
        return Vec::new();
    };
    if tab.request().is_some() {
        return pressed_in_request(state, key);
    }
    // An open list of completions takes the keys that move in it.
    let is_completing = tab.prompt.completion.is_some();
    let is_for_completion = matches!(key, Key::Up | Key::Down | Key::Tab | Key::Enter | Key::Escape);
    let is_text = matches!(key, Key::Char(_));
    if !(is_text || is_completing && is_for_completion)
        && let Some(action) = state.keymap.action(Context::Chat, key)
    {
        return super::perform(state, action);
    }
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    tab.prompt.press(key);
    complete(tab)
}

/// Requests completions for the word at the cursor.
fn complete(tab: &mut ChatTab) -> Vec<Effect> {
    let Some(word) = tab.prompt.word() else { return Vec::new() };
    if word.starts_with('@') {
        let directory = tab.directory.clone();
        return vec![Effect::Complete { tab: tab.number, word, directory }];
    }
    const OWN: [(&str, &str); 2] = [("/fork", "fork this conversation"), ("/close", "close the tab")];
    let own = OWN.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
    let offered = tab.offer.commands.iter().map(|command| {
        let what = transcript::text::one_line(&format!("{} {}", command.argument, command.description));
        (format!("/{}", transcript::text::one_line(&command.name)), what)
    });
    let choices = own.chain(offered).filter(|(name, _)| name.starts_with(&word) && *name != word).collect();
    tab.prompt.offer(word, choices);
    Vec::new()
}

pub(super) fn pasted(state: &mut State, text: &str) -> Vec<Effect> {
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    if let Some(asked) = tab.requests.front_mut() {
        if let Some(own) = asked.text() {
            own.extend(text.chars().filter(|c| !c.is_control()));
        }
        return Vec::new();
    }
    // A picture that is dropped on a terminal arrives as its path.
    let path = text.trim().trim_matches('\'').trim_start_matches("file://").replace("\\ ", " ");
    let is_picture = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|end| path.to_lowercase().ends_with(end));
    if is_picture && !path.contains('\n') && std::path::Path::new(&path).is_absolute() {
        return vec![Effect::ReadPicture { tab: tab.number, path: path.into() }];
    }
    tab.prompt.insert(&transcript::text::clean(text));
    Vec::new()
}

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let height = state.chat_height();
    let width = state.size.0.saturating_sub(2);
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    let number = tab.number;
    match action {
        Action::Send => return send(state),
        Action::Newline => tab.prompt.newline(),
        Action::Interrupt if !tab.is_settled() => {
            return vec![Effect::Act { tab: number, action: ChatAction::Interrupt }];
        }
        Action::ForkChat => return fork_chat(state),
        Action::Editor => return vec![Effect::Edit { tab: number, text: tab.prompt.text() }],
        Action::TakeBack => {
            if let Some(prompt) = tab.take_back() {
                tab.prompt.set(&prompt.text);
                tab.prompt.images.extend(prompt.images);
            }
        }
        Action::Model => {
            let values = tab.offer.models.iter().map(|model| (model.value.clone(), model.name.clone())).collect();
            let now = tab.model.clone();
            return choose(state, number, ChatChoice::Model, values, now.as_deref());
        }
        Action::Mode => {
            let values = tab.offer.modes.iter().map(|mode| ((*mode).to_owned(), (*mode).to_owned())).collect();
            let now = tab.mode.clone();
            return choose(state, number, ChatChoice::Mode, values, now.as_deref());
        }
        Action::HandOver => return hand_over(state),
        Action::ChatTools => {
            tab.full = !tab.full;
            let full = tab.full;
            tab.log.lay_out(width, full);
            return reread(state, number);
        }
        Action::ChatUp => tab.scroll(-(height as isize), height),
        Action::ChatDown => tab.scroll(height as isize, height),
        Action::ToSessions => return show_sessions(state),
        Action::CopyAnswer => {
            let answer = tab.log.last_answer().map(str::to_owned);
            return match answer {
                Some(answer) => vec![Effect::Copy(answer)],
                None => super::refuse(state, "no answer since the tab was opened", None),
            };
        }
        Action::CloseTab => return close(state),
        _ => {}
    }
    Vec::new()
}

fn choose(
    state: &mut State,
    tab: u64,
    what: ChatChoice,
    values: Vec<(String, String)>,
    now: Option<&str>,
) -> Vec<Effect> {
    if values.is_empty() {
        return super::refuse(state, "the agent has not reported its choices yet", Some("send a message first"));
    }
    let selected = values.iter().position(|(value, _)| Some(value.as_str()) == now).unwrap_or(0);
    state.popup = Some(Popup::Choose(Box::new(Choose { tab, what, values, selected })));
    Vec::new()
}

/// Sends the prompt. The first message starts the agent.
fn send(state: &mut State) -> Vec<Effect> {
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    if tab.prompt.is_empty() {
        return Vec::new();
    }
    match tab.prompt.text().trim() {
        "/fork" => {
            tab.prompt.set("");
            return fork_chat(state);
        }
        "/close" => return close(state),
        _ => {}
    }
    let (text, images) = tab.prompt.take();
    let prompt = Prompt { id: uuid::Uuid::new_v4().to_string(), text, images };
    match (&tab.driver, &tab.session) {
        (Driver::Asleep | Driver::Failed(_) | Driver::Ended(_), session) => {
            // An agent that died may have begun a session that tine hasn't read yet.
            let is_unknown = session.is_none() && tab.id.is_some();
            tab.driver = Driver::Starting;
            tab.queued.push_back(prompt);
            tab.top = None;
            let number = tab.number;
            if is_unknown { refresh(state, number) } else { start(state, number) }
        }
        (Driver::Starting | Driver::Stream | Driver::Pane, _) => {
            let followups = tab.submit(prompt);
            let number = tab.number;
            run_followups(state, number, followups)
        }
    }
}

/// Starts the agent of a tab.
fn start(state: &mut State, number: u64) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    tab.is_opening = true;
    let request = match &tab.session {
        Some(session) => ChatRequest::Resume { session: Box::new(session.clone()), directory: tab.directory.clone() },
        None => ChatRequest::Start { agent: tab.agent, name: None, launch: LaunchRequest::default() },
    };
    vec![Effect::OpenChat { tab: number, request: Box::new(request) }]
}

/// Opens the fork dialog for the chat on the screen, unless its agent is busy.
fn fork_chat(state: &mut State) -> Vec<Effect> {
    let Some(tab) = state.chat() else { return Vec::new() };
    if !tab.is_settled() {
        return request_fork(state);
    }
    match tab.session.clone() {
        Some(session) => fork::open(state, Request::of(session), None),
        None => super::refuse(state, "this chat has no messages yet", None),
    }
}

/// The agent is busy. The first press offers to wait, the second one waits, and the third one stops waiting.
fn request_fork(state: &mut State) -> Vec<Effect> {
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    tab.fork = match tab.fork {
        PendingFork::None => PendingFork::Offered,
        PendingFork::Offered => PendingFork::Waiting,
        PendingFork::Waiting => PendingFork::None,
    };
    match tab.fork {
        PendingFork::Offered => {
            super::refuse(state, "the agent is busy", Some("again: fork when it is idle; esc interrupts it"))
        }
        PendingFork::Waiting => {
            state.message = Some(Message::Done("The fork dialog opens when the agent is idle.".to_owned()));
            Vec::new()
        }
        PendingFork::None => Vec::new(),
    }
}

fn hand_over(state: &mut State) -> Vec<Effect> {
    let Some(tab) = state.chat() else { return Vec::new() };
    let Some(session) = tab.session.clone().map(Box::new) else {
        return super::refuse(state, "this chat has no messages yet", None);
    };
    let number = tab.number;
    match tab.driver {
        Driver::Pane => vec![Effect::FocusPane(session)],
        _ if !tab.is_settled() => super::refuse(state, "the agent is busy", Some("esc interrupts it")),
        // Two writers don't see each other's turns, so this one ends first.
        Driver::Stream | Driver::Starting => {
            if let Some(tab) = state.chat_mut() {
                tab.hands_over = true;
            }
            vec![Effect::CloseChat { tab: number }]
        }
        Driver::Asleep | Driver::Failed(_) | Driver::Ended(_) => vec![Effect::HandOver { tab: number, session }],
    }
}

/// The agent of a chat has ended.
pub(super) fn closed(state: &mut State, number: u64) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    match (std::mem::take(&mut tab.hands_over), tab.session.clone()) {
        (true, Some(session)) => vec![Effect::HandOver { tab: number, session: Box::new(session) }],
        _ => Vec::new(),
    }
}

/// The user left the agent's own screen. The transcript has the new messages.
pub(super) fn returned(state: &mut State, number: u64) -> Vec<Effect> {
    let log = Log::new(state.color, state.zone.clone());
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    tab.driver = Driver::Asleep;
    tab.history = None;
    tab.log = log;
    refresh(state, number)
}

/// A chat was opened: sends the waiting prompts.
pub(super) fn opened(state: &mut State, number: u64, name: Option<SessionName>, follows: Option<u32>) -> Vec<Effect> {
    let log = Log::new(state.color, state.zone.clone());
    let Some(tab) = state.tab_mut(number) else { return vec![Effect::CloseChat { tab: number }] };
    if let Some(name) = name {
        tab.label = name.to_string();
    }
    tab.is_opening = false;
    let mut effects = Vec::new();
    if let Some(turns) = follows {
        // The events begin after these turns.
        (tab.driver, tab.turn, tab.log) = (Driver::Pane, turns, log);
        if let Some(session) = &mut tab.session {
            session.view.turns = turns;
        }
        effects = read(state, number);
    }
    let followups = state.tab_mut(number).map(ChatTab::started).unwrap_or_default();
    effects.extend(run_followups(state, number, followups));
    effects
}

/// Something happened in a chat.
pub(super) fn apply_event(state: &mut State, number: u64, event: ChatEvent) -> Vec<Effect> {
    let is_shown = state.screen.is_chat(number);
    let is_over = matches!(event, ChatEvent::Ended(_));
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    let followups = tab.apply(event);
    tab.has_news &= !is_shown;
    let mut effects = run_followups(state, number, followups);
    if is_over {
        effects.push(Effect::CloseChat { tab: number });
    }
    effects
}

fn run_followups(state: &mut State, number: u64, followups: Vec<Followup>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for followup in followups {
        match followup {
            Followup::Act(action) => effects.push(Effect::Act { tab: number, action }),
            Followup::Refresh => effects.extend(refresh(state, number)),
            Followup::Fork => {
                let session = state.tab_mut(number).and_then(|tab| tab.session.clone());
                if let Some(session) = session.filter(|_| state.popup.is_none()) {
                    effects.extend(fork::open(state, Request::of(session), None));
                }
            }
        }
    }
    effects
}

fn refresh(state: &mut State, number: u64) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    let Some(id) = tab.id.clone() else { return Vec::new() };
    let known = tab.session.clone().filter(|known| known.view.id == id).map(Box::new);
    let settle = tab.session.is_none().then_some(Effect::SettleChat { tab: number, id: id.clone() });
    settle.into_iter().chain([Effect::RefreshTab { tab: number, id, known }]).collect()
}

/// The session of a tab, as it is now.
pub(super) fn refreshed(state: &mut State, number: u64, session: Option<Session>) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    // A message waits for this.
    let starts = tab.driver == Driver::Starting && !tab.is_opening;
    let Some(session) = session else {
        return if starts { start(state, number) } else { Vec::new() };
    };
    // The file may lag behind the stream.
    tab.turn = tab.turn.max(session.view.turns);
    tab.label = session.view.label().to_owned();
    tab.model = tab.model.take().or_else(|| session.details.model.clone());
    let is_new = tab.session.is_none();
    let needs_history = tab.driver == Driver::Asleep && tab.history.is_none();
    tab.session = Some(session);
    let mut effects = if needs_history { read(state, number) } else { Vec::new() };
    if is_new {
        effects.push(remember(state));
    }
    if starts {
        effects.extend(start(state, number));
    }
    effects
}
