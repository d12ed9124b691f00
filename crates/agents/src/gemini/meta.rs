//! What a chat file says about its session: the first line, and the changes to it that follow.

use std::path::PathBuf;

use jiff::Timestamp;
use transcript::SessionId;

use crate::fields::Raw;

/// The facts of a session, as its records have changed them so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Meta {
    pub id: Option<SessionId>,
    pub has_project: bool,
    pub began: Option<Timestamp>,
    pub updated: Option<Timestamp>,
    pub is_subagent: bool,
    /// The title: the client's own or one that was set.
    pub summary: Option<String>,
    /// The file that the client loaded the session from, if it forked it.
    pub imported_from: Option<PathBuf>,
}

impl Meta {
    /// OptionValue one field of the first line or of a change.
    pub(super) fn take(&mut self, key: &[u8], value: Raw<'_>) {
        let text = || value.string().map(|text| text.into_owned());
        let time = || text().and_then(|text| text.parse().ok());
        match key {
            b"sessionId" => self.id = text().and_then(|id| SessionId::new(id).ok()).or(self.id.take()),
            b"projectHash" => self.has_project |= text().is_some(),
            // Resuming a session in the minute in which it began writes another first line into its file.
            b"startTime" => self.began = self.began.or_else(time),
            b"lastUpdated" => self.updated = time().or(self.updated),
            b"kind" => self.is_subagent = text().as_deref() == Some("subagent"),
            b"summary" => self.summary = text().filter(|summary| !summary.trim().is_empty()),
            _ => {}
        }
    }
}
