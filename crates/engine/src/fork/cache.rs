//! Whether the provider still has a history in its cache when a fork continues it: otherwise the fork's first request
//! pays for all of it again.

use agents::Adapter;
use jiff::Timestamp;

use super::{Method, Plan};
use crate::sessions::session::Details;

/// Whether the provider has a history in its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheState {
    /// It should have.
    Warm,
    /// It has not.
    Cold,
    /// It may have.
    Unknown,
}

/// What the first request of a fork will find in the provider's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOutlook {
    /// Whether the history is there.
    pub state: CacheState,
    /// The tokens that the request writes into the cache again, if it is not.
    pub rewritten: Option<u64>,
    /// The reason, in a few words.
    pub why: String,
}

/// The outlook for a plan. `chosen` is a model that the fork is given.
pub(super) fn outlook(
    plan: &Plan,
    adapter: &dyn Adapter,
    details: &Details,
    chosen: Option<&str>,
    now: Timestamp,
) -> CacheOutlook {
    let (state, why) = state(plan, adapter, details, chosen, now);
    let rewritten = plan.tokens.filter(|_| state != CacheState::Warm);
    CacheOutlook { state, rewritten, why }
}

fn state(
    plan: &Plan,
    adapter: &dyn Adapter,
    details: &Details,
    chosen: Option<&str>,
    now: Timestamp,
) -> (CacheState, String) {
    let cold = |why: &str| (CacheState::Cold, why.to_owned());
    let unknown = |why: String| (CacheState::Unknown, why);
    let agent = plan.agent.product_name();
    if plan.agent != plan.source.agent {
        return cold("another agent");
    }
    if !matches!(plan.method, Method::Native | Method::Copy) {
        return cold("the transcript is sent as text");
    }
    if chosen.is_some_and(|model| details.model.as_deref().is_none_or(|used| !used.contains(model))) {
        return cold("another model");
    }
    let Some(rule) = adapter.prompt_cache(&plan.source.path, details.version.as_deref()) else {
        return unknown(format!("{agent} gives a fork a cache of its own"));
    };
    if plan.after_compaction {
        return cold("the turns before the compaction are left out");
    }
    let used = plan.source.updated.unwrap_or(Timestamp::UNIX_EPOCH);
    let left = rule.kept_for.as_secs() as i64 - (now.as_second() - used.as_second());
    if left <= 0 {
        return cold(&format!("the last request was over {} ago", duration(rule.kept_for.as_secs())));
    }
    if !rule.across_directories && plan.source.cwd.as_deref() != Some(plan.workspace.path.as_path()) {
        return cold(&format!("this version of {agent} sends other instructions in another directory"));
    }
    if !plan.whole {
        return unknown("an earlier turn may have expired".to_owned());
    }
    let left = duration(left.unsigned_abs());
    (CacheState::Warm, format!("{left} left, if the fork is continued with the same tools and options"))
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}
