//! Typing a message into the pane of an agent, and making sure that the agent takes it.

use std::time::{Duration, Instant};

use agents::{ExitKey, Holder, Screen};
use transcript::{Agent, SessionName};

use super::answer::is_same_text;
use super::awaited::OpeningSession;
use super::pane::AgentPane;
use super::send::Target;
use super::{PAUSE, TAKEN_UP_WITHIN, editor, has_begun};
use crate::ctx::Ctx;
use crate::run::places::{Key, OpenPane, Pane};
use crate::run::{Error, Result};
use crate::sessions::catalog::Quiet;
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;
use crate::sessions::survey;

/// When Enter is pressed again.
const PRESS_AGAIN_AFTER: Duration = Duration::from_millis(1500);
/// How often Enter is pressed at most.
const MAX_PRESSES: u32 = 4;
/// How long a view takes to close.
const CLOSES_WITHIN: Duration = Duration::from_secs(3);
/// How long a pasted text takes to appear.
const APPEARS_WITHIN: Duration = Duration::from_secs(3);
/// How much earlier than the message a session's last record may seem to be.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(3);

/// Puts a message into the input line, and presses Enter when the agent shows it.
pub(super) fn type_message(ctx: &Ctx, label: &str, agent: Agent, held: &AgentPane, text: &str) -> Result<()> {
    let open = OpenPane::new(ctx.context(), &held.pane)?;
    close_views(ctx, label, agent, &open)?;
    open.press(Key::Clear)?;
    ctx.pause(PAUSE)?;
    let before = open.screen()?;
    let input = ctx.adapter(agent).as_plain_input(text);
    let is_plain = editor::survives_paste(&input);
    if is_plain || !editor::hand_over(ctx, &open, held.process, &input)? {
        if !is_plain {
            let agent = agent.product_name();
            ctx.warn(format!("{agent} alters tabs and invisible characters in pasted text"));
        }
        open.paste(&input.replace("\r\n", "\n"))?;
    }
    let begun = Instant::now();
    let mut last = before.clone();
    while begun.elapsed() < APPEARS_WITHIN {
        ctx.pause(PAUSE)?;
        let now = open.screen()?;
        if now != before && now == last {
            break;
        }
        last = now;
    }
    open.press(Key::Enter)
}

/// Closes a view that the user had open: a key pressed there could rewind the conversation. Questions stay open,
/// because only the user may answer them.
fn close_views(ctx: &Ctx, label: &str, agent: Agent, open: &OpenPane<'_>) -> Result<()> {
    let begun = Instant::now();
    loop {
        match ctx.adapter(agent).read_screen(&open.screen()?) {
            Screen::Asks(what) => return Err(Error::Asks { session: label.to_owned(), what: what.to_owned() }),
            Screen::Reading(_) if begun.elapsed() > CLOSES_WITHIN => {
                return Err(Error::NotTakenUp(label.to_owned()));
            }
            Screen::Reading(ExitKey::Escape) => open.press(Key::Escape)?,
            Screen::Reading(ExitKey::Q) => open.press(Key::Q)?,
            Screen::Ready | Screen::Unknown => return Ok(()),
        }
        ctx.pause(PAUSE * 5)?;
    }
}

/// Waits until the agent works on a message.
pub(super) fn wait_until_taken_up(
    ctx: &Ctx,
    target: &Target,
    before: Option<&Session>,
    pane: Option<&Pane>,
    text: &str,
) -> Result<Session> {
    let begun = Instant::now();
    let mut pressed = Instant::now();
    let mut presses = 1;
    let turns = before.map_or(0, |before| before.view.turns);
    let mut awaited = match target {
        Target::EmptySession(name) => OpeningSession::new(None, Some(name)),
        Target::Session(session) => OpeningSession::known(before.unwrap_or(session)),
    };
    while begun.elapsed() < TAKEN_UP_WITHIN {
        let now = awaited.refresh(ctx, || match target {
            Target::EmptySession(name) => find_begun(ctx, name, text, begun.elapsed()),
            Target::Session(_) => Ok(None),
        })?;
        if let Some(now) = now.filter(|now| has_begun(now, turns)) {
            return Ok(now.clone());
        }
        if let Some(pane) = pane
            && pressed.elapsed() > PRESS_AGAIN_AFTER * presses
            && presses < MAX_PRESSES
        {
            OpenPane::new(ctx.context(), pane)?.press(Key::Enter)?;
            (pressed, presses) = (Instant::now(), presses + 1);
        }
        ctx.pause(PAUSE)?;
    }
    if let Some(pane) = pane {
        // A message that was not sent must not become the beginning of the next one.
        OpenPane::new(ctx.context(), pane)?.press(Key::Clear)?;
    }
    Err(Error::NotTakenUp(target.label()))
}

/// The session that a daemon has just begun with a message. A daemon doesn't record which terminal a message came from.
fn find_begun(ctx: &Ctx, name: &SessionName, text: &str, ago: Duration) -> Result<Option<Session>> {
    let directory = ctx.registry().empty_session(name.as_str())?.map(|unbegun| unbegun.directory);
    let earliest = ctx.context().clock.now() - ago - CLOCK_TOLERANCE;
    let mut found = survey::all_sessions(ctx, &Quiet)?.into_iter().filter(|session| {
        session.view.name.is_none()
            && session.holder() == Some(Holder::Daemon)
            && session.view.cwd == directory
            && session.updated() >= earliest
            && session.view.turns <= 1
            && session.details.first_prompt.as_deref().is_some_and(|prompt| is_same_text(prompt, text))
    });
    let (Some(session), None) = (found.next(), found.next()) else {
        return Ok(None);
    };
    ctx.registry().settle_named(name, &session.key())?;
    Ok(refresh(ctx, &session).map(Some)?)
}
