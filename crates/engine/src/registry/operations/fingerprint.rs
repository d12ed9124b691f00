//! The state of a complete transcript, which shows later whether the session has been continued.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Transcripts of up to this many bytes are compared by their content; reading that takes a millisecond or two.
const READ_AGAIN: u64 = 4 << 20;

/// What a transcript was when it was complete.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Its size and time.
    pub stamp: Option<(u64, i64)>,
    /// A digest of its content, if it was not too long.
    pub content: Option<String>,
    /// A digest of other files that belong to the session.
    pub beside: Option<String>,
}

/// Size and time of a transcript.
pub(crate) fn stamp_of(path: &Path) -> Option<(u64, i64)> {
    agents::session_stamp(path).ok().map(|stamp| (stamp.size, stamp.modified))
}

/// A digest of a transcript's content. A long one is not read: no fork should take longer by it.
pub(crate) fn content_of(path: &Path) -> Option<String> {
    if let Some(digest) = agents::digest_of_rows(path, READ_AGAIN) {
        return digest.ok().flatten().map(|digest| format!("{digest:016x}"));
    }
    let is_short = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= READ_AGAIN);
    let content = is_short.then(|| fs::read(path).ok()).flatten()?;
    Some(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&content)))
}
