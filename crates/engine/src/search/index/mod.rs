//! The keyword index on disk: tantivy's files, and a table of what is indexed of each transcript.
//!
//! It is a cache. Each format has its own folder, so that older and newer versions of tine don't interfere; an
//! unreadable index is deleted and rebuilt. tantivy's commit names the table that belongs to it, so the two always
//! match. One process writes; its lock is an operating-system lock, which ends with the process.
//!
//! `document` selects the text of a turn (`branch` numbers the turns of other branches), and `schema` says how it is
//! stored. `work` finds out what is missing (`subagents` checks their transcripts), `update` adds it, and `upkeep` decides
//! when. `embeddings` holds the vectors. `boot`, `folder` and `panics` keep damaged files from doing harm.

pub(crate) mod boot;
pub(crate) mod branch;
pub(crate) mod document;
#[cfg(feature = "semantic")]
pub(crate) mod embeddings;
#[cfg(not(feature = "semantic"))]
#[path = "no_embeddings.rs"]
pub(crate) mod embeddings;
pub(crate) mod folder;
pub(crate) mod panics;
pub(crate) mod schema;
pub(crate) mod subagents;
pub(crate) mod table;
pub(crate) mod update;
pub(crate) mod upkeep;
pub(crate) mod work;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use tantivy::directory::META_LOCK;
use tantivy::directory::error::{LockError, OpenReadError, OpenWriteError};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::LogMergePolicy;
use tantivy::store::Compressor;
use tantivy::{Directory, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyError};

use self::boot::{is_of_this_boot, note_boot};
use self::document::TurnDocument;
use self::folder::{Folder, SmallMerges, files_of_segment};
use self::schema::{Fields, schema, with_tokenizer};
use self::table::Table;
use crate::private;
use crate::search::error::IndexProblem;

/// Changes whenever the indexed text or its form changes; each number has its own folder.
pub(crate) const FORMAT: u32 = 6;

/// The state of the vectors.
#[derive(Debug, Clone, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorStatus {
    /// Vectors.
    pub vectors: usize,
    /// Sessions that have all their vectors.
    pub sessions: usize,
    /// Sessions that lack some.
    pub missing: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// An open index.
pub(crate) struct Words {
    pub index: Index,
    pub fields: Fields,
    pub table: Table,
    folder: PathBuf,
    /// The name of the table in the commit.
    name: String,
    /// Its segments, if they were opened.
    reader: Option<IndexReader>,
}

/// Why an index can't be opened.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// It does not exist.
    Missing,
    /// It cannot be read.
    Damaged(String),
    /// It is intact, but something else prevents access.
    Hindered(IndexProblem, String),
}

impl From<TantivyError> for OpenFailure {
    fn from(error: TantivyError) -> Self {
        let trouble = match &error {
            TantivyError::LockFailure(LockError::LockBusy, _) => IndexProblem::Busy,
            TantivyError::IoError(source)
            | TantivyError::LockFailure(LockError::IoError(source), _)
            | TantivyError::OpenReadError(OpenReadError::IoError { io_error: source, .. })
            | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: source, .. }) => {
                IndexProblem::of(source)
            }
            _ => IndexProblem::Other,
        };
        OpenFailure::new(trouble, error.to_string())
    }
}

impl From<io::Error> for OpenFailure {
    fn from(error: io::Error) -> Self {
        OpenFailure::new(IndexProblem::of(&error), error.to_string())
    }
}

impl OpenFailure {
    /// tantivy has no error for damage: every otherwise unexplained error counts as one.
    fn new(trouble: IndexProblem, why: String) -> OpenFailure {
        match trouble {
            IndexProblem::Damaged | IndexProblem::Other => OpenFailure::Damaged(why),
            known => OpenFailure::Hindered(known, why),
        }
    }
}

