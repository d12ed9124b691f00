//! The tools, one type each.

mod blame;
mod drive;
mod fork;
pub(super) mod look;
mod smart;
mod spawn;

use std::time::Duration;

use engine::{Place, Unit};

use super::tool::{Call, Tool};

/// How long an agent may take to get ready in its pane.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// Every tool.
pub(super) const ALL: [Tool; 17] = [
    Tool::of::<smart::SmartFork>(),
    Tool::of::<spawn::SpawnWorkers>(),
    Tool::of::<look::SearchSessions>(),
    Tool::of::<look::ListSessions>(),
    Tool::of::<look::GetSession>(),
    Tool::of::<look::ReadSession>(),
    Tool::of::<blame::BlameLine>(),
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

/// The default place for a fork: next to the user's pane, or headless with the first message.
fn usual_place(call: &Call<'_>) -> Place {
    Place::beside(call.tine.context(), Unit::Tab).unwrap_or(Place::None)
}
