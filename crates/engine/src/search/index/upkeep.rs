//! Keeps the index up to date: compares it with the catalog, updates it under the write lock, and reports its status.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;

use super::table::{Level, Row, Rows, Table};
use super::update::{self, Budget, IndexProgress, Updated};
use super::work::{Missing, Work};
use super::{OpenFailure, VectorStatus, Words, WriteLock, embeddings, folder_of, other_formats, panics};
use crate::reported::ReportedError;
use crate::search::error::{Error, IndexProblem, Result};
use crate::sessions::catalog::{Catalog, Progress};
use crate::sessions::session::Knowledge;
use crate::{ctx::Ctx, private};

/// How long a search updates the index before it answers.
pub(crate) const BEFORE: Duration = Duration::from_secs(5);
/// How long a search waits for another process that is writing the index.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of the index.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexStatus {
    /// Its folder.
    pub path: String,
    /// Sessions in it.
    pub sessions: usize,
    /// Those of them with tool text.
    pub with_tools: usize,
    /// Documents.
    pub documents: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// What is missing.
    pub missing: Missing,
    /// The vectors; `None` if this build has no search by meaning.
    pub vectors: Option<VectorStatus>,
    /// Whether another process is writing it now.
    pub is_written: bool,
    /// Lines of transcripts that are too long to index.
    pub left_out: u64,
    /// Folders of agents that could not be listed.
    pub unlisted: usize,
    /// Problems.
    pub notices: Vec<String>,
    /// Why some text could not be stored.
    #[serde(skip)]
    pub failed: Option<Error>,
}

/// The JSON of an index.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexView<'a> {
    #[serde(flatten)]
    status: &'a IndexStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReportedError>,
}

impl IndexStatus {
    /// Its JSON, with the reason if not everything could be kept.
    pub fn view(&self) -> IndexView<'_> {
        let error = self.failed.as_ref().map(|error| ReportedError::new(error, error.advice()));
        IndexView { status: self, error }
    }
}

/// The index and the catalog at one point in time.
pub(crate) struct OpenIndex {
    pub catalog: Catalog,
    pub knowledge: Knowledge,
    pub words: Option<Words>,
    pub notices: Vec<String>,
    pub missing: Missing,
    /// Why the index could not be updated.
    pub failed: Option<Error>,
}

/// How to update the index.
#[derive(Debug, Clone, Copy)]
pub struct IndexRequest {
    /// The part to update.
    pub part: IndexPart,
    /// The time limit.
    pub time: Option<Duration>,
    /// Whether to rebuild that part.
    pub rebuild: bool,
}

/// A part of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexPart {
    /// The words.
    Words,
    /// The vectors, for the words that are already indexed.
    Vectors,
}

