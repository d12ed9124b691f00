//! The Markdown that agents answer in, parsed once for every renderer.

use pulldown_cmark::{CowStr, Event, Options, Parser, TextMergeStream};

use crate::text::clean;

/// Tables, task lists and struck-out text are what agents use beyond CommonMark.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The events of `markdown`, with clean text in them.
///
/// `markdown` is cleaned before, and every text after the parse once more, because a character reference such as
/// `&#27;` becomes a control character only there. Raw HTML comes as text, and every line break is a real one:
/// agents do not fill paragraphs, so where they break a line they mean it.
pub(super) fn events(markdown: &str) -> impl Iterator<Item = Event<'_>> {
    TextMergeStream::new(Parser::new_ext(markdown, OPTIONS)).map(|event| match event {
        Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => Event::Text(cleaned(text)),
        Event::Code(text) => Event::Code(cleaned(text)),
        Event::SoftBreak => Event::HardBreak,
        other => other,
    })
}

/// A link's target, if it is one that may be followed from a page.
pub(super) fn safe_target(target: &str) -> Option<String> {
    let target = clean(target);
    let lower = target.trim().to_ascii_lowercase();
    let allowed = ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    allowed.then(|| target.trim().to_owned())
}

fn cleaned(text: CowStr<'_>) -> CowStr<'_> {
    if text.chars().all(|c| c == '\n' || !crate::text::is_harmful(c)) { text } else { clean(&text).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_cannot_bring_back_control_characters() {
        let markdown = "a &#27;[31m b &#x9b;2J `c` &#x202e;\n\n<b title='&#27;'>";
        for event in events(markdown) {
            if let Event::Text(text) | Event::Code(text) = event {
                assert!(!text.chars().any(crate::text::is_harmful), "{text:?}");
            }
        }
    }

    #[test]
    fn only_targets_on_the_web_and_addresses_are_safe() {
        let check = |target: &str, safe: bool| assert_eq!(safe_target(target).is_some(), safe, "{target:?}");
        for target in ["https://example.org/?a=1&b", "HTTP://x", "mailto:a@b", " https://x"] {
            check(target, true);
        }
        for target in ["javascript:alert(1)", "JaVa\nscript:x", "data:text/html,x", "//host", "src/a.rs", "#turn-1", ""]
        {
            check(target, false);
        }
    }
}
