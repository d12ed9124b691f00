//! Chats in tabs: opening them, writing in them, and answering their agents' requests.

use engine::chat::{Action as ChatAction, ChatEvent, Prompt};
use engine::{ChatRequest, LaunchRequest, Request, Session};
use transcript::{Agent, SessionName, State as Activity};

use super::fork;
use crate::keymap::Key;
use crate::keymap::{Action, Context};
use crate::workbench::chat::{ChatTab, Choosing, Driver, Followup, Log, PendingFork};
use crate::workbench::event::Effect;
use crate::workbench::state::{ChatChoice, Choose, Message, Popup, Screen, State};

/// Shows the tab of a session, and creates it if needed.
pub(super) fn open(state: &mut State, session: Session) -> Vec<Effect> {
    let id = &session.view.id;
    let is_its = |tab: &&ChatTab| tab.agent == session.view.agent && tab.id.as_ref() == Some(id);
    if let Some(number) = state.tabs.iter().find(is_its).map(|tab| tab.number) {
        return show(state, number);
    }
    add(state, session, false)
}

/// Creates a tab for a fork.
pub(super) fn open_fork(state: &mut State, session: Session, hides_acknowledgement: bool) -> Vec<Effect> {
    add(state, session, hides_acknowledgement)
}

fn add(state: &mut State, session: Session, hides_acknowledgement: bool) -> Vec<Effect> {
    let number = state.next_ticket();
    let looks = (state.color, state.zone.clone());
    let tab = ChatTab::of(number, session, looks);
    state.tabs.push(tab);
    let mut effects = read(state, number, hides_acknowledgement);
    effects.extend(show(state, number));
    effects.push(remember(state));
    effects
}

/// The tabs that were open when the workbench was closed. Their agents are started by their next prompts.
pub(super) fn restored(state: &mut State, sessions: Vec<Session>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for session in sessions {
        let number = state.next_ticket();
        let looks = (state.color, state.zone.clone());
        state.tabs.push(ChatTab::of(number, session, looks));
        effects.extend(read(state, number, false));
    }
    effects
}

fn remember(state: &State) -> Effect {
    Effect::RememberTabs(state.tabs.iter().filter_map(ChatTab::record).collect())
}

fn show(state: &mut State, number: u64) -> Vec<Effect> {
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

/// Reads a session's transcript for its tab.
fn read(state: &mut State, number: u64, hide_acknowledgement: bool) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.size.0.saturating_sub(2);
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    let Some(session) = tab.session.clone() else { return Vec::new() };
    tab.ticket = ticket;
    vec![Effect::ReadTab { ticket, session: Box::new(session), width, full: tab.full, hide_acknowledgement }]
}

/// The terminal has another size.
pub(super) fn resized(state: &mut State) -> Vec<Effect> {
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
fn reread(state: &mut State, number: u64) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.size.0.saturating_sub(2);
    let Some(tab) = state.tab_mut(number) else { return Vec::new() };
    let (Some(session), Some(history)) = (tab.session.clone(), &tab.history) else { return Vec::new() };
    let mut session = session;
    // The history ended where the log began.
    session.view.turns = history.turns.last().map_or(0, |(turn, _)| *turn);
    tab.ticket = ticket;
    vec![Effect::ReadTab {
        ticket,
        session: Box::new(session),
        width,
        full: tab.full,
        hide_acknowledgement: tab.hides_acknowledgement,
    }]
}

/// The next or previous tab. The list of sessions is the first.
pub(super) fn switch(state: &mut State, steps: isize) -> Vec<Effect> {
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
        None => {
            state.screen = Screen::Sessions { filtering: false };
            vec![Effect::LoadSessions]
        }
    }
}

/// The next chat or session that waits for the user.
pub(super) fn next_waiting(state: &mut State) -> Vec<Effect> {
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
    let waiting = state.sessions.iter().flatten().find(|session| session.view.state == Activity::Waiting).cloned();
    match waiting {
        Some(session) => open(state, session),
        None => super::refuse(state, "no session needs you", None),
    }
}

/// Asks for the agent of a new chat.
pub(super) fn new_chat(state: &mut State) -> Vec<Effect> {
    let values = Agent::ALL.map(|agent| (agent.to_string(), agent.product_name().to_owned())).to_vec();
    let last = state.chat().map(|tab| tab.agent).or_else(|| state.selection().map(|session| session.view.agent));
    let selected = last.and_then(|agent| Agent::ALL.iter().position(|other| *other == agent)).unwrap_or(0);
    state.popup = Some(Popup::Choose(Box::new(Choose { tab: 0, what: ChatChoice::Agent, values, selected })));
    Vec::new()
}

