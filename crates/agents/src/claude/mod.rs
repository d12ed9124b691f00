//! Claude Code: sessions in `<config>/projects/`, one JSONL file each. The format: docs/formats/claude-code.md.

mod commands;
mod copy;
mod facts;
mod history;
mod home;
mod index;
mod launch;
mod layout;
mod mentioned;
mod notes;
mod order;
mod plugin;
mod read;
mod record;
mod scan;
mod side;
mod state;
mod subagents;
mod tool_result;

use std::io;
use std::path::{Path, PathBuf};

pub use home::{project_folder, side_folder};
use jiff::Timestamp;
pub use plugin::{install_plugin, remove_plugin};
pub(crate) use side::beside;
use transcript::{Agent, SessionId, Summary};

use crate::program::{Made, Message, NativeOrder, Program, ProgramError, Resumed, Said};
use crate::{
    Beside, Blocks, Copied, CopyOrder, Discovery, Growing, Known, Leave, Live, Notes, Part, ReadBack, Screen, Store,
    Surroundings, open_regular,
};

/// Claude Code's files.
#[derive(Debug, Clone)]
pub struct Claude {
    config: PathBuf,
    proc: Option<PathBuf>,
}

impl Claude {
    /// Finds the configuration folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub fn new(surroundings: &Surroundings) -> Self {
        let config = surroundings.claude_config_dir.clone().unwrap_or_else(|| surroundings.home.join(".claude"));
        Claude { config, proc: surroundings.proc.clone() }
    }

    /// What a session is resumed by. 2.1.197 finds by id the sessions of the current directory's project alone; a path
    /// leads to any, but the client then goes on in the file of the id that stands inside.
    fn handle(&self, session: Resumed<'_>, directory: &Path) -> String {
        let Resumed { id, path } = session;
        let is_here = self.place_for(id, directory, Timestamp::UNIX_EPOCH) == path;
        match is_here || launch::id_inside(path).as_deref() != Some(id.as_str()) {
            true => id.to_string(),
            false => path.to_string_lossy().into_owned(),
        }
    }

    fn scan_file(path: &Path) -> scan::Scan {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let id = home::session_id_of_name(&name)
            .or_else(|| SessionId::new(path.file_stem().unwrap_or_default().to_string_lossy()).ok())
            .unwrap_or_else(|| SessionId::new("unknown").expect("a legal id"));
        scan::scan(path, id)
    }
}

impl Store for Claude {
    fn agent(&self) -> Agent {
        Agent::Claude
    }

    fn home(&self) -> &Path {
        &self.config
    }

    fn discover(&self) -> Discovery {
        home::discover(&self.config.join("projects"))
    }

    fn scan(&self, path: &Path) -> Summary {
        Self::scan_file(path).summary
    }

    fn read_part(&self, path: &Path, part: &Part, known: Option<&Known>) -> io::Result<Box<dyn Blocks>> {
        // A missing or unreadable file is an error here, where somebody asked for this very session.
        open_regular(path)?;
        Ok(Box::new(match known {
            Some(known) => read::ClaudeBlocks::plain(path, known, part)?,
            None => read::ClaudeBlocks::session(path, Self::scan_file(path), part)?,
        }))
    }

    fn subagents(&self, path: &Path) -> Vec<(String, PathBuf)> {
        subagents::transcripts(path)
    }

    fn place_for(&self, id: &SessionId, cwd: &Path, _now: Timestamp) -> PathBuf {
        self.config.join("projects").join(project_folder(cwd)).join(format!("{id}.jsonl"))
    }

