//! The tools, one type each.

mod drive;
mod fork;
pub(super) mod look;
mod smart;
mod spawn;

use std::ffi::OsStr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Cancel, Context, Pane, Place, Session, Spot, Tine, Unit};

use super::tool::{Call, Tool};

/// How long an agent may take to get ready in its pane.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long an agent may take until it works on what it was told.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
/// How often sessions are looked at.
const PAUSE: Duration = Duration::from_millis(60);

/// Every tool.
pub(super) const ALL: [Tool; 16] = [
    Tool::of::<smart::SmartFork>(),
    Tool::of::<spawn::SpawnWorkers>(),
    Tool::of::<look::SearchSessions>(),
    Tool::of::<look::ListSessions>(),
    Tool::of::<look::GetSession>(),
    Tool::of::<look::ReadSession>(),
    Tool::of::<look::SessionTree>(),
    Tool::of::<fork::PlanFork>(),
    Tool::of::<fork::ForkSession>(),
    Tool::of::<drive::SendMessage>(),
    Tool::of::<drive::WaitSessions>(),
    Tool::of::<drive::ReadAnswer>(),
    Tool::of::<drive::StopSessions>(),
    Tool::of::<fork::AdoptSession>(),
    Tool::of::<look::SessionEvents>(),
    Tool::of::<look::SessionStatus>(),
];

/// A pane around us of this size, where a terminal is around us that has such.
fn spot(call: &Call<'_>, unit: Unit) -> Option<Spot> {
    let spot = Spot { terminal: None, unit };
    call.tine.check_place(spot).is_ok().then_some(spot)
}

/// Where a fork runs unless it is said: beside what the person looks at, or only when something is sent.
fn usual_place(call: &Call<'_>) -> Place {
    spot(call, Unit::Tab).map_or(Place::None, Place::In)
}

/// A pane's name for those who want to find it.
fn terminal_id(pane: Option<&Pane>) -> Option<String> {
    pane.map(|pane| format!("{}:{}", pane.terminal.as_str(), pane.pane))
}

/// Ends the agents that a cancelled call began without a terminal. `words` is one for each of them that its process was
/// given on its command line: the name of a session, or its path.
fn end_begun(context: &Context, words: &[String]) {
    let mut context = context.clone();
    context.cancel = Cancel::default();
    let (Some(proc), Ok(tine)) = (context.surroundings.proc.clone(), Tine::open(context)) else {
        return;
    };
    // Those that are there now: what begins in the same sessions from now on is somebody else's.
    let own = std::process::id();
    let with = |word: &String| agents::processes_with(&proc, None, OsStr::new(word));
    let processes = words.iter().flat_map(with).filter(|pid| agents::is_below(&proc, *pid, own));
    let mut processes: Vec<(u32, String)> =
        processes.filter_map(|pid| Some((pid, agents::process_start(pid)?))).collect();
    let begun = Instant::now();
    // An agent that is only about to start is waited for.
    while begun.elapsed() < BEGINS_WITHIN && !processes.is_empty() {
        let sessions = tine.all_sessions(&engine::Quiet).unwrap_or_default();
        for session in sessions.iter().filter(|session| is_of(session, words)) {
            let is_its = |pid: u32| processes.iter().any(|(process, _)| agents::is_below(&proc, pid, *process));
            if session.live.as_ref().and_then(|live| live.pid).is_some_and(is_its) {
                let _ = tine.stop(session);
            }
        }
        thread::sleep(PAUSE);
        processes.retain(|(pid, start)| agents::process_start(*pid).as_ref() == Some(start));
    }
}

fn is_of(session: &Session, words: &[String]) -> bool {
    let name = session.view.name.as_ref().map(|name| name.as_str());
    words.iter().any(|word| Some(word.as_str()) == name || Path::new(word) == session.view.path)
}
