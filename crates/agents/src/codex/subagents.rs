//! Threads of subagents, and the records about them in the thread that started them.
//!
//! A helper's thread names its parent in its first line. The parent names the helper in the output of the call that
//! started it (0.140), in an event before that output (0.166), or not at all (a review).

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use transcript::SessionId;

use super::home::{Home, time_of};
use super::meta::{Helper, Meta};
use super::record::{Kind, Record};
use crate::fields::Raw;

/// The largest file that is searched for signs of helpers.
const SEARCHED: u64 = 16 << 20;

/// The tool that starts a helper.
pub(super) const SPAWN: &str = "spawn_agent";

/// A review's thread starts at most this many milliseconds before or after the review is recorded in the thread.
const REVIEW_BEFORE: i64 = 2_000;
const REVIEW_AFTER: i64 = 30_000;

/// A helper that was started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spawn {
    pub thread: String,
    pub role: Option<String>,
    pub task: Option<String>,
}

/// The files of the helpers that a thread started, oldest first.
pub(super) fn of(home: &Home, parent: &SessionId) -> Vec<(SessionId, PathBuf)> {
    let since = time_of(parent.as_str()).unwrap_or(0);
    let mut found = Vec::new();
    for path in home.threads_between(since, None) {
        if let Some(meta) = Meta::read_beginning(&path)
            && meta.spawned_by.as_ref() == Some(parent)
            && let Some(id) = meta.id
        {
            found.push((id, path));
        }
    }
    found
}

/// Whether a thread started subagents: a call, an event that names a subagent's thread, or a review, which runs in a
/// separate thread. The bytes are searched for their signs, which costs a millisecond per few megabytes.
pub(super) fn may_have_any(path: &Path) -> bool {
    const SIGNS: [&[u8]; 4] = [
        br#""name":"spawn_agent""#,
        br#""agent_thread_id":"#,
        br#""receiver_thread_ids":"#,
        br#""entered_review_mode""#,
    ];
    let Ok(file) = crate::files::open_regular(path) else { return false };
    let mut content = Vec::new();
    let read = file.take(SEARCHED).read_to_end(&mut content);
    let is_whole = read.is_ok_and(|count| (count as u64) < SEARCHED);
    if !is_whole || path.extension().is_some_and(|extension| extension == "zst") {
        return true;
    }
    SIGNS.iter().any(|sign| memchr::memmem::find(&content, sign).is_some())
}

/// The thread of a review that started at `began` and was not shown yet; `own` is the file of the thread that requested
/// it.
///
/// Before 0.140, a review's thread names its parent as `forked_from_id` (0.106) or not at all (0.77, 0.118). Then the
/// directory must be the same.
pub(super) fn review(
    home: &Home,
    (parent, own): (&SessionId, &Path),
    began: Timestamp,
    shown: &HashSet<String>,
) -> Option<String> {
    let began = began.as_millisecond();
    let candidates = home.threads_between(began - REVIEW_BEFORE, Some(began + REVIEW_AFTER));
    let reviews = candidates.iter().filter_map(|path| Meta::read_beginning(path));
    let mut reviews: Vec<Meta> = reviews
        .filter(|meta| meta.helper == Some(Helper::Review))
        .filter(|meta| meta.id.as_ref().is_some_and(|id| !shown.contains(id.as_str())))
        .collect();
    let names_parent = |meta: &Meta| meta.spawned_by.as_ref().or(meta.forked_from.as_ref()) == Some(parent);
    let found = reviews.iter().position(names_parent).or_else(|| {
        let directory = Meta::read_beginning(own)?.cwd?;
        let names_nobody = |meta: &Meta| meta.spawned_by.is_none() && meta.forked_from.is_none();
        reviews.iter().position(|meta| names_nobody(meta) && meta.cwd.as_ref() == Some(&directory))
    })?;
    reviews.swap_remove(found).id.map(|id| id.as_str().to_owned())
}

/// The subagents in an event.
pub(super) fn spawns(record: &Record<'_>) -> Vec<Spawn> {
    let item = if record.kind == Kind::SubagentItem { record.get(b"item") } else { Some(Raw(record.payload())) };
    let Some(item) = item else {
        return Vec::new();
    };
    let text = |value: Option<Raw<'_>>| value.and_then(Raw::string).map(|text| text.into_owned());
    match item.get(b"tool").and_then(Raw::plain) {
        Some(b"spawn_agent" | b"spawnAgent") => {
            let threads = item.get(b"receiver_thread_ids").map(Raw::elements).into_iter().flatten();
            let task = text(item.get(b"prompt"));
            threads
                .filter_map(Raw::string)
                .map(|id| Spawn { thread: id.into_owned(), role: None, task: task.clone() })
                .collect()
        }
        Some(_) => Vec::new(),
        None if item.get(b"kind").and_then(Raw::plain) == Some(b"started") => text(item.get(b"agent_thread_id"))
            .map(|thread| Spawn { thread, role: None, task: None })
            .into_iter()
            .collect(),
        None => Vec::new(),
    }
}

/// The helper that the output of the call names.
pub(super) fn spawned_thread(output: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Spawned {
        agent_id: String,
    }
    serde_json::from_str::<Spawned>(output).ok().map(|spawned| spawned.agent_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_name_the_helpers_that_were_started() {
        let check = |payload: &str, expected: &[(&str, Option<&str>)]| {
            let line = format!(r#"{{"timestamp":"x","type":"event_msg","payload":{payload}}}"#);
            let found = spawns(&Record::of(line.as_bytes()).unwrap());
            let found: Vec<(&str, Option<&str>)> =
                found.iter().map(|spawn| (spawn.thread.as_str(), spawn.task.as_deref())).collect();
            assert_eq!(found, expected, "{payload}");
        };
        let item = |item: &str| format!(r#"{{"type":"item_completed","item":{item}}}"#);
        check(
            &item(
                r#"{"type":"CollabAgentToolCall","id":"c","tool":"spawn_agent","receiver_thread_ids":["a"],"prompt":"do it"}"#,
            ),
            &[("a", Some("do it"))],
        );
        check(&item(r#"{"type":"CollabAgentToolCall","id":"c","tool":"wait","receiver_thread_ids":["a"]}"#), &[]);
        check(
            &item(
                r#"{"type":"SubAgentActivity","model":null,"id":"c","kind":"started","agent_thread_id":"a","agent_path":"/root/x"}"#,
            ),
            &[("a", None)],
        );
        check(&item(r#"{"type":"SubAgentActivity","id":"c","kind":"completed","agent_thread_id":"a"}"#), &[]);
        check(r#"{"type":"sub_agent_activity","kind":"started","agent_thread_id":"a"}"#, &[("a", None)]);
        assert_eq!(spawned_thread(r#"{"agent_id":"a","nickname":"Carver"}"#).as_deref(), Some("a"));
        assert_eq!(spawned_thread(r#"{"task_name":"/root/first_task"}"#), None);
        assert_eq!(spawned_thread("unsupported call"), None);
    }
}
