//! Who wrote a line: the session and the turn, from what the sessions of a project recorded.
//!
//! All recorded changes of a file are replayed in the order of time, and each line keeps the turn that brought it. What the
//! file holds now decides: a line that no session wrote has no author.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use agents::{Act, FileAct, FileEdit, Part, Sight, Touch};
use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Serialize;
use transcript::text::one_line;
use transcript::{Agent, BlockKind, SessionId, SessionName};

use super::rebuild::content::Content;
use crate::advice::FileError;
use crate::code::Result;
use crate::ctx::Ctx;
use crate::sessions::project::Project;
use crate::sessions::session::Session;

/// Who wrote the lines of a file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blame {
    /// The file.
    pub file: PathBuf,
    /// Its lines, or the requested one.
    pub lines: Vec<BlamedLine>,
}

/// A line of a file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// Who wrote it; `None` if no session recorded that.
    pub author: Option<LineAuthor>,
}

/// The turn that wrote a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineAuthor {
    /// The agent.
    pub agent: Agent,
    /// The session.
    pub id: SessionId,
    /// Its name.
    pub name: Option<SessionName>,
    /// The turn.
    pub turn: u32,
    /// The prompt of the turn.
    pub prompt: String,
    /// When the line was written.
    pub at: Option<Timestamp>,
    /// The command that forks the session there.
    pub fork: Vec<String>,
}

impl LineAuthor {
    /// The session's name, or its id.
    pub fn label(&self) -> &str {
        self.name.as_ref().map_or(self.id.as_str(), SessionName::as_str)
    }
}

/// A recorded change.
struct RecordedEdit {
    touch: Touch,
    at: Option<Timestamp>,
    author: usize,
}

/// Finds who wrote the lines of `file`, or only the line `line`, in the transcripts of its project.
pub(crate) fn blame(ctx: &Ctx, sessions: &[Session], file: &Path, line: Option<usize>) -> Result<Blame> {
    let file = ctx.context().cwd.join(file);
    let file = file.canonicalize().map_err(|source| FileError::Read { path: file.clone(), source })?;
    let bytes = fs::read(&file).map_err(|source| FileError::Read { path: file.clone(), source })?;
    let now = String::from_utf8_lossy(&bytes).into_owned();
    let project = Project::of(file.parent().unwrap_or(Path::new("/")));
    let below: Vec<PathBuf> =
        project.trees().iter().filter_map(|tree| Some(file.strip_prefix(tree).ok()?.to_owned())).collect();
    let mut authors = Vec::new();
    let mut steps = Vec::new();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let finder = Finder::new(name.as_bytes());
    let is_inside = |session: &&Session| {
        session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd) || file.starts_with(cwd))
    };
    // What a fork inherited was written by its source.
    let mut inside: Vec<&Session> = sessions.iter().filter(is_inside).collect();
    inside.sort_by_cached_key(|session| generation(sessions, session));
    for session in inside {
        if session.view.unstarted || !mentions(&session.view.path, &finder) {
            continue;
        }
        collect(ctx, session, (&file, &below), &mut authors, &mut steps);
    }
    steps.sort_by_key(|step| step.at);
    // A fork repeats what its source recorded.
    steps.dedup_by(|later, first| {
        later.at.is_some() && later.at == first.at && later.touch.change == first.touch.change
    });
    let owners = replay(&steps, &now);
    let lines = now.lines().zip(owners).enumerate().filter(|(at, _)| line.is_none_or(|line| line == at + 1));
    let lines = lines.map(|(at, (text, owner))| BlamedLine {
        line: at + 1,
        text: text.to_owned(),
        author: owner.and_then(|step: usize| {
            let author: &LineAuthor = authors.get(steps[step].author)?;
            Some(LineAuthor { at: steps[step].at, ..author.clone() })
        }),
    });
    Ok(Blame { lines: lines.collect(), file })
}

/// How many sessions a session descends from.
fn generation(sessions: &[Session], session: &Session) -> usize {
    let parent = |session: &&Session| {
        let parent = session.view.parent.as_ref()?;
        sessions.iter().find(|other| other.view.agent == parent.agent && other.view.id == parent.id)
    };
    // A damaged lineage may be circular.
    std::iter::successors(Some(session), parent).take(sessions.len() + 1).count()
}

