//! The index of words on disk: tantivy's files, and a table of what of which transcript is in it.
//!
//! It is a cache. Each format has a folder of its own, so that an older and a newer tine do not get into each other's
//! way; whatever cannot be read is thrown away and built again. tantivy's commit names the table that belongs to it, so
//! the two cannot be out of step. One process writes; its lock is the system's, which ends with the process.

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

/// Changes with every change of what is indexed or how; another number means another folder.
pub(super) const FORMAT: u32 = 6;

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The transcript, by [`crate::sessions::catalog::file_key`].
    pub file: Field,
    pub turn: Field,
    /// Transcript and turn together, for replacing a turn.
    pub place: Field,
    /// When it was said, in seconds since 1970.
    pub at: Field,
    /// Where the turn begins in the transcript; [`NO_OFFSET`] where that is not known.
    pub offset: Field,
    pub prose: Field,
    /// The stems of prose, where they are not the words themselves.
    pub stem: Field,
    pub tools: Field,
    /// The ends of the paths that were read or written.
    pub path: Field,
    pub tool: Field,
}

/// The offset of a turn that can only be reached by reading from the beginning.
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

/// How the index knows a turn of it.
pub(super) fn place_key(file: u64, turn: u32) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&turn.to_le_bytes(), file)
}

/// How much of a transcript is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Level {
    /// What people and agents said.
    Prose,
    /// What tools did as well.
    All,
}

/// What of a transcript is in the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    pub agent: Agent,
    pub size: u64,
    pub modified: i64,
    pub inode: u64,
    pub level: Level,
    /// Whether it was read to its end.
    pub complete: bool,
    /// The last turn that is in the index, which may still grow.
    pub turns: u32,
    /// Where that turn begins.
    pub last: Option<u64>,
    /// The fingerprints of all turns up to it; other ones mean that the history was changed.
    pub keys: u64,
    /// Samples of the bytes before it; other ones mean that the file was rewritten.
    pub seam: u64,
    /// Lines that are too long to be held, and are not in the index: before that turn, and in it.
    pub left_out: (u32, u32),
    pub title: u64,
    /// The first turns are those of another session and are found there.
    pub shared: u32,
    pub owner: u64,
}

impl Row {
    /// How many lines of it are not in the index because they are too long.
    pub(super) fn left_out(&self) -> u64 {
        u64::from(self.left_out.0) + u64::from(self.left_out.1)
    }
}

/// Rows by [`crate::sessions::catalog::file_key`].
pub(super) type Rows = HashMap<u64, Row, BuildHasherDefault<Same>>;

/// All rows, and what the index's files looked like.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Table {
    pub rows: Rows,
    /// The subagents of those that have some.
    pub helpers: Helpers,
    files: Vec<(String, u64, i64)>,
}

/// The index, open.
pub(super) struct Words {
    pub index: Index,
    pub fields: Fields,
    pub table: Table,
    folder: PathBuf,
    /// The commit's name for the table.
    name: String,
    /// Its segments, where they were opened with it.
    reader: Option<IndexReader>,
}

/// What is in the way of opening an index.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is none yet.
    Missing,
    /// It cannot be read.
    Damaged(String),
    /// It is as it should be, but something else is in the way.
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
    /// tantivy has no word for damage: whatever nothing else explains is.
    fn new(trouble: IndexTrouble, why: String) -> Trouble {
        match trouble {
            IndexTrouble::Damaged | IndexTrouble::Other => Trouble::Damaged(why),
            known => Trouble::Hindered(known, why),
        }
    }
}

