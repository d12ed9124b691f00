//! Rebuilding the working tree of a turn from what the agent recorded.
//!
//! The commit that was checked out then, and every recorded edit since. What people and their programs did to files is
//! recorded nowhere, so each file is judged by what it was seen to hold before the end of the turn and after it ([`track`]).
//! Files that the session had nothing to do with are taken from the commit. Nothing is written.

mod base;
mod commands;
pub(super) mod content;
mod doubt;
#[cfg(all(test, unix))]
mod property_tests;
mod timeline;
mod track;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use agents::{Act, FileAct, Part, Touch};
use jiff::Timestamp;

use self::base::Heads;
use self::commands::{Suspicion, named_paths, normal, suspicion};
use self::content::{Content, Ends};
use self::doubt::Doubt;
use self::timeline::{Event, TurnEnd};
use self::track::{AtEnd, Basis, Confirmation, Track};
use super::then::{FileThen, Held, TreeThen};
use super::{Certainty, CodeSource, FileVerdict, LeftOut, Reason};
use crate::advice::FileError;
use crate::code::{Error, Result};
use crate::ctx::Ctx;
use crate::sessions::session::Session;
use crate::workspace::git::Git;
use crate::workspace::git::objects::Mode;
use crate::workspace::git::past::FileReader;

/// The clock of the file system may be behind by this many milliseconds.
const CLOCK: i64 = 50;

/// The working tree at the end of a turn.
pub(crate) fn rebuild(ctx: &Ctx, session: &Session, turn: u32) -> Result<TreeThen> {
    if !ctx.adapter(session.view.agent).records_acts() {
        return Err(Error::NoCode { session: session.view.label().to_owned(), turn });
    }
    let git = ctx.git().ok();
    let own = session.view.cwd.clone().unwrap_or_else(|| ctx.context().cwd.clone());
    let own = own.canonicalize().unwrap_or(own);
    let top = git.as_ref().and_then(|git| git.top(&own));
    let git = git.filter(|_| top.is_some());
    let adapter = ctx.adapter(session.view.agent);
    let path = &session.view.path;
    let heads = git.as_ref().map(|git| Heads::read(git, &own, adapter, path)).unwrap_or_default();
    let reader = git.as_ref().zip(top.as_ref()).map(|(git, top)| git.file_reader(top)).transpose()?;
    let mut work = Rebuilding {
        top: top.unwrap_or_else(|| own.clone()),
        own,
        turn,
        heads,
        reader,
        tracks: BTreeMap::new(),
        places: HashMap::new(),
        commands: Vec::new(),
        position: 0,
        end: None,
        outside: BTreeSet::new(),
    };
    let part = Part { prose_only: true, acts: true, tip: session.details.tip, ..Part::default() };
    let known = session.details.known.as_ref();
    let blocks = adapter.read_part(path, &part, known);
    let mut blocks = blocks.map_err(|source| FileError::Read { path: path.clone(), source })?;
    timeline::walk(&mut *blocks, |event| work.see(event));
    work.finish(git.as_ref())
}

struct Command {
    position: usize,
    turn: u32,
    line: String,
    directory: PathBuf,
}

struct Rebuilding {
    top: PathBuf,
    /// The session's directory.
    own: PathBuf,
    /// The turn whose end is wanted.
    turn: u32,
    heads: Heads,
    reader: Option<FileReader>,
    /// The files, by their paths in the working tree.
    tracks: BTreeMap<PathBuf, Track>,
    /// Where paths lead, by how they were recorded.
    places: HashMap<PathBuf, Option<PathBuf>>,
    commands: Vec<Command>,
    position: usize,
    /// The position and the time at which the turn ended.
    end: Option<(usize, Option<Timestamp>)>,
    outside: BTreeSet<PathBuf>,
}

impl Rebuilding {
    fn see(&mut self, event: Event) {
        self.position += 1;
        match event {
            Event::TurnEnds(TurnEnd { turn, at }) if turn >= self.turn && self.end.is_none() => {
                self.end = Some((self.position, at));
                self.tracks.values_mut().for_each(Track::end_turn);
            }
            Event::TurnEnds(_) => {}
            Event::Act(FileAct { turn, at, directory, act, .. }) => {
                let directory = directory.unwrap_or_else(|| self.own.clone());
                match act {
                    Act::Touch(touch) => self.touch(&touch, &directory, turn, at),
                    Act::Ran(ran) if ran.is_reported => {}
                    Act::Ran(ran) => {
                        let (position, line) = (self.position, ran.command);
                        self.commands.push(Command { position, turn, line, directory });
                    }
                }
            }
        }
    }

