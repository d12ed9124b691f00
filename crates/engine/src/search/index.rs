//! The keyword index on disk: tantivy's files, and a table of what is indexed of each transcript.
//!
//! It is a cache. Each format has its own folder, so that older and newer versions of tine don't interfere; an
//! unreadable index is deleted and rebuilt. tantivy's commit names the table that belongs to it, so the two always
//! match. One process writes; its lock is an operating-system lock, which ends with the process.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::hash::BuildHasherDefault;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tantivy::directory::META_LOCK;
use tantivy::directory::error::{LockError, OpenReadError, OpenWriteError};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::LogMergePolicy;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Directory, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyError};
use transcript::Agent;

use super::document::TurnDocument;
use super::folder::{self, Folder, SmallMerges, files_of_segment};
use super::helpers::Helpers;
use super::stumble;
use super::words::Same;
use crate::private;
use crate::search::IndexTrouble;

/// Changes whenever the indexed text or its form changes; each number has its own folder.
pub(super) const FORMAT: u32 = 6;

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The transcript, by [`crate::sessions::catalog::file_key`].
    pub file: Field,
    pub turn: Field,
    /// Transcript and turn together, for replacing a turn.
    pub place: Field,
    /// The time of the turn, in seconds since 1970.
    pub at: Field,
    /// The offset of the turn in the transcript; [`NO_OFFSET`] if unknown.
    pub offset: Field,
    pub prose: Field,
    /// The stems of prose that differ from the words.
    pub stem: Field,
    pub tools: Field,
    /// The suffixes of paths that were read or written.
    pub path: Field,
    pub tool: Field,
}

/// The offset of a turn that can only be reached from the beginning.
pub(super) const NO_OFFSET: u64 = u64::MAX;

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = |record: IndexRecordOption, norms: bool| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer("terms").set_index_option(record).set_fieldnorms(norms);
        TextOptions::default().set_indexing_options(indexing)
    };
    let fields = Fields {
        file: schema.add_u64_field("file", INDEXED | FAST),
        turn: schema.add_u64_field("turn", FAST),
        place: schema.add_u64_field("place", INDEXED),
        at: schema.add_i64_field("at", FAST),
        offset: schema.add_u64_field("offset", FAST),
        prose: schema.add_text_field("prose", text(IndexRecordOption::WithFreqs, true)),
        stem: schema.add_text_field("stem", text(IndexRecordOption::WithFreqs, true)),
        tools: schema.add_text_field("tools", text(IndexRecordOption::Basic, true)),
        path: schema.add_text_field("path", text(IndexRecordOption::Basic, false)),
        tool: schema.add_text_field("tool", text(IndexRecordOption::Basic, false)),
    };
    (schema.build(), fields)
}

/// The key of a turn in the index.
pub(super) fn place_key(file: u64, turn: u32) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&turn.to_le_bytes(), file)
}

/// How much of a transcript is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Level {
    /// Prompts and answers.
    Prose,
    /// Also tool calls and output.
    All,
}

/// What is indexed of a transcript.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    pub agent: Agent,
    pub size: u64,
    pub modified: i64,
    pub inode: u64,
    pub level: Level,
    /// Whether it was read to its end.
    pub complete: bool,
    /// The last indexed turn, which may still grow.
    pub turns: u32,
    /// Its offset.
    pub last: Option<u64>,
    /// The fingerprints of all turns up to it; a difference means that the history was changed.
    pub keys: u64,
    /// Samples of the bytes before it; a difference means that the file was rewritten.
    pub seam: u64,
    /// Lines that are too long to index: before that turn, and in it.
    pub left_out: (u32, u32),
    pub title: u64,
    /// The number of first turns that belong to another session and are found there.
    pub shared: u32,
    pub owner: u64,
}

impl Row {
    /// How many of its lines are too long to index.
    pub(super) fn left_out(&self) -> u64 {
        u64::from(self.left_out.0) + u64::from(self.left_out.1)
    }
}

/// Rows by [`crate::sessions::catalog::file_key`].
pub(super) type Rows = HashMap<u64, Row, BuildHasherDefault<Same>>;

