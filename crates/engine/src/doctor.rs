//! A look at everything that tine depends on, with a hint for whatever is not as it should be.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use transcript::{Agent, Defects};

use crate::{IndexStatus, Progress, Result, Tine, catalog};

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Something does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What it is about.
    pub subject: String,
    /// How it stands.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The checks, in the order in which they are shown.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing is broken.
    pub fn is_healthy(&self) -> bool {
        self.checks.iter().all(|check| check.verdict != Verdict::Bad)
    }
}

impl Tine {
    /// Looks at agents, files, registry and cache.
    pub fn doctor(&self, progress: &dyn Progress) -> Result<Report> {
        let mut checks = Vec::new();
        let catalog = catalog::refresh(self.stores(), &self.context().paths.cache, progress);
        for store in self.stores() {
            let agent = store.agent();
            checks.push(self.program_check(agent));
            let entries = catalog.entries.iter().filter(|entry| entry.summary.agent == agent);
            let (sessions, helpers): (Vec<_>, Vec<_>) = entries.partition(|entry| !entry.summary.is_subagent);
            let said = sessions.iter().filter(|entry| !entry.summary.is_empty).count();
            let mut found = format!("{said} in {}", store.home().display());
            if !helpers.is_empty() {
                found.push_str(&format!(", and {} threads of subagents", helpers.len()));
            }
            let hint = (!store.home().exists()).then(|| {
                format!("start {} once, or point {} to its folder", agent.product_name(), home_variable(agent))
            });
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
                hint: Some("`tine info SESSION` tells which; nothing needs to be done".into()),
            }));
            let live = store.live();
            if let Some(weak) = live.weak {
                let found = format!("{} open; {weak}", live.sessions.len());
                checks.push(Check { subject: format!("{agent} state"), verdict: Verdict::Note, found, hint: None });
            }
            checks.push(self.hooks_check(agent));
        }
        for (agent, path, kind) in &catalog.unreadable {
            checks.push(Check {
                subject: format!("{agent} files"),
                verdict: Verdict::Bad,
                found: format!("cannot look into {}: {kind}", path.display()),
                hint: Some("give yourself the right to read it".into()),
            });
        }
        checks.push(self.registry_check());
        checks.push(self.cache_check(catalog.generation.is_empty()));
        checks.push(self.index_check(progress, !catalog.generation.is_empty()));
        checks.push(self.git_check());
        Ok(Report { checks })
    }

    fn program_check(&self, agent: Agent) -> Check {
        let subject = agent.product_name().to_owned();
        let Some(path) = self.context().find_program(agent.as_str()) else {
            return Check {
                subject,
                verdict: Verdict::Note,
                found: "not found in PATH".into(),
                hint: Some("its sessions can be read, but not resumed or forked natively".into()),
            };
        };
        let found = match version_of(&path) {
            Some(version) => format!("{version} at {}", path.display()),
            None => format!("{} does not tell its version", path.display()),
        };
        Check { subject, verdict: Verdict::Good, found, hint: None }
    }

    /// Whether tine is told by the agent's hooks, so that forks made inside the agent are noticed at once.
    fn hooks_check(&self, agent: Agent) -> Check {
        let subject = format!("{agent} hooks");
        // A doctor does not start agents, which would write to their homes.
        let places = match self.setup_places(agent, false) {
            Ok(places) => places,
            Err(error) => {
                return Check { subject, verdict: Verdict::Bad, found: error.to_string(), hint: error.hint() };
            }
        };
        let place = places.iter().find(|place| place.works());
        let (verdict, found, hint) = match (place, places.first()) {
            (Some(place), _) => (Verdict::Good, format!("installed in {}", place.path.display()), None),
            (None, Some(place)) => {
                let found = format!("installed in {}, but not working", place.path.display());
                (Verdict::Bad, found, Some("`tine setup --status` tells why".into()))
            }
            (None, None) => {
                let hint = format!(
                    "`tine setup {agent}` installs them; without them tine notices forks made inside the agent when it next looks"
                );
                (Verdict::Note, "not installed".into(), Some(hint))
            }
        };
        Check { subject, verdict, found, hint }
    }

    fn registry_check(&self) -> Check {
        let path = &self.context().paths.registry;
        let subject = "registry".to_owned();
        if !self.registry().is_kept() {
            let hint = Some("free the disk or make the folder writable; until then names are not kept".into());
            return Check { subject, verdict: Verdict::Bad, found: format!("{} cannot be used", path.display()), hint };
        }
        match readable_by_others(path) {
            true => Check {
                subject,
                verdict: Verdict::Bad,
                found: format!("{} can be read by other users", path.display()),
                hint: Some(format!("chmod 600 {}", path.display())),
            },
            false => Check { subject, verdict: Verdict::Good, found: path.display().to_string(), hint: None },
        }
    }

    fn cache_check(&self, missing: bool) -> Check {
        let path = &self.context().paths.cache;
        let subject = "cache".to_owned();
        match missing {
            true => Check {
                subject,
                verdict: Verdict::Note,
                found: format!("{} cannot be written, so every listing reads everything", path.display()),
                hint: Some("make the folder writable".into()),
            },
            false => Check { subject, verdict: Verdict::Good, found: path.display().to_string(), hint: None },
        }
    }

    fn index_check(&self, progress: &dyn Progress, is_writable: bool) -> Check {
        let subject = "search index".to_owned();
        let status = match self.index_status(progress) {
            Ok(IndexStatus { failed: Some(error), .. }) | Err(error) => {
                return Check { subject, verdict: Verdict::Bad, found: error.to_string(), hint: error.hint() };
            }
            Ok(status) => status,
        };
        let missing = status.missing.sessions + status.missing.tools;
        let vectors = status.vectors.as_ref().map_or(0, |vectors| vectors.missing);
        let known = format!("{} sessions", status.sessions);
        let (found, hint) = match status.notices.first() {
            Some(notice) => (notice.clone(), "`tine index` does that"),
            None if status.sessions == 0 && missing > 0 => {
                ("not built yet".to_owned(), "the first search builds it, or `tine index`")
            }
            None if missing > 0 => {
                (format!("{known}, {missing} not up to date"), "the next search reads them, or `tine index`")
            }
            None if vectors > 0 => {
                (format!("{known}, the meaning of {vectors} not known yet"), "`tine index` makes all vectors")
            }
            None => return Check { subject, verdict: Verdict::Good, found: known, hint: None },
        };
        let hint = if is_writable { hint } else { "make the cache folder writable" };
        Check { subject, verdict: Verdict::Note, found, hint: Some(hint.to_owned()) }
    }

    fn git_check(&self) -> Check {
        let subject = "git".to_owned();
        match self.context().find_program("git").map(|path| (version_of(&path), path)) {
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
}

fn home_variable(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "CLAUDE_CONFIG_DIR",
        Agent::Codex => "CODEX_HOME",
    }
}

/// What `program --version` prints on its first line, if it does so soon.
pub(crate) fn version_of(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = transcript::text::one_line(text.lines().next()?);
    Some(transcript::text::clip(&line, 60)).filter(|line| !line.is_empty())
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_path: &Path) -> bool {
    false
}