/// Whether a transcript contains a name at all. That is quicker to find out than what it says about it.
fn mentions(path: &Path, finder: &Finder<'_>) -> bool {
    use std::io::Read;
    const BLOCK: usize = 1 << 20;
    // A compressed file must be read in any case.
    if path.extension().is_some_and(|extension| extension == "zst") {
        return true;
    }
    let Ok(mut file) = fs::File::open(path) else { return false };
    let mut buffer = vec![0; BLOCK + finder.needle().len()];
    let mut kept = 0;
    loop {
        match file.read(&mut buffer[kept..]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => {
                let filled = kept + count;
                if finder.find(&buffer[..filled]).is_some() {
                    return true;
                }
                kept = finder.needle().len().saturating_sub(1).min(filled);
                buffer.copy_within(filled - kept..filled, 0);
            }
        }
    }
}

/// Adds what a session did to the file, in this working tree or in another one of the project.
fn collect(
    ctx: &Ctx,
    session: &Session,
    (file, below): (&Path, &[PathBuf]),
    authors: &mut Vec<LineAuthor>,
    steps: &mut Vec<RecordedEdit>,
) {
    const PROMPT: usize = 200;
    let adapter = ctx.adapter(session.view.agent);
    let part = Part { prose_only: true, acts: true, tip: session.details.tip, ..Part::default() };
    let Ok(mut blocks) = adapter.read_part(&session.view.path, &part, session.details.known.as_ref()) else { return };
    let mut prompts: HashMap<u32, String> = HashMap::new();
    let mut found: Vec<(u32, RecordedEdit)> = Vec::new();
    let is_meant = |path: &Path, directory: Option<&Path>| {
        let path = directory.map_or_else(|| path.to_owned(), |directory| directory.join(path));
        path == file
            || path.file_name() == file.file_name() && {
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                real == file || below.iter().any(|below| below.components().count() > 1 && real.ends_with(below))
            }
    };
    loop {
        let block = blocks.next_block();
        for FileAct { turn, at, directory, act, .. } in blocks.take_acts() {
            let Act::Touch(mut touch) = act else { continue };
            let path = touch.moved_to.take().unwrap_or_else(|| touch.path.clone());
            if touch.change != FileEdit::Nothing && is_meant(&path, directory.as_deref()) {
                found.push((turn, RecordedEdit { touch, at, author: 0 }));
            }
        }
        let Some(block) = block else { break };
        if let BlockKind::Prompt { text, steer: false } = &block.kind
            && block.depth == 0
        {
            prompts.insert(block.turn, one_line(transcript::text::prefix(text.trim(), PROMPT)));
        }
    }
    for (turn, step) in found {
        let view = &session.view;
        let author = LineAuthor {
            agent: view.agent,
            id: view.id.clone(),
            name: view.name.clone(),
            turn,
            prompt: prompts.get(&turn).cloned().unwrap_or_default(),
            at: None,
            fork: vec!["tine".into(), "fork".into(), format!("{}@{turn}", view.label())],
        };
        let known = authors.iter().position(|known| *known == author);
        let author = known.unwrap_or_else(|| {
            authors.push(author);
            authors.len() - 1
        });
        steps.push(RecordedEdit { author, ..step });
    }
}