/// All rows, and the state of the index's files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Table {
    pub rows: Rows,
    /// The subagents of sessions that have some.
    pub helpers: Helpers,
    files: Vec<(String, u64, i64)>,
}

/// An open index.
pub(super) struct Words {
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
pub(super) enum Trouble {
    /// It does not exist.
    Missing,
    /// It cannot be read.
    Damaged(String),
    /// It is intact, but something else prevents access.
    Hindered(IndexTrouble, String),
}

impl From<TantivyError> for Trouble {
    fn from(error: TantivyError) -> Self {
        let trouble = match &error {
            TantivyError::LockFailure(LockError::LockBusy, _) => IndexTrouble::Busy,
            TantivyError::IoError(source)
            | TantivyError::LockFailure(LockError::IoError(source), _)
            | TantivyError::OpenReadError(OpenReadError::IoError { io_error: source, .. })
            | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: source, .. }) => {
                IndexTrouble::of(source)
            }
            _ => IndexTrouble::Other,
        };
        Trouble::new(trouble, error.to_string())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::new(IndexTrouble::of(&error), error.to_string())
    }
}

impl Trouble {
    /// tantivy has no error for damage: every otherwise unexplained error counts as one.
    fn new(trouble: IndexTrouble, why: String) -> Trouble {
        match trouble {
            IndexTrouble::Damaged | IndexTrouble::Other => Trouble::Damaged(why),
            known => Trouble::Hindered(known, why),
        }
    }
}