    fn copy(
        &self,
        source: &Path,
        order: &CopyOrder,
        known: Option<&Known>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied> {
        copy::copy(source, order, known, out)
    }

    fn read_back(&self, path: &Path, source: &Path, order: &CopyOrder, growing: Option<&Growing>) -> ReadBack {
        copy::read_back(path, source, order, growing)
    }

    fn copy_side(&self, source: &Path, order: &CopyOrder, side: &Path, cut: Option<&Path>) -> io::Result<()> {
        side::copy_side(source, order, side, cut)
    }

    fn copy_beside(&self, source: &Path, piece: &Beside, order: &CopyOrder, cut: Option<&Path>) -> io::Result<()> {
        side::prepare(source, piece, order, cut)
    }

    fn takes_ids(&self) -> bool {
        true
    }

    fn input_limit(&self) -> Option<usize> {
        None
    }

    fn resume_command(
        &self,
        session: Resumed<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        launch::command(&["--resume", &self.handle(session, directory)], options, prompt)
    }

    fn start_command(
        &self,
        id: &SessionId,
        title: &str,
        _directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        launch::command(&["--session-id", id.as_str(), "--name", title], options, prompt)
    }

    fn set_title(&self, _: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        launch::set_title(id, path, title)
    }

    fn fork(&self, program: &Program, order: &NativeOrder<'_>) -> Result<Made, ProgramError> {
        let id = order.id.unwrap_or(order.source_id);
        launch::fork(program, order, &self.place_for(id, order.directory, Timestamp::UNIX_EPOCH))
    }

    fn say(&self, program: &Program, message: &Message<'_>) -> Result<Said, ProgramError> {
        let session = message.session.map(|session| self.handle(session, message.directory));
        launch::say(program, message, session.as_deref(), &self.config)
    }

    fn find(&self, id: &SessionId, directory: &Path) -> Option<PathBuf> {
        Some(self.place_for(id, directory, Timestamp::UNIX_EPOCH)).filter(|path| path.is_file())
    }

    fn announce(&self, _: &Program, _: &SessionId, _: &str, _: &Path) -> Result<(), ProgramError> {
        // Claude Code looks at the files.
        Ok(())
    }

    fn keeps_list(&self, path: &Path) -> bool {
        index::is_kept(path)
    }

    fn enlist(&self, path: &Path, summary: &Summary) -> io::Result<()> {
        index::enlist(path, summary)
    }

    fn delist(&self, id: &SessionId, path: &Path) -> io::Result<()> {
        index::delist(id, path)
    }

    fn screen(&self, screen: &str) -> Screen {
        const TRUST: [&str; 2] =
            ["Is this a project you created or one you trust", "Do you trust the files in this folder"];
        const PERMISSION: [&str; 2] = ["Do you want to proceed?", "Do you want to make this edit"];
        let has_choices = crate::has_choices(screen, '❯') || crate::ends_with_line(screen, "Esc to cancel");
        let shows = |all: &[&str]| has_choices && all.iter().any(|words| screen.contains(words));
        match () {
            () if shows(&TRUST) => Screen::Asks("an answer whether it may trust this folder"),
            () if shows(&PERMISSION) => Screen::Asks("a permission"),
            () if crate::ends_with_line(screen, "Showing detailed transcript") => Screen::Reading(Leave::Escape),
            () => Screen::Unknown,
        }
    }

    fn literal(&self, text: &str) -> String {
        let is_command = commands::is_command(text, &self.config);
        let text = crate::closed(text);
        // A space before it keeps anything but a command from being taken for one; before a command it does not help.
        match text.trim_start().chars().next() {
            // What cannot be seen is taken out; an empty pattern of Braille is a letter to it.
            _ if is_command => format!("\u{2800}{text}"),
            Some('/' | '!') => format!(" {text}"),
            _ => text,
        }
    }

    fn forked_by(&self, words: &[String]) -> Option<Option<SessionId>> {
        launch::forked_by(words)
    }

    fn origin(&self, id: &SessionId, path: &Path) -> Option<SessionId> {
        let pointer = crate::head_of(path).and_then(|head| {
            let lines = head.split(|byte| *byte == b'\n');
            let mut pointers =
                lines.filter_map(|line| crate::Raw(line).get(b"forkedFrom")?.get(b"sessionId")?.string());
            pointers.next().and_then(|id| SessionId::new(id).ok())
        });
        pointer.or_else(|| notes::read(&self.config).parents.get(id).map(|parent| parent.id.clone()))
    }

    fn commits(&self, path: &Path) -> Vec<String> {
        // What it tells the model of the repository, in a text that stands in JSON: one line per commit.
        const HEADING: &[u8] = br"Recent commits:\n";
        let head = crate::head_of(path).unwrap_or_default();
        let Some(start) = memchr::memmem::find(&head, HEADING) else {
            return Vec::new();
        };
        let text = &head[start + HEADING.len()..];
        let text = &text[..memchr::memchr(b'"', text).unwrap_or(text.len())];
        let text = String::from_utf8_lossy(text);
        let hashes = text.split(r"\n").map_while(|line| line.split(' ').next().filter(|hash| crate::is_commit(hash)));
        hashes.map(str::to_owned).collect()
    }

    fn belongings(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        let mut belongings = vec![path.to_owned(), side_folder(path)];
        let kept = ["file-history", "session-env", "tasks"].map(|folder| self.config.join(folder).join(id.as_str()));
        belongings.extend(kept);
        belongings.retain(|path| path.exists());
        belongings
    }

    fn notes(&self) -> Notes {
        notes::read(&self.config)
    }

    fn live(&self) -> Live {
        state::live(&self.config, self.proc.as_deref())
    }
}

#[cfg(test)]
mod tests;
