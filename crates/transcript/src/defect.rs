//! Defects of foreign files. A defect never ends a read: it is counted, and shown on request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kind of damage or surprise in an agent's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// A line that is not a JSON object.
    BadLine,
    /// A last line without its end: the agent was stopped while writing, or is writing now.
    TruncatedLine,
    /// A line with bytes that are not UTF-8.
    InvalidUtf8,
    /// A line too long to be kept in memory; its content is left out, its place in the history is kept.
    HugeLine,
    /// The file could not be opened or read.
    Unreadable,
    /// The file holds no record at all.
    Empty,
    /// The history that this session was forked from is missing.
    MissingBase,
    /// A record that names a parent which is not in the file.
    BrokenLink,
    /// A subagent's transcript that could not be read.
    MissingSubagent,
    /// A file in a format that this version of tine does not know.
    UnknownFormat,
    /// A file in a format that its agent no longer reads.
    OldFormat,
    /// A beginning of another conversation in the same file, which is not part of the history.
    SeparateRoot,
}

impl DefectKind {
    /// One sentence for people.
    pub fn describe(self) -> &'static str {
        match self {
            DefectKind::BadLine => "lines that are not JSON objects were skipped",
            DefectKind::TruncatedLine => "the last line is incomplete",
            DefectKind::InvalidUtf8 => "lines with invalid UTF-8 were read with replacement characters",
            DefectKind::HugeLine => "very long lines are shown as placeholders",
            DefectKind::Unreadable => "the file could not be read",
            DefectKind::Empty => "the file is empty",
            DefectKind::MissingBase => "the session that this one was forked from is missing",
            DefectKind::BrokenLink => "records refer to a parent that is not in the file",
            DefectKind::MissingSubagent => "a subagent's transcript could not be read",
            DefectKind::UnknownFormat => "this version of tine does not know the format",
            DefectKind::OldFormat => "the format is old; the agent no longer reads it",
            DefectKind::SeparateRoot => {
                "the file contains another conversation; `tine show SESSION --branches` lists it"
            }
        }
    }
}

/// The defects of one session, counted by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Defects(BTreeMap<DefectKind, u64>);

impl Defects {
    /// Counts one more.
    pub fn add(&mut self, kind: DefectKind) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Counts several more.
    pub fn add_all(&mut self, kind: DefectKind, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// Counts none of `kind`.
    pub fn forget(&mut self, kind: DefectKind) {
        self.0.remove(&kind);
    }

    /// Adds all of another read.
    pub fn merge(&mut self, other: &Defects) {
        for (kind, count) in &other.0 {
            *self.0.entry(*kind).or_default() += count;
        }
    }

    /// How many there are of `kind`.
    pub fn count(&self, kind: DefectKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// Whether nothing was wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every kind that was met, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DefectKind, u64)> + '_ {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}
