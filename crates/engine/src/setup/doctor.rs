//! Checks everything that tine depends on, with a hint for every problem.

use std::path::Path;

use serde::Serialize;
use transcript::{Agent, Defects, text};

use crate::code::snapshots::record;
use crate::config;
use crate::ctx::Ctx;
use crate::program;
use crate::run::profile;
use crate::search::IndexStatus;
use crate::search::index::upkeep;
use crate::sessions::catalog;
use crate::sessions::catalog::Progress;
use crate::setup;
use crate::setup::Result;
use crate::setup::leftovers;
use crate::setup::repair;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Something does not work.
    Bad,
}

/// One check.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What it is about.
    pub subject: String,
    /// Its result.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The results of all checks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The version of tine.
    pub version: &'static str,
    /// Whether nothing is broken.
    pub healthy: bool,
    /// The checks, in the order in which they are shown.
    pub checks: Vec<Check>,
    /// The repairs, one sentence each, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired: Option<Vec<String>>,
}

/// Checks agents, files, registry and cache. With `repairs`, first restores a damaged or lost registry from a backup, and
/// adds deletions found in the trash to the log.
pub(crate) fn doctor(ctx: &Ctx, repairs: bool, progress: &dyn Progress) -> Result<Report> {
    let repaired = repairs.then(|| repair::repair(ctx)).transpose()?;
    let mut checks = Vec::new();
    let catalog = catalog::refresh(ctx.adapters(), &ctx.context().paths.cache, progress);
    for adapter in ctx.adapters() {
        let agent = adapter.agent();
        checks.push(program_check(ctx, agent));
        let entries = catalog.entries.iter().filter(|entry| entry.summary.agent == agent);
        let (sessions, helpers): (Vec<_>, Vec<_>) = entries.partition(|entry| !entry.summary.is_subagent);
        let said = sessions.iter().filter(|entry| !entry.summary.is_empty).count();
        let mut found = format!("{said} in {}", adapter.home().display());
        if !helpers.is_empty() {
            found.push_str(&format!(" and {} subagents", helpers.len()));
        }
        let variable = agents::about(agent).variables.locations[0];
        let hint = (!adapter.home().exists())
            .then(|| format!("start {} once, or set {variable} to its folder", agent.product_name()));
        let verdict = if hint.is_some() { Verdict::Note } else { Verdict::Good };
        checks.push(Check { subject: format!("{agent} sessions"), verdict, found, hint });
        let mut defects = Defects::default();
        for entry in sessions.iter().chain(&helpers) {
            defects.merge(&entry.summary.defects);
        }
        checks.extend(defects.iter().map(|(kind, count)| Check {
            subject: format!("{agent} files"),
            verdict: Verdict::Note,
            found: format!("{count} × {}", kind.describe()),
            hint: Some("`tine info SESSION` shows which; no action needed".into()),
        }));
        let live = adapter.live();
        if let Some(weak) = live.weak {
            let found = format!("{} open; {weak}", live.sessions.len());
            checks.push(Check { subject: format!("{agent} state"), verdict: Verdict::Note, found, hint: None });
        }
        checks.push(hooks_check(ctx, agent));
        checks.extend(adapter.hazard().map(|(found, hint)| Check {
            subject: format!("{agent} settings"),
            verdict: Verdict::Note,
            found: found.to_owned(),
            hint: Some(hint.to_owned()),
        }));
    }
    for (agent, path, kind) in &catalog.unreadable {
        checks.push(Check {
            subject: format!("{agent} files"),
            verdict: Verdict::Bad,
            found: format!("cannot read {}: {kind}", path.display()),
            hint: Some("make it readable".into()),
        });
    }
    checks.push(config_check(ctx));
    checks.extend(repair::registry_checks(ctx));
    checks.extend(leftovers::leftover_checks(ctx)?);
    checks.push(cache_check(ctx, catalog.generation.is_empty()));
    checks.push(index_check(ctx, progress, !catalog.generation.is_empty()));
    checks.push(git_check(ctx));
    checks.extend(snapshots_check(ctx));
    let healthy = checks.iter().all(|check| check.verdict != Verdict::Bad);
    Ok(Report { version: env!("CARGO_PKG_VERSION"), healthy, checks, repaired })
}

