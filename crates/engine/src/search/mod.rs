//! Finding past conversations by their words and by their meaning.
//!
//! `words` says what a word is, `query` what was asked, `document` what of a turn goes into the index, `index` keeps it,
//! `update` brings it up to date, `find` asks it, `results` says whose hits they are, and `snippet` shows why. `vectors` keeps what the chunks of prose mean,
//! and `hybrid` puts that together with what `find` found; without the feature `semantic`, `words_only` stands in.

mod document;
mod find;
mod folder;
#[cfg(feature = "semantic")]
mod hybrid;
#[cfg(not(feature = "semantic"))]
#[path = "words_only.rs"]
mod hybrid;
mod index;
mod qmd;
mod query;
mod results;
mod slips;
mod snippet;
mod update;
#[cfg(feature = "semantic")]
mod vectors;
mod words;

use std::path::Path;
use std::time::{Duration, Instant};

pub use find::Correction;
use find::Hits;
use index::{Trouble, Words, WriteLock};
pub use qmd::{DEFAULT_COLLECTION, RECENT};
pub use query::{Engine, Limits, Now, Query, time as query_time};
use results::Sessions;
pub use snippet::Snippet;
use update::{Budget, Updated, Work};
pub use update::{IndexProgress, Missing};

use crate::catalog::{Catalog, Entry, Progress};
use crate::error::{Error, IndexTrouble, Result};
use crate::session::{Knowledge, Session};
use crate::{Tine, private};

/// How long a search works on the index before it answers.
const BEFORE: Duration = Duration::from_secs(5);
/// How long it waits for another process that works on the index.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a search found.
#[derive(Debug)]
pub struct Answer {
    /// What was asked.
    pub query: String,
    /// What answered: `words` or `hybrid`.
    pub engine: &'static str,
    /// What the meaning of the results rests on.
    pub grounds: Grounds,
    /// The sessions, best first.
    pub results: Vec<Found>,
    /// Words that were taken for others.
    pub corrections: Vec<Correction>,
    /// Words that are nowhere.
    pub unknown: Vec<String>,
    /// What is not in the index yet.
    pub missing: Missing,
    /// What else there is to say of the index.
    pub notices: Vec<String>,
    /// What was asked before this engine, and why it did not answer.
    pub errors: Vec<EngineError>,
}

/// Why an engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EngineError {
    /// The engine, or the step of it.
    pub engine: &'static str,
    /// What it said, on one line and safe to print.
    pub message: String,
}

/// What a search by meaning rests on. Where it says nothing, on the vectors of everything that was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grounds {
    /// Sessions whose vectors are not all made yet.
    pub missing: usize,
    /// The turns of these that were compared with the question all the same, because they are among the best by words.
    pub reranked: usize,
    /// Whether the question is in a language that the model does not know, so that words alone decided.
    pub unknown_language: bool,
}

