//! Saying something in a session, and waiting until it is taken up and answered.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use agents::{Holder, Leave, Screen};
use transcript::{Agent, BlockKind, NoticeKind, SessionName, State};

use super::{ENDS_WITHIN, PAUSE, TAKEN_UP_WITHIN, asks, hand_over, has_begun};
use crate::Tine;
use crate::catalog::Quiet;
use crate::error::{Error, Result};
use crate::places::{Key, OpenPane, Pane};
use crate::private;
use crate::profile::LaunchRequest;
use crate::session::Session;

/// When the key that sends a prompt is pressed again.
const PRESS_AGAIN_AFTER: Duration = Duration::from_millis(1500);
/// How long a view takes to close.
const LEAVES_WITHIN: Duration = Duration::from_secs(3);
/// A turn without an answer is over when it has been for so long.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);

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

impl Target {
    /// What people call it.
    fn label(&self) -> String {
        match self {
            Target::Session(session) => session.view.label().to_owned(),
            Target::Unbegun(name) => name.to_string(),
        }
    }
}

/// The last turn of a session.
#[derive(Default)]
pub(super) struct Exchange {
    prompt: Option<String>,
    /// What was said since the last call of a tool.
    pub(super) answer: Option<String>,
    is_interrupted: bool,
}

/// What was said in a session, and how it was before.
struct Said<'a> {
    text: &'a str,
    turns: u32,
    size: u64,
    pane: Option<&'a Pane>,
}

