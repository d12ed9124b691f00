//! Parses queries: words, `"phrases"`, `-without`, `+required`, and filters such as `agent:codex since:2w`.
//!
//! A query is parsed once, here; errors show the position. `pieces` tells operators from words, `limits` are its
//! filters, `words` defines words for
//! the index, too, `typos` finds similar ones, and `language` tells whether the model supports the language.

#[cfg(feature = "semantic")]
pub(crate) mod language;
pub(crate) mod limits;
pub(crate) mod paths;
pub(crate) mod pieces;
pub(crate) mod typos;
pub(crate) mod words;

use std::collections::HashSet;
use std::path::PathBuf;

use transcript::text;

use self::limits::time;
pub use self::limits::{Limits, Now};
use self::paths::{is_extension, normal_path};
use self::pieces::{Piece, PieceKind, pieces, without_filters};
use self::words::Word;
use crate::search::error::{Error, Result};

/// The longest query, in bytes: a stack trace is a query, a log file is not.
const LONGEST: usize = 1_000_000;
/// A longer query was pasted, so it has no operators.
const TYPED: usize = 4096;
/// The maximum number of words.
pub(crate) const MOST: usize = 64;

/// A valid query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The query as typed, made safe to print.
    pub text: String,
    /// The engine to use.
    pub engine: Engine,
    /// The qmd collection to search instead.
    pub collection: Option<String>,
    /// The text without filters and exclusions.
    pub(crate) said: String,
    /// The text without filters, for an engine with its own operators.
    pub(crate) typed: String,
    pub(crate) words: Vec<AskedWord>,
    pub(crate) phrases: Vec<String>,
    /// The words that are names of files.
    pub(crate) files: Vec<String>,
    pub(crate) without: Vec<AskedWord>,
    pub(crate) without_phrases: Vec<String>,
    /// Whether it has more words than are used.
    pub(crate) is_cut: bool,
    /// Its filters.
    pub limits: Limits,
}

/// What answers a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Engine {
    /// The best one in this build.
    #[default]
    Auto,
    /// Words only.
    Words,
    /// Words and meaning together.
    Hybrid,
    /// Meaning only, which is weaker than both together: for the evaluation.
    Meaning,
}

/// A word to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedWord {
    pub word: Word,
    pub required: bool,
}

impl Query {
    /// Parses a query; `given` are filters from options, which are enough for a query without words.
    pub fn parse(asked: &str, given: &Limits, now: &Now) -> Result<Query> {
        if asked.len() > LONGEST {
            return Err(Error::QueryTooLong { bytes: asked.len(), most: LONGEST });
        }
        if asked.len() > TYPED {
            return Query::plain(asked);
        }
        let line = text::one_line(asked);
        let mut query = Query { text: line.clone(), ..Query::default() };
        let mut required = false;
        let pieces = pieces(&line)?;
        query.typed = without_filters(&line, &pieces);
        for piece in pieces {
            if matches!(piece.sort, PieceKind::Phrase | PieceKind::Words) && !piece.without {
                query.said.push_str(&piece.text);
                query.said.push(' ');
            }
            match piece.sort {
                PieceKind::Filter(name) => query.filter(&line, &piece, name, given, now)?,
                PieceKind::And => {
                    query.words.iter_mut().for_each(|word| word.required = true);
                    required = true;
                }
                PieceKind::Phrase if piece.without => query.without_phrases.push(piece.text),
                PieceKind::Phrase => query.phrases.push(piece.text),
                PieceKind::Words => {
                    if !piece.without {
                        query.files.extend(file(&piece.text));
                    }
                    for word in words::words(&piece.text) {
                        let asked = AskedWord { word, required: piece.required || required };
                        if piece.without {
                            query.without.push(asked);
                        } else {
                            query.words.push(asked);
                        }
                    }
                }
            }
        }
        query.settle(given)
    }

    /// Takes plain words: no filters, phrases or operators. Of very long texts, the first words count.
    pub fn plain(said: &str) -> Result<Query> {
        if said.len() > LONGEST {
            return Err(Error::QueryTooLong { bytes: said.len(), most: LONGEST });
        }
        let line = text::one_line(said);
        let asked = words::words(&line).into_iter().map(|word| AskedWord { word, required: false });
        let files = line.split(' ').filter_map(file).collect();
        // The beginning is enough for its meaning.
        let (said, typed) = (text::prefix(&line, TYPED).to_owned(), line.clone());
        let mut query = Query { words: asked.collect(), files, said, typed, text: line, ..Query::default() };
        let says = |asked: &AskedWord| asked.word.parts.iter().any(|part| !words::is_common(part));
        if query.words.iter().any(says) {
            query.words.retain(says);
        }
        query.settle(&Limits::default())
    }