/// Updates the index, completely or until time is up.
pub(crate) fn update_index(
    ctx: &Ctx,
    request: IndexRequest,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<IndexStatus> {
    match request.part {
        IndexPart::Words => update_words(ctx, request, progress, indexing),
        IndexPart::Vectors => update_vectors(ctx, request, progress, indexing),
    }
}

fn update_words(
    ctx: &Ctx,
    request: IndexRequest,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<IndexStatus> {
    if request.rebuild {
        let cache = &ctx.context().paths.cache;
        let Some(_lock) = wait_for_lock(ctx, PATIENCE)? else {
            return Err(index_error(ctx, IndexProblem::Busy, "another tine is writing it"));
        };
        std::fs::remove_dir_all(folder_of(cache)).or_log(format_args!("remove {}", folder_of(cache).display()));
    }
    let budget = Budget { tools: true, until: request.time.map(|time| Instant::now() + time) };
    let look = open_index(ctx, budget, progress, indexing)?;
    Ok(status_of(ctx, look))
}

/// Creates the missing vectors, all of them or until time is up.
fn update_vectors(
    ctx: &Ctx,
    request: IndexRequest,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<IndexStatus> {
    let until = request.time.map(|time| Instant::now() + time);
    let mut look = open_index(ctx, Budget { tools: true, until }, progress, indexing)?;
    if let Some(words) = &look.words {
        match embeddings::make(ctx, &mut look.catalog, &words.table.rows, until, request.rebuild, indexing) {
            Ok(notices) => look.notices.extend(notices),
            Err(why) => look.failed = Some(index_error(ctx, IndexProblem::Other, &why)),
        }
    }
    Ok(status_of(ctx, look))
}

/// The state of the index, without changing it.
pub(crate) fn index_status(ctx: &Ctx, progress: &dyn Progress) -> Result<IndexStatus> {
    let (mut catalog, knowledge) = crate::sessions::survey::survey(ctx, progress)?;
    knowledge.title_all(&mut catalog.entries);
    let mut notices = Vec::new();
    let mut failed = None;
    let open = || Words::open(&ctx.context().paths.cache).and_then(Words::verified);
    // Another process may be replacing files right now.
    let words = match open().or_else(|_| open()) {
        Ok(words) => Some(words),
        Err(OpenFailure::Missing) => None,
        Err(OpenFailure::Damaged(why)) => {
            notices.push(format!("the index is damaged and will be rebuilt: {why}"));
            None
        }
        Err(trouble) => {
            failed = Some(trouble_as_error(ctx, trouble));
            None
        }
    };
    let none = Table::default();
    let missing = Work::find(&mut catalog, words.as_ref().map_or(&none, |words| &words.table)).missing();
    Ok(status_of(ctx, OpenIndex { catalog, knowledge, words, notices, missing, failed }))
}

fn status_of(ctx: &Ctx, mut look: OpenIndex) -> IndexStatus {
    let cache = &ctx.context().paths.cache;
    let none = Rows::default();
    let known = look.words.as_ref().map_or(&none, |words| &words.table.rows);
    let vectors = embeddings::status(cache, &mut look.catalog, known, &mut look.notices);
    let rows = look.words.as_ref().map(|words| &words.table.rows);
    let with_tools = |row: &&Row| row.level == Level::All && row.complete;
    let reader = look.words.as_ref().and_then(|words| words.reader().ok());
    IndexStatus {
        path: folder_of(cache).to_string_lossy().into_owned(),
        sessions: rows.map_or(0, Rows::len),
        with_tools: rows.map_or(0, |rows| rows.values().filter(with_tools).count()),
        documents: reader.map_or(0, |reader| reader.searcher().num_docs()),
        bytes: look.words.as_ref().map_or(0, Words::size),
        missing: look.missing,
        vectors,
        is_written: matches!(WriteLock::take(cache), Ok(None)),
        left_out: rows.map_or(0, |rows| rows.values().map(Row::left_out).sum()),
        unlisted: look.catalog.unreadable.len(),
        notices: look.notices,
        failed: look.failed,
    }
}

/// Lists the sessions and opens the index, which is updated within the budget.
pub(crate) fn open_index(
    ctx: &Ctx,
    budget: Budget,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<OpenIndex> {
    open_index_and_query(ctx, budget, progress, indexing, |_| ()).map(|(look, _)| look)
}

/// The same, and queries the index while the sessions are listed. There is no answer if the index had to be updated
/// first.
pub(crate) fn open_index_and_query<T: Send>(
    ctx: &Ctx,
    budget: Budget,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
    ask: impl Fn(&Words) -> T + Sync,
) -> Result<(OpenIndex, Option<T>)> {
    let cache = ctx.context().paths.cache.clone();
    let mut notices = Vec::new();
    // A complete update verifies the index; a search has no time for that.
    let is_thorough = budget.until.is_none();
    let open = || Words::open(&cache).and_then(|words| if is_thorough { words.verified() } else { Ok(words) });
    let is_caught = panics::is_panic_caught();
    let (surveyed, opened) = thread::scope(|scope| {
        let opening = scope.spawn(|| {
            panics::is_caught_as(is_caught);
            let words = open().and_then(|words| if is_thorough { Ok(words) } else { words.with_segments() })?;
            let answer = ask(&words);
            Ok((words, answer))
        });
        (crate::sessions::survey::survey(ctx, progress), opening.join())
    });
    let (mut catalog, knowledge) = surveyed?;
    let (opened, answer) = match opened {
        Ok(Ok((words, answer))) => (Ok(words), Some(answer)),
        Ok(Err(trouble)) => (Err(trouble), None),
        Err(_) => (open(), None),
    };
    knowledge.title_all(&mut catalog.entries);
    let none = Table::default();
    let table = opened.as_ref().map_or(&none, |words| &words.table);
    let work = Work::find(&mut catalog, table);
    let words = match opened {
        Ok(words) if work.is_empty() => {
            let missing = Missing::default();
            return Ok((OpenIndex { catalog, knowledge, words: Some(words), notices, missing, failed: None }, answer));
        }
        other => other,
    };
    // A complete update waits for the lock; a search wants to answer.
    let patience = if budget.until.is_some() { PATIENCE } else { Duration::MAX };
    let lock = match wait_for_lock(ctx, patience) {
        Ok(lock) => lock,
        // The existing index can be searched even if nothing can be written.
        Err(error) => {
            let Ok(words) = words else { return Err(error) };
            let missing = work.missing();
            let failed = Some(error);
            return Ok((OpenIndex { catalog, knowledge, words: Some(words), notices, missing, failed }, answer));
        }
    };
    let Some(lock) = lock else {
        let words = words.ok().or_else(|| wait_for_first(&cache));
        let table = words.as_ref().map_or(&none, |words| &words.table);
        let missing = Work::find(&mut catalog, table).missing();
        notices.push("another tine is updating the index".to_owned());
        return Ok((OpenIndex { catalog, knowledge, words, notices, missing, failed: None }, answer));
    };
    // The previous owner of the lock may have done the work.
    let (opened, mut found) = match words {
        Ok(words) if words.is_current() => (Ok(words), Some(work)),
        _ => (open(), None),
    };
    let mut words = match opened {
        Ok(words) => words,
        Err(trouble @ OpenFailure::Hindered(..)) => return Err(trouble_as_error(ctx, trouble)),
        Err(trouble) => {
            match trouble {
                OpenFailure::Damaged(why) => notices.push(damaged(&why)),
                // An index without its first file is as good as missing.
                _ if has_lost_its_beginning(&cache) => notices.push(damaged("`meta.json` is missing")),
                _ => {}
            }
            remove_old_indexes(&cache, &mut notices);
            Words::create(&cache).map_err(|trouble| trouble_as_error(ctx, trouble))?
        }
    };
    let mut bring = |words: &mut Words| {
        let work = found.take().unwrap_or_else(|| Work::find(&mut catalog, &words.table));
        update::update(words, &catalog, &work, ctx.adapters(), budget, indexing)
    };
    let mut updated = bring(&mut words);
    if let Err(OpenFailure::Damaged(why)) = &updated
        && Words::open(&cache).and_then(Words::verified).is_err()
    {
        notices.push(damaged(why));
        words = Words::create(&cache).map_err(|trouble| trouble_as_error(ctx, trouble))?;
        updated = bring(&mut words);
    }
    if updated.is_err() {
        // Unfinished files would only take up space.
        words.remove_unnamed_files();
    }
    drop(lock);
    let mut failed = None;
    let missing = match updated {
        Ok(Updated { missing, unreadable }) => {
            for (path, kind) in &unreadable {
                notices.push(format!("cannot read {}: {kind}", path.display()));
            }
            missing
        }
        Err(trouble) => {
            // The last commit is still valid.
            let error = trouble_as_error(ctx, trouble);
            let Ok(before) = Words::open(&cache) else { return Err(error) };
            failed = Some(error);
            words = before;
            Work::find(&mut catalog, &words.table).missing()
        }
    };
    Ok((OpenIndex { catalog, knowledge, words: Some(words), notices, missing, failed }, None))
}

/// Removes indexes of older versions; newer versions keep theirs.
fn remove_old_indexes(cache: &Path, notices: &mut Vec<String>) {
    let (older, newer) = other_formats(cache);
    for folder in older {
        std::fs::remove_dir_all(&folder).or_log(format_args!("remove {}", folder.display()));
    }
    if !newer.is_empty() {
        notices.push("found the index of a newer tine; this version uses its own".into());
    }
}

/// Acquires the write lock; most owners release it within a moment.
fn wait_for_lock(ctx: &Ctx, patience: Duration) -> Result<Option<WriteLock>> {
    let begun = Instant::now();
    loop {
        match write_lock(ctx)? {
            None if begun.elapsed() < patience => thread::sleep(Duration::from_millis(10)),
            taken => return Ok(taken),
        }
    }
}

fn write_lock(ctx: &Ctx) -> Result<Option<WriteLock>> {
    let cache = &ctx.context().paths.cache;
    private::create_folder(cache)
        .and_then(|()| WriteLock::take(cache))
        .map_err(|error| index_error(ctx, IndexProblem::of(&error), &error.to_string()))
}

pub(crate) fn trouble_as_error(ctx: &Ctx, trouble: OpenFailure) -> Error {
    match trouble {
        OpenFailure::Missing => index_error(ctx, IndexProblem::Other, "it no longer exists"),
        OpenFailure::Damaged(why) => index_error(ctx, IndexProblem::Damaged, &why),
        OpenFailure::Hindered(kind, why) => index_error(ctx, kind, &why),
    }
}

fn index_error(ctx: &Ctx, trouble: IndexProblem, message: &str) -> Error {
    let message = transcript::text::one_line(message);
    Error::Index { folder: ctx.context().paths.cache.join("index"), message, trouble }
}

/// Removes an unreadable index, unless it is intact now.
pub(crate) fn remove_damaged(ctx: &Ctx, why: &str) -> Result<Option<String>> {
    let cache = &ctx.context().paths.cache;
    let Some(_lock) = wait_for_lock(ctx, PATIENCE)? else { return Ok(None) };
    if Words::open(cache).and_then(Words::verified).is_ok() {
        return Ok(None);
    }
    std::fs::remove_dir_all(folder_of(cache)).map_err(|error| trouble_as_error(ctx, error.into()))?;
    Ok(Some(damaged(why)))
}

fn damaged(why: &str) -> String {
    format!("the search index was damaged; rebuilding it: {}", transcript::text::one_line(why))
}

/// Whether files of an index exist, but not the one that lists them.
fn has_lost_its_beginning(cache: &Path) -> bool {
    let folder = folder_of(cache);
    let is_table = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("table-");
    !folder.join("meta.json").exists() && std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(is_table))
}

/// Another process is building the first index: wait for its first commit.
fn wait_for_first(cache: &Path) -> Option<Words> {
    let begun = Instant::now();
    while begun.elapsed() < BEFORE {
        if let Ok(words) = Words::open(cache)
            && !words.table.rows.is_empty()
        {
            return Some(words);
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}