    fn touch(&mut self, touch: &Touch, directory: &Path, turn: u32, at: Option<Timestamp>) {
        let position = self.position;
        let Some(path) = self.place(directory, &touch.path) else { return };
        let track = self.track(&path, at);
        let (moved, basis) = track.now();
        track.touch(touch, position, turn);
        let Some(target) = touch.moved_to.as_ref().and_then(|target| self.place(directory, target)) else { return };
        let content = moved.changed(&touch.change);
        let gone = Touch { moved_to: None, before: None, change: agents::FileEdit::Deleted, path: touch.path.clone() };
        self.track(&path, at).touch(&gone, position, turn);
        self.track(&target, at).receive(content, basis.max(Basis::Computed), position, turn);
    }

    /// What is known of the file at a path in the working tree.
    fn track(&mut self, path: &Path, at: Option<Timestamp>) -> &mut Track {
        if !self.tracks.contains_key(path) {
            let ended = self.end.map(|(_, at)| at);
            let mut track = Track::committed(self.committed_at(ended.unwrap_or(at), path));
            if ended.is_some() {
                track.end_turn();
            }
            self.tracks.insert(path.to_owned(), track);
        }
        self.tracks.get_mut(path).expect("it was added")
    }

    /// A file at the time of a commit. The log of commits has no fractions of a second.
    fn committed_at(&mut self, at: Option<Timestamp>, path: &Path) -> Content {
        let (commit, other) = self.heads.around(at);
        let (commit, other) = (commit.map(str::to_owned), other.map(str::to_owned));
        let content = self.committed(commit.as_deref(), path);
        match other {
            Some(other) if self.committed(Some(&other), path) != content => Content::Unknown,
            _ => content,
        }
    }

    fn committed(&mut self, commit: Option<&str>, path: &Path) -> Content {
        let read = commit.zip(self.reader.as_mut()).and_then(|(commit, reader)| reader.read(commit, path));
        read.map_or(Content::Absent, Content::of)
    }

    /// Where a path leads in the working tree. What is elsewhere is left out.
    fn place(&mut self, directory: &Path, path: &Path) -> Option<PathBuf> {
        let path = normal(&directory.join(path));
        if let Some(place) = self.places.get(&path) {
            return place.clone();
        }
        let place = self.find_place(&path);
        if place.is_none() {
            self.outside.insert(path.clone());
        }
        self.places.insert(path, place.clone());
        place
    }

    fn find_place(&self, path: &Path) -> Option<PathBuf> {
        // The folder may be a link, and so may the file; either may be gone.
        let found = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
        let whole = found.1.join(path.strip_prefix(found.0).ok()?);
        let inside = whole.strip_prefix(&self.top).ok().filter(|inside| !inside.as_os_str().is_empty())?;
        let is_git = inside.components().any(|part| part.as_os_str() == ".git");
        let mut folders = inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        // A repository inside this one, or a submodule.
        let is_nested = folders.any(|folder| self.top.join(folder).join(".git").symlink_metadata().is_ok());
        (!is_git && !is_nested).then(|| inside.to_owned())
    }

    fn finish(mut self, git: Option<&Git>) -> Result<TreeThen> {
        let (end, ended) = self.end.unwrap_or((self.position + 1, None));
        let commit = self.heads.at(ended).map(str::to_owned);
        self.add_named_files(commit.as_deref(), end);
        let outside = |path: &PathBuf| LeftOut { path: path.clone(), reason: Reason::Outside };
        let mut rebuilt = TreeThen {
            repository: self.top.clone(),
            head: commit.clone(),
            source: CodeSource::Reconstruction,
            files: Vec::new(),
            changed: Vec::new(),
            left_out: self.outside.iter().map(outside).collect(),
        };
        let modes: HashMap<PathBuf, Mode> = match git.zip(commit.as_deref()) {
            Some((git, commit)) => {
                let paths: Vec<PathBuf> = self.tracks.keys().cloned().collect();
                git.modes(&self.top, commit, &paths)?
            }
            None => HashMap::new(),
        };
        let known: BTreeSet<PathBuf> = self.tracks.keys().cloned().collect();
        for (path, track) in std::mem::take(&mut self.tracks) {
            let is_touched = track.is_touched;
            let present = Content::at(&self.top.join(&path));
            let mut at_end = track.at_end();
            at_end.compare_with_present(&present);
            let (content, (certainty, doubt)) = match modes.get(&path) {
                Some(Mode::Symlink) => (Content::Unknown, (Certainty::Doubtful, Some(Doubt::Link))),
                _ => self.judge(&path, &at_end, &present, (end, ended)),
            };
            let committed = self.committed(commit.as_deref(), &path);
            let differs = content != Content::Unknown && content != committed;
            if is_touched || differs || certainty != Certainty::Exact {
                if content == Content::Unknown && committed == Content::Absent {
                    rebuilt.left_out.push(LeftOut { path: path.clone(), reason: Reason::Unknown });
                }
                let why = doubt.map(|doubt| doubt.to_string());
                rebuilt.files.push(FileVerdict { path: path.clone(), certainty, why });
            }
            if differs {
                let mode = modes.get(&path).copied().unwrap_or_else(|| mode_of(&self.top.join(&path)));
                rebuilt.changed.push(changed(path, &content, mode));
            }
        }
        if let Some(git) = git {
            self.add_others(git, commit.as_deref(), (end, ended), &known, &mut rebuilt)?;
        }
        rebuilt.files.sort_by(|a, b| a.path.cmp(&b.path));
        rebuilt.changed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(rebuilt)
    }

