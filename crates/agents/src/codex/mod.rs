//! Codex: threads in `<home>/sessions/`, one or more JSONL files each. The format: docs/formats/codex.md.

mod app_server;
mod chain;
mod copy;
mod home;
mod launch;
mod message;
mod meta;
mod notes;
mod read;
mod record;
mod scan;
mod source;
mod state;
mod subagents;
mod tools;
mod turns;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
pub use launch::{KnownHook, hooks};
use transcript::{Agent, SessionId, Summary};

use self::home::Home;
use crate::program::{Made, Message, NativeOrder, Program, ProgramError, Resumed, Said};
use crate::{
    Beside, Blocks, Copied, CopyOrder, Discovery, Growing, Known, Leave, Live, Notes, Part, ReadBack, Screen, Store,
    Surroundings,
};

/// Codex's files.
#[derive(Debug, Clone)]
pub struct Codex {
    home: Home,
    proc: Option<PathBuf>,
}

impl Codex {
    /// Finds the folder: `CODEX_HOME`, else `~/.codex`.
    pub fn new(surroundings: &Surroundings) -> Self {
        let root = surroundings.codex_home.clone().unwrap_or_else(|| surroundings.home.join(".codex"));
        Codex { home: Home::new(root), proc: surroundings.proc.clone() }
    }

    /// The threads of the helpers that a thread started, with their files, oldest first.
    ///
    /// Looks at the beginning of every thread that is younger than the parent.
    pub fn subagents_of(&self, parent: &SessionId) -> Vec<(SessionId, PathBuf)> {
        subagents::of(&self.home, parent)
    }
}

impl Store for Codex {
    fn agent(&self) -> Agent {
        Agent::Codex
    }

    fn home(&self) -> &Path {
        self.home.root()
    }

    fn discover(&self) -> Discovery {
        self.home.discover()
    }

    fn scan(&self, path: &Path) -> Summary {
        scan::scan(&self.home, path).summary
    }

    fn read_part(&self, path: &Path, part: &Part, known: Option<&Known>) -> io::Result<Box<dyn Blocks>> {
        Ok(Box::new(read::open(&self.home, path, part, known)?))
    }

    fn place_for(&self, id: &SessionId, _cwd: &Path, now: Timestamp) -> PathBuf {
        let (day, time) = (now.strftime("%Y/%m/%d"), now.strftime("%Y-%m-%dT%H-%M-%S"));
        self.home.root().join("sessions").join(day.to_string()).join(format!("rollout-{time}-{id}.jsonl"))
    }

