//! Asking a person which of several sessions is meant.

use dialoguer::Select;
use dialoguer::theme::ColorfulTheme;
use transcript::{SessionView, text};

use super::{short_age, title};
use crate::environment::Surface;
use crate::failure::Failure;

/// Shows `matches` and returns the one that was chosen, or nothing where the person left.
pub(crate) fn choose(surface: &Surface, word: &str, matches: &[SessionView]) -> Result<Option<SessionView>, Failure> {
    let now = jiff::Timestamp::now();
    let width = surface.width.unwrap_or(80).saturating_sub(4);
    let lines: Vec<String> = matches
        .iter()
        .map(|session| {
            let age = session.updated.map(|time| short_age(time, now, &surface.zone)).unwrap_or_default();
            let folder = session.cwd.as_deref().map(|cwd| super::path(surface, cwd)).unwrap_or_default();
            let line = format!("{}  {:<6} {age:>4}  {}  {folder}", session.id, session.agent, title(session));
            text::clip(&line, width)
        })
        .collect();
    let question = format!("`{}` could be any of these", text::one_line(word));
    let chosen = Select::with_theme(&ColorfulTheme::default())
        .with_prompt(question)
        .items(&lines)
        .default(0)
        .max_length(15)
        .interact_opt()
        .map_err(|error| Failure::Output(std::io::Error::other(error)))?;
    Ok(chosen.map(|index| matches[index].clone()))
}