    /// The same query with the words of its phrases instead; `None` if it has no phrase.
    pub(crate) fn with_phrases_as_words(&self) -> Option<Query> {
        let mut query = self.clone();
        let phrases = std::mem::take(&mut query.phrases);
        let said = phrases.iter().flat_map(|phrase| words::words(phrase));
        let said = said.filter(|word| word.parts.iter().any(|part| !words::is_common(part)));
        query.words.extend(said.map(|word| AskedWord { word, required: false }));
        query.words.truncate(MOST);
        (!phrases.is_empty() && !query.words.is_empty()).then_some(query)
    }

    /// Whether a turn must contain or lack certain words; if so, meaning alone is not enough.
    pub(crate) fn is_strict(&self, limits: &Limits) -> bool {
        let has_signs = !self.phrases.is_empty() || !self.without.is_empty() || !self.without_phrases.is_empty();
        has_signs || limits.narrow_turns() || self.words.iter().any(|word| word.required)
    }

    /// Drops filler words if others are left.
    fn settle(mut self, given: &Limits) -> Result<Query> {
        let says = |asked: &AskedWord| asked.required || asked.word.parts.iter().any(|part| !words::is_common(part));
        let had_words = !self.words.is_empty();
        self.words.retain(says);
        let mut seen = HashSet::new();
        self.words.retain(|asked| seen.insert(asked.word.parts.clone()));
        // The first words of a pasted message are enough.
        self.is_cut = self.words.len() > MOST;
        self.words.truncate(MOST);
        self.files.truncate(MOST);
        self.without.truncate(MOST);
        let limits = self.limits.clone().or(given.clone());
        if let (Some(since), Some(until)) = (limits.since, limits.until)
            && since >= until
        {
            return Err(Error::NoSuchTime { since, until });
        }
        if self.words.is_empty() && self.phrases.is_empty() && !limits.is_any_set() {
            return Err(if had_words { Error::OnlyCommonWords(self.text) } else { Error::EmptyQuery });
        }
        if let Some(empty) = self.phrases.iter().find(|phrase| words::words(phrase).is_empty()) {
            let at = self.text.find(&format!("\"{empty}\"")).unwrap_or(0);
            return Err(bad(&self.text, at, empty.len() + 2, "the quotes are empty"));
        }
        Ok(self)
    }

    fn filter(&mut self, line: &str, piece: &Piece, name: &'static str, given: &Limits, now: &Now) -> Result<()> {
        let value = piece.text.as_str();
        let wrong = |message: String| bad(line, piece.at, piece.length, &message);
        if value.is_empty() {
            return Err(wrong(format!("`{name}:` needs a value without a space before it")));
        }
        if piece.without {
            return Err(wrong(format!("`{name}:` cannot be excluded")));
        }
        let has = |limits: &Limits| match name {
            "agent" => limits.agent.is_some(),
            "since" | "after" => limits.since.is_some(),
            "until" | "before" => limits.until.is_some(),
            "branch" => limits.branch.is_some(),
            "dir" => limits.directory.is_some(),
            "tool" => limits.tool.is_some(),
            _ => limits.file.is_some(),
        };
        if has(given) || has(&self.limits) {
            return Err(wrong(format!("`{name}:` is given twice")));
        }
        let limits = &mut self.limits;
        match name {
            "agent" => {
                let agent = value.to_lowercase().parse();
                limits.agent = Some(agent.map_err(|_| wrong(format!("unknown agent `{value}`")))?);
            }
            "since" | "after" => limits.since = Some(time(value, now).map_err(wrong)?),
            "until" | "before" => limits.until = Some(time(value, now).map_err(wrong)?),
            "branch" => limits.branch = Some(value.to_owned()),
            "dir" => limits.directory = Some(PathBuf::from(value)),
            "tool" => limits.tool = Some(value.to_owned()),
            _ => limits.file = Some(without_line(value).to_owned()),
        }
        let (since, until) = (limits.since.or(given.since), limits.until.or(given.until));
        match since.zip(until).is_some_and(|(since, until)| since >= until) {
            true => Err(wrong("`since:` must be earlier than `until:`".to_owned())),
            false => Ok(()),
        }
    }
}

/// The file that a word names, as written in the index.
fn file(word: &str) -> Option<String> {
    let word = without_line(word);
    is_file(word).then(|| normal_path(word))
}

