//! The identities of things: which agent, which session, which name.
//!
//! Ids and names end up in file names and command lines, so they are checked once, here, and the types carry the
//! promise from then on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A program that people hold conversations with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Anthropic's Claude Code; the default agent.
    #[default]
    Claude,
    /// OpenAI's Codex CLI.
    Codex,
    /// OpenCode.
    OpenCode,
    /// Google's Gemini CLI.
    Gemini,
}

impl Agent {
    /// Every agent that tine knows, in the order in which they are shown.
    pub const ALL: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::OpenCode, Agent::Gemini];

    /// The word for it on the command line and in JSON, and the name of its program.
    pub fn as_str(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::OpenCode => "opencode",
            Agent::Gemini => "gemini",
        }
    }

    /// The name that its makers use.
    pub fn product_name(self) -> &'static str {
        match self {
            Agent::Claude => "Claude Code",
            Agent::Codex => "Codex",
            Agent::OpenCode => "OpenCode",
            Agent::Gemini => "Gemini CLI",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no agent that tine knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown agent `{0}`")]
pub struct UnknownAgent(pub String);

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Agent::ALL.into_iter().find(|agent| agent.as_str() == word).ok_or_else(|| UnknownAgent(word.to_owned()))
    }
}

/// The id that an agent gave to a session.
///
/// It contains only letters, digits, `-` and `_`, so it is safe in a file name and on a command line, and never looks
/// like an option.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionId(String);

/// A text that cannot be a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a session id", crate::text::one_line(.0))]
pub struct IdError(pub String);

impl SessionId {
    /// Checks `text` and keeps it.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        if SessionId::is_legal(&text) { Ok(SessionId(text)) } else { Err(IdError(text)) }
    }

    /// Whether a text can be an id.
    pub fn is_legal(text: &str) -> bool {
        (1..=128).contains(&text.len())
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first eight characters, enough for a listing.
    pub fn short(&self) -> &str {
        &self.0[..self.0.len().min(8)]
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        SessionId::new(text)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SessionId::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The name that the user or tine gave to a session: 2–64 of `a-z0-9-`, no leading, trailing or double dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionName(String);

impl<'de> Deserialize<'de> for SessionName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SessionName::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Why a text cannot be a session name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Fewer than two characters or more than 64.
    #[error("invalid name `{}`: a name has 2 to 64 characters", crate::text::one_line(.0))]
    Length(String),
    /// A character outside `a-z0-9-`.
    #[error("invalid name `{}`: a name has only a-z, 0-9 and -", crate::text::one_line(.0))]
    Character(String, char),
    /// A dash at an end, or two in a row.
    #[error("invalid name `{}`: a name has no dash at either end and no double dash", crate::text::one_line(.0))]
    Dash(String),
}

impl SessionName {
    /// The longest legal name, in characters.
    pub const MAX_LENGTH: usize = 64;

    /// Checks `text` and keeps it.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
            return Err(NameError::Character(text, bad));
        }
        if !(2..=Self::MAX_LENGTH).contains(&text.len()) {
            return Err(NameError::Length(text));
        }
        if text.starts_with('-') || text.ends_with('-') || text.contains("--") {
            return Err(NameError::Dash(text));
        }
        Ok(SessionName(text))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for SessionName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        SessionName::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_held_to_the_rule() {
        let check = |text: &str, legal: bool| assert_eq!(SessionName::new(text).is_ok(), legal, "{text:?}");
        for legal in ["ab", "auth-fix", "a1", "9-lives", &"x".repeat(64)] {
            check(legal, true);
        }
        for illegal in ["", "a", "-ab", "ab-", "a--b", "Ab", "a_b", "a b", "ä1", "a\u{1b}[0m", &"x".repeat(65)] {
            check(illegal, false);
        }
    }

    #[test]
    fn ids_cannot_leave_a_folder_or_become_options() {
        let check = |text: &str, legal: bool| assert_eq!(SessionId::new(text).is_ok(), legal, "{text:?}");
        check("01a1e069-e243-7c11-9d7b-1f1f5b0c9a10", true);
        check("ses_4Fz", true);
        for illegal in ["", "..", "a/b", "--resume", "a b", "a\n", "é", &"a".repeat(129)] {
            check(illegal, false);
        }
    }

    #[test]
    fn agents_are_read_back_from_their_words() {
        for agent in Agent::ALL {
            assert_eq!(agent.as_str().parse(), Ok(agent));
        }
        assert_eq!("cursor".parse::<Agent>(), Err(UnknownAgent("cursor".into())));
    }
}
