//! The workbench: sessions of all agents in one terminal screen.
//!
//! Three parts that know little of each other:
//! - [`state`] and [`update`]: what the workbench knows, and how an event changes it. Pure; returns effects.
//! - [`view`]: draws the state. Pure as well.
//! - [`worker`] and [`terminal`]: carry out effects on threads and report back as events over one channel.
//!
//! The workbench makes no decision that another front end makes too: it asks the engine.

mod chat;
mod crash;
mod dialogs;
mod document;
mod event;
mod fork_dialog;
mod graph;
mod highlight;
mod layout;
mod list;
mod outside;
mod page;
mod reader;
mod state;
mod terminal;
mod update;
mod view;
mod worker;

#[cfg(test)]
mod frame_tests;
#[cfg(test)]
mod transcript_tests;
#[cfg(test)]
mod view_tests;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::mpsc;

use ratatui::crossterm;

use crate::Outcome;
use crate::environment::{self, Streams};

use event::{Effect, Event, Mouse, MouseKind};
use state::State;

/// Opens the workbench and returns when the user leaves it.
pub(crate) fn run(surface: &Streams) -> Outcome {
    let context = environment::context()?;
    let (sender, events) = mpsc::channel();
    let workers = worker::start(&context, surface, &sender);
    let mut terminal = terminal::AlternateScreen::enter(&sender, surface.color)?;
    let home = context.surroundings.home.clone();
    let mut state = State::new(&context.cwd, home, context.clock, surface.zone.clone(), surface.color);
    state.resize(terminal.size()?);
    workers.send(state.begin());
    terminal.draw(&state)?;
    while let Ok(first) = events.recv() {
        // All pending events are handled before the next frame, so streaming text does not delay keys.
        let mut waiting: VecDeque<Event> = std::iter::once(first).chain(events.try_iter()).collect();
        while let Some(event) = waiting.pop_front() {
            for effect in update::update(&mut state, event) {
                match effect {
                    Effect::Quit => return Ok(ExitCode::SUCCESS),
                    Effect::Edit { tab, text } => waiting.push_back(outside::edit(&mut terminal, &context, tab, &text)),
                    Effect::HandOver { tab, session } => {
                        waiting.push_back(outside::hand_over(&mut terminal, &context, tab, &session));
                    }
                    Effect::Samples => waiting.push_back(outside::samples(&mut terminal, &context)),
                    Effect::TerminalClipboard(text) => terminal.copy(&text)?,
                    Effect::SetMouse(level) => terminal.set_mouse(level)?,
                    effect => workers.send(vec![effect]),
                }
            }
        }
        if std::mem::take(&mut state.is_stale) {
            terminal.draw(&state)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl From<crossterm::event::Event> for Event {
    fn from(event: crossterm::event::Event) -> Self {
        match event {
            crossterm::event::Event::Key(key) => Event::Key(crate::keymap::Key::from(key)),
            crossterm::event::Event::Paste(text) => Event::Paste(text),
            crossterm::event::Event::Resize(width, height) => Event::Resize(width, height),
            crossterm::event::Event::Mouse(mouse) => Event::from(mouse),
            _ => Event::Ignored,
        }
    }
}

impl From<crossterm::event::MouseEvent> for Event {
    fn from(mouse: crossterm::event::MouseEvent) -> Self {
        use crossterm::event::{MouseButton, MouseEventKind};
        let kind = match mouse.kind {
            MouseEventKind::ScrollUp => MouseKind::WheelUp,
            MouseEventKind::ScrollDown => MouseKind::WheelDown,
            MouseEventKind::Down(MouseButton::Left) => MouseKind::Click,
            _ => return Event::Ignored,
        };
        Event::Mouse(Mouse { column: mouse.column, row: mouse.row, kind })
    }
}