/// A path without the line and column that compilers append: `src/auth.rs:41:7`.
pub fn without_line(path: &str) -> &str {
    let before = |path: &str| {
        let (before, number) = path.rsplit_once(':')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && !before.is_empty()).then_some(before.len())
    };
    // A message continues after a colon.
    let mut path = path.strip_suffix(':').filter(|path| before(path).is_some()).unwrap_or(path);
    for _ in 0..2 {
        path = before(path).map_or(path, |end| &path[..end]);
    }
    path
}

/// Whether a word is the name of a file: a path, or a name with an extension.
fn is_file(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    !word.contains("://") && word.len() < 300 && (extension.is_some_and(is_extension) || name.len() < word.len())
}

pub(crate) fn bad(query: &str, at: usize, length: usize, message: &str) -> Error {
    // The shown part is cut around the position.
    let from = query.floor_char_boundary(at.saturating_sub(40));
    let to = query.ceil_char_boundary((at + length + 40).min(query.len()));
    let before = text::width(&query[from..query.floor_char_boundary(at)]);
    let width =
        text::width(&query[query.floor_char_boundary(at)..query.ceil_char_boundary((at + length).min(query.len()))]);
    let (lead, tail) = (if from > 0 { "…" } else { "" }, if to < query.len() { "…" } else { "" });
    let shown = format!("{lead}{}{tail}", &query[from..to]);
    let marks = format!("{}{}", " ".repeat(before + usize::from(from > 0)), "^".repeat(width.clamp(1, 60)));
    Error::BadQuery { message: message.to_owned(), shown, marks }
}

#[cfg(test)]
mod tests {
    use transcript::Agent;

    use super::limits::tests::now;
    use super::*;

    fn parse(query: &str) -> Result<Query> {
        Query::parse(query, &Limits::default(), &now())
    }

    #[test]
    fn words_phrases_and_filters_are_told_apart() {
        let query =
            parse("how agent:codex file:src/auth.rs since:2w \"exact phrase\" -word +must http://x login").unwrap();
        let words: Vec<String> = query.words.iter().map(|asked| asked.word.parts.join("_")).collect();
        assert_eq!(words, ["must", "http", "x", "login"]);
        assert!(query.words[0].required && !query.words[1].required);
        assert_eq!(query.phrases, ["exact phrase"]);
        assert_eq!(query.without.len(), 1);
        assert_eq!(query.limits.agent, Some(Agent::Codex));
        assert_eq!(query.limits.file.as_deref(), Some("src/auth.rs"));
        assert_eq!(query.limits.since.unwrap().to_string(), "2026-11-01T12:00:00Z");
        assert!(parse("a1 AND b1").unwrap().words.iter().all(|asked| asked.required));
        // A message that was pasted has no signs of ours in it.
        let pasted = parse("NOT NULL constraint failed: users.email").unwrap();
        assert!(pasted.without.is_empty() && pasted.words.iter().any(|asked| asked.word.parts == ["null"]));
        assert_eq!(parse("error:\"not null\"").unwrap().phrases, ["not null"]);
        assert_eq!(parse(&"another word ".repeat(200)).unwrap().words.len(), 2);
        let many: String = (0..100).map(|number| format!("w{number}x ")).collect();
        assert_eq!((parse(&many).unwrap().words.len(), parse(&many).unwrap().is_cut), (MOST, true));
        // Much more than anybody types.
        let trace = parse(&format!("panic: \"oh {}", "at frame -x agent:codex ".repeat(1000))).unwrap();
        assert!(trace.phrases.is_empty() && trace.limits.agent.is_none() && !trace.is_cut, "{trace:?}");
        assert_eq!(parse("agent:Codex x").unwrap().limits.agent, Some(Agent::Codex));
        assert!(parse("since:2w").unwrap().words.is_empty());
        assert_eq!(
            parse("why src/auth.rs and hasher.go e.g. 3.").unwrap().files,
            ["src/auth.rs", "hasher.go", "e.g."][..2]
        );
        assert!(parse("file:x.rs").unwrap().words.is_empty());
    }

