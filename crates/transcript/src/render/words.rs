//! The words that the renderers for people share: the facts of a session, moments, sizes, labels.
//!
//! Everything that comes out of here is one line and clean; escaping it for a format is the renderer's work.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Part, Tools};
use crate::text::{clip, one_line, prefix};
use crate::{Defects, NoticeKind, ParentSource, ParentView, SessionView};

/// The maximum width of one line of a document; longer text is cut.
const LINE_COLUMNS: usize = 160;

/// Enough of a text to fill a line, so that megabytes are not folded for it.
const LINE_BYTES: usize = 4096;

/// The text on one line that is short enough to be shown as such.
pub(super) fn short_line(text: &str) -> String {
    clip(&one_line(prefix(text, LINE_BYTES)), LINE_COLUMNS)
}

/// The first line of a text that is not blank, short enough to be shown as one.
pub(super) fn first_line(text: &str) -> String {
    prefix(text, LINE_BYTES).lines().map(short_line).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The text without blank lines around it; the indent of its first line stays.
pub(super) fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    &text[text[..blank].rfind('\n').map_or(0, |end| end + 1)..]
}

/// The title of a session; one without a title is known by its label.
pub(super) fn title(session: &SessionView) -> String {
    let title = session.title.as_deref().map(short_line).unwrap_or_default();
    if title.is_empty() { format!("Session {}", session.label()) } else { title }
}

/// Something that is known of a session.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Whether it is a thing to be copied, such as an id or a path, and not words.
    pub(super) verbatim: bool,
}

/// Everything that is known of a session, but for its title and its state.
pub(super) fn facts(session: &SessionView, part: Part) -> Vec<Fact> {
    let words = |name, value: Option<String>| value.map(|value| Fact { name, value, verbatim: false });
    let verbatim = |name, value: Option<String>| value.map(|value| Fact { name, value, verbatim: true });
    [
        words("agent", Some(session.agent.product_name().to_owned())),
        verbatim("name", session.name.as_ref().map(ToString::to_string)),
        verbatim("id", Some(session.id.to_string())),
        verbatim("directory", session.cwd.as_ref().map(|path| one_line(&path.to_string_lossy()))),
        verbatim("branch", session.branch.as_deref().map(one_line)),
        words("created", session.created.map(|at| moment(at, &TimeZone::UTC))),
        words("updated", session.updated.map(|at| moment(at, &TimeZone::UTC))),
        words("turns", whole(session, part).then(|| session.turns.to_string())),
        words("part", (!whole(session, part)).then(|| turns(session, part))),
        words("parent", session.parent.as_ref().map(parent)),
    ]
    .into_iter()
    .flatten()
    .filter(|fact| !fact.value.is_empty())
    .collect()
}

fn whole(session: &SessionView, part: Part) -> bool {
    part == Part::Whole || part == Part::Until(session.turns)
}

/// How many turns a session has, or which of them are rendered: `3 turns`, `turns 1–2 of 3`.
pub(super) fn turns(session: &SessionView, part: Part) -> String {
    let all = session.turns;
    match part {
        Part::Until(last) if last > 1 && last < all => format!("turns 1–{last} of {all}"),
        Part::Until(turn) if turn < all => format!("turn {turn} of {all}"),
        Part::Only(turn) => format!("turn {turn} of {all}"),
        Part::Whole | Part::Until(_) => format!("{all} turn{}", if all == 1 { "" } else { "s" }),
    }
}

/// The parent of a session as on the command line, and how it is known unless that is certain.
pub(super) fn parent(parent: &ParentView) -> String {
    let mut words = parent.name.as_ref().map_or_else(|| parent.id.to_string(), ToString::to_string);
    if let Some(turn) = parent.turn {
        words.push_str(&format!("@{turn}"));
    }
    let source = match parent.source {
        ParentSource::Tine | ParentSource::Agent => "",
        ParentSource::Inferred => ", inferred",
    };
    format!("{words} ({}{source})", parent.agent.product_name())
}