    fn copy(
        &self,
        source: &Path,
        order: &CopyOrder,
        known: Option<&Known>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied> {
        copy::copy(&self.home, source, order, known, out)
    }

    fn read_back(&self, path: &Path, _source: &Path, order: &CopyOrder, growing: Option<&Growing>) -> ReadBack {
        copy::read_back(&self.home, path, order, growing)
    }

    fn copy_side(&self, _source: &Path, _order: &CopyOrder, _side: &Path, _cut: Option<&Path>) -> io::Result<()> {
        // A thread is one file; its subagents are threads of their own and stay the source's.
        Ok(())
    }

    fn copy_beside(&self, _source: &Path, _piece: &Beside, _order: &CopyOrder, _cut: Option<&Path>) -> io::Result<()> {
        Ok(())
    }

    fn takes_ids(&self) -> bool {
        false
    }

    fn input_limit(&self) -> Option<usize> {
        Some(launch::INPUT_LIMIT)
    }

    fn resume_command(
        &self,
        session: Resumed<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        launch::command(&["resume", session.id.as_str()], directory, options, prompt)
    }

    fn start_command(
        &self,
        _id: &SessionId,
        _title: &str,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        launch::command(&[], directory, options, prompt)
    }

    fn set_title(&self, program: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        launch::announce(program, id, title, directory).map_err(io::Error::other)
    }

    fn fork(&self, program: &Program, order: &NativeOrder<'_>) -> Result<Made, ProgramError> {
        launch::fork(&self.home, program, order)
    }

    fn say(&self, program: &Program, message: &Message<'_>) -> Result<Said, ProgramError> {
        launch::say(program, message)
    }

    fn find(&self, id: &SessionId, _directory: &Path) -> Option<PathBuf> {
        self.home.forget();
        self.home.find_thread(id.as_str())
    }

    fn announce(&self, program: &Program, id: &SessionId, title: &str, directory: &Path) -> Result<(), ProgramError> {
        launch::announce(program, id, title, directory)
    }

    fn screen(&self, screen: &str) -> Screen {
        const TRUST: [&str; 2] = ["Trust this folder?", "Do you trust the contents of this directory?"];
        const PERMISSION: [&str; 2] =
            ["Would you like to run the following command", "Would you like to make the following edits"];
        let has_choices = crate::has_choices(screen, '›');
        let shows = |all: &[&str]| has_choices && all.iter().any(|words| screen.contains(words));
        // The input line; choices of a dialog begin with a number.
        let is_input = |line: &str| {
            let rest = line.trim_start().strip_prefix('›')?.trim_start();
            Some(!rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        match () {
            () if shows(&TRUST) => Screen::Asks("an answer whether it may trust this folder"),
            () if shows(&PERMISSION) => Screen::Asks("a permission"),
            () if crate::ends_with_line(screen, "Browsing transcript") => Screen::Reading(Leave::Escape),
            () if screen.trim_start().starts_with("/ T R A N S C R I P T") => Screen::Reading(Leave::Q),
            // Below the input stands the model, once it is known.
            () if screen
                .lines()
                .skip_while(|line| is_input(line) != Some(true))
                .skip(1)
                .any(|line| line.contains(" · ")) =>
            {
                Screen::Ready
            }
            () => Screen::Unknown,
        }
    }

    fn literal(&self, text: &str) -> String {
        // Spaces are taken off before a `!` is looked for, and what follows it would run in a shell; nothing that can be
        // seen helps there.
        let text = crate::closed(text);
        match text.trim_start().chars().next() {
            Some('/') => format!(" {text}"),
            Some('!') => format!("\u{200b}{text}"),
            _ => text,
        }
    }

    fn lone_terminal(&self, directory: &Path, variable: &str) -> Option<String> {
        crate::process::lone_mark(self.proc.as_deref()?, "codex", &directory.canonicalize().ok()?, variable)
    }

    fn tells_its_state(&self) -> bool {
        false
    }

    fn queue(&self, program: &Program, id: &SessionId, text: &str) -> Result<(), ProgramError> {
        launch::queue(program, id, text)
    }

    fn client(&self, path: &Path) -> Option<String> {
        let head = crate::head_of(path).unwrap_or_default();
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let source = crate::Raw(first).get(b"payload")?.get(b"source")?;
        source.string().map(|source| source.into_owned())
    }

    fn origin(&self, _id: &SessionId, path: &Path) -> Option<SessionId> {
        let head = crate::head_of(path)?;
        let pointer = crate::Raw(head.split(|byte| *byte == b'\n').next()?).get(b"payload")?.get(b"forked_from_id")?;
        SessionId::new(pointer.string()?).ok()
    }

    fn commits(&self, path: &Path) -> Vec<String> {
        let head = crate::head_of(path).unwrap_or_default();
        let first = crate::Raw(head.split(|byte| *byte == b'\n').next().unwrap_or_default());
        let git = first.get(b"payload").and_then(|payload| payload.get(b"git"));
        let commit = git.and_then(|git| git.get(b"commit_hash")).and_then(crate::Raw::string);
        commit.into_iter().map(Into::into).filter(|commit: &String| crate::is_commit(commit)).collect()
    }

    fn belongings(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        // Going back to an earlier prompt begins another file of the same thread.
        let mut belongings = self.home.files_of_thread(id.as_str());
        belongings.retain(|file| file != path);
        belongings.insert(0, path.to_owned());
        belongings
    }

    fn notes(&self) -> Notes {
        notes::read(self.home.root())
    }

    fn live(&self) -> Live {
        state::live(self.home.root(), self.proc.as_deref())
    }
}
