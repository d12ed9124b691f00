//! Records the code of a turn. A hook only starts a process; this is what the process does.
//!
//! Processes for one repository take turns, so that two sessions in it don't read the same files at once.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agents::{Adapter, HookEvent, Part};
use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::{Agent, BlockKind, SessionId, Summary};

use super::prune;
use super::refs::{self, Moment, Name};
use super::take::Taker;
use super::trailers::LeftOut;
use crate::advice::FileError;
use crate::code::Result;
use crate::config::{self, Config};
use crate::context::Context;
use crate::hook::HookPayload;
use crate::private;
use crate::workspace::git::Git;
use crate::workspace::git::objects::SHELL;
use crate::workspace::git::working_files::TreePlace;

/// How long a process waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(120);
/// How often it looks whether it is its turn.
const POLL: Duration = Duration::from_millis(20);
/// What a killed process left behind is removed when it is this old.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(60 * 60);

/// A turn whose code is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// The agent.
    pub agent: Agent,
    /// The session.
    pub session: SessionId,
    /// Its transcript.
    pub transcript: PathBuf,
    /// The size of the transcript when the hook was called. What was written later belongs to later turns.
    pub size: u64,
    /// The directory in which the agent worked.
    pub directory: Option<PathBuf>,
    /// Whether the turn has ended, or the next one begins.
    pub has_ended: bool,
}

impl SnapshotRequest {
    /// What an event of an agent asks for; nothing if it ends no turn. A turn that was interrupted ends with the next
    /// prompt or with the session.
    pub fn of_event(agent: Agent, event: HookEvent, payload: &HookPayload) -> Option<Self> {
        let has_ended = match event {
            HookEvent::Stop => true,
            HookEvent::UserPromptSubmit | HookEvent::SessionEnd => false,
            HookEvent::SessionStart | HookEvent::Notification | HookEvent::PermissionRequest => return None,
        };
        let transcript = payload.transcript_path.clone()?;
        let size = fs::metadata(&transcript).ok()?.len();
        let session = SessionId::new(payload.session_id.clone()).ok()?;
        Some(SnapshotRequest { agent, session, transcript, size, directory: payload.cwd.clone(), has_ended })
    }
}

/// Whether the configuration asks for snapshots. Fast where it doesn't.
pub fn are_snapshots_wanted(context: &Context) -> bool {
    let path = &context.paths.config;
    let mentions = |text: String| text.contains("snapshots");
    fs::read_to_string(path).is_ok_and(mentions) && config::read(path).is_ok_and(|(config, _)| config.snapshots.enabled)
}

/// Records the code of a turn, if that is wanted for its project and was not done yet. Returns the name of the ref.
/// `tine doctor` reports a failure until the next success.
pub fn record_snapshot(context: &Context, request: &SnapshotRequest) -> Result<Option<String>> {
    let recorded = record(context, request);
    let file = failure_file(context);
    match &recorded {
        Err(error) => {
            let written = private::create_folder(&context.paths.cache.join("code"))
                .and_then(|()| private::open_file(&file))
                .and_then(|mut opened| opened.set_len(0).and_then(|()| opened.write_all(error.to_string().as_bytes())));
            written.or_log("remember why a snapshot failed");
        }
        Ok(Some(_)) if file.exists() => fs::remove_file(&file).or_log("forget why a snapshot failed").unwrap_or(()),
        Ok(_) => {}
    }
    recorded
}

/// Why the last snapshot failed.
pub(crate) fn last_failure(context: &Context) -> Option<String> {
    fs::read_to_string(failure_file(context)).ok()
}

fn failure_file(context: &Context) -> PathBuf {
    context.paths.cache.join("code").join("failure")
}

