//! Finding and reading an agent's sessions. Nothing here writes.
//!
//! Foreign files are never fatal: readers return what they could read and count the defects they met.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use transcript::{Block, Defects, ParentPointer, SessionId, Summary, TokenUse};

use crate::acts::FileAct;
use crate::fields::Raw;

/// What started a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The user, at a terminal.
    Terminal,
    /// The agent's program without a terminal.
    Headless,
    /// A program that talks to the agent's server.
    Program,
}

/// The provider's cache of what an agent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCache {
    /// How long it is kept after its last use.
    pub kept_for: Duration,
    /// Whether a fork in another directory begins with the same instructions, and so can use it.
    pub across_directories: bool,
}

/// An agent's session files, read from outside.
pub trait Transcripts {
    /// The folder in which the agent keeps everything.
    fn home(&self) -> &Path;
    /// Lists every session file with one `stat` each and without reading any.
    fn discover(&self) -> Discovery;
    /// Finds the transcript of the session with this id that works in `directory`.
    fn find_transcript(&self, id: &SessionId, directory: &Path) -> Option<PathBuf>;
    /// Whether only this agent names its transcripts like this file.
    fn recognizes_name(&self, _name: &str) -> bool {
        false
    }
    /// Whether a line was written by this agent.
    fn recognizes_line(&self, line: Raw<'_>) -> bool;
    /// Reads one session from its first byte to its last and summarises it.
    fn scan(&self, path: &Path) -> Summary;
    /// Whether the title of a session may stand in another file of its folder, and so change while its own file doesn't.
    fn is_titled_elsewhere(&self, _summary: &Summary) -> bool {
        false
    }
    /// Reads the conversation block by block, up to and including turn `until`. Without the result of an earlier scan, it
    /// scans the file first.
    fn read(&self, path: &Path, until: Option<u32>, known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>> {
        self.read_part(path, &Part { until, ..Part::default() }, known)
    }
    /// Like [`Transcripts::read`], for a part of the conversation.
    fn read_part(&self, path: &Path, part: &Part, known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>>;
    /// Whether the agent records what sessions do to files, and [`Blocks::take_acts`] returns it.
    fn records_acts(&self) -> bool {
        false
    }
    /// Lists the branches of a session that are not its history, newest first. Each costs a pass over the whole file.
    fn branches(&self, _path: &Path) -> io::Result<Vec<Branch>> {
        Ok(Vec::new())
    }
    /// How long the provider keeps a session's history in its cache, if a fork can use it.
    fn prompt_cache(&self, _path: &Path, _version: Option<&str>) -> Option<PromptCache> {
        None
    }
    /// Lists the ids and transcripts of subagents in separate files. They may grow while the session's own transcript
    /// does not.
    fn subagents(&self, _path: &Path) -> Vec<(String, PathBuf)> {
        Vec::new()
    }
    /// The session that a new one was forked from, if the beginning of its file or the agent's notes name it. Hooks call
    /// this, so it must be quick.
    fn fork_parent(&self, id: &SessionId, path: &Path) -> Option<SessionId>;
    /// Commits of the repository in which a session began, if the beginning of its file names any.
    fn starting_commits(&self, path: &Path) -> Vec<String>;
    /// What started a session, if its file tells.
    fn client(&self, _path: &Path) -> Option<Client> {
        None
    }
    /// What the agent records about sessions outside the session files.
    fn notes(&self) -> Notes;
}

/// The blocks of a conversation, in order.
pub trait Blocks {
    /// The next block, or nothing at the end.
    fn next_block(&mut self) -> Option<Block>;
    /// The token use that the agent has reported so far.
    fn tokens(&self) -> Option<TokenUse>;
    /// The defects met so far.
    fn defects(&self) -> &Defects;
    /// Whether [`Part::prose_only`] has left anything out so far.
    fn leaves_tools_out(&self) -> bool {
        true
    }
    /// What the records read so far did to files, since the last call; nothing unless [`Part::acts`] asks for it. The acts
    /// of a turn are complete when a block of the next one was handed out.
    fn take_acts(&mut self) -> Vec<FileAct> {
        Vec::new()
    }
    /// Where the current turn begins, in a file that can be read from the middle.
    fn turn_began(&self) -> Option<TurnStart> {
        None
    }
}

/// Which part of a conversation to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    /// Where to begin, instead of at the first record. Only honoured where the scan found the file to be plain. It comes
    /// from [`Blocks::turn_began`] of an earlier pass over the same file.
    pub from: Option<TurnStart>,
    /// The last turn.
    pub until: Option<u32>,
    /// Whether to leave out tool calls and their results, which are most of the bytes.
    pub prose_only: bool,
    /// Whether pictures come with their bytes; one at a time is held in memory.
    pub media: bool,
    /// The record with which the branch ends; by default the active branch. See [`Branch`].
    pub tip: Option<u64>,
    /// Whether to collect what the session did to files.
    pub acts: bool,
}

/// Where a turn begins in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnStart {
    /// The turn.
    pub turn: u32,
    /// The offset of its first record.
    pub offset: u64,
}

/// What a scan found out about a file whose records are all active and in order. It saves a second scan.
#[derive(Debug, Clone)]
pub struct PlainScan {
    /// [`Summary::plain`].
    pub size: u64,
    /// The defects of the file.
    pub defects: Defects,
    /// [`Summary::layout`].
    pub layout: Option<Arc<Vec<u8>>>,
}

impl PlainScan {
    /// Takes it from a summary, if the file qualifies.
    pub fn of(summary: &Summary) -> Option<Self> {
        let Summary { plain, defects, layout, .. } = summary;
        plain.map(|size| PlainScan { size, defects: defects.clone(), layout: layout.clone() })
    }
}

/// A branch of a transcript that the agent would not resume, for example one abandoned by a rewind.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The id of its last record, which users name it by.
    pub id: String,
    /// The same as a number.
    pub tip: u64,
    /// The summary of the session along this branch.
    pub summary: Box<Summary>,
}