/// The step that brought each line of `now`.
fn replay(steps: &[RecordedEdit], now: &str) -> Vec<Option<usize>> {
    let mut text = String::new();
    let mut owners: Vec<Option<usize>> = Vec::new();
    // Lines that were written into a file whose other lines are not known.
    let mut loose: HashMap<String, usize> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        if let Some(Sight::Text(before)) = &step.touch.before {
            owners = carry(&text, &owners, before, None);
            text.clone_from(before);
        }
        let content = if text.is_empty() && step.touch.before.is_none() {
            Content::Absent
        } else {
            Content::of(text.clone().into_bytes())
        };
        match content.changed(&step.touch.change) {
            Content::Bytes(after) => {
                let after = String::from_utf8_lossy(&after).into_owned();
                owners = carry(&text, &owners, &after, Some(number));
                text = after;
            }
            Content::Absent => (text, owners) = (String::new(), Vec::new()),
            Content::Unknown => {
                if let FileEdit::Hunks(hunks) = &step.touch.change {
                    for hunk in hunks {
                        let is_new = |line: &&String| !hunk.old.contains(line) && !line.trim().is_empty();
                        loose.extend(hunk.new.iter().filter(is_new).map(|line| (line.trim_end().to_owned(), number)));
                    }
                }
            }
        }
    }
    let owners = carry(&text, &owners, now, None);
    now.lines().zip(owners).map(|(line, owner)| owner.or_else(|| loose.get(line.trim_end()).copied())).collect()
}

/// The owners of the lines of `after`: those of the same lines in `before`, and `new` for all others.
fn carry(before: &str, owners: &[Option<usize>], after: &str, new: Option<usize>) -> Vec<Option<usize>> {
    /// The largest table that is filled to compare two texts.
    const LARGEST: usize = 1 << 22;
    let (old, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&now).take_while(|(old, now)| old == now).count();
    let end = old[start..].iter().rev().zip(now[start..].iter().rev()).take_while(|(old, now)| old == now).count();
    let owner = |at: usize| owners.get(at).copied().flatten();
    let mut result: Vec<Option<usize>> = (0..start).map(owner).collect();
    let (middle, fresh) = (&old[start..old.len() - end], &now[start..now.len() - end]);
    let mut kept = vec![None; fresh.len()];
    let width = fresh.len() + 1;
    if !middle.is_empty() && !fresh.is_empty() && (middle.len() + 1).saturating_mul(width) <= LARGEST {
        // The longest common subsequence of what is between.
        let mut table = vec![0u32; (middle.len() + 1) * width];
        for at in (0..middle.len()).rev() {
            for to in (0..fresh.len()).rev() {
                table[at * width + to] = match middle[at] == fresh[to] {
                    true => table[(at + 1) * width + to + 1] + 1,
                    false => table[(at + 1) * width + to].max(table[at * width + to + 1]),
                };
            }
        }
        let (mut at, mut to) = (0, 0);
        while at < middle.len() && to < fresh.len() {
            if middle[at] == fresh[to] {
                kept[to] = Some(start + at);
                (at, to) = (at + 1, to + 1);
            } else if table[(at + 1) * width + to] >= table[at * width + to + 1] {
                at += 1;
            } else {
                to += 1;
            }
        }
    }
    result.extend(kept.into_iter().map(|kept| kept.map_or(new, owner)));
    result.extend((old.len() - end..old.len()).map(owner));
    result
}

#[cfg(test)]
mod tests {
    use agents::Hunk;

    use super::*;

    fn step(before: Option<&str>, change: FileEdit) -> RecordedEdit {
        let before = before.map(|before| Sight::Text(before.into()));
        RecordedEdit { touch: Touch { path: "a".into(), before, change, moved_to: None }, at: None, author: 0 }
    }

    fn whole(text: &str) -> FileEdit {
        FileEdit::Whole { text: text.into(), keeps_ends: false }
    }

    #[test]
    fn each_line_belongs_to_the_turn_that_brought_it() {
        let steps = [
            step(None, whole("a\nb\nc\n")),
            // A person has added a line in between.
            step(Some("a\nperson\nb\nc\n"), whole("a\nperson\nB\nc\nd\n")),
            step(None, FileEdit::Hunks(vec![Hunk { start: 1, old: vec!["a\n".into()], new: vec!["A\n".into()] }])),
        ];
        assert_eq!(replay(&steps, "A\nperson\nB\nc\nd\nlast\n"), [Some(2), None, Some(1), Some(0), Some(1), None]);
        assert_eq!(replay(&steps[..1], "c\n"), [Some(0)]);
        assert_eq!(replay(&[], "c\n"), [None]);
        // Of a file that is not known otherwise, only the lines themselves tell.
        assert_eq!(replay(&steps[2..], "x\nA\n"), [None, Some(0)]);
    }
}
