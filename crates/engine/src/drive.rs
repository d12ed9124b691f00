//! Sessions in panes: opening one, saying something in it, interrupting and ending it.
//!
//! Whether an agent can take input, has taken something up or is done is told by its own state and its transcript; its
//! screen is looked at only where neither can tell yet, and for dialogs that stand in the way.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use agents::{Program, Screen};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, BlockKind, SessionId, SessionName, State};

use crate::Tine;
use crate::catalog::Quiet;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::places::{self, Key, OpenPane, Order, Pane, Spot};
use crate::private;
use crate::profile::{LaunchRequest, Profile};
use crate::registry::Registry;
use crate::session::Session;
use crate::signal::{Signal, signal};

/// How often a pane is looked at.
const PAUSE: Duration = Duration::from_millis(60);
/// A turn that has not begun by then was not taken up.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(20);
/// When the key that sends a prompt is pressed again.
const PRESS_AGAIN_AFTER: Duration = Duration::from_millis(1500);
/// A turn without an answer is over when it has been for so long.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// How long a program gets to end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// An agent that is to run in a pane.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The agent.
    pub agent: Agent,
    /// Its session, where the id is known.
    pub id: Option<&'a SessionId>,
    /// The session's name.
    pub name: Option<&'a SessionName>,
    /// What people call it.
    pub label: &'a str,
    /// Where it works.
    pub directory: &'a Path,
    /// Its command line.
    pub words: &'a [String],
    /// How it is launched.
    pub profile: &'a Profile,
    /// Whether the person is to be led there.
    pub focus: bool,
    /// How long it may take until it can take input.
    pub ready_within: Duration,
    /// How many turns the session has, where something is said at the start: it is waited until that is taken up.
    pub said_after: Option<u32>,
}

/// What a new pane runs, in a file that only its owner can read: an environment has secrets in it, and a command line
/// can be read by everybody.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    words: Vec<String>,
    directory: PathBuf,
    environment: Vec<(String, String)>,
    name: Option<SessionName>,
}

/// What was sent, and what came back.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The session as it is now.
    pub session: Session,
    /// The answer, where it was waited for.
    pub answer: Option<String>,
}

/// Whom something is sent to.
#[derive(Debug, Clone)]
pub enum Target {
    /// A session with a transcript.
    Session(Box<Session>),
    /// One that was opened in a pane, and in which nothing was said yet.
    Unbegun(SessionName),
}

/// What was said in a session, and how it was before.
struct Said<'a> {
    text: &'a str,
    turns: u32,
    size: u64,
    pane: Option<&'a Pane>,
}

impl Tine {
    /// Whether a place is there. What needs it is not begun otherwise.
    pub fn check_place(&self, spot: Spot) -> Result<()> {
        places::check(self.context(), spot)
    }

    /// Opens a pane with an agent in it, and waits until the agent can take input.
    pub fn open_in(&self, spot: Spot, opening: &Opening<'_>) -> Result<Pane> {
        let program = self.program_as(opening.agent, opening.profile, opening.name)?;
        let file = self.write_launch(&program, opening)?;
        let words =
            [self.context().program.to_string_lossy().into_owned(), "pane".into(), file.to_string_lossy().into()];
        let (directory, focus) = (opening.directory, opening.focus);
        let order = Order { unit: spot.unit, directory, words: &words, name: opening.name, focus };
        let opened = places::open(self.context(), spot, &order);
        let ready = opened.and_then(|pane| {
            if let Some(name) = opening.name {
                self.registry().note_pane(name, &pane)?;
            }
            self.wait_until_ready(opening, &pane, &file)?;
            self.wait_until_said(opening)?;
            Ok(pane)
        });
        let _ = fs::remove_file(&file);
        let _ = fs::remove_file(trouble_file(&file));
        let runs = |error: &Error| matches!(error, Error::Asks { .. } | Error::NotReady { .. } | Error::Cancelled);
        if let (Err(error), Some(name)) = (&ready, opening.name)
            && !runs(error)
            && self.registry().unbegun(name.as_str())?.is_some()
        {
            // What never ran leaves its name to others.
            self.forget(name)?;
        }
        ready
    }