/// The right to write, which ends with the process at the latest.
pub(super) struct WriteLock(#[expect(dead_code, reason = "it is held, not used")] File);

impl WriteLock {
    /// Takes it, or nothing where another process has it.
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

/// Files of up to so many bytes are compared with their checksums whenever the index is opened.
const SMALL: u64 = 16 << 10;

/// The file that says since which start of the computer the index is known to be whole.
const BOOT: &str = ".boot";

/// The folder of this format.
pub(super) fn folder(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("words-{FORMAT}"))
}

/// The formats that other versions of tine left: older, and newer ones.
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
    /// Opens the index as it was last committed.
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
        // Another process may commit in between and take the old table away.
        let mut tries = 0;
        let (name, table) = loop {
            // Nothing was committed yet.
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
        // Nobody takes files away meanwhile that no commit names any more.
        let lock =
            index.directory().acquire_lock(&META_LOCK).map_err(|error| TantivyError::LockFailure(error, None))?;
        let is_known_whole = is_of_this_boot(&folder);
        let files = files_of(&folder, &index)?;
        if !is_known_whole || table.files != files {
            // Touched from outside, replaced by a merge that was not committed, or perhaps cut off by a power failure:
            // look closer.
            validate(&index)?;
        }
        if !is_known_whole {
            note_boot(&folder);
        }
        // tantivy was seen to panic over the content of the fast fields, and over that of files whose end says where in them
        // everything is. What is small costs nothing to look at.
        for (name, ..) in files.iter().filter(|(name, size, _)| *size <= SMALL || name.ends_with(".fast")) {
            if !index.directory().validate_checksum(Path::new(name)).map_err(TantivyError::from)? {
                return Err(not_as_written(Path::new(name)));
            }
        }
        drop(lock);
        stumble::trusted(&folder);
        Ok(Words { index, fields, table, folder, name, reader: None })
    }

    /// Opens what a search will look at.
    pub(super) fn with_segments(self) -> Result<Words, Trouble> {
        let reader = Some(self.reader()?);
        Ok(Words { reader, ..self })
    }

    /// They will be others.
    pub(super) fn forget_segments(&mut self) {
        self.reader = None;
    }

    /// Looks at every byte of it.
    pub(super) fn verified(self) -> Result<Words, Trouble> {
        validate(&self.index)?;
        self.reader()?;
        Ok(self)
    }

    /// Makes an empty one.
    pub(super) fn create(cache: &Path) -> Result<Words, Trouble> {
        let folder = folder(cache);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        private::create_folder(&folder)?;
        // tantivy would make these for everybody to read.
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

    /// Removes what no commit names. Only who has the right to write may do this.
    pub(super) fn sweep(&self) {
        folder::sweep(&self.index, &self.folder);
    }

    /// Makes everything that was added durable, together with the table.
    pub(super) fn commit(&mut self, writer: &mut IndexWriter<TurnDocument>) -> Result<(), Trouble> {
        let mut prepared = writer.prepare_commit()?;
        let name = format!("table-{}-{:x}", prepared.opstamp(), std::process::id());
        // Once before, so that the commit names something; once more when the files are known.
        self.table.files.clear();
        self.table.write(&self.folder.join(&name))?;
        prepared.set_payload(&name);
        prepared.commit()?;
        self.settle(&name)
    }

    /// Notes what the files look like, and removes tables that no commit names any more.
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

    /// Whether nobody has committed anything since it was opened.
    pub(super) fn is_current(&self) -> bool {
        self.committed().is_ok_and(|name| name == self.name)
    }

    /// The name of the table that the last commit has.
    pub(super) fn committed(&self) -> Result<String, Trouble> {
        Ok(self.index.load_metas()?.payload.unwrap_or_default())
    }

    /// How many bytes it takes on disk.
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

/// Reads a file that [`write_table`] wrote.
pub(super) fn read_table<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = fs::read(path)?;
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
    if xxhash_rust::xxh3::xxh3_64(body) != u64::from_le_bytes(*sum) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    postcard::from_bytes(body).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Writes a table with its checksum, beside and then in place.
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

/// What is different after every start of the computer.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Whether the index was made, or looked at as a whole, since the computer was started. Its files are not flushed, so what
/// was written before may not have got to the disk.
fn is_of_this_boot(folder: &Path) -> bool {
    boot().is_none_or(|boot| fs::read_to_string(folder.join(BOOT)).is_ok_and(|known| known == boot))
}

/// Notes that nothing but what is written from now on can be incomplete. Where that cannot be noted, everything is looked at
/// again the next time.
fn note_boot(folder: &Path) {
    if let Some(boot) = boot() {
        private::open_file(&folder.join(BOOT))
            .and_then(|mut file| file.write_all(boot.as_bytes()))
            .or_log("note the boot in the index");
    }
}

/// Lets everything be looked at the next time. Tells whether it will be.
pub(super) fn forget_boot(folder: &Path) -> bool {
    fs::remove_file(folder.join(BOOT)).is_ok()
}

/// Compares every file with its checksum.
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

/// Takes terms apart that were put together with single spaces.
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