    /// The content of a file at the end of the turn, and how sure that is.
    fn judge(
        &self,
        path: &Path,
        at_end: &AtEnd,
        present: &Content,
        (end, ended): (usize, Option<Timestamp>),
    ) -> (Content, (Certainty, Option<Doubt>)) {
        let full = self.top.join(path);
        if matches!(present, Content::Bytes(_)) && ended.is_some_and(|ended| is_unchanged_since(&self.top, path, ended))
        {
            return (present.clone(), (Certainty::Exact, None));
        }
        let before = self.suspect(&full, at_end.since, end);
        let after = self.suspect(&full, end, at_end.answered.unwrap_or(usize::MAX));
        let sure = match at_end.basis == Basis::Computed || at_end.is_computed {
            true => (Certainty::Consistent, None),
            false => (Certainty::Exact, None),
        };
        let command = |command: &Command| Doubt::Command { command: command.line.clone(), turn: command.turn };
        let by = |doubt: Doubt| (Certainty::Doubtful, Some(before.map_or(doubt, command)));
        let turn = at_end.turn;
        match &at_end.answer {
            Confirmation::Agreed if !ends_agree(&at_end.content, present) => {
                (at_end.content.clone(), by(Doubt::ChangedSince { turn }))
            }
            Confirmation::Agreed if before.is_none() || at_end.answered.is_some() && after.is_none() => {
                (at_end.content.clone(), sure)
            }
            Confirmation::Agreed => (at_end.content.clone(), by(Doubt::Unconfirmed { turn })),
            Confirmation::Disagreed(seen) => {
                let is_new = at_end.basis == Basis::Committed && at_end.content == Content::Absent;
                let takes_seen = at_end.content == Content::Unknown || is_new || before.is_some() && after.is_none();
                let content = match seen {
                    Content::Unknown => at_end.content.clone(),
                    seen if takes_seen => seen.clone(),
                    _ => at_end.content.clone(),
                };
                let doubt = match seen {
                    Content::Unknown => Doubt::Misfit { turn },
                    _ => Doubt::ChangedSince { turn },
                };
                match content {
                    Content::Unknown => (content, (Certainty::Unknown, Some(before.map_or(doubt, command)))),
                    content => (content, by(doubt)),
                }
            }
            Confirmation::Open | Confirmation::Lost => match at_end.content {
                Content::Unknown => {
                    (Content::Unknown, (Certainty::Unknown, Some(before.map_or(Doubt::Unconfirmed { turn }, command))))
                }
                _ => (at_end.content.clone(), by(Doubt::Unconfirmed { turn })),
            },
        }
    }

    /// The first command between two positions that probably changed a file.
    fn suspect(&self, path: &Path, after: usize, until: usize) -> Option<&Command> {
        let mut between = self.commands.iter().filter(|command| (after..until).contains(&command.position));
        between.find(|command| suspicion(&command.line, &command.directory, path) == Suspicion::Strong)
    }

