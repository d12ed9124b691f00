//! What the shell offers at the Tab key: sessions and their turns, places, operations, filters of a query.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use diagnostics::OrLog;
use engine::{LogEntry, Place, Quiet, SeedText, Session, Tine};
use transcript::{Agent, BlockKind, text};

use crate::environment;
use crate::ui;

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = environment::COMPLETE_VARIABLE;

/// The most sessions, turns or operations that are offered.
const MOST: usize = 200;
/// Turns of longer transcripts are offered without their prompts: completion must be fast.
const LARGEST_READ: u64 = 32 << 20;

/// Completes a session: names and id prefixes, with titles.
pub(crate) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| matching(current, |_| session_candidates()))
}

/// Completes a session and, after `@`, its turns.
pub(crate) fn points() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        matching(current, |current| match current.rsplit_once('@') {
            Some((session, _)) => turn_candidates(session),
            None => session_candidates(),
        })
    })
}

/// Completes the places where an agent can run.
pub(crate) fn places() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let here = CompletionCandidate::new(Place::Here.as_str()).help(Some("this terminal".into()));
        let auto = CompletionCandidate::new("auto").help(Some("a new pane of the current multiplexer".into()));
        let headless = CompletionCandidate::new(Place::Headless.as_str())
            .help(Some("without a terminal, until the agent has answered".into()));
        let none = CompletionCandidate::new(Place::None.as_str()).help(Some("only print the command".into()));
        let spots = engine::Spot::words().into_iter().map(CompletionCandidate::new);
        [here, auto].into_iter().chain(spots).chain([headless, none]).collect()
    })
}

/// Completes the number of an operation that can be undone.
pub(crate) fn operations() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let log = open().and_then(|tine| tine.log().or_log("list operations")).unwrap_or_default();
        let operations = log.iter().filter_map(LogEntry::operation);
        let done = operations.filter(|operation| operation.state.is_done());
        done.take(MOST)
            .map(|operation| {
                CompletionCandidate::new(operation.id.to_string()).help(Some(text::one_line(&operation.what).into()))
            })
            .collect()
    })
}

/// Completes a query: the names of its filters, and the values that tine knows.
pub(crate) fn query() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        matching(current, |current| match current.split_once(':') {
            Some(("agent", _)) => {
                Agent::ALL.into_iter().map(|agent| CompletionCandidate::new(format!("agent:{agent}"))).collect()
            }
            Some((name @ ("since" | "until" | "after" | "before"), _)) => {
                ["1d", "3d", "1w", "2w", "1m"].map(|time| CompletionCandidate::new(format!("{name}:{time}"))).into()
            }
            Some(_) => Vec::new(),
            None if current.is_empty() => Vec::new(),
            None => engine::FILTERS.map(|name| CompletionCandidate::new(format!("{name}:"))).into(),
        })
    })
}

/// The candidates that begin with what was typed.
fn matching(current: &OsStr, candidates: impl FnOnce(&str) -> Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let mut found = candidates(current);
    found.retain(|candidate| candidate.get_value().to_str().is_some_and(|value| value.starts_with(current)));
    found
}

fn open() -> Option<Tine> {
    environment::context().ok().and_then(|context| Tine::open(context).or_log("open the registry"))
}

fn session_candidates() -> Vec<CompletionCandidate> {
    let sessions = open().and_then(|tine| tine.all_sessions(&Quiet).or_log("list sessions")).unwrap_or_default();
    let candidate = |session: &Session| {
        CompletionCandidate::new(ui::label(&session.view)).help(Some(ui::title(&session.view).into()))
    };
    sessions.iter().take(MOST).map(candidate).collect()
}

/// The points of a session, the last turn first, each with the prompt of its turn.
fn turn_candidates(spec: &str) -> Vec<CompletionCandidate> {
    let Some(tine) = open() else { return Vec::new() };
    let found = tine.all_sessions(&Quiet).and_then(|sessions| tine.resolve_among(&sessions, spec));
    let Ok(selection) = found else { return Vec::new() };
    let session = selection.session;
    let first = session.view.turns.saturating_sub(MOST as u32) + 1;
    let mut prompts = vec![String::new(); (session.view.turns + 1 - first) as usize];
    let is_short = engine::session_stamp(&session.view.path).is_ok_and(|stamp| stamp.size <= LARGEST_READ);
    if let Some(mut blocks) = is_short.then(|| tine.read(&session, None, SeedText::Folded).ok()).flatten() {
        while let Some(block) = blocks.next_block() {
            let at = block.turn.checked_sub(first).map(|at| at as usize);
            if let (BlockKind::Prompt { text, steer: false }, Some(at), 0) = (block.kind, at, block.depth)
                && let Some(prompt) = prompts.get_mut(at)
            {
                *prompt = text::clip(&text::one_line(&text), 60);
            }
        }
    }
    let numbered = (first..).zip(prompts);
    let candidates = numbered.map(|(turn, prompt)| {
        let help = (!prompt.is_empty()).then(|| prompt.into());
        CompletionCandidate::new(format!("{spec}@{turn}")).help(help)
    });
    let mut candidates: Vec<_> = candidates.collect();
    candidates.reverse();
    candidates
}