    fn write_launch(&self, program: &Program, opening: &Opening<'_>) -> Result<PathBuf> {
        let inherited = self.context().environment.texts().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let inherited = inherited.filter(|(name, _)| !program.hidden.contains(name));
        let mut words = opening.words.to_vec();
        if let Some(first) = words.first_mut() {
            *first = program.path.to_string_lossy().into_owned();
        }
        let launch = Launch {
            words,
            directory: opening.directory.to_owned(),
            environment: inherited.chain(program.environment.iter().cloned()).collect(),
            name: opening.name.cloned(),
        };
        let folder = self.context().paths.cache.join("panes");
        let file = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
        let failed = |source| Error::CannotWrite { path: file.clone(), source };
        private::create_folder(&folder).map_err(failed)?;
        private::open_file(&file).map_err(failed)?;
        fs::write(&file, serde_json::to_vec(&launch).unwrap_or_default()).map_err(failed)?;
        Ok(file)
    }

    /// Waits until an agent can take input, or works on what it was told at its start.
    fn wait_until_ready(&self, opening: &Opening<'_>, pane: &Pane, launch: &Path) -> Result<()> {
        let begun = Instant::now();
        let session = || opening.label.to_owned();
        let store = self.store(opening.agent);
        let open = OpenPane::new(self.context(), pane)?;
        let mut saw = None;
        let mut last = String::new();
        while begun.elapsed() < opening.ready_within {
            let live = opening.id.and_then(|id| store.live().sessions.remove(id));
            // An agent that has a session's file open has read it.
            let is_loaded = opening.id.is_none() || live.is_some();
            if let Ok(screen) = open.screen() {
                match store.screen(&screen) {
                    Screen::Asks(what) => return Err(Error::Asks { session: session(), what: what.to_owned() }),
                    // What is still being drawn does not listen yet.
                    Screen::Ready if !store.tells_its_state() && is_loaded && screen == last => return Ok(()),
                    Screen::Ready | Screen::Unknown => {}
                }
                saw = Some(last_lines(&screen)).filter(|saw| !saw.is_empty());
                last = screen;
            } else if open.info().is_none() {
                let said = fs::read_to_string(trouble_file(launch)).ok().or(saw);
                return Err(Error::PaneClosed { session: session(), said });
            }
            match live.as_ref().and_then(|live| live.state) {
                Some(State::Idle | State::Busy) => return Ok(()),
                Some(State::Waiting) => {
                    let what = live.and_then(|live| live.waiting_for).unwrap_or_else(|| "an answer".into());
                    return Err(Error::Asks { session: session(), what });
                }
                Some(State::Stopped) | None => {}
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotReady { session: session(), seconds: opening.ready_within.as_secs(), saw })
    }

    /// Waits until what was said at the start is being worked on, or is done already.
    fn wait_until_said(&self, opening: &Opening<'_>) -> Result<()> {
        let Some(before) = opening.said_after else {
            return Ok(());
        };
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let found = match (opening.id, opening.name) {
                (Some(id), _) => self.resolve(id.as_str(), &Quiet),
                (None, Some(name)) => self.resolve(name.as_str(), &Quiet),
                (None, None) => return Ok(()),
            };
            if let Ok(found) = found {
                let session = found.session;
                let is_at_work = matches!(session.view.state, State::Busy | State::Waiting);
                if session.live.is_some() && (is_at_work || session.view.turns > before) {
                    return Ok(());
                }
            }
            self.pause(PAUSE)?;
        }
        // It runs, and whoever waits for it is told how it goes on.
        Ok(())
    }

    /// The pane that a session runs in.
    pub fn pane_of(&self, session: &Session) -> Result<Pane> {
        let runs = session.live.is_some();
        if !runs && self.context().surroundings.proc.is_some() {
            return Err(Error::NoPane { session: session.view.label().to_owned(), runs });
        }
        let by_process = session.live.as_ref().and_then(|live| live.pid);
        let found = by_process.and_then(|pid| places::pane_of(self.context(), pid));
        let found = found.or_else(|| {
            let noted = self.registry().pane(session.view.name.as_ref()?).ok()??;
            self.is_its_pane(session.view.name.as_ref(), &noted).then_some(noted)
        });
        found.ok_or_else(|| Error::NoPane { session: session.view.label().to_owned(), runs })
    }

