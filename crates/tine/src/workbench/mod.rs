//! The workbench: sessions of all agents in one terminal screen.
//!
//! Three parts that know little of each other:
//! - [`state`] and [`update`]: what the workbench knows, and how an event changes it. Pure; returns effects.
//! - [`view`]: draws the state. Pure as well.
//! - [`worker`] and [`terminal`]: carry out effects on threads and report back as events over one channel.
//!
//! The workbench makes no decision that another front end makes too: it asks the engine.

mod document;
mod event;
mod graph;
mod keys;
mod state;
mod terminal;
mod update;
mod view;
mod worker;

#[cfg(test)]
mod frame_tests;

use std::process::ExitCode;
use std::sync::mpsc;

use ratatui::crossterm;

use crate::Outcome;
use crate::environment::{self, Surface};

use event::{Effect, Event};
use state::State;

/// Opens the workbench and returns when the user leaves it.
pub(crate) fn run(surface: &Surface) -> Outcome {
    let context = environment::context()?;
    let (sender, events) = mpsc::channel();
    let workers = worker::start(&context, surface, &sender);
    let mut terminal = terminal::Screen::enter(&sender, surface.color)?;
    let mut state = State::new(&context.cwd, context.surroundings.home.clone(), context.clock, surface.zone.clone());
    state.resize(terminal.size()?);
    workers.send(state.begin());
    terminal.draw(&state)?;
    while let Ok(first) = events.recv() {
        // Everything that has arrived is taken in before the next frame.
        for event in std::iter::once(first).chain(events.try_iter()) {
            let effects = update::update(&mut state, event);
            if effects.iter().any(|effect| matches!(effect, Effect::Quit)) {
                return Ok(ExitCode::SUCCESS);
            }
            workers.send(effects);
        }
        terminal.draw(&state)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl From<crossterm::event::Event> for Event {
    fn from(event: crossterm::event::Event) -> Self {
        match event {
            crossterm::event::Event::Key(key) => Event::Key(keys::Key::from(key)),
            crossterm::event::Event::Paste(text) => Event::Paste(text),
            crossterm::event::Event::Resize(width, height) => Event::Resize(width, height),
            _ => Event::Ignored,
        }
    }
}
