//! The text of a record, without the client's additions.

use super::record::UserPart;
use crate::fields::Raw;

/// The text of a content value: a string, or the text elements of a list. The client's additions to a list are left
/// out.
pub(super) fn prompt_text(content: Raw<'_>) -> String {
    if content.0.starts_with(b"\"") {
        return unwrap_command(content.string().unwrap_or_default().into_owned());
    }
    let mut joined = String::new();
    for element in content.elements() {
        if element.get(b"type").and_then(Raw::plain) == Some(b"text")
            && let Some(raw) = element.get(b"text").filter(|text| !is_injected(*text))
            && let Some(text) = raw.string()
        {
            if !joined.is_empty() {
                joined.push_str("\n\n");
            }
            joined.push_str(&text);
        }
    }
    unwrap_command(joined)
}

fn is_injected(text: Raw<'_>) -> bool {
    text.0.get(1..).is_some_and(|text| UserPart::of_text(text) == UserPart::Injected)
}

/// A slash command as typed, without the tags in which the client stores it; other text is unchanged.
fn unwrap_command(text: String) -> String {
    let inside = |tag: &str| {
        let start = text.find(&format!("<{tag}>"))? + tag.len() + 2;
        let end = text[start..].find(&format!("</{tag}>"))? + start;
        Some(text[start..end].trim())
    };
    if text.starts_with("<command-") {
        let name = inside("command-name").unwrap_or_default();
        let arguments = inside("command-args").unwrap_or_default();
        return format!("{name} {arguments}").trim().to_owned();
    }
    for tag in ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"] {
        if text.starts_with(&format!("<{tag}>")) {
            return inside(tag).unwrap_or_default().to_owned();
        }
    }
    for (tag, typed) in [("bash-input", "!"), ("user-memory-input", "#")] {
        if text.starts_with(&format!("<{tag}>")) {
            return inside(tag).map(|words| format!("{typed} {words}")).unwrap_or_default();
        }
    }
    // The output of `#memory` (1.0.5x).
    if text == "(no content)" { String::new() } else { text }
}

/// A string value.
pub(super) fn string(raw: Option<Raw<'_>>) -> Option<String> {
    raw?.string().map(std::borrow::Cow::into_owned)
}