    /// Whether a pane is still the one that was opened for a session.
    fn is_its_pane(&self, name: Option<&SessionName>, pane: &Pane) -> bool {
        let info = OpenPane::new(self.context(), pane).ok().and_then(|open| open.info());
        info.is_some_and(|info| match (info.mark, info.pid, name) {
            (Some(mark), _, Some(name)) if mark == name.as_str() => true,
            (_, Some(pid), Some(name)) => self.context().surroundings.proc.as_deref().is_some_and(|proc| {
                agents::processes_marked(proc, "TINE_SESSION", name.as_str())
                    .into_iter()
                    .any(|process| agents::is_below(proc, process, pid))
            }),
            _ => false,
        })
    }

    /// The pane of a session that was opened and in which nothing was said.
    fn unbegun_pane(&self, name: &SessionName) -> Result<Pane> {
        let noted = self.registry().pane(name)?.filter(|pane| self.is_its_pane(Some(name), pane));
        noted.ok_or_else(|| Error::NoPane { session: name.to_string(), runs: false })
    }

    /// Says something in a session that runs, and waits until it has been taken up; for the answer, too, where that is
    /// wanted. A session that does not run is told without a terminal, and its answer always waited for.
    pub fn send(&self, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
        check_words(text)?;
        let begun = Instant::now();
        // What two people say at once is said one after the other.
        let lock = self.lock_for(target, timeout)?;
        let (label, agent, before, pane) = match target {
            Target::Session(session) if session.live.is_none() => {
                return self.send_headless(&self.again(session)?, text);
            }
            Target::Session(session) => {
                // Somebody else may have said something while the lock was waited for.
                let session = self.again(session)?;
                // Who waits for a person is not waited for.
                if session.view.state == State::Waiting {
                    return Err(asks(&session));
                }
                if let Some(what) = self.asks_in_pane(&session) {
                    return Err(Error::Asks { session: session.view.label().to_owned(), what });
                }
                let session = self.wait_until_idle(session, timeout, &|_, _| {})?;
                if session.live.is_none() {
                    return self.send_headless(&session, text);
                }
                if session.view.state == State::Waiting {
                    return Err(asks(&session));
                }
                let pane = match self.pane_of(&session) {
                    Ok(pane) => Some(pane),
                    Err(_) if self.is_held_by_daemon(&session) => None,
                    Err(error) => return Err(error),
                };
                (session.view.label().to_owned(), session.view.agent, Some(session), pane)
            }
            Target::Unbegun(name) => {
                let agent = self.registry().named(name)?.map(|row| row.key.agent).unwrap_or(Agent::Codex);
                (name.to_string(), agent, None, Some(self.unbegun_pane(name)?))
            }
        };
        match (&pane, &before) {
            (Some(pane), _) => self.type_in(&label, agent, pane, text)?,
            (None, Some(session)) => {
                self.store(agent).queue(&self.program(agent)?, &session.view.id, text)?;
            }
            (None, None) => return Err(Error::NoPane { session: label, runs: false }),
        }
        let session = self.until_taken_up(target, before.as_ref(), pane.as_ref(), &label)?;
        drop(lock);
        if !wait {
            return Ok(Sent { session, answer: None });
        }
        let (turns, size) = before.as_ref().map_or((0, 0), |before| (before.view.turns, before.size));
        let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        let asked = Said { text, turns, size, pane: pane.as_ref() };
        let (session, answer) = self.until_answered(session, &asked, left)?;
        Ok(Sent { session, answer: Some(answer) })
    }

    /// Says something in a session that does not run, and waits for the answer.
    fn send_headless(&self, session: &Session, text: &str) -> Result<Sent> {
        let directory = session.view.cwd.clone().unwrap_or_else(|| self.context().cwd.clone());
        let launch = self.launch_of(session.view.agent, &session.view.id, &[], None)?;
        let answer = self.resume_headless(session, &directory, &launch, text)?;
        let session = self.again(session)?;
        Ok(Sent { session, answer: Some(answer) })
    }