/// The write lock, which ends with the process at the latest.
pub(super) struct WriteLock(#[expect(dead_code, reason = "it is held, not used")] File);

impl WriteLock {
    /// Acquires it; `None` if another process has it.
    pub(super) fn take(cache: &Path) -> io::Result<Option<WriteLock>> {
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

/// The file with the boot for which the index is known to be intact.
const BOOT: &str = ".boot";

/// The folder of this format.
pub(super) fn folder(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("words-{FORMAT}"))
}

/// Indexes in the formats of other versions of tine: older and newer ones.
pub(super) fn other_formats(cache: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
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
    pub(super) fn open(cache: &Path) -> Result<Words, Trouble> {
        let folder = folder(cache);
        if !folder.join("meta.json").exists() {
            return Err(Trouble::Missing);
        }
        let index = prepare(Index::open(Folder::open(&folder)?)?);
        let (wanted, fields) = schema();
        if index.schema() != wanted {
            return Err(Trouble::Damaged("its fields are not those of this version".into()));
        }
        // Another process may commit meanwhile and remove the old table.
        let mut tries = 0;
        let (name, table) = loop {
            // Nothing has been committed yet.
            let payload = index.load_metas()?.payload.ok_or(Trouble::Missing)?;
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
        stumble::trusted(&folder);
        Ok(Words { index, fields, table, folder, name, reader: None })
    }

    /// Opens the segments for a search.
    pub(super) fn with_segments(self) -> Result<Words, Trouble> {
        let reader = Some(self.reader()?);
        Ok(Words { reader, ..self })
    }

    /// They will be replaced.
    pub(super) fn forget_segments(&mut self) {
        self.reader = None;
    }

    /// Verifies every byte.
    pub(super) fn verified(self) -> Result<Words, Trouble> {
        validate(&self.index)?;
        self.reader()?;
        Ok(self)
    }

    /// Creates an empty index.
    pub(super) fn create(cache: &Path) -> Result<Words, Trouble> {
        let folder = folder(cache);
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
        let index = prepare(builder.open_or_create(Folder::open(&folder)?)?);
        Ok(Words { index, fields, table: Table::default(), folder, name: String::new(), reader: None })
    }

    pub(super) fn reader(&self) -> tantivy::Result<IndexReader> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        self.index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(0).try_into()
    }

    /// Opens it for writing. `memory` is shared by all threads.
    pub(super) fn writer(&self, threads: usize, memory: usize) -> tantivy::Result<IndexWriter<TurnDocument>> {
        self.sweep();
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
    pub(super) fn sweep(&self) {
        folder::sweep(&self.index, &self.folder);
    }

    /// Commits everything that was added, together with the table.
    pub(super) fn commit(&mut self, writer: &mut IndexWriter<TurnDocument>) -> Result<(), Trouble> {
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
    pub(super) fn settle(&mut self, name: &str) -> Result<(), Trouble> {
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
    pub(super) fn is_current(&self) -> bool {
        self.committed().is_ok_and(|name| name == self.name)
    }

    /// The name of the table in the last commit.
    pub(super) fn committed(&self) -> Result<String, Trouble> {
        Ok(self.index.load_metas()?.payload.unwrap_or_default())
    }

    /// Its size on disk, in bytes.
    pub(super) fn size(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }
}

impl Table {
    fn read(folder: &Path, name: &str) -> io::Result<Table> {
        if !name.starts_with("table-") || name.contains('/') {
            return Err(io::ErrorKind::InvalidData.into());
        }
        read_table(&folder.join(name))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        write_table(self, path)
    }
}

/// Reads a file written by [`write_table`].
pub(super) fn read_table<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = fs::read(path)?;
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
    if xxhash_rust::xxh3::xxh3_64(body) != u64::from_le_bytes(*sum) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    postcard::from_bytes(body).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Writes a table with its checksum to a temporary file and renames it.
pub(super) fn write_table<T: Serialize>(table: &T, path: &Path) -> io::Result<()> {
    let mut body = postcard::to_stdvec(table).map_err(io::Error::other)?;
    body.extend(xxhash_rust::xxh3::xxh3_64(&body).to_le_bytes());
    let beside = path.with_extension("new");
    let mut file = private::open_file(&beside)?;
    file.set_len(0)?;
    file.write_all(&body)?;
    fs::rename(&beside, path)
}

/// Name, size and time of every file of the index.
fn files_of(folder: &Path, index: &Index) -> Result<Vec<(String, u64, i64)>, Trouble> {
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

/// An id that changes with every boot.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Whether the index was created or verified since the last boot. Its files are not flushed, so earlier data may not
/// have reached the disk.
fn is_of_this_boot(folder: &Path) -> bool {
    boot().is_none_or(|boot| fs::read_to_string(folder.join(BOOT)).is_ok_and(|known| known == boot))
}

/// Records that only data written from now on can be incomplete. If that fails, everything is verified again the next
/// time.
fn note_boot(folder: &Path) {
    if let Some(boot) = boot() {
        private::open_file(&folder.join(BOOT))
            .and_then(|mut file| file.write_all(boot.as_bytes()))
            .or_log("note the boot in the index");
    }
}

/// Makes the next process verify everything. Returns whether it will.
pub(super) fn forget_boot(folder: &Path) -> bool {
    fs::remove_file(folder.join(BOOT)).is_ok()
}

/// Verifies the checksum of every file.
fn validate(index: &Index) -> Result<(), Trouble> {
    match index.validate_checksum()?.iter().next() {
        Some(file) => Err(not_as_written(file)),
        None => Ok(()),
    }
}

fn not_as_written(file: &Path) -> Trouble {
    Trouble::Damaged(format!("{} has changed since it was written", file.display()))
}

fn prepare(index: Index) -> Index {
    index.tokenizers().register("terms", TextAnalyzer::from(Split::default()));
    index
}

/// A tokenizer for terms joined by single spaces.
#[derive(Clone, Default)]
struct Split {
    token: Token,
}

struct SplitStream<'a> {
    rest: &'a str,
    token: &'a mut Token,
}

impl Tokenizer for Split {
    type TokenStream<'a> = SplitStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> SplitStream<'a> {
        self.token.reset();
        SplitStream { rest: text, token: &mut self.token }
    }
}

impl TokenStream for SplitStream<'_> {
    fn advance(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        let end = self.rest.bytes().position(|byte| byte == b' ').unwrap_or(self.rest.len());
        self.token.text.clear();
        self.token.text.push_str(&self.rest[..end]);
        self.token.position = self.token.position.wrapping_add(1);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