    #[test]
    fn what_was_pasted_has_no_signs_in_it() {
        let said = |query: &str| {
            let query = parse(query).unwrap();
            let is_plain = query.without.is_empty() && query.phrases.is_empty() && !query.limits.is_any_set();
            assert!(is_plain, "{query:?}");
            query.words.iter().map(|asked| asked.word.parts.join("_")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said("kubectl -n staging rollout"), "kubectl n staging rollout");
        assert_eq!(said("ffmpeg -ss 00 -c copy"), "ffmpeg ss 00 c copy");
        assert_eq!(said("ping -M do -s 1400"), "ping m s 1400");
        assert_eq!(said("agent: connection refused"), "agent connection refused");
        assert_eq!(said("file:///tmp/x.rs"), "file tmp x rs");
        assert_eq!(said("a 5\" display"), "5 display");
        assert_eq!(said("ffmpeg -vsync cfr -r 30"), "ffmpeg vsync cfr r 30");
        assert_eq!(said("ldapsearch -LLL dc=corp"), "ldapsearch lll dc corp");
        assert_eq!(said("gdb -batch --args main"), "gdb batch args main");
        assert_eq!(said("keychain error -25308, -0x8007"), "keychain error 25308 0x8007");
        assert_eq!(said("-25308"), "25308");
        for kept in ["deadlock -bundle", "a=b -\"not this\"", "1+1=2 == -bundle", "deadlock -2fa"] {
            let query = parse(kept).unwrap();
            assert_eq!(query.without.len() + query.without_phrases.len(), 1, "{kept}");
        }
        assert_eq!(parse("login -\"js\" -猫").unwrap().without.len(), 1);
        // The place in a file is not a part of its name.
        for file in ["file:src/transfer.rs:118", "file:src/transfer.rs:118:7", "file:src/transfer.rs:118:7:"] {
            assert_eq!(parse(file).unwrap().limits.file.as_deref(), Some("src/transfer.rs"), "{file}");
        }
        assert_eq!(parse("at transfer.rs:118: no").unwrap().files, ["transfer.rs"]);
        assert_eq!((without_line("a:b"), without_line(":7"), without_line("x:")), ("a:b", ":7", "x:"));
    }

    #[test]
    fn another_engine_gets_what_was_typed_without_filters() {
        let typed = |query: &str| parse(query).unwrap().typed;
        assert_eq!(typed("login dir:\"a b\" \"exact phrase\" x -word agent:codex"), "login  \"exact phrase\" x -word");
        assert_eq!(typed("file:x.rs"), "");
        // In plain words nothing is a filter, a quote or a sign.
        let plain = Query::plain("\"why -not agent:codex").unwrap();
        assert_eq!((plain.typed.as_str(), plain.said.as_str()), ("\"why -not agent:codex", "\"why -not agent:codex"));
        assert!(!plain.is_strict(&Limits::default()) && plain.limits.agent.is_none());
    }

    #[test]
    fn what_is_wrong_is_shown_at_its_place() {
        let check = |query: &str, expected: &str| {
            let error = parse(query).unwrap_err();
            let told = match &error {
                Error::BadQuery { message, shown, marks } => format!("{message}|{shown}|{marks}"),
                other => other.to_string(),
            };
            assert_eq!(told, expected, "{query}");
        };
        check("login \"not closed", "missing closing quote|login \"not closed|      ^");
        check("x agent:codx", "unknown agent `codx`|x agent:codx|  ^^^^^^^^^^");
        check(
            "x since:soon y",
            "invalid time `soon`; use `3d`, `2w`, `12h` or `2026-11-01`|x since:soon y|  ^^^^^^^^^^",
        );
        check(
            "agent:claude x agent:codex",
            "`agent:` is given twice|agent:claude x agent:codex|               ^^^^^^^^^^^",
        );
        check("since:1w x after:2w", "`after:` is given twice|since:1w x after:2w|           ^^^^^^^^");
        check("x file:", "`file:` needs a value without a space before it|x file:|  ^^^^^");
        check("x \"...\"", "the quotes are empty|x \"...\"|  ^^^^^");
        assert!(matches!(parse("  \u{1b} ").unwrap_err(), Error::EmptyQuery));
        assert!(matches!(parse(".*+?^${}()|[]\\").unwrap_err(), Error::EmptyQuery));
        assert!(matches!(parse("how to do it").unwrap_err(), Error::OnlyCommonWords(_)));
        assert!(matches!(parse(&"x ".repeat(600_000)).unwrap_err(), Error::QueryTooLong { .. }));
        assert!(matches!(parse("-only").unwrap_err(), Error::EmptyQuery));
        let backwards = "`since:` must be earlier than `until:`|x since:1d until:2d|           ^^^^^^^^";
        check("x since:1d until:2d", backwards);
        let given = Limits { agent: Some(Agent::Claude), ..Limits::default() };
        assert!(matches!(Query::parse("agent:codex x", &given, &now()).unwrap_err(), Error::BadQuery { .. }));
    }
}