    /// Held while something is said in a session. It goes with the process that has it.
    fn lock_for(&self, target: &Target, timeout: Option<Duration>) -> Result<Option<fs::File>> {
        let (label, name) = match target {
            Target::Session(session) => {
                (session.view.label().to_owned(), format!("{}-{}", session.view.agent, session.view.id))
            }
            Target::Unbegun(name) => (name.to_string(), format!("name-{name}")),
        };
        let folder = self.context().paths.cache.join("locks");
        // Without a place for it, one goes on without it.
        let Ok(file) = private::create_folder(&folder).and_then(|()| private::open_file(&folder.join(name))) else {
            return Ok(None);
        };
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(_)) => return Ok(None),
            }
            let waited = begun.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                return Err(Error::StillAtWork { session: label, state: State::Busy, seconds: waited.as_secs() });
            }
            self.pause(PAUSE)?;
        }
    }

    /// Says something in a session that does not run, by a process that goes on without us; returns when it has begun.
    pub fn send_in_background(&self, session: &Session, text: &str) -> Result<Session> {
        check_words(text)?;
        let path = session.view.path.to_string_lossy();
        let mut child = self.in_background(&["send", &path, "--wait", "-"], text)?;
        // Who waits for it next must not find it idle because it has not begun.
        self.until_begun(session, &mut || child.try_wait().is_ok_and(|ended| ended.is_some()))?;
        // Where we stay, it must not stay as a corpse.
        thread::spawn(move || child.wait());
        self.again(session)
    }

    /// Starts a session without a terminal, by a process that goes on without us; returns when it has begun.
    pub fn begin_in_background(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        request: &LaunchRequest,
    ) -> Result<Session> {
        let text = request.prompt.as_deref().unwrap_or_default();
        check_words(text)?;
        // What does not work is told here, and not by somebody whom nobody hears.
        let planned =
            self.plan_start_in(&self.context().cwd, agent, name.cloned(), self.launch_for(agent, request)?)?;
        let model = request.model.as_deref().map(|model| format!("--model={model}"));
        let mut words = vec!["start", planned.name.as_str(), "--agent", agent.as_str(), "--in", "headless"];
        words.extend(["--prompt", "-", "--json"].into_iter().chain(model.as_deref()).chain(["--"]));
        words.extend(request.args.iter().map(String::as_str));
        let mut child = self.in_background(&words, text)?;
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let ended = child.try_wait().ok().flatten();
            if let Ok(found) = self.resolve(planned.name.as_str(), &Quiet) {
                thread::spawn(move || child.wait());
                return Ok(found.session);
            }
            if ended.is_some() {
                break;
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotTakenUp(planned.name.to_string()))
    }

    /// Ourselves once more, in a group of its own, with `text` on standard input.
    fn in_background(&self, words: &[&str], text: &str) -> Result<std::process::Child> {
        let mut command = std::process::Command::new(&self.context().program);
        command.args(words).current_dir(&self.context().cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(Error::Background)?;
        let told = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes())).transpose();
        told.map_err(Error::Background)?;
        Ok(child)
    }

    /// Whether a daemon has the session open, and not the agent that a person sees.
    fn is_held_by_daemon(&self, session: &Session) -> bool {
        let proc = self.context().surroundings.proc.as_deref();
        let pid = session.live.as_ref().and_then(|live| live.pid);
        session.view.agent == Agent::Codex
            && proc.zip(pid).is_some_and(|(proc, pid)| agents::has_word(proc, pid, "app-server"))
    }

    /// Pastes a text and sends it off, once the agent shows it.
    fn type_in(&self, label: &str, agent: Agent, pane: &Pane, text: &str) -> Result<()> {
        let open = OpenPane::new(self.context(), pane)?;
        let before = open.screen()?;
        if let Screen::Asks(what) = self.store(agent).screen(&before) {
            return Err(Error::Asks { session: label.to_owned(), what: what.to_owned() });
        }
        open.press(Key::Clear)?;
        self.pause(PAUSE)?;
        let before = open.screen()?;
        open.paste(&self.store(agent).literal(text))?;
        let begun = Instant::now();
        let mut last = before.clone();
        while begun.elapsed() < Duration::from_secs(3) {
            self.pause(PAUSE)?;
            let now = open.screen()?;
            if now != before && now == last {
                break;
            }
            last = now;
        }
        open.press(Key::Enter)
    }

    /// Waits until a turn has begun.
    fn until_taken_up(
        &self,
        target: &Target,
        before: Option<&Session>,
        pane: Option<&Pane>,
        label: &str,
    ) -> Result<Session> {
        let begun = Instant::now();
        let mut pressed = Instant::now();
        let mut presses = 1;
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let now = match (target, before) {
                (_, Some(before)) => Some(self.again(before)?),
                (Target::Unbegun(name), None) => self.resolve(name.as_str(), &Quiet).ok().map(|found| found.session),
                (Target::Session(_), None) => None,
            };
            let turns = before.map_or(0, |before| before.view.turns);
            if let Some(now) = now
                && (now.view.turns > turns || matches!(now.view.state, State::Busy | State::Waiting))
            {
                return Ok(now);
            }
            if let Some(pane) = pane
                && pressed.elapsed() > PRESS_AGAIN_AFTER * presses
                && presses < 4
            {
                OpenPane::new(self.context(), pane)?.press(Key::Enter)?;
                (pressed, presses) = (Instant::now(), presses + 1);
            }
            self.pause(PAUSE)?;
        }
        if let Some(pane) = pane {
            // What was not said is not left for the next one to be glued to.
            OpenPane::new(self.context(), pane)?.press(Key::Clear)?;
        }
        Err(Error::NotTakenUp(label.to_owned()))
    }

    /// Waits until what was said is answered.
    fn until_answered(
        &self,
        session: Session,
        said: &Said<'_>,
        timeout: Option<Duration>,
    ) -> Result<(Session, String)> {
        let begun = Instant::now();
        let mut session = session;
        let mut at_work = Instant::now();
        let mut done_since: Option<Instant> = None;
        loop {
            if matches!(session.view.state, State::Busy | State::Waiting) {
                at_work = Instant::now();
            }
            if session.view.state == State::Waiting {
                return Err(asks(&session));
            }
            // An agent that does not say of itself that it waits shows it.
            if let Some(what) = said.pane.and_then(|pane| self.asks_on_screen(&session, pane)) {
                return Err(Error::Asks { session: session.view.label().to_owned(), what });
            }
            let (label, runs) = (session.view.label().to_owned(), session.live.is_some());
            let is_at_rest = !runs || session.is_settled && session.view.state == State::Idle;
            let (prompt, answer) = match is_at_rest && session.size > said.size {
                true => self.last_exchange(&session)?,
                false => (None, None),
            };
            // A turn that was interrupted is not counted, and the next one has its number.
            let is_ours = |prompt: &str| session.view.turns > said.turns || is_same(prompt, said.text);
            let is_answered = prompt.is_some_and(|prompt| is_ours(&prompt));
            if !is_answered && (!runs || at_work.elapsed() > SETTLES_WITHIN * 2) {
                return Err(Error::Unanswered { session: label, runs });
            }
            if is_at_rest && is_answered {
                // A prompt may be written down a moment before the word that it is being worked on.
                let since = *done_since.get_or_insert_with(Instant::now);
                match answer {
                    Some(answer) => return Ok((session, answer)),
                    None if since.elapsed() > SETTLES_WITHIN => return Err(Error::Unanswered { session: label, runs }),
                    None => {}
                }
            } else {
                done_since = None;
            }
            let waited = begun.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let (state, seconds) = (session.view.state, waited.as_secs_f32().round() as u64);
                return Err(Error::StillAtWork { session: session.view.label().to_owned(), state, seconds });
            }
            self.pause(PAUSE)?;
            session = self.again(&session)?;
        }
    }

    /// What the screen of an agent asks that says nothing of its state.
    fn asks_on_screen(&self, session: &Session, pane: &Pane) -> Option<String> {
        let store = self.store(session.view.agent);
        if store.tells_its_state() {
            return None;
        }
        let screen = OpenPane::new(self.context(), pane).and_then(|open| open.screen()).ok()?;
        match store.screen(&screen) {
            Screen::Asks(what) => Some(what.to_owned()),
            Screen::Ready | Screen::Unknown => None,
        }
    }

    /// What a session waits for that looks busy, as its pane shows it.
    pub fn asks_in_pane(&self, session: &Session) -> Option<String> {
        if session.view.state != State::Busy || self.store(session.view.agent).tells_its_state() {
            return None;
        }
        self.asks_on_screen(session, &self.pane_of(session).ok()?)
    }

    /// Whether a session is done with what it was told: what it says of itself and what is written down agree.
    pub fn is_done(&self, session: &Session) -> bool {
        match session.view.state {
            State::Busy | State::Waiting => false,
            State::Stopped => true,
            State::Idle => session.is_settled,
        }
    }

    /// Waits until a session that did not run has begun with something, or `is_over` says that it is done.
    fn until_begun(&self, session: &Session, is_over: &mut dyn FnMut() -> bool) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let now = self.again(session)?;
            if now.view.turns > session.view.turns || now.live.is_some() && now.details.mid_turn || is_over() {
                return Ok(());
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotTakenUp(session.view.label().to_owned()))
    }

    /// A session as it is now.
    pub fn again(&self, session: &Session) -> Result<Session> {
        let key = session.key();
        let found = self.all_sessions(&Quiet)?.into_iter().find(|other| {
            let other = other.key();
            // `/cd` moves a transcript while it is open.
            other == key || other.agent == key.agent && other.id == key.id && !key.path.exists()
        });
        found.ok_or_else(|| Error::UnknownSession { spec: key.id.to_string(), similar: Vec::new() })
    }

    /// The last thing that the agent answered: what it said since its last call of a tool.
    pub fn last_answer(&self, session: &Session) -> Result<Option<String>> {
        Ok(self.last_exchange(session)?.1)
    }

    /// The last thing that was asked, and what was answered to it.
    fn last_exchange(&self, session: &Session) -> Result<(Option<String>, Option<String>)> {
        let mut blocks = self.read(session, None)?;
        let mut prompt = None;
        let mut answer: Vec<String> = Vec::new();
        while let Some(block) = blocks.next_block() {
            match block.kind {
                _ if block.depth > 0 => {}
                BlockKind::Answer { text, .. } => answer.push(text),
                BlockKind::Prompt { text, .. } => {
                    prompt = Some(text);
                    answer.clear();
                }
                BlockKind::Call { .. } | BlockKind::Output { .. } => answer.clear(),
                _ => {}
            }
        }
        Ok((prompt, (!answer.is_empty()).then(|| answer.join("\n\n"))))
    }

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
        let agent = self.registry().named(name)?.map_or(Agent::Codex, |row| row.key.agent);
        let screen = match self.unbegun_pane(name) {
            Ok(pane) => OpenPane::new(self.context(), &pane)?.screen()?,
            Err(Error::NoPane { .. }) => return Ok(State::Stopped),
            Err(error) => return Err(error),
        };
        Ok(match self.store(agent).screen(&screen) {
            Screen::Asks(_) => State::Waiting,
            Screen::Ready | Screen::Unknown => State::Idle,
        })
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
        if session.live.is_none() {
            return Err(Error::NoPane { session: session.view.label().to_owned(), runs: false });
        }
        match self.pane_of(session) {
            Ok(pane) => OpenPane::new(self.context(), &pane)?.press(Key::Escape)?,
            Err(error) => match session.live.as_ref().and_then(|live| live.pid) {
                // One that runs without a terminal understands a signal.
                Some(pid) if !self.is_held_by_daemon(session) => signal(pid, Signal::Interrupt),
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
        Ok(now)
    }

    /// Ends the agent of a session: it is asked to, and made to where it does not.
    pub fn stop(&self, session: &Session) -> Result<()> {
        let label = || session.view.label().to_owned();
        let Some(pid) = session.live.as_ref().and_then(|live| live.pid) else {
            return Err(Error::NoPane { session: label(), runs: session.live.is_some() });
        };
        if self.is_held_by_daemon(session) {
            // The daemon works for others, too.
            let pane = self.pane_of(session)?;
            return OpenPane::new(self.context(), &pane)?.close();
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
                return Ok(());
            }
        }
        Err(Error::StillAtWork { session: label(), state: session.view.state, seconds: 2 * ENDS_WITHIN.as_secs() })
    }
}