/// The result of walking an agent's folders.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The session files.
    pub files: Vec<SessionFile>,
    /// Folders and files that could not be examined, with the reason.
    pub unreadable: Vec<(PathBuf, io::ErrorKind)>,
}

/// A session file as the file system sees it, unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Its path. The file name contains the session's id.
    pub path: PathBuf,
    /// What changes when the file does.
    pub stamp: Stamp,
}

impl SessionFile {
    /// The ids that the file name may contain: the whole stem, or the last 36 characters of a part of it. Some agents
    /// put only the beginning of an id into the name, after a dash.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        const LENGTH: usize = 36;
        let stem = self.stem();
        let last = |part: &'_ str| part.len().checked_sub(LENGTH);
        let ends = stem.split('_').filter_map(move |part| part.get(last(part)?..));
        std::iter::once(stem).chain(ends).chain(self.beginning_of_id())
    }

    /// Whether the file name contains this id, or its beginning where names don't contain more.
    pub fn is_called(&self, id: &str) -> bool {
        self.ids().any(|own| own == id) || self.beginning_of_id().is_some_and(|beginning| id.starts_with(beginning))
    }

    fn stem(&self) -> &str {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.split_once(".json").map_or(name, |(stem, _)| stem)
    }

    /// The beginning of an id in a name such as `session-TIME-1f3a2b4c`.
    fn beginning_of_id(&self) -> Option<&str> {
        const LENGTH: usize = 8;
        let (_, beginning) = self.stem().strip_prefix("session-")?.rsplit_once('-')?;
        (beginning.len() == LENGTH).then_some(beginning)
    }
}

/// What distinguishes a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in nanoseconds since 1970.
    pub modified: i64,
    /// Its inode, or 0 if the system has none.
    pub inode: u64,
    /// Its creation time in nanoseconds since 1970, if the file system records it. It only decides which of several
    /// sessions with the same history came first.
    pub born: Option<i64>,
}

/// What an agent records about sessions outside the session files.
#[derive(Debug, Default)]
pub struct Notes {
    /// Titles given by users.
    pub titles: HashMap<SessionId, String>,
    /// The parents of sessions.
    pub parents: HashMap<SessionId, ParentPointer>,
}
