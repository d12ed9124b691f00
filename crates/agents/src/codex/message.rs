//! The contents of a user's message: text and images, or context that the client added.

use jiff::Timestamp;

use super::record::{Kind, Record};
use crate::fields::Raw;

/// A message that may be a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Message {
    pub at: Option<Timestamp>,
    pub id: Option<String>,
    pub text: String,
    pub media: Vec<Media>,
}

/// A picture in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Media {
    pub media_type: String,
    pub bytes: Option<u64>,
    /// Its bytes in base64, if they are wanted and the record holds them.
    pub data: Option<String>,
}

/// The author of a user's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// The user, or a client that injected it through the app server; the surrounding records decide.
    Person,
    /// A person's `!` command, with its output.
    Shell,
    /// The client: the environment, instructions, notes of hooks and helpers.
    Client,
}

impl Message {
    /// A `message` or `agent_message` among the response items, with who put it there.
    pub(super) fn of_item(record: &Record<'_>, with_media: bool) -> (Message, Author) {
        let mut message = Message { at: record.at(), id: record.text(b"id"), ..Message::default() };
        let mut author = Author::Client;
        let Some(content) = record.get(b"content") else {
            return (message, author);
        };
        for element in content.elements() {
            if let Some(media) = media(element, with_media) {
                message.media.push(media);
                author = Author::Person;
            } else if let Some(text) = element.get(b"text").and_then(Raw::string) {
                match author_of(&text) {
                    Author::Client => {}
                    other => {
                        author = other;
                        message.add(&text);
                    }
                }
            }
        }
        (message, author)
    }

    /// A `user_message` event or a `UserMessage` item: what the user typed, as the client shows it.
    pub(super) fn of_prompt(record: &Record<'_>, with_media: bool) -> Message {
        let mut message = Message { at: record.at(), ..Message::default() };
        if record.kind == Kind::PromptEvent {
            message.text = record.text(b"message").unwrap_or_default();
            for key in [&b"images"[..], b"local_images"] {
                let pictures = record.get(key).map(Raw::elements).into_iter().flatten();
                message.media.extend(pictures.filter_map(Raw::string).map(|picture| Media::of(&picture, with_media)));
            }
            return message;
        }
        let item = record.get(b"item").unwrap_or(Raw(b""));
        message.id = item.get(b"id").and_then(Raw::string).map(|id| id.into_owned());
        for element in item.get(b"content").map(Raw::elements).into_iter().flatten() {
            if let Some(media) = media(element, with_media) {
                message.media.push(media);
            } else if let Some(text) = element.get(b"text").and_then(Raw::string) {
                message.add(&text);
            }
        }
        message
    }

    /// The user's request, and before it the editor's context: the open files, the selection.
    pub(super) fn request(&self) -> (Option<&str>, &str) {
        /// The heading that the editors' extensions put before a person's words; Codex's own titles begin after it.
        const REQUESTS: [&str; 2] = ["## My request for Codex:", "## My request:"];
        let text = self.text.trim_start();
        if !text.starts_with("# ") {
            return (None, &self.text);
        }
        let heading = |request: &&str| {
            let is_line = |(at, _): &(usize, &str)| text[..*at].ends_with('\n');
            Some((text.match_indices(*request).find(is_line)?.0, request.len()))
        };
        let found = REQUESTS.iter().filter_map(heading).min();
        found.map_or((None, &self.text), |(at, len)| (Some(text[..at].trim()), text[at + len..].trim()))
    }