/// Whether two texts say the same; what keeps an input line from taking one for a command does not count.
fn is_same(prompt: &str, said: &str) -> bool {
    prompt.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2800}')) == said.trim()
}

/// That a session waits for a person, and for what.
fn asks(session: &Session) -> Error {
    let what = session.live.as_ref().and_then(|live| live.waiting_for.clone());
    let what = what.unwrap_or_else(|| "an answer".into());
    Error::Asks { session: session.view.label().to_owned(), what }
}

/// Refuses what cannot be said.
pub fn check_words(text: &str) -> Result<()> {
    match () {
        () if text.trim().is_empty() => Err(Error::BadPrompt("is empty")),
        () if text.contains('\0') => Err(Error::BadPrompt("holds a NUL character")),
        () => Ok(()),
    }
}

/// Reads what a pane is to run, and makes its command. The terminal's own variables are the pane's, everything else is
/// as it was where the pane was opened.
pub fn pane_command(context: &Context, file: &Path) -> Result<std::process::Command> {
    let unreadable = |source| Error::Unreadable { path: file.to_owned(), source };
    let text = fs::read(file).map_err(unreadable)?;
    let _ = fs::remove_file(file);
    let launch: Launch = serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))?;
    let mut words = launch.words.into_iter();
    let mut command = std::process::Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(&launch.directory).env_clear();
    command.envs(launch.environment.into_iter().filter(|(name, _)| !is_of_a_terminal(name)));
    command.envs(context.environment.texts().filter(|(name, _)| is_of_a_terminal(name)));
    if let Some(name) = &launch.name {
        // From here on this process is the agent.
        let pid = std::process::id();
        let process = agents::process_start(pid).map(|start| format!("{pid} {start}"));
        if let (Some(process), Ok(mut registry)) =
            (process, Registry::open_within(&context.paths.registry, ENDS_WITHIN))
        {
            let _ = registry.note_launch(name, &process);
        }
    }
    Ok(command)
}

