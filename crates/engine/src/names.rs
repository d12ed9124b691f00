//! Generates names: for forks, and for unnamed sessions.

use std::collections::HashSet;

use transcript::{SessionName, SessionView};

/// How many forks of a session are numbered.
const NUMBERED: u32 = 100;

/// A name for a fork of `parent`: `-fork-1` or the next free number; after a hundred, any readable name.
pub(crate) fn for_fork(parent: &str, is_taken: impl Fn(&str) -> bool) -> Option<SessionName> {
    let numbered = (1..=NUMBERED).find_map(|number| {
        let suffix = format!("-fork-{number}");
        let room = SessionName::MAX_LENGTH - suffix.len();
        // Names are ASCII, so bytes are characters.
        let head = parent[..parent.len().min(room)].trim_end_matches('-');
        let name = format!("{head}{suffix}");
        if is_taken(&name) { None } else { SessionName::new(name).ok() }
    });
    numbered.or_else(|| readable(is_taken))
}

/// The name that a fork's name is based on: the session's name, otherwise its title.
pub(crate) fn base_of(session: &SessionView) -> String {
    let named = session.name.as_ref().map(|name| name.as_str().to_owned());
    // Names are shown where titles are not, and typed into shells that keep a history.
    let title = transcript::secrets::mask(session.title.as_deref().unwrap_or_default()).0;
    named.or_else(|| slug(&title, 24)).unwrap_or_else(|| {
        let id = session.id.short().to_ascii_lowercase().replace('_', "-");
        id.trim_end_matches('-').to_owned()
    })
}

/// A name from a text, such as a title or a branch, with a number appended if it is taken.
pub(crate) fn from_text(text: &str, taken: &HashSet<&str>) -> Option<SessionName> {
    let slug = slug(text, SessionName::MAX_LENGTH - 4)?;
    let numbered = std::iter::once(slug.clone()).chain((2..=99).map(|number| format!("{slug}-{number}")));
    numbered.filter(|name| !taken.contains(name.as_str())).find_map(|name| SessionName::new(name).ok())
}

/// A random but memorable name, such as `calm-otter-41`.
pub(crate) fn readable(is_taken: impl Fn(&str) -> bool) -> Option<SessionName> {
    const QUALITIES: [&str; 32] = [
        "amber", "brave", "brisk", "calm", "clear", "cosy", "crisp", "dapper", "deft", "eager", "early", "fair",
        "fleet", "gentle", "glad", "keen", "kind", "lively", "lucid", "mellow", "merry", "neat", "nimble", "plain",
        "quick", "quiet", "ready", "silver", "steady", "sunny", "swift", "warm",
    ];
    const THINGS: [&str; 32] = [
        "anchor", "badger", "beacon", "birch", "brook", "cedar", "comet", "coral", "crane", "ember", "falcon", "fern",
        "finch", "harbor", "hazel", "heron", "island", "lantern", "maple", "meadow", "otter", "pebble", "pine",
        "quill", "raven", "reed", "river", "robin", "spruce", "thistle", "willow", "wren",
    ];
    (0..1000).find_map(|_| {
        let random = uuid::Uuid::new_v4().as_u128();
        let pick = |words: [&'static str; 32], shift: u32| words[(random >> shift) as usize % 32];
        let number = (random >> 64) as u32 % 100;
        let name = format!("{}-{}-{number}", pick(QUALITIES, 0), pick(THINGS, 16));
        if is_taken(&name) { None } else { SessionName::new(name).ok() }
    })
}

/// A text in the characters that a name may have.
fn slug(text: &str, longest: usize) -> Option<String> {
    let mut slug = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
        if slug.len() >= longest {
            break;
        }
    }
    Some(slug.trim_end_matches('-').to_owned()).filter(|slug| slug.len() >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_numbered_cut_and_in_the_end_made_up() {
        let taken = |names: &'static [&'static str]| move |name: &str| names.contains(&name);
        assert_eq!(for_fork("auth", taken(&[])).unwrap().as_str(), "auth-fork-1");
        assert_eq!(for_fork("auth", taken(&["auth-fork-1"])).unwrap().as_str(), "auth-fork-2");
        let long = "x".repeat(64);
        assert_eq!(for_fork(&long, taken(&[])).unwrap().as_str(), format!("{}-fork-1", "x".repeat(57)));
        let odd = format!("{}-{}", "x".repeat(56), "y".repeat(7));
        assert_eq!(for_fork(&odd, taken(&[])).unwrap().as_str(), format!("{}-fork-1", "x".repeat(56)));
        let made_up = for_fork("auth", |name| name.starts_with("auth-fork-")).unwrap();
        assert_eq!(made_up.as_str().matches('-').count(), 2, "{made_up}");
    }

    #[test]
    fn texts_become_names() {
        let none = HashSet::new();
        let name = |text: &str| from_text(text, &none).map(|name| name.to_string());
        assert_eq!(name("feature/Login Fix!").as_deref(), Some("feature-login-fix"));
        assert_eq!(name("漢字"), None);
        assert_eq!(name("--x--"), None);
        assert_eq!(from_text("main", &HashSet::from(["main"])).unwrap().as_str(), "main-2");
    }
}