    fn add(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

impl Media {
    /// By the address of a picture: `data:image/png;base64,…`, a URL, or a path.
    pub(super) fn of(address: &str, with_data: bool) -> Media {
        if let Some((media_type, data)) = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
            let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
            let bytes = (data.len() / 4 * 3).saturating_sub(padding);
            let data = with_data.then(|| data.to_owned());
            return Media { media_type: media_type.to_owned(), bytes: Some(bytes as u64), data };
        }
        let extension = address.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        let media_type = match extension.as_str() {
            "png" | "gif" | "webp" | "bmp" | "jpeg" => format!("image/{extension}"),
            "jpg" => "image/jpeg".to_owned(),
            _ => "image/*".to_owned(),
        };
        Media { media_type, bytes: None, data: None }
    }
}

/// The picture that an element of a message or of a tool's output is.
pub(super) fn media(element: Raw<'_>, with_data: bool) -> Option<Media> {
    let address = match element.get(b"type").and_then(Raw::plain)? {
        b"input_image" | b"image" => element.get(b"image_url").or_else(|| element.get(b"url")),
        b"local_image" => element.get(b"path"),
        _ => return None,
    };
    Some(Media::of(&address.and_then(Raw::string).unwrap_or_default(), with_data))
}

/// Whether a text is treated as typed by the user.
pub(super) fn is_of_person(text: &str) -> bool {
    matches!(author_of(text), Author::Person)
}

/// Tells by the start of the text. The client marks what it puts in; the marks are those of 0.104 to 0.166.
fn author_of(text: &str) -> Author {
    const CLIENT: [&str; 27] = [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<INSTRUCTIONS>",
        "<turn_aborted>",
        "<subagent_notification>",
        "<hook_prompt",
        "<user_action>",
        "<skill>",
        "<skills_instructions>",
        "<plugins_instructions>",
        "<apps_instructions>",
        "<permissions instructions>",
        "<environments_instructions>",
        "<collaboration_mode>",
        "<multi_agent_mode>",
        "<model_switch>",
        "<personality_spec>",
        "<goal_context>",
        "<codex_internal_context",
        "<realtime_conversation>",
        "<context_window",
        "<token_budget>",
        "<memory_summary>",
        // The frame around an attached picture.
        "<image ",
        "<image>",
        "</image>",
    ];
    let text = text.trim_start();
    if text.starts_with("<user_shell_command>") {
        return Author::Shell;
    }
    if CLIENT.iter().any(|mark| text.starts_with(mark)) { Author::Client } else { Author::Person }
}

/// A `!` command and its output, from the message that reports it to the model.
pub(super) fn shell_command(text: &str) -> String {
    let Some((command, result)) = text.split_once("<command>").and_then(|(_, rest)| rest.split_once("</command>"))
    else {
        return text.to_owned();
    };
    let result = result.rsplit_once("</result>").map_or(result, |(result, _)| result);
    let output = result.split_once("\nOutput:\n").map_or(result, |(_, output)| output);
    format!("$ {}\n{output}", command.trim_matches('\n')).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(content: &str) -> (Message, Author) {
        let line = format!(
            r#"{{"timestamp":"2026-11-15T20:45:44Z","type":"response_item","payload":{{"type":"message","id":"msg_1","role":"user","content":{content}}}}}"#
        );
        Message::of_item(&Record::of(line.as_bytes()).unwrap(), false)
    }

    #[test]
    fn what_a_person_typed_is_told_from_what_was_put_in() {
        let check = |content: &str, author: Author, text: &str, media: usize| {
            let (message, found) = item(content);
            assert_eq!((found, message.text.as_str(), message.media.len()), (author, text, media), "{content}");
        };
        let text = |text: &str| format!(r#"{{"type":"input_text","text":"{text}"}}"#);
        check(&format!("[{}]", text("fix it")), Author::Person, "fix it", 0);
        check(&format!("[{}]", text(r"<environment_context>\n  <cwd>/x</cwd>")), Author::Client, "", 0);
        let agents = text(r"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe brief.");
        check(&format!("[{agents},{}]", text("<environment_context>")), Author::Client, "", 0);
        check(
            &format!("[{}]", text(r"<user_shell_command>\n<command>")),
            Author::Shell,
            "<user_shell_command>\n<command>",
            0,
        );
        let image = r#"{"type":"input_image","image_url":"data:image/png;base64,iVBORw0=","detail":"high"}"#;
        let framed = format!(
            r#"[{},{image},{},{}]"#,
            text(r#"<image name=[Image #1] path=\"p.png\">"#),
            text("</image>"),
            text("look")
        );
        check(&framed, Author::Person, "look", 1);
        check(&format!("[{image}]"), Author::Person, "", 1);
        check("[]", Author::Client, "", 0);
        check("\"text\"", Author::Client, "", 0);
    }

    #[test]
    fn the_context_of_an_editor_is_told_from_the_request() {
        let check = |text: &str, context: Option<&str>, request: &str| {
            let message = Message { text: text.to_owned(), ..Message::default() };
            assert_eq!(message.request(), (context, request), "{text}");
        };
        let context = "# Context from my IDE setup:\n\n## Active file: a.rs";
        let wrapped =
            |heading: &str| format!("\n{context}\n\n{heading}\nFix it.\n\n## My request for Codex:\nquoted\n");
        check(&wrapped("## My request for Codex:"), Some(context), "Fix it.\n\n## My request for Codex:\nquoted");
        check(
            "# Files mentioned by the user:\n\n## p.png: p.png\n\n## My request:\n",
            Some("# Files mentioned by the user:\n\n## p.png: p.png"),
            "",
        );
        for plain in [
            "Fix it.",
            "  # A heading\nwords\n",
            "# A heading about `## My request for Codex:`",
            "Why does it say\n## My request for Codex:\nthere?",
        ] {
            check(plain, None, plain);
        }
    }

    #[test]
    fn pictures_are_known_by_their_address() {
        let check = |address: &str, media_type: &str, bytes: Option<u64>| {
            assert_eq!(
                Media::of(address, false),
                Media { media_type: media_type.to_owned(), bytes, data: None },
                "{address}"
            );
        };
        check("data:image/png;base64,iVBORw0=", "image/png", Some(5));
        check("data:image/png;base64,", "image/png", Some(0));
        check("https://example.invalid/a.JPG", "image/jpeg", None);
        check("/home/u/p.webp", "image/webp", None);
        check("", "image/*", None);
    }

    #[test]
    fn a_shell_command_is_shown_with_its_output() {
        let text = "<user_shell_command>\n<command>\necho typed\n</command>\n<result>\nExit code: 0\nDuration: 0.0164 seconds\nOutput:\ntyped\n\n</result>\n</user_shell_command>";
        assert_eq!(shell_command(text), "$ echo typed\ntyped");
        assert_eq!(shell_command("<user_shell_command>nothing"), "<user_shell_command>nothing");
    }
}