/// Leaves word of why a pane's program did not start, for whoever opened the pane.
pub fn note_trouble(file: &Path, trouble: &str) {
    let _ = fs::write(trouble_file(file), trouble);
}

fn trouble_file(file: &Path) -> PathBuf {
    file.with_extension("trouble")
}

fn is_of_a_terminal(variable: &str) -> bool {
    const EXACT: [&str; 8] =
        ["TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "WINDOWID", "LINES", "COLUMNS", "TERMINFO"];
    const BEGINNINGS: [&str; 5] = ["TMUX", "WEZTERM_", "KITTY_", "ZELLIJ", "VTE_"];
    EXACT.contains(&variable) || BEGINNINGS.iter().any(|beginning| variable.starts_with(beginning))
}

/// The end of what a pane shows, on one line.
fn last_lines(screen: &str) -> String {
    let lines: Vec<&str> = screen.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" ⏎ ");
    transcript::text::clip(&transcript::text::one_line(&last), 200)
}

impl Registry {
    /// Notes in which pane a session was opened.
    fn note_pane(&mut self, name: &SessionName, pane: &Pane) -> Result<()> {
        let pane = serde_json::to_string(pane).unwrap_or_default();
        let query = "UPDATE sessions SET pane = ?2 WHERE name = ?1";
        self.write(|transaction| transaction.execute(query, params![name.as_str(), pane])).map(|_| ())
    }

    /// The pane in which a session was opened last.
    fn pane(&self, name: &SessionName) -> Result<Option<Pane>> {
        let pane: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT pane FROM sessions WHERE name = ?1";
            connection.query_row(query, [name.as_str()], |row| row.get(0)).optional()
        })?;
        Ok(pane.flatten().and_then(|pane| serde_json::from_str(&pane).ok()))
    }

    /// Notes which process is the agent of a session that was started.
    fn note_launch(&mut self, name: &SessionName, process: &str) -> Result<()> {
        let query = "UPDATE sessions SET launch = ?2 WHERE name = ?1 AND launch IS NOT NULL";
        self.write(|transaction| transaction.execute(query, [name.as_str(), process])).map(|_| ())
    }
}
