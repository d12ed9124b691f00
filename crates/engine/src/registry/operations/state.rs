//! How far an operation is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::effects::Moved;

/// How far an operation is.
#[derive(Debug, Clone)]
pub enum OperationState {
    /// It was begun and has not ended.
    Started,
    /// It is complete.
    Done,
    /// It failed, and its results were removed.
    Failed,
    /// It is being undone.
    Undoing(Undoing),
    /// It was undone.
    Undone,
    /// It was interrupted, and the next run of tine removed its results.
    Cleaned,
    /// The files that it moved to the trash have been removed.
    Purged,
}

/// An undo that was begun.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Undoing {
    /// The start, in milliseconds.
    pub since: i64,
    /// Whether work that was done since is removed as well.
    pub force: bool,
    /// What gets another name before it is removed.
    pub aside: Vec<Moved>,
    /// Whether all of that has its other name and is forgotten, so that only its removal is left.
    pub is_decided: bool,
}

impl Undoing {
    /// Whether it has changed something already.
    pub(crate) fn is_under_way(&self) -> bool {
        let is_aside = |moved: &Moved| moved.to != moved.from && moved.to.symlink_metadata().is_ok();
        self.is_decided || self.aside.iter().any(is_aside)
    }
}

impl OperationState {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            OperationState::Started => "started",
            OperationState::Done => "done",
            OperationState::Failed => "failed",
            OperationState::Undoing(_) => "undoing",
            OperationState::Undone => "undone",
            OperationState::Cleaned => "cleaned",
            OperationState::Purged => "purged",
        }
    }

    /// Whether it is complete.
    pub fn is_done(&self) -> bool {
        matches!(self, OperationState::Done)
    }

    pub(crate) fn undoing(&self) -> Option<&Undoing> {
        match self {
            OperationState::Undoing(undoing) => Some(undoing),
            _ => None,
        }
    }

    /// Whether some process is, or was, working on it.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self, OperationState::Started | OperationState::Undoing(_))
    }

    /// The record of its undo, if there is one.
    pub(super) fn undo_record(&self) -> serde_json::Result<Option<String>> {
        self.undoing().map(serde_json::to_string).transpose()
    }

    /// Parses a record; the error says why it can't be read.
    pub(super) fn from_record(word: &str, undo: Option<&str>) -> Result<Self, String> {
        match (word, undo) {
            ("started", None) => Ok(OperationState::Started),
            ("done", None) => Ok(OperationState::Done),
            ("failed", None) => Ok(OperationState::Failed),
            ("undoing", Some(undo)) => {
                serde_json::from_str(undo).map(OperationState::Undoing).map_err(|error| error.to_string())
            }
            ("undone", None) => Ok(OperationState::Undone),
            ("cleaned", None) => Ok(OperationState::Cleaned),
            ("purged", None) => Ok(OperationState::Purged),
            (unknown, None) => Err(format!("unknown state `{unknown}`")),
            (other, Some(_)) => Err(format!("an undo of an operation that is `{other}`")),
        }
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
