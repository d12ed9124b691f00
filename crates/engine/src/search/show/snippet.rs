//! Finds the lines that show why a turn matched. The index contains no text: it is read from the transcript, from the
//! turn's offset.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use agents::{Adapter, Blocks, Part, PlainScan, TurnStart};
use transcript::seed::is_seed;
use transcript::{BlockKind, Summary, secrets, text};

use super::wanted::{LENGTH, SnippetWindow, Wanted};
use crate::search::index::embeddings;
use crate::search::index::schema::NO_OFFSET;
use crate::search::query::words;

/// The largest distance to a space at which a snippet is cut.
const WORD: usize = 40;
/// How much of a turn is searched.
const FURTHEST: usize = 8 << 20;
/// How much of it, once something is found and no phrase is missing.
const FAR: usize = 64 << 10;
/// How far around a position secrets are searched: a key has a few kilobytes at most.
const KEY: usize = 16 << 10;
/// How much of one block is searched.
const BLOCK: usize = 512 << 10;

/// Text from a conversation on one line, safe to print, with the matching words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text.
    pub text: String,
    /// The positions of the words in it.
    pub marks: Vec<Range<usize>>,
}

/// The result of searching a turn.
#[derive(Debug, Default)]
pub(crate) struct SnippetMatch {
    pub snippet: Snippet,
    /// How many of the words it shows,
    words: usize,
    /// and its score.
    worth: usize,
    /// Whether it contains all phrases and no exclusion.
    pub holds: bool,
}

/// Searches a turn. Prose explains a match best and is the smaller part; tool output is searched if prose doesn't show
/// enough. `part` is the chunk nearest in meaning: it is shown if few of the words occur.
pub(crate) fn find_snippet(
    adapter: &dyn Adapter,
    (summary, tip): (&Summary, Option<u64>),
    turn: u32,
    offset: u64,
    part: Option<u32>,
    wanted: &Wanted<'_>,
) -> io::Result<SnippetMatch> {
    let known = PlainScan::of(summary);
    let from = (offset != NO_OFFSET && known.is_some()).then_some(TurnStart { turn, offset });
    let read = |prose_only: bool| {
        let part = Part { from, until: Some(turn), prose_only, tip, ..Part::default() };
        adapter.read_part(&summary.path, &part, known.as_ref())
    };
    let has_phrases = !wanted.phrases.is_empty() || !wanted.without.is_empty();
    if has_phrases {
        return Ok(search_blocks(read(false)?, turn, wanted));
    }
    let best = match from {
        None => search_blocks(read(false)?, turn, wanted),
        Some(_) => {
            let said = search_blocks(read(true)?, turn, wanted);
            let is_something = !said.snippet.text.is_empty();
            if is_something && said.words >= wanted.enough() {
                said
            } else {
                let all = search_blocks(read(false)?, turn, wanted);
                if is_something && said.worth > all.worth { said } else { all }
            }
        }
    };
    if let Some(part) = part.filter(|_| 2 * best.words <= wanted.asked)
        && let Some(near) = snippet_of_part(read(true)?, turn, part, wanted)
        && (near.words >= best.words || 2 * best.words < wanted.asked)
    {
        return Ok(near);
    }
    Ok(best)
}

/// Finds the chunk of a turn with this fingerprint.
fn snippet_of_part(mut blocks: Box<dyn Blocks>, turn: u32, part: u32, wanted: &Wanted<'_>) -> Option<SnippetMatch> {
    let mut seen = 0;
    while let Some(block) = blocks.next_block().filter(|_| seen < FAR) {
        if block.turn.max(1) < turn {
            continue;
        }
        let (BlockKind::Prompt { text: said, .. }
        | BlockKind::Answer { text: said, .. }
        | BlockKind::Subagent { description: Some(said), .. }) = &block.kind
        else {
            continue;
        };
        seen += said.len();
        let said = secrets::mask(said).0;
        if let Some(place) = embeddings::place_of(&said, part) {
            let SnippetWindow { words, worth, .. } = wanted.best_window(&said[place.clone()]).unwrap_or_default();
            return Some(SnippetMatch { snippet: mark(cut(&said, place), wanted), words, worth, holds: true });
        }
    }
    None
}