fn record(context: &Context, request: &SnapshotRequest) -> Result<Option<String>> {
    let (config, _) = config::read(&context.paths.config)?;
    let settings = config.snapshots;
    let adapter = agents::open(request.agent, &context.surroundings);
    let scratch_for_transcript = context.paths.cache.join("code");
    let summary = summary_at(adapter.as_ref(), request, &scratch_for_transcript);
    let directory = summary.cwd.clone().or_else(|| request.directory.clone());
    let (Some(directory), Some(key)) = (directory, summary.turn_keys.last()) else { return Ok(None) };
    if !settings.is_enabled_for(&directory, &context.surroundings.home) || summary.is_subagent {
        return Ok(None);
    }
    let git = context.find_program("git").map(Git::new).ok_or(crate::workspace::Error::NoGit)?;
    let Some(place) = git.tree_place(&directory) else { return Ok(None) };
    let folder = folder_of(context, &place);
    private::create_folder(&folder).map_err(|source| FileError::Write { path: folder.clone(), source })?;
    let Some(_lock) = lock(&folder)? else { return Ok(None) };
    remove_left_behind(&folder);

    let moment = if request.has_ended { Moment::End } else { Moment::BeforeNext };
    let turn = u32::try_from(summary.turn_keys.len()).unwrap_or(u32::MAX);
    let name = Name { agent: request.agent, session: request.session.clone(), turn, moment, key: *key };
    if !request.has_ended && !refs::of_turn(&git, &place.top, request.agent, *key)?.is_empty() {
        return Ok(None);
    }
    let reference = name.to_ref();
    let subject = match moment {
        Moment::End => format!("Code at the end of turn {turn}"),
        Moment::BeforeNext => format!("Code after the interrupted turn {turn}"),
    };
    let seen = seen_file(&folder, &place);
    let taker = Taker {
        git: &git,
        place: &place,
        scratch: &folder,
        seen: &seen,
        max_file_size: settings.max_file_size.saturating_mul(1_000_000),
        now: context.clock.now(),
        is_too_late: &|| has_continued(adapter.as_ref(), &request.transcript, turn),
    };
    if taker.take(&reference, &subject)?.is_none() {
        diagnostics::info("a snapshot was dropped: the next turn has called a tool");
        return Ok(None);
    }
    prune::prune_now_and_then(&git, &place.top, &folder, &settings, context.clock.now());
    Ok(Some(reference))
}

/// The present tree, and what it lacks. `git` may put its objects elsewhere, so what was seen is only read.
pub(crate) fn tree_now(
    context: &Context,
    config: &Config,
    git: &Git,
    place: &TreePlace,
) -> Result<(String, Vec<LeftOut>)> {
    let folder = folder_of(context, place);
    private::create_folder(&folder).map_err(|source| FileError::Write { path: folder.clone(), source })?;
    let taker = Taker {
        git,
        place,
        scratch: &folder,
        seen: &seen_file(&folder, place),
        max_file_size: config.snapshots.max_file_size.saturating_mul(1_000_000),
        now: context.clock.now(),
        is_too_late: &|| false,
    };
    taker.tree()
}

/// The file with what was last seen of a working tree.
fn seen_file(folder: &Path, place: &TreePlace) -> PathBuf {
    folder.join(format!("seen-{:016x}", fingerprint(&place.top)))
}

/// The folder in the cache for everything about the code of a repository.
pub(crate) fn folder_of(context: &Context, place: &TreePlace) -> PathBuf {
    context.paths.cache.join("code").join(format!("{:016x}", fingerprint(&place.common)))
}

fn fingerprint(path: &Path) -> u64 {
    xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes())
}

/// Waits until no other process works on the repository's snapshots. The lock ends with the process.
fn lock(folder: &Path) -> Result<Option<fs::File>> {
    let path = folder.join("lock");
    let failed = |source: io::Error| FileError::Write { path: path.clone(), source };
    let file = private::open_file(&path).map_err(failed)?;
    let begun = Instant::now();
    while begun.elapsed() < TURN_WITHIN {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(POLL),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error).into()),
        }
    }
    diagnostics::info("a snapshot was skipped: another one takes too long");
    Ok(None)
}

/// Removes what killed processes left in the folder.
fn remove_left_behind(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(SHELL);
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if is_temporary && age.is_some_and(|age| age > LEFT_BEHIND_AFTER) {
            fs::remove_dir_all(entry.path()).or_log(format_args!("remove {}", entry.path().display()));
        }
    }
}

/// Whether a later turn has called a tool, which may have changed files.
fn has_continued(adapter: &dyn Adapter, transcript: &Path, turn: u32) -> bool {
    if adapter.scan(transcript).turns <= turn {
        return false;
    }
    let Ok(mut blocks) = adapter.read_part(transcript, &Part::default(), None) else { return true };
    let is_later_call = |block: transcript::Block| block.turn > turn && matches!(block.kind, BlockKind::Call { .. });
    std::iter::from_fn(|| blocks.next_block()).any(is_later_call)
}

/// The facts of the session when the hook was called. The agent may have begun the next turn since.
fn summary_at(adapter: &dyn Adapter, request: &SnapshotRequest, scratch: &Path) -> Summary {
    let path = &request.transcript;
    let has_grown = || request.size > 0 && fs::metadata(path).is_ok_and(|metadata| metadata.len() > request.size);
    let summary = adapter.scan(path);
    if !has_grown() {
        return summary;
    }
    let folder = scratch.join(format!("transcript-{}", uuid::Uuid::new_v4().simple()));
    let copied = || -> io::Result<Summary> {
        private::create_folder(&folder)?;
        let copy = folder.join(path.file_name().unwrap_or_default());
        let mut file = private::new_file(&copy)?;
        io::copy(&mut fs::File::open(path)?.take(request.size), &mut file)?;
        file.flush()?;
        Ok(adapter.scan(&copy))
    };
    let found = copied();
    fs::remove_dir_all(&folder).or_log(format_args!("remove {}", folder.display()));
    found.unwrap_or(summary)
}