impl Tine {
    /// Says something in a session that runs, and waits until it has been taken up; for the answer, too, where that is
    /// wanted. A session that does not run is told without a terminal, and its answer always waited for.
    pub fn send(&self, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
        check_words(text)?;
        self.check_length(target, text)?;
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
                    Err(_) if session.holder() == Some(Holder::Daemon) => None,
                    Err(error) => return Err(error),
                };
                (session.view.label().to_owned(), session.view.agent, Some(session), pane)
            }
            Target::Unbegun(name) => {
                (name.to_string(), self.agent_of_unbegun(name)?, None, Some(self.unbegun_pane(name)?))
            }
        };
        match (&pane, &before) {
            (Some(pane), session) => {
                let process = session.as_ref().and_then(|session| session.live.as_ref()?.pid);
                self.type_in(&label, agent, pane, process, text)?;
            }
            (None, Some(session)) => {
                // After a turn that was interrupted a daemon holds back what is queued, and says it when nobody expects it.
                if self.last_exchange(session)?.is_interrupted {
                    return Err(Error::HeldBack(label));
                }
                self.store(agent).queue(&self.program(agent)?, &session.view.id, text)?;
            }
            (None, None) => return Err(Error::NoPane { session: label, runs: false }),
        }
        let session = self.until_taken_up(target, before.as_ref(), pane.as_ref(), text)?;
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

    /// Refuses what an agent would not take up.
    fn check_length(&self, target: &Target, text: &str) -> Result<()> {
        let agent = match target {
            Target::Session(session) => session.view.agent,
            Target::Unbegun(name) => self.agent_of_unbegun(name)?,
        };
        let (length, most) = (text.chars().count(), self.store(agent).input_limit().unwrap_or(usize::MAX));
        if length > most { Err(Error::PromptTooLong { agent, length, most }) } else { Ok(()) }
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
        let name = match target {
            Target::Session(session) => format!("{}-{}", session.view.agent, session.view.id),
            Target::Unbegun(name) => format!("name-{name}"),
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
                let (session, seconds) = (target.label(), waited.as_secs());
                return Err(Error::StillAtWork { session, state: State::Busy, seconds });
            }
            self.pause(PAUSE)?;
        }
    }

    /// Says something in a session that does not run, by a process that goes on without us; returns when it has begun.
    pub fn send_in_background(&self, session: &Session, text: &str) -> Result<Session> {
        check_words(text)?;
        let path = session.view.path.to_string_lossy();
        let mut child = self.in_background(&["send", &path, "--wait", "-"], text, self.trouble_file(session))?;
        // Who waits for it next must not find it idle because it has not begun.
        let mut ended = None;
        self.until_begun(session, &mut || {
            ended = child.try_wait().ok().flatten();
            ended.is_some()
        })?;
        if ended.is_some_and(|status| !status.success())
            && let Some(trouble) = self.trouble_of(session)
        {
            return Err(Error::NotSaid { session: session.view.label().to_owned(), trouble });
        }
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
        let mut child = self.in_background(&words, text, None)?;
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let ended = child.try_wait().ok().flatten();
            let found = self.resolve(planned.name.as_str(), &Quiet).ok().map(|found| found.session);
            if let Some(session) = found.filter(|session| has_begun(session, 0)) {
                thread::spawn(move || child.wait());
                return Ok(session);
            }
            if ended.is_some() {
                break;
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotTakenUp(planned.name.to_string()))
    }

    /// Where a process that goes on without us leaves word of what went wrong.
    fn trouble_file(&self, session: &Session) -> Option<PathBuf> {
        let folder = self.context().paths.cache.join("background");
        private::create_folder(&folder).ok()?;
        Some(folder.join(format!("{}-{}", session.view.agent, session.view.id)))
    }

    /// Why the last thing that was said without a terminal was not answered, where it was not.
    pub fn trouble_of(&self, session: &Session) -> Option<String> {
        // The agent is gone a moment before who has told it something.
        let _said = self.lock_for(&Target::Session(Box::new(session.clone())), Some(ENDS_WITHIN));
        let told = fs::read_to_string(self.trouble_file(session)?).ok()?;
        let trouble = told.lines().find_map(|line| line.strip_prefix("error: "))?;
        Some(transcript::text::one_line(trouble))
    }

    /// Ourselves once more, in a group of its own, with `text` on standard input.
    fn in_background(&self, words: &[&str], text: &str, trouble: Option<PathBuf>) -> Result<std::process::Child> {
        let mut command = std::process::Command::new(&self.context().program);
        command.args(words).current_dir(&self.context().cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let trouble = trouble.and_then(|file| {
            let file = private::open_file(&file).ok()?;
            file.set_len(0).ok().map(|()| file)
        });
        command.stderr(trouble.map_or_else(Stdio::null, Stdio::from));
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(Error::Background)?;
        let told = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes())).transpose();
        told.map_err(Error::Background)?;
        Ok(child)
    }

    /// Puts a text into the input line and sends it off, once the agent shows it.
    fn type_in(&self, label: &str, agent: Agent, pane: &Pane, process: Option<u32>, text: &str) -> Result<()> {
        let open = OpenPane::new(self.context(), pane)?;
        self.lead_to_input(label, agent, &open)?;
        open.press(Key::Clear)?;
        self.pause(PAUSE)?;
        let before = open.screen()?;
        let literal = self.store(agent).literal(text);
        let is_plain = hand_over::is_plain(&literal);
        if is_plain || !self.hand_over(&open, process, &literal)? {
            if !is_plain {
                let agent = agent.product_name();
                self.warn(format!("{agent} changes tabs and letters that cannot be seen where they are pasted"));
            }
            open.paste(&literal.replace("\r\n", "\n"))?;
        }
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

    /// Leaves what a person looks through; a key pressed there might take the conversation back. Questions are theirs.
    fn lead_to_input(&self, label: &str, agent: Agent, open: &OpenPane<'_>) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.store(agent).screen(&open.screen()?) {
                Screen::Asks(what) => return Err(Error::Asks { session: label.to_owned(), what: what.to_owned() }),
                Screen::Reading(_) if begun.elapsed() > LEAVES_WITHIN => {
                    return Err(Error::NotTakenUp(label.to_owned()));
                }
                Screen::Reading(Leave::Escape) => open.press(Key::Escape)?,
                Screen::Reading(Leave::Q) => open.press(Key::Q)?,
                Screen::Ready | Screen::Unknown => return Ok(()),
            }
            self.pause(PAUSE * 5)?;
        }
    }

    /// Waits until a turn has begun.
    fn until_taken_up(
        &self,
        target: &Target,
        before: Option<&Session>,
        pane: Option<&Pane>,
        text: &str,
    ) -> Result<Session> {
        let begun = Instant::now();
        let mut pressed = Instant::now();
        let mut presses = 1;
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let now = match (target, before) {
                (_, Some(before)) => Some(self.again(before)?),
                (Target::Unbegun(name), None) => match self.resolve(name.as_str(), &Quiet) {
                    Ok(found) => Some(found.session),
                    Err(_) => self.begun_with(name, text, begun.elapsed())?,
                },
                (Target::Session(_), None) => None,
            };
            let turns = before.map_or(0, |before| before.view.turns);
            if let Some(now) = now.filter(|now| has_begun(now, turns)) {
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
        Err(Error::NotTakenUp(target.label()))
    }

    /// The session that has just begun with what was said in one that nothing had been said in. A daemon does not tell from
    /// which terminal it was told.
    fn begun_with(&self, name: &SessionName, text: &str, ago: Duration) -> Result<Option<Session>> {
        let directory = self.directory_of_unbegun(name)?;
        let earliest = self.context().clock.now() - ago - SETTLES_WITHIN;
        let mut found = self.all_sessions(&Quiet)?.into_iter().filter(|session| {
            session.view.name.is_none()
                && session.holder() == Some(Holder::Daemon)
                && session.view.cwd == directory
                && session.updated() >= earliest
                && session.view.turns <= 1
                && session.details.first_prompt.as_deref().is_some_and(|prompt| is_same(prompt, text))
        });
        let (Some(session), None) = (found.next(), found.next()) else {
            return Ok(None);
        };
        self.registry().settle_named(name, &session.key())?;
        self.again(&session).map(Some)
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
            let is_at_rest = !runs || self.is_done(&session);
            let Exchange { prompt, answer, .. } = match is_at_rest && session.size > said.size {
                true => self.last_exchange(&session)?,
                false => Exchange::default(),
            };
            // A turn that was interrupted is not counted, and the next one has its number; a turn that was said before may
            // come into the file only now. So the words count, and the number where an agent has changed them.
            let is_same = prompt.as_deref().is_some_and(|prompt| is_same(prompt, said.text));
            let is_answered = is_same || prompt.is_some() && session.view.turns > said.turns;
            if !is_answered && (!runs || at_work.elapsed() > SETTLES_WITHIN * 2) {
                return Err(Error::Unanswered { session: label, runs });
            }
            if is_at_rest && is_answered {
                // A prompt may be written down a moment before the word that it is being worked on.
                let since = *done_since.get_or_insert_with(Instant::now);
                let has_settled = since.elapsed() > SETTLES_WITHIN;
                match answer {
                    Some(answer) if is_same || has_settled => return Ok((session, answer)),
                    None if has_settled => return Err(Error::Unanswered { session: label, runs }),
                    Some(_) | None => {}
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

    /// The last thing that was asked, and what was answered to it.
    pub(super) fn last_exchange(&self, session: &Session) -> Result<Exchange> {
        let mut blocks = self.read(session, None)?;
        let (mut prompt, mut is_interrupted) = (None, false);
        let mut answer: Vec<String> = Vec::new();
        while let Some(block) = blocks.next_block() {
            match block.kind {
                _ if block.depth > 0 => {}
                BlockKind::Answer { text, .. } => answer.push(text),
                BlockKind::Prompt { text, .. } => {
                    prompt = Some(text);
                    is_interrupted = false;
                    answer.clear();
                }
                BlockKind::Notice { notice: NoticeKind::Interrupted, .. } => is_interrupted = true,
                BlockKind::Call { .. } | BlockKind::Output { .. } => answer.clear(),
                _ => {}
            }
        }
        Ok(Exchange { prompt, answer: (!answer.is_empty()).then(|| answer.join("\n\n")), is_interrupted })
    }
}

/// Whether two texts say the same; what keeps an input line from taking one for a command does not count.
fn is_same(prompt: &str, said: &str) -> bool {
    let prompt = prompt.trim_start_matches(['\u{200b}', '\u{2800}']);
    prompt.split_whitespace().eq(said.split_whitespace())
}

/// Refuses what cannot be said.
pub fn check_words(text: &str) -> Result<()> {
    match () {
        () if text.trim().is_empty() => Err(Error::BadPrompt("is empty")),
        () if text.contains('\0') => Err(Error::BadPrompt("holds a NUL character")),
        () => Ok(()),
    }
}