fn search_blocks(mut blocks: Box<dyn Blocks>, turn: u32, wanted: &Wanted<'_>) -> SnippetMatch {
    let mut missing: Vec<String> = wanted.phrases.iter().map(|phrase| folded(phrase)).collect();
    let excluded: Vec<String> = wanted.without.iter().map(|phrase| folded(phrase)).collect();
    let (mut best, mut best_rank, mut shown, mut first) = (None, 0, (0, 0), None);
    let (mut excluded_found, mut seen) = (false, 0);
    while let Some(block) = blocks.next_block() {
        // Text before the first prompt belongs to its turn.
        if block.turn.max(1) < turn {
            continue;
        }
        let (said, is_prose) = text_of(&block.kind);
        if said.is_empty() {
            continue;
        }
        seen += said.len();
        let mut has_phrase = false;
        let looks_for_phrases = !missing.is_empty() || !excluded.is_empty();
        if !looks_for_phrases && first.is_some() && !wanted.may_be_in(text::prefix(&said, BLOCK)) {
            match seen > FURTHEST || best_rank > 0 && seen > FAR {
                true => break,
                false => continue,
            }
        }
        // Tool input is redacted by the names of its values.
        let said = masked_call(&block.kind).unwrap_or(said);
        if looks_for_phrases {
            let folded = folded(&said);
            let before = missing.len();
            missing.retain(|phrase| !folded.contains(phrase.as_str()));
            has_phrase = missing.len() < before;
            excluded_found |= excluded.iter().any(|phrase| folded.contains(phrase.as_str()));
        }
        let text = text::prefix(&said, BLOCK);
        if first.is_none() {
            first = Some(text::prefix(&secrets::mask(text::prefix(text, 8 * LENGTH)).0, 2 * LENGTH).to_owned());
        }
        if let Some(SnippetWindow { words, worth, place }) = wanted.best_window(text) {
            let rank = 4 * worth + 2 * usize::from(has_phrase) + usize::from(is_prose);
            if rank > best_rank {
                (best_rank, shown) = (rank, (words, worth));
                // A secret is recognized by its context, so it is redacted before anything is cut.
                let (near, place) = excerpt_around(text, place);
                best = Some(match secrets::mask(near) {
                    (Cow::Borrowed(_), _) => cut(near, place),
                    (Cow::Owned(masked), _) => {
                        cut(&masked, wanted.best_window(&masked).map_or(0..0, |window| window.place))
                    }
                });
            }
        }
        let is_settled = missing.is_empty() && excluded.is_empty();
        let is_complete = best_rank > 4 * wanted.most();
        if is_settled && (is_complete || best_rank > 0 && seen > FAR) || seen > FURTHEST {
            break;
        }
    }
    let line = best.or_else(|| first.map(|first| cut(&first, 0..0))).unwrap_or_default();
    let (words, worth) = shown;
    SnippetMatch { snippet: mark(line, wanted), words, worth, holds: missing.is_empty() && !excluded_found }
}

/// Searches a title like a turn.
pub(crate) fn snippet_of_title(title: &str, wanted: &Wanted<'_>) -> SnippetMatch {
    let folded_title = folded(title);
    let has = |phrase: &String| folded_title.contains(&folded(phrase));
    let holds = wanted.phrases.iter().all(has) && !wanted.without.iter().any(has);
    SnippetMatch { snippet: of_text(title, wanted), holds, ..SnippetMatch::default() }
}

/// A snippet from a given text, such as a title.
pub(crate) fn of_text(text: &str, wanted: &Wanted<'_>) -> Snippet {
    mark(cut(&secrets::mask(text).0, 0..0), wanted)
}

/// The text of a block, and whether it is prose.
fn text_of(kind: &BlockKind) -> (Cow<'_, str>, bool) {
    match kind {
        // A seed contains markers between its blocks, and nothing that its source doesn't show better.
        BlockKind::Prompt { text, .. } if is_seed(text) => (Cow::Borrowed(""), true),
        BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. } | BlockKind::Thinking { text } => {
            (Cow::Borrowed(text), true)
        }
        BlockKind::Compaction { summary } => (Cow::Borrowed(summary), true),
        BlockKind::Subagent { description, .. } => (Cow::Borrowed(description.as_deref().unwrap_or_default()), true),
        BlockKind::Output { text, .. } | BlockKind::Notice { text, .. } => (Cow::Borrowed(text), false),
        BlockKind::Call { name, input, .. } => (Cow::Owned(call(name, input)), false),
        BlockKind::Media { .. } => (Cow::Borrowed(""), false),
    }
}

/// A tool's input on one line.
fn call(name: &str, input: &serde_json::Value) -> String {
    let mut line = format!("{name}:");
    values(input, &mut line, 0);
    line
}

/// The same without secrets.
fn masked_call(kind: &BlockKind) -> Option<Cow<'_, str>> {
    match kind {
        BlockKind::Call { name, input, .. } => Some(Cow::Owned(call(name, &secrets::mask_json(input).0))),
        _ => None,
    }
}

