//! A name for a fork: the source's with `-fork-1` behind it, or the next number that is free.

use std::collections::HashSet;

use transcript::{SessionName, SessionView};

/// The first free name for a fork of `source`.
pub(super) fn for_fork(source: &SessionView, taken: &HashSet<&str>) -> Option<SessionName> {
    let base = source.name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_else(|| slug(source));
    (1..=100).find_map(|number| {
        let suffix = format!("-fork-{number}");
        let room = SessionName::MAX_LENGTH - suffix.len();
        // Names are ASCII, so bytes are characters.
        let head = base[..base.len().min(room)].trim_end_matches('-');
        let name = format!("{head}{suffix}");
        if taken.contains(name.as_str()) { None } else { SessionName::new(name).ok() }
    })
}

/// What a title says in the letters that a name may have, or the beginning of the id.
fn slug(source: &SessionView) -> String {
    let mut slug = String::new();
    for c in source.title.as_deref().unwrap_or_default().chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
        if slug.len() >= 24 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.len() >= 2 { slug.to_owned() } else { source.id.short().to_ascii_lowercase().replace('_', "-") }
}