/// A time to the minute; the zone is named if it is UTC, otherwise it is the reader's own.
pub(super) fn moment(at: Timestamp, zone: &TimeZone) -> String {
    let suffix = if *zone == TimeZone::UTC { " UTC" } else { "" };
    format!("{}{suffix}", at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M"))
}

/// Something that is not text, by type and size.
pub(super) fn media(media_type: &str, bytes: Option<u64>) -> String {
    let media_type = short_line(media_type);
    let media_type = if media_type.is_empty() { "media" } else { &media_type };
    match bytes {
        Some(bytes) => format!("{media_type}, {}", size(bytes)),
        None => media_type.to_owned(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes / 100 % 10),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// The word before a notice's text.
pub(super) fn notice(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Interrupted => "interrupted",
        NoticeKind::Error => "error",
        NoticeKind::Command => "command",
        NoticeKind::Unreadable => "unreadable",
        NoticeKind::Files => "changed",
        NoticeKind::Info => "note",
    }
}

/// What a subagent is and what it was started for; its id where neither is known.
pub(super) fn subagent(id: &str, role: Option<&str>, description: Option<&str>) -> String {
    let known: Vec<String> =
        [role, description].into_iter().flatten().map(short_line).filter(|words| !words.is_empty()).collect();
    if known.is_empty() { short_line(id) } else { known.join(": ") }
}

/// A tool's name, which a damaged record may lack.
pub(super) fn tool(name: Option<&str>) -> String {
    let name = name.map(short_line).unwrap_or_default();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// How a tool ended, as `failed, exit code 101`; nothing if all went well.
pub(super) fn outcome(error: bool, exit_code: Option<i32>) -> Option<String> {
    match (error, exit_code) {
        (true, Some(code)) => Some(format!("failed, exit code {code}")),
        (true, None) => Some("failed".to_owned()),
        (false, Some(code)) if code != 0 => Some(format!("exit code {code}")),
        (false, _) => None,
    }
}

/// What was wrong in the files, a line for each kind.
pub(super) fn defects(defects: &Defects) -> Vec<String> {
    let line = |(kind, count): (crate::DefectKind, u64)| match count {
        1 => kind.describe().to_owned(),
        _ => format!("{} ({count}×)", kind.describe()),
    };
    defects.iter().map(line).collect()
}

/// The heading of a prompt that the user did not write.
pub(super) const SEED: &str = "Transcript handed over by tine";

/// Whether a block at `depth` is shown at all.
pub(super) fn shows_depth(tools: Tools, depth: usize) -> bool {
    depth == 0 || tools == Tools::Full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_outcomes_read_well() {
        assert_eq!(media("image/png", Some(999)), "image/png, 999 bytes");
        assert_eq!(media("image/png", Some(12_345)), "image/png, 12.3 kB");
        assert_eq!(media("", Some(7_650_000)), "media, 7.6 MB");
        assert_eq!(outcome(true, Some(101)).as_deref(), Some("failed, exit code 101"));
        assert_eq!(outcome(true, None).as_deref(), Some("failed"));
        assert_eq!(outcome(false, Some(1)).as_deref(), Some("exit code 1"));
        assert_eq!(outcome(false, Some(0)), None);
    }

    #[test]
    fn blank_lines_around_a_text_are_dropped() {
        let check = |text: &str, expected: &str| assert_eq!(trimmed(text), expected, "{text:?}");
        check("\n  \n    code\n\n  more \n\n", "    code\n\n  more");
        check("plain", "plain");
        check(" \n ", "");
        check("", "");
    }

    #[test]
    fn the_first_line_is_the_first_that_says_something() {
        assert_eq!(first_line("\n  \u{1b}[31m\n error: no\nmore"), "error: no");
        assert_eq!(first_line(""), "");
    }
}
