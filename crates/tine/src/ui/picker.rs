//! Asking a person which of several sessions is meant.

use std::io::{self, BufRead, Write};

use transcript::{SessionView, text};

use super::{Paint, short_age, title};
use crate::environment::Surface;
use crate::failure::Failure;

/// The most that are shown; more are better told apart by saying more of the id.
const MOST: usize = 20;

/// Shows `matches` and returns the one that was chosen, or nothing where the person left.
///
/// Plain lines and a number: it works on every terminal and leaves nothing to restore when it is interrupted.
pub(crate) fn choose(
    surface: &Surface,
    word: &str,
    matches: &[SessionView],
    now: jiff::Timestamp,
) -> Result<Option<SessionView>, Failure> {
    let paint = Paint(surface.color);
    let mut stderr = io::stderr().lock();
    let width = surface.width.unwrap_or(80).saturating_sub(5).max(20);
    writeln!(stderr, "`{}` could be any of these:", text::one_line(word))?;
    for (number, session) in matches.iter().take(MOST).enumerate() {
        let age = session.updated.map(|time| short_age(time, now, &surface.zone)).unwrap_or_default();
        let folder = session.cwd.as_deref().map(|cwd| super::path(surface, cwd)).unwrap_or_default();
        let line = format!("{:<6} {age:>4}  {}  {folder}  {}", session.agent, title(session), session.id);
        writeln!(stderr, "{} {}", paint.bold(&format!("{:>3}", number + 1)), text::clip(&line, width))?;
    }
    if matches.len() > MOST {
        writeln!(stderr, "    … and {} more; say more of the id to narrow it down", matches.len() - MOST)?;
    }
    let shown = matches.len().min(MOST);
    loop {
        write!(stderr, "which one? [1-{shown}, Enter to leave] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 || answer.trim().is_empty() {
            return Ok(None);
        }
        match answer.trim().parse::<usize>() {
            Ok(number) if (1..=shown).contains(&number) => return Ok(Some(matches[number - 1].clone())),
            _ => writeln!(stderr, "a number from 1 to {shown}, please")?,
        }
    }
}
