//! Making foreign text safe and short: control sequences are stripped, lines are cut by display width.
//!
//! Invariant: nothing that came out of a transcript reaches a terminal without passing through [`clean`] or
//! [`one_line`].

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Removes everything that could control a terminal; line breaks stay, tabs become spaces.
///
/// Whole escape sequences go, not just their first byte, so that no remains of them are shown. Bidirectional
/// overrides and invisible characters go as well, because they make text read as something else than it is.
pub fn clean(text: &str) -> String {
    // Most text is plain, and a listing cleans tens of thousands of pieces.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_control_string(&mut chars),
            c if is_harmful(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Cleans `text` and folds all white space, so that it fits on one line.
pub fn one_line(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain && !text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  ") {
        return text.to_owned();
    }
    let cleaned = clean(text);
    let mut out = String::with_capacity(cleaned.len());
    for word in cleaned.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    // A title of only joiners would be invisible.
    if out.width() == 0 { String::new() } else { out }
}

/// Cuts a line to `width` columns, with an ellipsis where something is left out. Characters are never split.
pub fn clip(line: &str, width: usize) -> String {
    // Most lines are short and plain: no grapheme work for them.
    if line.is_ascii() && line.bytes().all(|byte| byte >= b' ') {
        return match line.len() <= width {
            true => line.to_owned(),
            false if width == 0 => String::new(),
            false => format!("{}…", &line[..width - 1]),
        };
    }
    if line.width() <= width {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in line.graphemes(true) {
        let columns = grapheme.width();
        if used + columns > width.saturating_sub(1) {
            break;
        }
        used += columns;
        out.push_str(grapheme);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Cuts to `width` columns and fills up with spaces to exactly that.
pub fn pad(line: &str, width: usize) -> String {
    let mut out = clip(line, width);
    let used = out.width();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    out
}

/// The columns that `line` takes on a terminal.
pub fn width(line: &str) -> usize {
    line.width()
}

/// The longest prefix of `text` with at most `bytes` bytes that splits no character.
pub fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Whether a text has characters that control a terminal, reorder what is around them, or can't be seen.
pub fn is_deceptive(text: &str) -> bool {
    text.chars().any(is_harmful)
}

/// Control characters, characters that reorder what is around them, and characters that can't be seen.
///
/// Joiners (U+200C, U+200D) and variation selectors can't be seen either, but emoji and several scripts need them.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        // Reorder text, or break the line.
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
        // Take no space, or look like one: two names that look the same could differ in these alone.
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads what follows an ESC, up to the end of the sequence that it starts.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek().copied() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_control_string(chars);
        }
        // Intermediate bytes and one final byte, as in `ESC ( B`.
        Some(' '..='/') => {
            while matches!(chars.peek(), Some(' '..='/')) {
                chars.next();
            }
            if matches!(chars.peek(), Some('0'..='~')) {
                chars.next();
            }
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// CSI: parameters, intermediates, one final byte.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while matches!(chars.peek(), Some(' '..='?')) {
        chars.next();
    }
    if matches!(chars.peek(), Some('@'..='~')) {
        chars.next();
    }
}

/// OSC, DCS and their like, up to BEL or ST. One that is never closed ends at the line's end, so that a stray
/// introducer cannot swallow the rest of a transcript.
fn skip_control_string(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        if c == '\n' {
            return;
        }
        chars.next();
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                if chars.peek() == Some(&'\\') {
                    chars.next();
                }
                return;
            }
            _ => {}
        }
    }
}

/// A number and its word: `1 turn`, `2 turns`.
pub fn count(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The age in at most four columns, or the date of an old time: `now`, `5m`, `3h`, `2d`, `2025-11-03`.
pub fn short_age(time: jiff::Timestamp, now: jiff::Timestamp, zone: &jiff::tz::TimeZone) -> String {
    let seconds = now.as_second() - time.as_second();
    match seconds {
        ..MINUTE => "now".into(),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 60 * DAY => format!("{}d", seconds / DAY),
        _ => time.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_leave_nothing_behind() {
        let check = |dirty: &str, expected: &str| assert_eq!(clean(dirty), expected, "{dirty:?}");
        check("plain\ttext\n", "plain    text\n");
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}after", "after");
        check("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}Pq#0;2\u{1b}\\x", "x");
        check("\u{1b}(Bx\u{1b}7y\u{1b}cz", "xyz");
        check("\u{9b}2Jx\u{9d}0;t\u{9c}y", "xy");
        check("a\u{8}\u{7f}\u{0}b", "ab");
        check("one\r\ntwo\rthree", "one\ntwo\nthree");
        check("\u{1b}]0;never closed\nnext line", "\nnext line");
        check("user\u{202e}gnp.exe", "usergnp.exe");
        check("\u{1b}", "");
        check("e\u{301} 漢字 👩‍👩‍👧", "e\u{301} 漢字 👩‍👩‍👧");
    }

    #[test]
    fn invisible_characters_do_not_survive_in_a_title() {
        let check = |dirty: &str, expected: &str| assert_eq!(one_line(dirty), expected, "{dirty:?}");
        for invisible in
            "\u{200b}\u{2060}\u{feff}\u{ad}\u{180e}\u{34f}\u{3164}\u{e0041}\u{202e}\u{2066}\u{206f}".chars()
        {
            check(&format!("log{invisible}in {invisible}"), "login");
            assert!(is_deceptive(&format!("log{invisible}in")), "{invisible:?}");
        }
        check("\u{200d}\u{200c}", "");
        for visible in ["می\u{200c}خواهم", "👩\u{200d}👧", "❤\u{fe0f}", "葛\u{e0100}"] {
            check(visible, visible);
        }
    }

    #[test]
    fn lines_are_cut_by_columns() {
        let check = |line: &str, columns: usize, expected: &str| {
            assert_eq!(clip(line, columns), expected, "{line:?} at {columns}");
            assert!(width(&clip(line, columns)) <= columns);
        };
        check("short", 10, "short");
        check("exactly", 7, "exactly");
        check("longer than that", 7, "longer…");
        check("漢字漢字", 5, "漢字…");
        check("漢字漢字", 4, "漢…");
        check("anything", 0, "");
        check("👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…");
        assert_eq!(pad("漢", 4), "漢  ");
    }

    proptest! {
        #[test]
        fn cleaned_text_holds_no_control_characters(text in any::<String>()) {
            prop_assert!(clean(&text).chars().all(|c| c == '\n' || !is_harmful(c)));
            prop_assert!(!one_line(&text).contains('\n'));
        }

        #[test]
        fn clipping_never_exceeds_the_width(text in any::<String>(), columns in 0usize..40) {
            prop_assert!(width(&clip(&one_line(&text), columns)) <= columns);
        }
    }
}
