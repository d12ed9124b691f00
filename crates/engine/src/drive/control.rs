//! What is done to a session that runs: look at it, bring it to front, interrupt it, end it.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use agents::{Holder, Screen};
use transcript::{Agent, SessionName, State};

use super::{ENDS_WITHIN, PAUSE};
use crate::Tine;
use crate::error::{Error, Result};
use crate::places::{Key, OpenPane, Pane};
use crate::session::Session;
use crate::signal::{Signal, signal};

/// A session that runs in a pane, and in which nothing was said yet.
#[derive(Debug, Clone)]
pub struct Unbegun {
    /// Its name.
    pub name: SessionName,
    /// Its agent.
    pub agent: Agent,
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// Idle, or waiting where a dialog stands in the way.
    pub state: State,
    /// What that dialog asks.
    pub asks: Option<&'static str>,
}

impl Tine {
    /// What a session's pane shows.
    pub fn screen(&self, session: &Session) -> Result<String> {
        let pane = self.pane_of(session)?;
        OpenPane::new(self.context(), &pane)?.screen()
    }

    /// Brings a session's pane to front.
    pub fn focus(&self, session: &Session) -> Result<()> {
        let pane = self.pane_of(session)?;
        OpenPane::new(self.context(), &pane)?.focus()
    }

    /// How a session stands in which nothing was said yet: it can take something, or a dialog stands in the way.
    pub fn state_unbegun(&self, name: &SessionName) -> Result<State> {
        match self.unbegun_pane(name) {
            Ok(pane) => Ok(self.shown_unbegun(self.agent_of_unbegun(name)?, &pane)?.0),
            Err(Error::NoPane { .. }) => Ok(State::Stopped),
            Err(error) => Err(error),
        }
    }

    /// How an agent stands by what its pane shows, and what it asks.
    fn shown_unbegun(&self, agent: Agent, pane: &Pane) -> Result<(State, Option<&'static str>)> {
        let screen = OpenPane::new(self.context(), pane)?.screen()?;
        Ok(match self.store(agent).screen(&screen) {
            Screen::Asks(what) => (State::Waiting, Some(what)),
            Screen::Ready | Screen::Reading(_) | Screen::Unknown => (State::Idle, None),
        })
    }

    /// The sessions that run in a pane, and in which nothing was said yet.
    pub fn unbegun(&self) -> Result<Vec<Unbegun>> {
        let rows = self.registry().all_unbegun()?;
        let mut found = Vec::new();
        for (name, agent, cwd) in rows {
            if let Ok(pane) = self.unbegun_pane(&name) {
                let (state, asks) = self.shown_unbegun(agent, &pane)?;
                found.push(Unbegun { name, agent, cwd, state, asks });
            }
        }
        Ok(found)
    }

    /// What the pane of a session shows in which nothing was said yet.
    pub fn screen_unbegun(&self, name: &SessionName) -> Result<String> {
        OpenPane::new(self.context(), &self.unbegun_pane(name)?)?.screen()
    }

    /// Brings the pane of one to front in which nothing was said yet.
    pub fn focus_unbegun(&self, name: &SessionName) -> Result<()> {
        OpenPane::new(self.context(), &self.unbegun_pane(name)?)?.focus()
    }

    /// Ends one in which nothing was said yet; nothing of it is left.
    pub fn stop_unbegun(&self, name: &SessionName) -> Result<()> {
        OpenPane::new(self.context(), &self.unbegun_pane(name)?)?.close()?;
        self.forget(name)
    }

    /// Interrupts what a session is doing, and waits until it has stopped doing it.
    pub fn interrupt(&self, session: &Session) -> Result<Session> {
        if !session.is_open() {
            return Err(Error::NoPane { session: session.view.label().to_owned(), runs: false });
        }
        match self.pane_of(session) {
            Ok(pane) => OpenPane::new(self.context(), &pane)?.press(Key::Escape)?,
            Err(error) => match session.live.as_ref().and_then(|live| live.pid) {
                // One that runs without a terminal understands a signal.
                Some(pid) if session.holder() == Some(Holder::Agent) => signal(pid, Signal::Interrupt),
                _ => return Err(error),
            },
        }
        let begun = Instant::now();
        let mut now = self.again(session)?;
        // Its own word counts here: what was interrupted looks unfinished for a while.
        let is_busy = |now: &Session| match now.live.as_ref().map(|live| live.state) {
            Some(Some(state)) => state != State::Idle,
            Some(None) => now.view.state == State::Busy,
            None => false,
        };
        while is_busy(&now) && begun.elapsed() < ENDS_WITHIN {
            self.pause(PAUSE)?;
            now = self.again(session)?;
        }
        if let Some(state) = now.live.as_ref().and_then(|live| live.state) {
            now.view.state = state;
        }
        if now.view.state == State::Idle {
            self.registry().note_interrupted(&now.view, self.context().clock.now())?;
        }
        Ok(now)
    }

    /// Ends the agent of a session, if it runs: it is asked to, and made to where it does not.
    pub fn stop(&self, session: &Session) -> Result<()> {
        if !session.is_open() {
            return Ok(());
        }
        let label = || session.view.label().to_owned();
        let Some(pid) = session.live.as_ref().and_then(|live| live.pid) else {
            return Err(Error::NoPane { session: label(), runs: true });
        };
        if session.holder() != Some(Holder::Agent) {
            return self.leave(session);
        }
        let start = agents::process_start(pid);
        let runs = || agents::process_start(pid) == start && start.is_some();
        for how in [Signal::End, Signal::Kill] {
            signal(pid, how);
            let begun = Instant::now();
            while runs() && begun.elapsed() < ENDS_WITHIN {
                thread::sleep(Duration::from_millis(20));
            }
            if !runs() {
                return self.registry().note_stopped(&session.view, self.context().clock.now());
            }
        }
        Err(Error::StillAtWork { session: label(), state: session.view.state, seconds: 2 * ENDS_WITHIN.as_secs() })
    }

    /// Ends what a session is doing in a daemon, and the terminal that shows it. The daemon works for others, too.
    fn leave(&self, session: &Session) -> Result<()> {
        let pane = self.pane_of(session)?;
        if matches!(session.view.state, State::Busy | State::Waiting) {
            self.interrupt(session)?;
        }
        OpenPane::new(self.context(), &pane)?.close()?;
        let begun = Instant::now();
        let mut now = self.again(session)?;
        while now.is_open() && begun.elapsed() < ENDS_WITHIN {
            self.pause(PAUSE)?;
            now = self.again(session)?;
        }
        self.registry().note_stopped(&session.view, self.context().clock.now())
    }
}
