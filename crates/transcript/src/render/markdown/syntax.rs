//! Putting foreign text into Markdown so that it neither ends early nor swallows what follows.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::render::segments::segments;

/// A fenced block around `content`; the fence is longer than any run of backticks in it.
pub(super) fn fenced(language: &str, content: &str) -> String {
    let fence = "`".repeat(longest_run(content).max(2) + 1);
    let content = content.trim_end_matches('\n');
    format!("{fence}{language}\n{content}\n{fence}")
}

/// `text`, which is one line, as inline code.
pub(super) fn code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    // A space next to a backtick is not part of the code; readers strip one at each end.
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// `text`, which is one line but never the start of one, as plain words: nothing in it is markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let inside_word = before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric);
        let escape = match c {
            '\\' | '`' | '*' | '[' | ']' | '~' | '|' => true,
            // The underscores of a snake_case name do nothing and are better left readable.
            '_' => !inside_word,
            '<' => next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')),
            '&' => next.is_some_and(|next| next.is_ascii_alphabetic() || next == '#'),
            // Hashes at the end of a heading are not a part of it.
            '#' => next.is_none(),
            _ => false,
        };
        if escape {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// `markdown` with whatever it leaves open closed: a fence or a comment without an end would swallow the rest of
/// the document.
pub(super) fn closed(markdown: &str) -> Cow<'_, str> {
    if !["```", "~~~", "<"].iter().any(|opener| markdown.contains(opener)) {
        return markdown.into();
    }
    let last = segments(markdown).last();
    let last = last.as_ref().map_or("", |segment| &segment.text);
    let Some(open) = open_at_end(last) else { return markdown.into() };
    let ends = match open {
        Open::Fence(fence) => vec![fence],
        Open::Html => {
            ["-->", "?>", "]]>", "</pre>", "</script>", "</style>", "</textarea>", ">"].map(String::from).into()
        }
    };
    ends.into_iter()
        .find(|end| open_at_end(&format!("{last}\n{end}")).is_none())
        .map_or_else(|| fenced("", markdown), |end| format!("{markdown}\n{end}"))
        .into()
}

/// A block that does not end where the text ends.
enum Open {
    /// A fenced block, with what closes it.
    Fence(String),
    /// A comment or another piece of raw HTML that a blank line does not end.
    Html,
}

/// The construct that a paragraph after `markdown` would become part of.
fn open_at_end(markdown: &str) -> Option<Open> {
    const SENTINEL: &str = "\n\nsentinel";
    let probe = format!("{markdown}{SENTINEL}");
    let mut open = None;
    for (event, range) in Parser::new_ext(&probe, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                let fence = probe[range.start..].trim_start_matches(' ');
                let length = fence.bytes().take_while(|byte| matches!(byte, b'`' | b'~')).count();
                open = Some((Open::Fence(fence[..length].to_owned()), range.end));
            }
            Event::Start(Tag::HtmlBlock) => open = Some((Open::Html, range.end)),
            // Ends come with the same range; a block counts only if it covers the sentinel.
            Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) if range.end < probe.len() => open = None,
            _ => {}
        }
    }
    open.filter(|(_, end)| *end == probe.len()).map(|(open, _)| open)
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        let check = |content: &str, expected: &str| assert_eq!(fenced("", content), expected);
        check("plain\n", "```\nplain\n```");
        check("a ``` b", "````\na ``` b\n````");
        check("``````", "```````\n``````\n```````");
        check("", "```\n\n```");
    }

    #[test]
    fn code_spans_hold_backticks() {
        let check = |text: &str, expected: &str| assert_eq!(code_span(text), expected);
        check("cargo test", "`cargo test`");
        check("echo `date`", "`` echo `date` ``");
        check("a ``` b", "````a ``` b````");
    }

    #[test]
    fn words_are_not_markup() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("fix snake_case in a_b", "fix snake_case in a_b");
        check("*bold* _it_ `x` [a](b)", r"\*bold\* \_it\_ \`x\` \[a\](b)");
        check("a < b & c <img> &amp;", r"a < b & c \<img> \&amp;");
        check("C#", r"C\#");
    }

    #[test]
    fn what_is_left_open_is_closed() {
        let check = |markdown: &str, expected: &str| assert_eq!(closed(markdown), expected, "{markdown:?}");
        check("```rust\nfn a() {}", "```rust\nfn a() {}\n```");
        check("~~~~\n```\ntext", "~~~~\n```\ntext\n~~~~");
        check("```\na\n```\n\n  ````x\nb\n```", "```\na\n```\n\n  ````x\nb\n```\n````");
        check("<!-- never\n\nended", "<!-- never\n\nended\n-->");
        check("<pre>\n\nx", "<pre>\n\nx\n</pre>");
        // A list or a quote ends by itself, and with it what is open in it.
        for complete in ["```\na\n```", "- a\n  ```\n  b", "> ```\n> b", "a ``` b", "<div>\n\ntext", "1 < 2"] {
            check(complete, complete);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_ever_left_open(markdown in "([`~<>!?a-z -]{0,9}\n){0,9}") {
            prop_assert!(open_at_end(&closed(markdown.trim_end())).is_none());
        }
    }
}