fn program_check(ctx: &Ctx, agent: Agent) -> Check {
    let subject = agent.product_name().to_owned();
    let path = match program::program(ctx, agent) {
        Ok(program) => Some(program.path),
        Err(error @ program::Error::NoAgent { .. }) if is_configured(ctx, agent) => {
            let found = format!("{error}; it is set in {}", ctx.context().paths.config.display());
            return Check { subject, verdict: Verdict::Bad, found, hint: error.advice().hint };
        }
        // A configuration that cannot be read is a check of its own.
        Err(program::Error::Config(_)) => ctx.context().find_program(agent.as_str()),
        Err(_) => None,
    };
    let Some(path) = path else {
        return Check {
            subject,
            verdict: Verdict::Note,
            found: "not found in PATH".into(),
            hint: Some("its sessions can be read, but not resumed or forked natively".into()),
        };
    };
    let found = match program::version_of(&path) {
        Some(version) => format!("{version} at {}", path.display()),
        None => format!("{} does not report its version", path.display()),
    };
    Check { subject, verdict: Verdict::Good, found, hint: None }
}

fn is_configured(ctx: &Ctx, agent: Agent) -> bool {
    ctx.config().is_ok_and(|config| config.agents.names_program(agent))
}

/// Whether the agent's hooks report to tine, so that forks made inside the agent are noticed immediately.
fn hooks_check(ctx: &Ctx, agent: Agent) -> Check {
    let subject = format!("{agent} hooks");
    // A doctor does not start agents, which would write to their homes.
    let places = match setup::setup_places(ctx, agent, false) {
        Ok(places) => places,
        Err(error) => {
            return Check { subject, verdict: Verdict::Bad, found: error.to_string(), hint: error.advice().hint };
        }
    };
    let place = places.iter().find(|place| place.works());
    let (verdict, found, hint) = match (place, places.first()) {
        (Some(place), _) => {
            let hint = ctx.adapter(agent).hook_caution();
            (Verdict::Good, format!("installed in {}", place.path.display()), hint)
        }
        (None, Some(place)) => {
            let found = format!("installed in {}, but not working", place.path.display());
            (Verdict::Bad, found, Some("`tine setup --status` shows why".into()))
        }
        (None, None) => {
            let hint = format!(
                "`tine setup {agent}` installs them; without hooks, tine notices forks made inside the agent when it \
                 next lists the sessions"
            );
            (Verdict::Note, "not installed".into(), Some(hint))
        }
    };
    Check { subject, verdict, found, hint }
}

/// Whether the configuration is readable, has only known keys, and names existing files.
fn config_check(ctx: &Ctx) -> Check {
    let subject = "configuration".to_owned();
    let path = &ctx.context().paths.config;
    let (config, unknown) = match config::read(path) {
        Ok(read) => read,
        Err(error) => {
            return Check { subject, verdict: Verdict::Bad, found: error.to_string(), hint: error.advice().hint };
        }
    };
    if let Some((name, error)) = config.profiles.iter().find_map(|(name, set)| {
        let checked = profile::check_profile(ctx, set);
        Some(name).zip(checked.err())
    }) {
        let found = format!("{}: profile `{}`: {error}", path.display(), text::one_line(name));
        return Check { subject, verdict: Verdict::Bad, found, hint: error.advice().hint };
    }
    if !unknown.is_empty() {
        let keys: Vec<String> = unknown.iter().map(|key| format!("`{}`", text::one_line(key))).collect();
        let found = format!("{}: unknown: {}", path.display(), keys.join(", "));
        let hint = Some("check the spelling; unknown keys have no effect".to_owned());
        return Check { subject, verdict: Verdict::Note, found, hint };
    }
    let found = if path.exists() { path.display().to_string() } else { format!("none at {}", path.display()) };
    Check { subject, verdict: Verdict::Good, found, hint: None }
}