    /// Files that commands name and that were not touched otherwise.
    fn add_named_files(&mut self, commit: Option<&str>, end: usize) {
        let named: BTreeSet<PathBuf> = self
            .commands
            .iter()
            .filter(|command| command.position < end)
            .flat_map(|command| named_paths(&command.line, &command.directory))
            .collect();
        for path in named {
            let Ok(inside) = path.strip_prefix(&self.top).map(Path::to_owned) else { continue };
            let known = self.tracks.contains_key(&inside) || self.find_place(&path).as_ref() != Some(&inside);
            let committed = if known { Content::Absent } else { self.committed(commit, &inside) };
            if !known && (committed != Content::Absent || path.is_file()) {
                let mut track = Track::committed(committed);
                track.end_turn();
                self.tracks.insert(inside, track);
            }
        }
    }

    /// Files that the session had nothing to do with, and that are not as committed.
    fn add_others(
        &mut self,
        git: &Git,
        commit: Option<&str>,
        (end, ended): (usize, Option<Timestamp>),
        known: &BTreeSet<PathBuf>,
        rebuilt: &mut TreeThen,
    ) -> Result<()> {
        let dirty: BTreeSet<PathBuf> = match git.head(&self.top) {
            Ok(head) => git.differences(&self.top, &head)?.into_iter().collect(),
            Err(_) => BTreeSet::new(),
        };
        let tracked = match commit {
            Some(commit) => git.differences(&self.top, commit)?,
            None => Vec::new(),
        };
        let untracked: BTreeSet<PathBuf> = git.untracked(&self.top)?.into_iter().collect();
        let others: BTreeSet<PathBuf> = tracked.into_iter().chain(untracked.iter().cloned()).collect();
        for path in others.into_iter().filter(|path| !known.contains(path)) {
            if self.find_place(&self.top.join(&path)).as_ref() != Some(&path) {
                rebuilt.left_out.push(LeftOut { path, reason: Reason::Repository });
                continue;
            }
            let full = self.top.join(&path);
            let present = Content::at(&full);
            let (before, after) = (self.suspect(&full, 0, end), self.suspect(&full, end, usize::MAX));
            let is_old = ended.is_some_and(|ended| is_unchanged_since(&self.top, &path, ended));
            let (takes_present, (certainty, doubt)) = match before {
                _ if is_old && matches!(present, Content::Bytes(_)) => (true, (Certainty::Exact, None)),
                Some(command) => {
                    let doubt = Doubt::Command { command: command.line.clone(), turn: command.turn };
                    (after.is_none() && present != Content::Unknown, (Certainty::Doubtful, Some(doubt)))
                }
                None if untracked.contains(&path) => (false, (Certainty::Unknown, Some(Doubt::Untracked))),
                None if dirty.contains(&path) => (false, (Certainty::Doubtful, Some(Doubt::ChangedSince { turn: 0 }))),
                // Later commits explain it.
                None => continue,
            };
            if takes_present {
                rebuilt.changed.push(changed(path.clone(), &present, mode_of(&full)));
            } else if untracked.contains(&path) {
                rebuilt.left_out.push(LeftOut { path: path.clone(), reason: Reason::Unknown });
            }
            rebuilt.files.push(FileVerdict { path, certainty, why: doubt.map(|doubt| doubt.to_string()) });
        }
        Ok(())
    }
}

fn changed(path: PathBuf, content: &Content, mode: Mode) -> FileThen {
    let then = match content {
        Content::Bytes(bytes) => Some((mode, Held::Bytes(bytes.to_vec()))),
        Content::Absent | Content::Unknown => None,
    };
    FileThen { path, then }
}

/// Records of a file may leave out how its lines end; the file as it is now shows whether that matters.
fn ends_agree(content: &Content, present: &Content) -> bool {
    let (Some(then), Some(now)) = (content.line_ends(), present.line_ends()) else { return true };
    then == now || then == Ends::Unix && now == Ends::Unix
}

/// Whether neither a file nor a folder around it has changed since a time.
#[cfg(unix)]
fn is_unchanged_since(top: &Path, path: &Path, since: Timestamp) -> bool {
    use std::os::unix::fs::MetadataExt;
    let since = since.as_millisecond() - CLOCK;
    let mut places = path.ancestors().filter(|place| !place.as_os_str().is_empty());
    places.all(|place| {
        let metadata = top.join(place).symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.ctime() * 1000 + metadata.ctime_nsec() / 1_000_000 < since)
    })
}

#[cfg(not(unix))]
fn is_unchanged_since(_: &Path, _: &Path, _: Timestamp) -> bool {
    false
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Mode {
    use std::os::unix::fs::PermissionsExt;
    let is_program = path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0);
    if is_program { Mode::Executable } else { Mode::File }
}

#[cfg(not(unix))]
fn mode_of(_: &Path) -> Mode {
    Mode::File
}
