//! Everything that is true of one agent only: where its sessions live, how they are read, and how it can be seen from
//! outside whether one is idle or busy. One folder per agent, with the same files in each.
//!
//! Foreign files are never fatal: readers hand out what they could read and count the defects that they met.

mod blocks;
pub mod claude;
pub mod codex;
mod copy;
mod fields;
mod follow;
mod huge;
mod launch;
mod lines;
mod process;
mod program;
mod rewrite;
mod seal;
mod share;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use copy::{Beside, Copied, CopyOrder, ReadBack};
pub use fields::{Elements, Fields, Raw};
pub use follow::{Growing, write_copy};
use jiff::Timestamp;
pub use launch::{Given, GivenOption, LaunchOptions, Role, Takes, launch_options};
pub use lines::{Line, LineReader};
pub use process::{
    Runner, Terminal, has_word, is_below, is_still, process_start, processes_in, processes_marked, processes_with,
    runner, terminals_of, tty_of, variable_of, written_files,
};
pub use program::{
    Cancel, Made, Message, NativeOrder, Program, ProgramError, Resumed, Said, is_of_a_surrounding_agent,
};
pub use seal::Seal;
use transcript::{Agent, Block, Defects, ParentPointer, SessionId, State, Summary, TokenUse};

/// The environment variables and folders that decide where agents keep their files; filled by the binary.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home directory.
    pub home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`, if set.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, if set.
    pub codex_home: Option<PathBuf>,
    /// Where processes and locks can be looked up; `/proc` on Linux.
    pub proc: Option<PathBuf>,
}

/// One agent's files, read from outside.
pub trait Store: Send + Sync {
    /// Which agent it is.
    fn agent(&self) -> Agent;
    /// The folder in which the agent keeps everything.
    fn home(&self) -> &Path;
    /// Every session file, with one `stat` each and nothing read.
    fn discover(&self) -> Discovery;
    /// Reads one session once, from its first byte to its last, for the facts of it.
    fn scan(&self, path: &Path) -> Summary;
    /// The conversation, block by block, up to and including turn `until`. What an earlier scan found out lets it begin
    /// at once; without that, it scans first.
    fn read(&self, path: &Path, until: Option<u32>, known: Option<&Known>) -> io::Result<Box<dyn Blocks>> {
        self.read_part(path, &Part { until, ..Part::default() }, known)
    }
    /// The same for a part of the conversation.
    fn read_part(&self, path: &Path, part: &Part, known: Option<&Known>) -> io::Result<Box<dyn Blocks>>;
    /// The transcripts of a session's subagents that lie beside its own, with their ids. They may grow while it does not.
    fn subagents(&self, _path: &Path) -> Vec<(String, PathBuf)> {
        Vec::new()
    }
    /// Where a new session of this id that works in `cwd` belongs.
    fn place_for(&self, id: &SessionId, cwd: &Path, now: Timestamp) -> PathBuf;
    /// Writes a copy of a session under a new id to `out`, in constant memory; the source is only read. What an earlier
    /// scan found out lets it begin at once; without that, it scans first.
    fn copy(
        &self,
        source: &Path,
        order: &CopyOrder,
        known: Option<&Known>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied>;
    /// Reads a copy of `source` back from `path` in one pass, while it may still be growing.
    fn read_back(&self, path: &Path, source: &Path, order: &CopyOrder, growing: Option<&Growing>) -> ReadBack;
    /// Copies the folder that belongs to a session beside its file; `side` is where the copy's own is prepared. Of a copy
    /// that ends earlier, the transcript is `cut`, and nothing comes along that it does not mention.
    fn copy_side(&self, source: &Path, order: &CopyOrder, side: &Path, cut: Option<&Path>) -> io::Result<()>;
    /// Copies something else that belongs to a session to where it is prepared, and flushes it: [`beside`].
    fn copy_beside(&self, source: &Path, piece: &Beside, order: &CopyOrder, cut: Option<&Path>) -> io::Result<()>;
    /// Whether a new session's id can be chosen; otherwise the agent makes one up.
    fn takes_ids(&self) -> bool;
    /// The most characters that the agent takes in one message, where it has a limit.
    fn input_limit(&self) -> Option<usize>;
    /// The command that resumes a session in a terminal, in this directory, with options and something to say first.
    fn resume_command(
        &self,
        session: Resumed<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String>;
    /// The command that starts a new session in a terminal; its id is used where the agent takes one.
    fn start_command(
        &self,
        id: &SessionId,
        title: &str,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String>;
    /// What matters of the agent's command line.
    fn launch_options(&self) -> LaunchOptions {
        launch_options(self.agent())
    }
    /// Gives a session a title that the agent's own list shows.
    fn set_title(&self, program: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()>;
    /// Lets the agent itself make a fork, without a request to its model.
    fn fork(&self, program: &Program, order: &NativeOrder<'_>) -> Result<Made, ProgramError>;
    /// Says something to the agent without a terminal and waits for the answer.
    fn say(&self, program: &Program, message: &Message<'_>) -> Result<Said, ProgramError>;
    /// The transcript of a session of this id that works in `directory`.
    fn find(&self, id: &SessionId, directory: &Path) -> Option<PathBuf>;
    /// Makes a session that the agent did not write itself known to the agent's own list. It is needed where the agent
    /// keeps an index.
    fn announce(&self, program: &Program, id: &SessionId, title: &str, directory: &Path) -> Result<(), ProgramError>;
    /// What an agent's terminal shows, as far as it matters to whoever wants to say something.
    fn screen(&self, _screen: &str) -> Screen {
        Screen::Unknown
    }
    /// A text as it has to be pasted into the agent's input line, so that it is said and not taken for a command.
    fn literal(&self, text: &str) -> String {
        text.to_owned()
    }
    /// Whether an agent that runs says by itself when it can take input.
    fn tells_its_state(&self) -> bool {
        true
    }
    /// What a variable is in the only terminal of this agent in a directory, where a daemon works for it and does not say
    /// for whom.
    fn lone_terminal(&self, _directory: &Path, _variable: &str) -> Option<String> {
        None
    }
    /// Hands something over to a session that the agent's daemon has open.
    fn queue(&self, program: &Program, _id: &SessionId, _text: &str) -> Result<(), ProgramError> {
        Err(program.unable("take messages for a session that is open"))
    }
    /// Through which of the agent's own programs a session was begun, in the agent's word for it.
    fn client(&self, _path: &Path) -> Option<String> {
        None
    }
    /// The session that a command line of the agent forks, where it does that; what stands there may be no id.
    fn forked_by(&self, _words: &[String]) -> Option<Option<SessionId>> {
        None
    }
    /// Whether the agent keeps a list of the sessions beside this one in a file.
    fn keeps_list(&self, _path: &Path) -> bool {
        false
    }
    /// Adds a session to the list that the agent keeps of them in a file, if it does.
    fn enlist(&self, _path: &Path, _summary: &Summary) -> io::Result<()> {
        Ok(())
    }
    /// Takes a session out of such a list.
    fn delist(&self, _id: &SessionId, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// The session that a new one was forked from, as far as the beginning of its file or the agent's notes tell. Quick,
    /// because hooks ask.
    fn origin(&self, id: &SessionId, path: &Path) -> Option<SessionId>;
    /// Commits of the repository in which a session began, as far as the beginning of its file tells.
    fn commits(&self, path: &Path) -> Vec<String>;
    /// The transcript, and every other file and folder that is this session's alone.
    fn belongings(&self, id: &SessionId, path: &Path) -> Vec<PathBuf>;
    /// What the agent keeps about sessions outside of the session files.
    fn notes(&self) -> Notes;
    /// The sessions that a process has open now.
    fn live(&self) -> Live;
}

/// What a scan found of a file that is its own history in its own order.
#[derive(Debug, Clone)]
pub struct Known {
    /// [`Summary::plain`].
    pub size: u64,
    /// What was wrong in it.
    pub defects: Defects,
    /// [`Summary::layout`].
    pub layout: Option<Arc<Vec<u8>>>,
}

impl Known {
    /// What is known of a file by its scan.
    pub fn of(summary: &Summary) -> Option<Self> {
        let Summary { plain, defects, layout, .. } = summary;
        plain.map(|size| Known { size, defects: defects.clone(), layout: layout.clone() })
    }
}

/// Which part of a conversation is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    /// Where to begin, instead of at the first record. It counts only where the scan found the file to be plain, and
    /// it comes from [`Blocks::turn_began`] of an earlier reading of the same file.
    pub from: Option<Mark>,
    /// The last turn.
    pub until: Option<u32>,
    /// Whether calls of tools and what they gave back are left out, which is most of the bytes.
    pub prose_only: bool,
}

/// Where a turn begins in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The turn.
    pub turn: u32,
    /// The offset of its first record.
    pub offset: u64,
}

/// The blocks of a conversation, in order.
pub trait Blocks {
    /// The next block, or nothing at the end.
    fn next_block(&mut self) -> Option<Block>;
    /// What the agent said of the tokens so far.
    fn tokens(&self) -> Option<TokenUse>;
    /// What was wrong so far.
    fn defects(&self) -> &Defects;
    /// Whether [`Part::prose_only`] left something out so far.
    fn leaves_tools_out(&self) -> bool {
        true
    }
    /// Where the turn that is being read begins, in a file from whose middle can be read.
    fn turn_began(&self) -> Option<Mark> {
        None
    }
}

/// Every agent that tine knows, over its files.
pub fn stores(surroundings: &Surroundings) -> Vec<Box<dyn Store>> {
    Agent::ALL.into_iter().map(|agent| store(agent, surroundings)).collect()
}

/// One agent's files.
pub fn store(agent: Agent, surroundings: &Surroundings) -> Box<dyn Store> {
    match agent {
        Agent::Claude => Box::new(claude::Claude::new(surroundings)),
        Agent::Codex => Box::new(codex::Codex::new(surroundings)),
    }
}

/// What belongs to a session outside of its file and may come along in a copy. Where it is, paths alone tell.
pub fn beside(agent: Agent, source: &Path, order: &CopyOrder) -> Vec<Beside> {
    match agent {
        Agent::Claude => claude::beside(source, order),
        // A thread is one file; its subagents are threads of their own and stay the source's.
        Agent::Codex => Vec::new(),
    }
}

/// What a look through an agent's folders found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The session files.
    pub files: Vec<SessionFile>,
    /// Folders and files that could not be looked at, with the reason.
    pub unreadable: Vec<(PathBuf, io::ErrorKind)>,
}

/// A session file as the file system sees it. Nothing of it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Where it is. Its name carries the session's id.
    pub path: PathBuf,
    /// What changes when the file does.
    pub stamp: Stamp,
}

impl SessionFile {
    /// The ids that its name may carry: all of it, or what stands behind other words, as Codex writes it.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        const LENGTH: usize = 36;
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = name.split_once(".jsonl").map_or(name, |(stem, _)| stem);
        let last = |part: &'_ str| part.len().checked_sub(LENGTH);
        let behind = stem.split('_').filter_map(move |part| part.get(last(part)?..));
        std::iter::once(stem).chain(behind)
    }

    /// Whether its name carries this id.
    pub fn is_called(&self, id: &str) -> bool {
        self.ids().any(|own| own == id)
    }
}

/// What tells a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in nanoseconds since 1970.
    pub modified: i64,
    /// Its inode, or 0 where there are none.
    pub inode: u64,
    /// When the file was created, in nanoseconds since 1970, where the file system tells. Decides nothing but who
    /// was first among sessions with equal histories.
    pub born: Option<i64>,
}

/// What an agent keeps about sessions outside of the session files.
#[derive(Debug, Default)]
pub struct Notes {
    /// Titles that people gave.
    pub titles: HashMap<SessionId, String>,
    /// Parents of sessions.
    pub parents: HashMap<SessionId, ParentPointer>,
}

/// The sessions that a process has open, by id.
#[derive(Debug, Default)]
pub struct Live {
    /// What is known of each.
    pub sessions: HashMap<SessionId, LiveSession>,
    /// Set where this system cannot tell, so that "stopped" means "not known to run".
    pub weak: Option<&'static str>,
}

/// The key that leads back to the input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Escape.
    Escape,
    /// The letter q.
    Q,
}

/// Whether a screen has a list of numbered choices, with a sign before one of them. What is only quoted has none.
pub(crate) fn has_choices(screen: &str, sign: char) -> bool {
    let mut chosen = screen.lines().filter_map(|line| line.trim_start_matches(['│', ' ']).strip_prefix(sign));
    chosen.any(|choice| choice.trim_start().starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether one of the last lines of a screen says something.
pub(crate) fn ends_with_line(screen: &str, words: &str) -> bool {
    screen.lines().rev().filter(|line| !line.trim().is_empty()).take(2).any(|line| line.contains(words))
}

/// What an agent's terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// It can take input.
    Ready,
    /// It asks something that only a person can answer.
    Asks(&'static str),
    /// Somebody looks through what was said, where keys mean something else; this one leads back.
    Reading(Leave),
    /// Something else.
    Unknown,
}

/// What has a session open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Holder {
    /// The agent itself.
    #[default]
    Agent,
    /// A server that works for another program, such as an editor.
    Server,
    /// A daemon that keeps sessions open, also when nobody looks at them any more.
    Daemon,
}

/// A session that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The process, where it is known.
    pub pid: Option<u32>,
    /// What that process is.
    pub holder: Holder,
    /// What the agent says of its state; nothing where only the transcript can tell.
    pub state: Option<State>,
    /// When it said so, or where it says nothing, when its process began; in nanoseconds since 1970.
    pub since: Option<i64>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// The directory of the process's project, which tells two sessions with one id apart.
    pub cwd: Option<PathBuf>,
}

/// A text as it is pasted. Behind a file's name after `@` a list of files would stay open and take the next key, and a
/// backslash at the end would take it, too; both input lines strip a space.
pub(crate) fn closed(text: &str) -> String {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    if last.contains('@') || text.ends_with('\\') { format!("{text} ") } else { text.to_owned() }
}

/// The first part of a file; enough for its first lines.
pub(crate) fn head_of(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut head = Vec::new();
    open_regular(path).ok()?.take(256 << 10).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Opens a file for reading. Who opened a pipe or a device in its place could wait for ever.
pub(crate) fn open_regular(path: &Path) -> io::Result<std::fs::File> {
    match std::fs::metadata(path)?.is_file() {
        true => std::fs::File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads a small file; see [`open_regular`].
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_regular(path)?, &mut bytes)?;
    Ok(bytes)
}

/// Whether a text is a commit's hash, or a good part of one.
pub(crate) fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What the file system says of an entry of a folder; a link is followed. The entry is looked up in its folder, which is
/// cheaper than by its whole path.
pub(crate) fn entry_metadata(entry: &std::fs::DirEntry) -> Option<std::fs::Metadata> {
    let metadata = entry.metadata().ok()?;
    if metadata.is_symlink() { std::fs::metadata(entry.path()).ok() } else { Some(metadata) }
}

/// What the file system says of a file.
pub fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    use std::time::{SystemTime, UNIX_EPOCH};
    let nanos = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|n| -n).unwrap_or(i64::MIN),
    };
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Stamp {
        size: metadata.len(),
        modified: metadata.modified().map(nanos).unwrap_or(0),
        inode,
        born: metadata.created().ok().map(nanos),
    }
}

/// A stable 64-bit fingerprint of some bytes (FNV-1a). It is stored, so it must not change between versions.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