/// The text around a position, as far as a secret could reach, and the position in it. It is cut between lines if
/// possible.
fn excerpt_around(text: &str, place: Range<usize>) -> (&str, Range<usize>) {
    let start = text.floor_char_boundary(place.start.saturating_sub(KEY));
    let start = match text[start..place.start].find('\n') {
        Some(line) if start > 0 => start + line + 1,
        _ => start,
    };
    let end = text.ceil_char_boundary((place.end + KEY).min(text.len()));
    let end = match text[place.end..end].rfind('\n') {
        Some(line) if end < text.len() => place.end + line,
        _ => end,
    };
    (&text[start..end], place.start - start..place.end - start)
}

fn values(value: &serde_json::Value, line: &mut String, depth: u8) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            line.push(' ');
            line.push_str(text);
        }
        Value::Array(all) if depth < 16 => all.iter().for_each(|value| values(value, line, depth + 1)),
        Value::Object(all) if depth < 16 => all.values().for_each(|value| values(value, line, depth + 1)),
        _ => {}
    }
}

/// In lower case, without accents and with single spaces, as phrases are compared.
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        word.chars().for_each(|c| words::fold(c, &mut out));
    }
    out
}

/// The text around a position, on one line, cut between words if a space is near.
fn cut(text: &str, place: Range<usize>) -> String {
    let room = LENGTH.saturating_sub(place.len()) / 2;
    let start = text.floor_char_boundary(place.start.saturating_sub(room));
    let end = text.ceil_char_boundary((place.end + room).min(text.len()));
    let before = text.floor_char_boundary(start.saturating_sub(WORD));
    let start = match text[before..start].char_indices().rev().find(|(_, c)| c.is_whitespace()) {
        _ if before == 0 && start <= WORD => 0,
        Some((at, space)) => before + at + space.len_utf8(),
        None => start,
    };
    let after = text.ceil_char_boundary((end + WORD).min(text.len()));
    let end = match text[end..after].find(char::is_whitespace) {
        Some(at) => end + at,
        None if after == text.len() => after,
        None => end,
    };
    let line = text::one_line(&text[start..end]);
    let lead = if start > 0 { "… " } else { "" };
    let clipped = text::prefix(&line, 3 * LENGTH);
    let tail = if end < text.len() || clipped.len() < line.len() { " …" } else { "" };
    format!("{lead}{clipped}{tail}")
}

fn mark(line: String, wanted: &Wanted<'_>) -> Snippet {
    let marks = wanted.marks(&line);
    Snippet { text: line, marks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_place_is_cut_out_and_marked() {
        let text = format!("{} the redirects of a login {}", "filler ".repeat(100), "more ".repeat(100));
        let terms = vec![vec!["redirect".to_owned()], vec!["login".to_owned()]];
        let wanted = Wanted::plain(&terms);
        let SnippetWindow { words, place, .. } = wanted.best_window(&text).unwrap();
        assert_eq!(words, 2);
        let snippet = mark(cut(&text, place), &wanted);
        let marked: Vec<&str> = snippet.marks.iter().map(|range| &snippet.text[range.clone()]).collect();
        assert_eq!(marked, ["redirects", "login"]);
        assert!(snippet.text.starts_with("… ") && snippet.text.ends_with(" …"), "{}", snippet.text);
    }

    #[test]
    fn secrets_and_control_characters_are_not_shown() {
        let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8".repeat(2));
        let terms = vec![vec!["login".to_owned()]];
        let wanted = Wanted::plain(&terms);
        let line = of_text(&format!("login \u{1b}[2J with {secret} now"), &wanted).text;
        assert_eq!(line, "login with [secret] now");
    }

    #[test]
    fn of_a_large_text_only_what_is_near_is_searched_for_secrets() {
        let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8".repeat(2));
        let check = |filler: &str| {
            let text = format!("{}{secret} and marmalade\n{}", filler.repeat(20_000), filler.repeat(20_000));
            let place = text.find("marmalade").unwrap();
            let (near, place) = excerpt_around(&text, place..place + "marmalade".len());
            assert_eq!(&near[place], "marmalade");
            assert!(near.len() < 3 * KEY && secrets::mask(near).0.contains("[secret] and marmalade"), "{}", near.len());
        };
        check("a line of no interest\n");
        check("é ");
        // What is small stays as it is.
        assert_eq!(excerpt_around("a\nmarmalade\nb", 2..11), ("a\nmarmalade\nb", 2..11));
    }

    #[test]
    fn what_has_no_spaces_is_cut_around_the_place() {
        let text = format!("{}登录重定向{}", "字".repeat(400), "文".repeat(400));
        let place = text.find("登录").unwrap();
        let line = cut(&text, place..place + 15);
        assert!(line.contains("登录重定向") && line.len() < 2 * LENGTH, "{line}");
    }
}