/// The write lock, which ends with the process at the latest.
pub(crate) struct WriteLock(#[expect(dead_code, reason = "it is held, not used")] File);

impl WriteLock {
    /// Acquires it; `None` if another process has it.
    pub(crate) fn take(cache: &Path) -> io::Result<Option<WriteLock>> {
        let folder = cache.join("index");
        private::create_folder(&folder)?;
        let file = private::open_file(&folder.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(WriteLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The checksums of files up to this size are verified whenever the index is opened.
const SMALL: u64 = 16 << 10;

/// The folder of this format.
pub(crate) fn folder_of(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("words-{FORMAT}"))
}

/// Indexes in the formats of other versions of tine: older and newer ones.
pub(crate) fn other_formats(cache: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut others = (Vec::new(), Vec::new());
    for entry in fs::read_dir(cache.join("index")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix("words-").and_then(|number| number.parse::<u32>().ok()) {
            Some(number) if number < FORMAT => others.0.push(entry.path()),
            Some(number) if number > FORMAT => others.1.push(entry.path()),
            _ => {}
        }
    }
    others
}

impl Words {
    /// Opens the last commit of the index.
    pub(crate) fn open(cache: &Path) -> Result<Words, OpenFailure> {
        let folder = folder_of(cache);
        if !folder.join("meta.json").exists() {
            return Err(OpenFailure::Missing);
        }
        let index = with_tokenizer(Index::open(Folder::open(&folder)?)?);
        let (wanted, fields) = schema();
        if index.schema() != wanted {
            return Err(OpenFailure::Damaged("its fields are not those of this version".into()));
        }
        // Another process may commit meanwhile and remove the old table.
        let mut tries = 0;
        let (name, table) = loop {
            // Nothing has been committed yet.
            let payload = index.load_metas()?.payload.ok_or(OpenFailure::Missing)?;
            match Table::read(&folder, &payload) {
                Ok(table) => break (payload, table),
                Err(_) if tries < 20 => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        };
        // Keeps other processes from removing files that are no longer in a commit.
        let lock =
            index.directory().acquire_lock(&META_LOCK).map_err(|error| TantivyError::LockFailure(error, None))?;
        let is_known_whole = is_of_this_boot(&folder);
        let files = files_of(&folder, &index)?;
        if !is_known_whole || table.files != files {
            // Changed by another program, replaced by an uncommitted merge, or perhaps truncated by a power failure:
            // verify it.
            validate(&index)?;
        }
        if !is_known_whole {
            note_boot(&folder);
        }
        // tantivy can panic on damaged fast fields, and on files whose footer locates everything else. Verifying small
        // files costs nothing.
        for (name, ..) in files.iter().filter(|(name, size, _)| *size <= SMALL || name.ends_with(".fast")) {
            if !index.directory().validate_checksum(Path::new(name)).map_err(TantivyError::from)? {
                return Err(not_as_written(Path::new(name)));
            }
        }
        drop(lock);
        panics::trusted(&folder);
        Ok(Words { index, fields, table, folder, name, reader: None })
    }

    /// Opens the segments for a search.
    pub(crate) fn with_segments(self) -> Result<Words, OpenFailure> {
        let reader = Some(self.reader()?);
        Ok(Words { reader, ..self })
    }

    /// They will be replaced.
    pub(crate) fn forget_segments(&mut self) {
        self.reader = None;
    }

    /// Verifies every byte.
    pub(crate) fn verified(self) -> Result<Words, OpenFailure> {
        validate(&self.index)?;
        self.reader()?;
        Ok(self)
    }

    /// Creates an empty index.
    pub(crate) fn create(cache: &Path) -> Result<Words, OpenFailure> {
        let folder = folder_of(cache);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        private::create_folder(&folder)?;
        // tantivy would create these with read permission for everyone.
        for lock in [".tantivy-meta.lock", ".tantivy-writer.lock"] {
            private::open_file(&folder.join(lock))?;
        }
        note_boot(&folder);
        let (schema, fields) = schema();
        let settings = IndexSettings { docstore_compression: Compressor::None, ..IndexSettings::default() };
        let builder = Index::builder().schema(schema).settings(settings);
        let index = with_tokenizer(builder.open_or_create(Folder::open(&folder)?)?);
        Ok(Words { index, fields, table: Table::default(), folder, name: String::new(), reader: None })
    }

    pub(crate) fn reader(&self) -> tantivy::Result<IndexReader> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        self.index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(0).try_into()
    }

    /// Opens it for writing. `memory` is shared by all threads.
    pub(crate) fn writer(&self, threads: usize, memory: usize) -> tantivy::Result<IndexWriter<TurnDocument>> {
        self.remove_unnamed_files();
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(memory / threads)
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options)?;
        let merges = SmallMerges { folder: self.folder.clone(), usual: LogMergePolicy::default() };
        writer.set_merge_policy(Box::new(merges));
        Ok(writer)
    }

    /// Removes files that no commit names. Requires the write lock.
    pub(crate) fn remove_unnamed_files(&self) {
        folder::remove_unnamed_files(&self.index, &self.folder);
    }

    /// Commits everything that was added, together with the table.
    pub(crate) fn commit(&mut self, writer: &mut IndexWriter<TurnDocument>) -> Result<(), OpenFailure> {
        let mut prepared = writer.prepare_commit()?;
        let name = format!("table-{}-{:x}", prepared.opstamp(), std::process::id());
        // Once before, so that the commit names a table; again when the files are known.
        self.table.files.clear();
        self.table.write(&self.folder.join(&name))?;
        prepared.set_payload(&name);
        prepared.commit()?;
        self.settle(&name)
    }

    /// Records the state of the files, and removes tables that no commit names any longer.
    pub(crate) fn settle(&mut self, name: &str) -> Result<(), OpenFailure> {
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let file = entry.file_name();
            if file.to_string_lossy().starts_with("table-") && file.to_string_lossy() != name {
                fs::remove_file(entry.path()).or_log(format_args!("remove {}", entry.path().display()));
            }
        }
        self.table.files = files_of(&self.folder, &self.index)?;
        self.table.write(&self.folder.join(name))?;
        Ok(())
    }

    /// Whether no other process has committed since it was opened.
    pub(crate) fn is_current(&self) -> bool {
        self.committed().is_ok_and(|name| name == self.name)
    }

    /// The name of the table in the last commit.
    pub(crate) fn committed(&self) -> Result<String, OpenFailure> {
        Ok(self.index.load_metas()?.payload.unwrap_or_default())
    }

    /// Its size on disk, in bytes.
    pub(crate) fn size(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }
}

/// Name, size and time of every file of the index.
fn files_of(folder: &Path, index: &Index) -> Result<Vec<(String, u64, i64)>, OpenFailure> {
    let mut files = Vec::new();
    for name in index.searchable_segment_metas()?.iter().flat_map(files_of_segment) {
        if let Ok(metadata) = fs::metadata(folder.join(&name)) {
            let stamp = agents::stamp(&metadata);
            files.push((name.to_string_lossy().into_owned(), stamp.size, stamp.modified));
        }
    }
    files.sort();
    Ok(files)
}

/// Verifies the checksum of every file.
fn validate(index: &Index) -> Result<(), OpenFailure> {
    match index.validate_checksum()?.iter().next() {
        Some(file) => Err(not_as_written(file)),
        None => Ok(()),
    }
}

fn not_as_written(file: &Path) -> OpenFailure {
    OpenFailure::Damaged(format!("{} has changed since it was written", file.display()))
}
