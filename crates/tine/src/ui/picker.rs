//! Asks the user which of several sessions to use.

use std::io::{self, BufRead, Write};

use transcript::{SessionView, text};

use super::{Paint, short_age, title};
use crate::environment::Streams;
use crate::failure::Failure;

/// The maximum number of entries; typing more of the id is easier than a longer list.
const MOST: usize = 20;

/// Shows `matches` and returns the chosen one, or `None` if the user cancelled.
///
/// Plain lines and a number: it works on every terminal and leaves nothing to restore when it is interrupted.
pub(crate) fn choose(
    surface: &Streams,
    word: &str,
    matches: &[SessionView],
    now: jiff::Timestamp,
) -> Result<Option<SessionView>, Failure> {
    let paint = Paint(surface.color);
    let mut stderr = io::stderr().lock();
    let width = surface.width.unwrap_or(80).saturating_sub(5).max(20);
    writeln!(stderr, "`{}` matches several sessions:", text::one_line(word))?;
    for (number, session) in matches.iter().take(MOST).enumerate() {
        let age = session.updated.map(|time| short_age(time, now, &surface.zone)).unwrap_or_default();
        let folder = session.cwd.as_deref().map(|cwd| super::path(surface, cwd)).unwrap_or_default();
        let line = format!("{:<6} {age:>4}  {}  {folder}  {}", session.agent, title(session), session.id);
        writeln!(stderr, "{} {}", paint.bold(&format!("{:>3}", number + 1)), text::clip(&line, width))?;
    }
    if matches.len() > MOST {
        writeln!(stderr, "    … and {} more; type more of the id to narrow it down", matches.len() - MOST)?;
    }
    let number = ask(&mut stderr, matches.len().min(MOST), None)?;
    Ok(number.map(|number| matches[number].clone()))
}

/// The number of columns before an entry.
pub(crate) const BEFORE: usize = 4;

/// Something to choose from.
pub(crate) struct Item {
    /// What is shown of it.
    pub lines: Vec<String>,
    /// Why it cannot be chosen.
    pub refusal: Option<String>,
}

/// Shows the entries and returns the position of the chosen one. `preview` shows more about one; the user requests it
/// with a number and a question mark.
pub(crate) fn choose_among(
    surface: &Streams,
    items: &[Item],
    preview: &dyn Fn(usize) -> Result<Vec<String>, Failure>,
) -> Result<Option<usize>, Failure> {
    let paint = Paint(surface.color);
    let mut stderr = io::stderr().lock();
    let width = surface.width.unwrap_or(80).saturating_sub(BEFORE).max(20);
    for (number, item) in items.iter().enumerate() {
        for (row, line) in item.lines.iter().enumerate() {
            let mark = if row == 0 { paint.bold(&format!("{:>3}", number + 1)) } else { String::from("   ") };
            writeln!(stderr, "{mark} {}", super::clip_painted(line, width))?;
        }
    }
    let look = PickerScreen { items, preview, paint, width };
    ask(&mut stderr, items.len(), Some(&look))
}

struct PickerScreen<'a> {
    items: &'a [Item],
    preview: &'a dyn Fn(usize) -> Result<Vec<String>, Failure>,
    paint: Paint,
    width: usize,
}

/// Asks for a number until it is valid; `None` if the user cancelled.
fn ask(out: &mut impl Write, count: usize, look: Option<&PickerScreen<'_>>) -> Result<Option<usize>, Failure> {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| (1..=count).contains(number));
    let more = if look.is_some() { ", 1? to preview" } else { "" };
    loop {
        write!(out, "Which one? [1-{count}{more}, Enter to cancel] ")?;
        out.flush()?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 || answer.trim().is_empty() {
            return Ok(None);
        }
        let answer = answer.trim();
        let asked = answer.strip_suffix('?').or_else(|| answer.strip_prefix('?')).and_then(|word| number(word.trim()));
        match (number(answer), asked, look) {
            (Some(number), _, Some(look)) if look.items[number - 1].refusal.is_some() => {
                writeln!(out, "{}", text::clean(look.items[number - 1].refusal.as_deref().unwrap_or_default()))?;
            }
            (Some(number), _, _) => return Ok(Some(number - 1)),
            (None, Some(number), Some(look)) => {
                for line in (look.preview)(number - 1)? {
                    writeln!(out, "{} {}", look.paint.dim("  │"), super::clip_painted(&line, look.width))?;
                }
            }
            _ => writeln!(out, "enter a number from 1 to {count}")?,
        }
    }
}