/// What there is of vectors.
#[derive(Debug, Clone, serde::Serialize)]
pub struct VectorStatus {
    /// Vectors.
    pub vectors: usize,
    /// Sessions that have all of theirs.
    pub sessions: usize,
    /// Sessions that do not.
    pub missing: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// A session that was found.
#[derive(Debug)]
pub struct Found {
    /// From 0 to 1.
    pub score: f32,
    /// The session.
    pub session: Session,
    /// The turn that fits best.
    pub turn: u32,
    /// Why it was found.
    pub snippet: Snippet,
    /// Whether it can be forked.
    pub can_fork: bool,
    /// What is wrong with it.
    pub warning: Option<String>,
    /// The forks that hold this turn, too.
    pub forks: Vec<String>,
    /// Where it was found, if not in the transcript.
    pub source: Option<String>,
}

/// What there is of an index.
#[derive(Debug, serde::Serialize)]
pub struct IndexStatus {
    /// Where it is.
    pub path: String,
    /// Sessions that are in it.
    pub sessions: usize,
    /// Of these, those whose tool text is in it.
    pub with_tools: usize,
    /// Documents.
    pub documents: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// What is not in it.
    pub missing: Missing,
    /// The vectors; nothing, where this build has no search by meaning.
    pub vectors: Option<VectorStatus>,
    /// Whether another process writes now.
    pub is_written: bool,
    /// Lines of transcripts that are too long to be searched.
    pub left_out: u64,
    /// What is wrong.
    pub notices: Vec<String>,
    /// Why not everything could be kept.
    #[serde(skip)]
    pub failed: Option<Error>,
}

/// The index and the world that it is about, in one look.
struct Look {
    catalog: Catalog,
    knowledge: Knowledge,
    words: Option<Words>,
    notices: Vec<String>,
    missing: Missing,
    /// Why the index could not be brought up to date.
    failed: Option<Error>,
}

impl Tine {
    /// Looks for sessions. The index is brought up to date first, as far as a few seconds go; one that turns out to be
    /// damaged is built anew.
    pub fn search(
        &self,
        query: &Query,
        given: &Limits,
        limit: usize,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<Answer> {
        match self.search_once(query, given, limit, progress, indexing) {
            Err(Error::Index { trouble: IndexTrouble::Damaged, message, .. }) => {
                let notice = self.remove_damaged(&message)?;
                let mut answer = self.search_once(query, given, limit, progress, indexing)?;
                answer.notices.splice(0..0, notice);
                Ok(answer)
            }
            answered => answered,
        }
    }

    fn search_once(
        &self,
        query: &Query,
        given: &Limits,
        limit: usize,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<Answer> {
        let limits = query.limits.clone().or(given.clone());
        let question = hybrid::Question::of(query);
        if question.is_none() && matches!(query.engine, Engine::Hybrid | Engine::Meaning) && !hybrid::IS_THERE {
            return Err(Error::NoMeaning);
        }
        let budget = Budget { tools: false, until: Some(Instant::now() + BEFORE) };
        let mut look = self.look(budget, progress, indexing)?;
        let sessions = Sessions::of(&look, &limits);
        let mut answer = Answer {
            query: query.text.clone(),
            engine: if question.is_some() { "hybrid" } else { "words" },
            grounds: Grounds::default(),
            results: Vec::new(),
            corrections: Vec::new(),
            unknown: Vec::new(),
            missing: look.missing,
            notices: Vec::new(),
            errors: Vec::new(),
        };
        let mut found = Hits::default();
        if let Some(words) = &look.words {
            let failed = |error: tantivy::TantivyError| self.trouble(error.into());
            let searcher = words.reader().map_err(failed)?.searcher();
            found = find::find(words, &searcher, query, &limits).map_err(failed)?;
            if let Some(question) = question {
                let asked = hybrid::Asked { question, query, limits: &limits, sessions: &sessions };
                let ranked = hybrid::rank(self, asked, words, &searcher, &mut look.catalog, &mut found);
                let (grounds, notices) = ranked.map_err(failed)?;
                answer.grounds = grounds;
                look.notices.extend(notices);
            }
        }
        self.results(&look, query, &sessions, &mut found, limit, &mut answer);
        answer.corrections = found.corrections;
        answer.unknown = found.unknown;
        answer.notices.splice(0..0, look.notices);
        answer.notices.extend(look.failed.map(|error| error.to_string()));
        Ok(answer)
    }

    /// Removes an index that could not be read, unless it is as it should be by now.
    fn remove_damaged(&self, why: &str) -> Result<Option<String>> {
        let cache = &self.context().paths.cache;
        let Some(_lock) = self.wait_for_lock(PATIENCE)? else { return Ok(None) };
        if Words::open(cache).and_then(Words::verified).is_ok() {
            return Ok(None);
        }
        std::fs::remove_dir_all(index::folder(cache)).map_err(|error| self.trouble(error.into()))?;
        Ok(Some(damaged(why)))
    }

    /// Brings the index up to date, to its end or until time is up.
    pub fn update_index(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        if rebuild {
            let cache = &self.context().paths.cache;
            let Some(_lock) = self.wait_for_lock(PATIENCE)? else {
                return Err(self.index_error(IndexTrouble::Busy, "another tine is writing it"));
            };
            let _ = std::fs::remove_dir_all(index::folder(cache));
        }
        let budget = Budget { tools: true, until: time.map(|time| Instant::now() + time) };
        let look = self.look(budget, progress, indexing)?;
        Ok(self.status_of(look))
    }

    /// Makes the vectors that are missing, to the last or until time is up. Words come first: see [`Tine::update_index`].
    pub fn update_vectors(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        let until = time.map(|time| Instant::now() + time);
        let mut look = self.look(Budget { tools: true, until }, progress, indexing)?;
        if let Some(words) = &look.words {
            let cache = &self.context().paths.cache;
            let work = hybrid::Making { cache, words: &words.table.rows, stores: self.stores(), until, rebuild };
            match work.make(&mut look.catalog, indexing) {
                Ok(notices) => look.notices.extend(notices),
                Err(why) => look.failed = Some(self.index_error(IndexTrouble::Other, &why)),
            }
        }
        Ok(self.status_of(look))
    }

    /// What there is of the index, without changing it.
    pub fn index_status(&self, progress: &dyn Progress) -> Result<IndexStatus> {
        let (mut catalog, knowledge) = self.survey(progress)?;
        catalog.entries.iter_mut().for_each(|entry| knowledge.title(&mut entry.summary));
        let mut notices = Vec::new();
        let mut failed = None;
        let open = || Words::open(&self.context().paths.cache).and_then(Words::verified);
        // Another process may replace files in this very moment.
        let words = match open().or_else(|_| open()) {
            Ok(words) => Some(words),
            Err(Trouble::Missing) => None,
            Err(Trouble::Damaged(why)) => {
                notices.push(format!("the index is damaged and will be built anew: {why}"));
                None
            }
            Err(trouble) => {
                failed = Some(self.trouble(trouble));
                None
            }
        };
        let none = index::Rows::default();
        let missing = Work::find(&mut catalog, words.as_ref().map_or(&none, |words| &words.table.rows)).missing();
        Ok(self.status_of(Look { catalog, knowledge, words, notices, missing, failed }))
    }

    fn status_of(&self, mut look: Look) -> IndexStatus {
        let cache = &self.context().paths.cache;
        let none = index::Rows::default();
        let known = look.words.as_ref().map_or(&none, |words| &words.table.rows);
        let vectors = hybrid::status(cache, &mut look.catalog, known, &mut look.notices);
        let rows = look.words.as_ref().map(|words| &words.table.rows);
        let with_tools = |row: &&index::Row| row.level == index::Level::All && row.complete;
        let reader = look.words.as_ref().and_then(|words| words.reader().ok());
        IndexStatus {
            path: index::folder(cache).to_string_lossy().into_owned(),
            sessions: rows.map_or(0, index::Rows::len),
            with_tools: rows.map_or(0, |rows| rows.values().filter(with_tools).count()),
            documents: reader.map_or(0, |reader| reader.searcher().num_docs()),
            bytes: look.words.as_ref().map_or(0, Words::size),
            missing: look.missing,
            vectors,
            is_written: matches!(WriteLock::take(cache), Ok(None)),
            left_out: rows.map_or(0, |rows| rows.values().map(index::Row::left_out).sum()),
            notices: look.notices,
            failed: look.failed,
        }
    }

    /// One look at the sessions and the index, which is brought up to date as far as the budget goes.
    fn look(&self, budget: Budget, progress: &dyn Progress, indexing: &dyn IndexProgress) -> Result<Look> {
        let (mut catalog, knowledge) = self.survey(progress)?;
        catalog.entries.iter_mut().for_each(|entry| knowledge.title(&mut entry.summary));
        let cache = self.context().paths.cache.clone();
        let mut notices = Vec::new();
        // Who builds it to its end wants to know that it is whole; a search has no time for that.
        let is_thorough = budget.until.is_none();
        let open = || Words::open(&cache).and_then(|words| if is_thorough { words.verified() } else { Ok(words) });
        let opened = open();
        let none = index::Rows::default();
        let rows = opened.as_ref().map_or(&none, |words| &words.table.rows);
        let work = Work::find(&mut catalog, rows);
        let words = match opened {
            Ok(words) if work.is_empty() => {
                let missing = Missing::default();
                return Ok(Look { catalog, knowledge, words: Some(words), notices, missing, failed: None });
            }
            other => other,
        };
        // Who wants all of it waits for it; who asks something wants an answer.
        let patience = if budget.until.is_some() { PATIENCE } else { Duration::MAX };
        let lock = match self.wait_for_lock(patience) {
            Ok(lock) => lock,
            // What is there can be searched, also where nothing can be written.
            Err(error) => {
                let Ok(words) = words else { return Err(error) };
                let missing = work.missing();
                return Ok(Look { catalog, knowledge, words: Some(words), notices, missing, failed: Some(error) });
            }
        };
        let Some(lock) = lock else {
            let words = words.ok().or_else(|| wait_for_first(&cache));
            let rows = words.as_ref().map_or(&none, |words| &words.table.rows);
            let missing = Work::find(&mut catalog, rows).missing();
            notices.push("another tine is at work on the index".to_owned());
            return Ok(Look { catalog, knowledge, words, notices, missing, failed: None });
        };
        // Whoever had the lock before may have done the work.
        let mut words = match open() {
            Ok(words) => words,
            Err(trouble @ Trouble::Hindered(..)) => return Err(self.trouble(trouble)),
            Err(trouble) => {
                if let Trouble::Damaged(why) = trouble {
                    notices.push(damaged(&why));
                }
                self.tidy(&cache, &mut notices);
                Words::create(&cache).map_err(|trouble| self.trouble(trouble))?
            }
        };
        let mut bring = |words: &mut Words| {
            let work = Work::find(&mut catalog, &words.table.rows);
            update::update(words, &catalog, &work, self.stores(), budget, indexing)
        };
        let mut updated = bring(&mut words);
        if let Err(Trouble::Damaged(why)) = &updated
            && Words::open(&cache).and_then(Words::verified).is_err()
        {
            notices.push(damaged(why));
            words = Words::create(&cache).map_err(|trouble| self.trouble(trouble))?;
            updated = bring(&mut words);
        }
        if updated.is_err() {
            // What could not be finished would only take up room.
            words.sweep();
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
                // What was committed before is still there.
                let error = self.trouble(trouble);
                let Ok(before) = Words::open(&cache) else { return Err(error) };
                failed = Some(error);
                words = before;
                Work::find(&mut catalog, &words.table.rows).missing()
            }
        };
        Ok(Look { catalog, knowledge, words: Some(words), notices, missing, failed })
    }

    /// Removes what older versions left; newer ones keep theirs.
    fn tidy(&self, cache: &Path, notices: &mut Vec<String>) {
        let (older, newer) = index::other_formats(cache);
        for folder in older {
            let _ = std::fs::remove_dir_all(folder);
        }
        if !newer.is_empty() {
            notices.push("there is an index of a newer tine; it is left alone, and this version keeps its own".into());
        }
    }

    /// The right to write; most of those who have it are done in a moment.
    fn wait_for_lock(&self, patience: Duration) -> Result<Option<WriteLock>> {
        let begun = Instant::now();
        loop {
            match self.write_lock()? {
                None if begun.elapsed() < patience => std::thread::sleep(Duration::from_millis(10)),
                taken => return Ok(taken),
            }
        }
    }

    fn write_lock(&self) -> Result<Option<WriteLock>> {
        let cache = &self.context().paths.cache;
        private::create_folder(cache)
            .and_then(|()| WriteLock::take(cache))
            .map_err(|error| self.index_error(IndexTrouble::of(&error), &error.to_string()))
    }

    fn trouble(&self, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Missing => self.index_error(IndexTrouble::Other, "it is gone"),
            Trouble::Damaged(why) => self.index_error(IndexTrouble::Damaged, &why),
            Trouble::Hindered(kind, why) => self.index_error(kind, &why),
        }
    }

    fn index_error(&self, trouble: IndexTrouble, message: &str) -> Error {
        let message = transcript::text::one_line(message);
        Error::Index { folder: self.context().paths.cache.join("index"), message, trouble }
    }
}

fn damaged(why: &str) -> String {
    format!("the search index was damaged and is built anew: {}", transcript::text::one_line(why))
}

fn is_shown(entry: &Entry) -> bool {
    !entry.summary.is_subagent && !entry.summary.is_empty
}

/// Another process builds the very first index: wait for its first words.
fn wait_for_first(cache: &Path) -> Option<Words> {
    let begun = Instant::now();
    while begun.elapsed() < BEFORE {
        if let Ok(words) = Words::open(cache)
            && !words.table.rows.is_empty()
        {
            return Some(words);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}