/// Something was chosen.
pub(super) fn chosen(state: &mut State) -> Vec<Effect> {
    let Some(Popup::Choose(choose)) = state.popup.take() else { return Vec::new() };
    let Choose { tab, what, values, selected } = *choose;
    let Some((value, _)) = values.into_iter().nth(selected) else { return Vec::new() };
    match what {
        ChatChoice::Agent => {
            let agent = Agent::ALL.into_iter().find(|agent| agent.as_str() == value).unwrap_or(Agent::ALL[0]);
            let number = state.next_ticket();
            let looks = (state.color, state.zone.clone());
            let directory = state.directory.clone();
            let label = format!("new {agent}");
            state.tabs.push(ChatTab::new(number, agent, label, directory, looks));
            show(state, number)
        }
        ChatChoice::Model | ChatChoice::Mode => {
            let action =
                if what == ChatChoice::Model { ChatAction::SetModel(value) } else { ChatAction::SetMode(value) };
            vec![Effect::Act { tab, action }]
        }
    }
}

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
        Action::ToSessions => {
            state.screen = Screen::Sessions { filtering: false };
            return vec![Effect::LoadSessions];
        }
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
        (Driver::Pane, Some(session)) => {
            vec![Effect::SendElsewhere { tab: tab.number, session: Box::new(session.clone()), text: prompt.text }]
        }
        (Driver::Asleep | Driver::Failed(_) | Driver::Ended(_) | Driver::Pane, session) => {
            // An agent that died may have begun a session that tine hasn't read yet.
            let is_unknown = session.is_none() && tab.id.is_some();
            tab.driver = Driver::Starting;
            tab.queued.push_back(prompt);
            tab.top = None;
            let number = tab.number;
            if is_unknown { refresh(state, number) } else { start(state, number) }
        }
        (Driver::Starting | Driver::Stream, _) => {
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
        _ => vec![Effect::CloseChat { tab: number }, Effect::HandOver { tab: number, session }],
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

fn close(state: &mut State) -> Vec<Effect> {
    let Some(place) = state.tabs.iter().position(|tab| state.screen.is_chat(tab.number)) else { return Vec::new() };
    let tab = state.tabs.remove(place);
    let next = state.tabs.get(place.min(state.tabs.len().saturating_sub(1))).map(|tab| tab.number);
    let mut effects = match next {
        Some(number) => show(state, number),
        None => {
            state.screen = Screen::Sessions { filtering: false };
            vec![Effect::LoadSessions]
        }
    };
    effects.push(Effect::CloseChat { tab: tab.number });
    effects.push(remember(state));
    effects
}

/// A chat was opened: sends the waiting prompts.
pub(super) fn opened(state: &mut State, number: u64, name: Option<SessionName>) -> Vec<Effect> {
    let Some(tab) = state.tab_mut(number) else { return vec![Effect::CloseChat { tab: number }] };
    if let Some(name) = name {
        tab.label = name.to_string();
    }
    tab.is_opening = false;
    let followups = tab.started();
    run_followups(state, number, followups)
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
    let is_new = tab.session.is_none();
    let session = id.to_string();
    let settle = is_new.then_some(Effect::SettleChat { tab: number, id });
    settle.into_iter().chain([Effect::RefreshTab { tab: number, session }]).collect()
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
    let mut effects = if needs_history { read(state, number, false) } else { Vec::new() };
    if is_new {
        effects.push(remember(state));
    }
    if starts {
        effects.extend(start(state, number));
    }
    effects
}

fn pressed_in_request(state: &mut State, key: Key) -> Vec<Effect> {
    let keymap = state.keymap.clone();
    let Some(asked) = state.chat_mut().and_then(|tab| tab.requests.front_mut()) else { return Vec::new() };
    if asked.takes_text() {
        match key {
            Key::Enter => {
                let action = asked.confirm();
                return answered(state, action);
            }
            Key::Escape => asked.choosing = restart(&asked.choosing),
            Key::AltEnter | Key::Ctrl('j') => asked.text().into_iter().for_each(|text| text.push('\n')),
            _ => {
                asked.text().map(|text| super::edit(text, key));
            }
        }
        return Vec::new();
    }
    let is_choosing = !matches!(asked.choosing, Choosing::Key);
    match key {
        Key::Up if is_choosing => asked.select(-1),
        Key::Down if is_choosing => asked.select(1),
        Key::Char(' ') if is_choosing => asked.mark(),
        Key::Enter if is_choosing && asked.is_on_own_words() => write_own(asked),
        Key::Enter if is_choosing => {
            let action = asked.confirm();
            return answered(state, action);
        }
        Key::Char(digit @ '1'..='9') if is_choosing => {
            asked.select(isize::MIN);
            asked.select(digit as isize - '1' as isize);
        }
        Key::Escape if matches!(asked.choosing, Choosing::Rule { .. }) => asked.choosing = Choosing::Key,
        _ => {
            if let Some(action) = keymap.action(Context::Request, key) {
                return super::perform(state, action);
            }
            // Other tabs and the help stay reachable meanwhile.
            if !matches!(key, Key::Char(_))
                && let Some(action) = keymap.action(Context::Chat, key).filter(|action| *action != Action::Send)
            {
                return super::perform(state, action);
            }
        }
    }
    Vec::new()
}

/// Stops editing a text.
fn restart(choosing: &Choosing) -> Choosing {
    match choosing {
        Choosing::Questions { answers, selected, chosen, .. } => {
            Choosing::Questions { answers: answers.clone(), selected: *selected, chosen: chosen.clone(), own: None }
        }
        _ => Choosing::Key,
    }
}

fn write_own(asked: &mut crate::workbench::chat::PendingRequest) {
    if let Choosing::Questions { own, .. } = &mut asked.choosing {
        *own = Some(String::new());
    }
}

/// Answers the agent's request with the user's choice.
pub(super) fn answer(state: &mut State, action: Action) -> Vec<Effect> {
    let Some(asked) = state.chat_mut().and_then(|tab| tab.requests.front_mut()) else { return Vec::new() };
    let answer = match action {
        Action::Allow => asked.allow(),
        Action::Always => asked.always(),
        Action::Deny => Some(asked.deny(None, false)),
        Action::DenyWithReason => {
            asked.choosing = Choosing::Reason(String::new());
            None
        }
        Action::EditCall => {
            asked.edit();
            None
        }
        Action::InterruptRequest => Some(asked.deny(None, true)),
        _ => None,
    };
    answered(state, answer)
}

fn answered(state: &mut State, action: Option<ChatAction>) -> Vec<Effect> {
    let Some(tab) = state.chat_mut() else { return Vec::new() };
    let Some(action) = action else { return Vec::new() };
    tab.requests.pop_front();
    vec![Effect::Act { tab: tab.number, action }]
}
