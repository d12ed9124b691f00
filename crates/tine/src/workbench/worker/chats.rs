//! The thread that holds the chats. Their agents end with it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender};

use diagnostics::OrLog;
use engine::chat::ChatEvent;
use engine::{ChatRequest, Context, OpenChat, Tine};

use super::engine_thread::error_text;
use crate::workbench::event::{Effect, Event};

/// Holds the chats. Their agents end with this thread.
pub(super) fn hold_chats(context: Context, effects: &Receiver<Effect>, events: &Sender<Event>) {
    let tine = match Tine::open(context) {
        Ok(tine) => tine,
        Err(error) => return drop(events.send(Event::Failed(error_text(&error)))),
    };
    let mut chats: HashMap<u64, OpenChat> = HashMap::new();
    while let Ok(effect) = effects.recv() {
        match effect {
            Effect::OpenChat { tab, request } => {
                let opened = open_chat(&tine, &request, tab, events);
                let event = match opened {
                    Ok(chat) => {
                        let (name, follows) = (chat.name.clone(), chat.follows);
                        chats.insert(tab, chat);
                        Event::ChatOpened { tab, name, follows }
                    }
                    Err(error) => Event::ChatFailed { tab, trouble: error_text(&error) },
                };
                if events.send(event).is_err() {
                    break;
                }
            }
            Effect::Act { tab, action } => {
                let happened = chats.get(&tab).map(|chat| chat.act(action)).unwrap_or_default();
                for event in happened {
                    let _ = events.send(Event::Chat { tab, event });
                }
            }
            Effect::SettleChat { tab, id } => {
                if let Some(chat) = chats.get_mut(&tab) {
                    chat.settle(&tine, &id).or_log("record the session of a chat");
                }
            }
            Effect::CloseChat { tab } => {
                if let Some(chat) = chats.remove(&tab) {
                    chat.close(&tine);
                }
                let _ = events.send(Event::ChatClosed { tab });
            }
            _ => {}
        }
    }
    // All at once, because each may take a moment to end.
    for (_, chat) in chats {
        chat.end_soon();
        chat.close(&tine);
    }
}

fn open_chat(tine: &Tine, request: &ChatRequest, tab: u64, events: &Sender<Event>) -> Result<OpenChat, engine::Error> {
    let request = match request {
        // A fork that was not started gets its transcript now.
        ChatRequest::Resume { session, directory } if session.view.unstarted => {
            let session = Box::new(tine.start_fork((**session).clone(), Some(directory))?);
            ChatRequest::Resume { session, directory: directory.clone() }
        }
        // It may have been continued or closed elsewhere since it was listed.
        ChatRequest::Resume { session, directory } => {
            ChatRequest::Resume { session: Box::new(tine.refresh(session)?), directory: directory.clone() }
        }
        ChatRequest::Start { .. } => request.clone(),
    };
    let events = events.clone();
    tine.open_chat(&request, move |event: ChatEvent| drop(events.send(Event::Chat { tab, event })))
}
