//! The user's answers to an agent's request.

use engine::chat::{Action as ChatAction, Ask};

use super::super::{edit, perform, refuse};
use crate::keymap::{Action, Context, Key};
use crate::workbench::chat::{Choosing, PendingRequest};
use crate::workbench::event::Effect;
use crate::workbench::state::State;

pub(super) fn pressed_in_request(state: &mut State, key: Key) -> Vec<Effect> {
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
                asked.text().map(|text| edit(text, key));
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
                return perform(state, action);
            }
            // Other tabs and the help stay reachable meanwhile.
            if !matches!(key, Key::Char(_))
                && let Some(action) = keymap.action(Context::Chat, key).filter(|action| *action != Action::Send)
            {
                return perform(state, action);
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

fn write_own(asked: &mut PendingRequest) {
    if let Choosing::Questions { own, .. } = &mut asked.choosing {
        *own = Some(String::new());
    }
}

/// Answers the agent's request with the user's choice.
pub(in crate::workbench::update) fn answer(state: &mut State, action: Action) -> Vec<Effect> {
    let Some(asked) = state.chat_mut().and_then(|tab| tab.requests.front_mut()) else { return Vec::new() };
    if matches!(asked.request.ask, Ask::Elsewhere { .. }) {
        return refuse(state, "the agent takes this answer only in its own pane", Some("alt+o goes there"));
    }
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
