//! A rollout's identity: its first `session_meta`.
//!
//! A fork in the legacy dialect is a full copy that keeps the `session_meta` of every ancestor after its own.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::SessionId;

use super::record::{Kind, Record};
use super::source::{Source, beginning_of_line};
use crate::fields::Raw;

/// The first `session_meta` is on the first line, unless something damaged the file.
const LINES_TO_LOOK_AT: usize = 16;

/// The facts of a `session_meta`.
#[derive(Debug, Clone, Default)]
pub(super) struct Meta {
    pub id: Option<SessionId>,
    /// When the thread started, as written; copies of the record keep it.
    pub began: Vec<u8>,
    pub forked_from: Option<SessionId>,
    /// The thread that started this one as a helper.
    pub spawned_by: Option<SessionId>,
    /// Whether it is a helper's thread, and of which sort.
    pub helper: Option<Helper>,
    pub nickname: Option<String>,
    pub role: Option<String>,
    /// The helper's place among the helpers, as `/root/first_task`.
    pub agent_path: Option<String>,
    pub cwd: Option<PathBuf>,
    pub version: Option<String>,
    pub branch: Option<String>,
    pub base: Option<Base>,
}

/// Kinds of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    Spawned,
    Review,
    Other,
}

/// Where the history before a file's own records is: in another file, up to an ordinal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// The segment, which is the thread unless that was reverted.
    pub segment: String,
    pub end_ordinal: Option<u64>,
    pub end_offset: Option<u64>,
}

impl Meta {
    pub(super) fn of(record: &Record<'_>) -> Self {
        let mut meta = Meta::default();
        for (key, value) in record.fields() {
            match key {
                b"id" => meta.id = id(value),
                b"timestamp" => meta.began = value.plain().unwrap_or_default().to_vec(),
                b"forked_from_id" => meta.forked_from = id(value),
                b"parent_thread_id" => meta.spawned_by = id(value),
                b"source" => meta.note_source(value),
                b"thread_source" if value.plain() == Some(b"subagent") => {
                    meta.helper = meta.helper.or(Some(Helper::Other));
                }
                b"agent_nickname" => meta.nickname = text(value),
                b"agent_role" => meta.role = text(value),
                b"agent_path" => meta.agent_path = text(value),
                b"cwd" => meta.cwd = text(value).map(PathBuf::from),
                b"cli_version" => meta.version = text(value),
                b"git" => meta.branch = value.get(b"branch").and_then(text),
                b"history_base" => meta.base = base(value),
                _ => {}
            }
        }
        meta
    }

    /// `source` is a word or `{"custom":…}` for a person's thread; helpers' are `{"subagent":…}` and `{"internal":…}`.
    fn note_source(&mut self, source: Raw<'_>) {
        if source.get(b"internal").is_some() {
            self.helper = Some(Helper::Other);
        }
        let Some(subagent) = source.get(b"subagent") else {
            return;
        };
        self.helper = Some(if subagent.plain() == Some(b"review") { Helper::Review } else { Helper::Other });
        if let Some(spawn) = subagent.get(b"thread_spawn") {
            self.helper = Some(Helper::Spawned);
            let parent = spawn.get(b"parent_thread_id").and_then(id);
            self.spawned_by = self.spawned_by.take().or(parent);
        }
    }

    /// Reads the identity of the file at `path`.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut lines = Source::lines(path, None).ok()?;
        for _ in 0..LINES_TO_LOOK_AT {
            let Some(bytes) = lines.next_line().ok()??.bytes else {
                continue;
            };
            if let Some(record) = Record::of(bytes).filter(|record| record.kind == Kind::SessionMeta) {
                return Some(Meta::of(&record));
            }
        }
        None
    }

    /// Looks at the beginning of the file only: enough to know who started it, not where its history is.
    pub(super) fn read_beginning(path: &Path) -> Option<Self> {
        let Some(beginning) = beginning_of_line(path, 0) else {
            return Meta::read(path);
        };
        let record = Record::of(&beginning).filter(|record| record.kind == Kind::SessionMeta)?;
        Some(Meta::of(&record))
    }

    pub(super) fn began_at(&self) -> Option<Timestamp> {
        std::str::from_utf8(&self.began).ok()?.parse().ok()
    }
}

fn base(value: Raw<'_>) -> Option<Base> {
    Some(Base {
        segment: value.get(b"thread_id").and_then(text)?,
        end_ordinal: value.get(b"end_ordinal_exclusive").and_then(Raw::number),
        end_offset: value.get(b"end_byte_offset").and_then(Raw::number),
    })
}

fn id(value: Raw<'_>) -> Option<SessionId> {
    SessionId::new(value.string()?).ok()
}

fn text(value: Raw<'_>) -> Option<String> {
    value.string().map(|text| text.into_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(payload: &str) -> Meta {
        let line = format!(r#"{{"timestamp":"x","type":"session_meta","payload":{payload}}}"#);
        Meta::of(&Record::of(line.as_bytes()).unwrap())
    }

    #[test]
    fn helpers_are_told_from_persons_threads() {
        let check = |payload: &str, helper: Option<Helper>, spawned_by: Option<&str>| {
            let meta = meta(payload);
            let parent = meta.spawned_by.as_ref().map(SessionId::as_str);
            assert_eq!((meta.helper, parent), (helper, spawned_by), "{payload}");
        };
        check(r#"{"id":"a","source":"exec","thread_source":"user"}"#, None, None);
        check(r#"{"id":"a","source":"vscode"}"#, None, None);
        check(
            r#"{"id":"a","parent_thread_id":"p","source":{"subagent":"review"},"thread_source":"subagent"}"#,
            Some(Helper::Review),
            Some("p"),
        );
        check(
            r#"{"id":"a","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":1}}}}"#,
            Some(Helper::Spawned),
            Some("p"),
        );
        check(r#"{"id":"a","source":{"subagent":{"other":"memory"}}}"#, Some(Helper::Other), None);
        check(r#"{"id":"a","source":{"internal":"memory_consolidation"}}"#, Some(Helper::Other), None);
        check(r#"{"id":"a","source":{"custom":"editor"}}"#, None, None);
        check(r#"{"id":"a","thread_source":"subagent"}"#, Some(Helper::Other), None);
    }

    #[test]
    fn a_reference_names_segment_and_end() {
        let base = meta(
            r#"{"id":"a","history_base":{"thread_id":"p","end_ordinal_exclusive":23,"end_byte_offset":39472},"git":{"branch":"main"}}"#,
        );
        let expected = Base { segment: "p".to_owned(), end_ordinal: Some(23), end_offset: Some(39472) };
        assert_eq!((base.base, base.branch.as_deref()), (Some(expected), Some("main")));
    }
}
