//! Tool results: text, images, and large outputs that the client stored in separate files.

use std::io::Read;
use std::path::Path;

use transcript::BlockKind;

use crate::fields::Raw;
use crate::files::open_regular;

/// The most that is read of one stored output.
const LARGEST: u64 = 16 << 20;

#[derive(Debug, Default, PartialEq)]
pub(super) struct ToolResult {
    pub text: String,
    pub error: bool,
    pub exit_code: Option<i32>,
    pub media: Vec<BlockKind>,
}

/// Reads a `tool_result` element. `side` is the session's own folder, the only one that is read.
pub(super) fn read(element: Raw<'_>, tool: Option<&str>, side: &Path, with_media: bool) -> ToolResult {
    let mut result = ToolResult { error: element.get(b"is_error").is_some_and(Raw::is_true), ..ToolResult::default() };
    let Some(content) = element.get(b"content") else {
        return result;
    };
    if content.0.starts_with(b"\"") {
        result.text = content.string().unwrap_or_default().into_owned();
    }
    for part in content.elements() {
        if let Some(text) = part.get(b"text").and_then(Raw::string) {
            if !result.text.is_empty() {
                result.text.push('\n');
            }
            result.text.push_str(&text);
        } else if let Some(media) = media(part, with_media) {
            result.media.push(media);
        }
    }
    if result.error && tool == Some("Bash") {
        result.exit_code = exit_code(&result.text);
    }
    if let Some(stored) = stored_output(&result.text, side) {
        result.text = stored;
    }
    result
}

/// A picture or a document, with its bytes if they are wanted.
pub(super) fn media(element: Raw<'_>, with_data: bool) -> Option<BlockKind> {
    let kind = element.get(b"type").and_then(Raw::plain)?;
    if kind != b"image" && kind != b"document" {
        return None;
    }
    let source = element.get(b"source");
    let media_type = source.and_then(|source| source.get(b"media_type")).and_then(Raw::string);
    let data = source.and_then(|source| source.get(b"data"));
    let bytes = data.map(|data| data.0.len() as u64 / 4 * 3);
    let media_type = media_type.map_or_else(|| String::from_utf8_lossy(kind).into_owned(), |name| name.into_owned());
    let is_base64 = source.and_then(|source| source.get(b"type")).and_then(Raw::plain) == Some(b"base64");
    let data = data.filter(|_| with_data && is_base64).and_then(Raw::string).map(|data| data.into_owned());
    Some(BlockKind::Media { media_type, bytes, data })
}

/// A shell that failed is stored as `Exit code N` and its output.
fn exit_code(text: &str) -> Option<i32> {
    let rest = text.strip_prefix("Exit code ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Output that was too large for the transcript is in `<side>/tool-results/`; the transcript names the file.
///
/// Only the file's name is taken from the transcript. The folder is the session's own, so that no transcript can
/// make tine read anything else.
fn stored_output(text: &str, side: &Path) -> Option<String> {
    if !text.starts_with("<persisted-output>") {
        return None;
    }
    let (_, after) = text.split_once("/tool-results/")?;
    let name: String =
        after.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).collect();
    let name = name.trim_end_matches('.');
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    let file = open_regular(&side.join("tool-results").join(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sessions_own_folder_is_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tool-results")).unwrap();
        std::fs::write(folder.path().join("tool-results/t1.txt"), "the whole output").unwrap();
        std::fs::write(folder.path().join("secret"), "not for you").unwrap();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(stored_output(text, folder.path()).as_deref(), expected, "{text}");
        };
        check("<persisted-output>\nsaved to: /elsewhere/s/tool-results/t1.txt\n\nPreview", Some("the whole output"));
        check("<persisted-output>\nsaved to: /x/tool-results/t1.txt.", Some("the whole output"));
        check("<persisted-output>\nsaved to: /x/tool-results/../secret", None);
        check("<persisted-output>\nsaved to: /x/tool-results/gone.txt", None);
        check("see /x/tool-results/t1.txt", None);
    }

    #[test]
    fn results_are_text_pictures_and_failures() {
        let element = br#"{"type":"tool_result","is_error":true,"content":"Exit code 127\nno such command"}"#;
        let result = read(Raw(element), Some("Bash"), Path::new("/nowhere"), false);
        assert_eq!((result.error, result.exit_code), (true, Some(127)));
        let element = br#"{"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAAAAAA"}},{"type":"text","text":"b"}]}"#;
        let result = read(Raw(element), Some("Read"), Path::new("/nowhere"), true);
        assert_eq!(result.text, "a\nb");
        let data = Some("AAAAAAAA".to_owned());
        assert_eq!(result.media, [BlockKind::Media { media_type: "image/png".to_owned(), bytes: Some(6), data }]);
    }
}