fn cache_check(ctx: &Ctx, missing: bool) -> Check {
    let path = &ctx.context().paths.cache;
    let subject = "cache".to_owned();
    match missing {
        true => Check {
            subject,
            verdict: Verdict::Note,
            found: format!("{} is not writable, so every listing reads all transcripts", path.display()),
            hint: Some("make the folder writable".into()),
        },
        false => Check { subject, verdict: Verdict::Good, found: path.display().to_string(), hint: None },
    }
}

fn index_check(ctx: &Ctx, progress: &dyn Progress, is_writable: bool) -> Check {
    let subject = "search index".to_owned();
    let status = match upkeep::index_status(ctx, progress) {
        Ok(IndexStatus { failed: Some(error), .. }) | Err(error) => {
            return Check { subject, verdict: Verdict::Bad, found: error.to_string(), hint: error.advice().hint };
        }
        Ok(status) => status,
    };
    let missing = status.missing.sessions + status.missing.tools;
    let vectors = status.vectors.as_ref().map_or(0, |vectors| vectors.missing);
    let known = format!("{} sessions", status.sessions);
    let (found, hint) = match status.notices.first() {
        Some(notice) => (notice.clone(), "run `tine index`"),
        None if status.sessions == 0 && missing > 0 => {
            ("not built yet".to_owned(), "run `tine index`, or let the first search build it")
        }
        None if missing > 0 => {
            (format!("{known}, {missing} out of date"), "run `tine index`, or let the next search update them")
        }
        None if vectors > 0 => (format!("{known}, {vectors} not embedded yet"), "`tine index` embeds them"),
        None => return Check { subject, verdict: Verdict::Good, found: known, hint: None },
    };
    let hint = if is_writable { hint } else { "make the cache folder writable" };
    Check { subject, verdict: Verdict::Note, found, hint: Some(hint.to_owned()) }
}

fn git_check(ctx: &Ctx) -> Check {
    let subject = "git".to_owned();
    match ctx.context().find_program("git").map(|path| (program::version_of(&path), path)) {
        Some((version, path)) => {
            let found = format!("{} at {}", version.unwrap_or_else(|| "found".into()), path.display());
            Check { subject, verdict: Verdict::Good, found, hint: None }
        }
        None => Check {
            subject,
            verdict: Verdict::Note,
            found: "not found in PATH".into(),
            hint: Some("forks into worktrees need it".into()),
        },
    }
}

/// Whether code is recorded, if the user wants that. Nothing without a configuration.
fn snapshots_check(ctx: &Ctx) -> Option<Check> {
    let config = ctx.config().ok().filter(|config| config.snapshots.enabled)?;
    let subject = "snapshots".to_owned();
    let works = |agent: Agent| {
        setup::setup_places(ctx, agent, false).is_ok_and(|places| places.iter().any(|place| place.works()))
    };
    if !Agent::ALL.into_iter().any(works) {
        let hint = Some("`tine setup` installs the hooks that record code".into());
        return Some(Check { subject, verdict: Verdict::Bad, found: "on, but no agent has hooks".into(), hint });
    }
    if let Some(failure) = record::last_failure(ctx.context()) {
        let found = format!("the last one failed: {}", text::one_line(&failure));
        let hint = Some("if it fails again, `tine snapshots` in the project may show why".into());
        return Some(Check { subject, verdict: Verdict::Note, found, hint });
    }
    let days = text::count(u64::from(config.snapshots.keep_days), "day");
    let found = format!("on; kept for {days}, at most {} in one repository", config.snapshots.keep);
    Some(Check { subject, verdict: Verdict::Good, found, hint: None })
}

#[cfg(unix)]
pub(crate) fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn readable_by_others(_path: &Path) -> bool {
    false
}
