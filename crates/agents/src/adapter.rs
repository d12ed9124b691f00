//! An agent as the engine sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use transcript::Agent;

use crate::about::about;
use crate::fields::Raw;
use crate::launch::Launch;
use crate::lines::LineReader;
use crate::live::LiveState;
use crate::setup::Setup;
use crate::transcripts::Transcripts;
use crate::translate::Translation;
use crate::writer::Writer;

/// Everything that tine can do with one agent.
pub trait Adapter: Transcripts + Writer + Translation + Launch + LiveState + Setup + Send + Sync {
    /// Which agent it is.
    fn agent(&self) -> Agent;
}

/// What decides where agents keep their files; filled by the binary.
#[derive(Debug, Clone, Default)]
pub struct AgentEnvironment {
    /// The home directory.
    pub home: PathBuf,
    /// Where to look up processes and locks; `/proc` on Linux.
    pub proc: Option<PathBuf>,
    /// The [`crate::location_variables`] that are set.
    pub variables: BTreeMap<&'static str, PathBuf>,
}

impl AgentEnvironment {
    /// The value of the first of an agent's location variables, which moves its home.
    pub fn moved_home(&self, agent: Agent) -> Option<&PathBuf> {
        self.variables.get(about(agent).variables.locations.first()?)
    }
}

/// Opens every agent that tine supports.
pub fn all(surroundings: &AgentEnvironment) -> Vec<Box<dyn Adapter>> {
    Agent::ALL.into_iter().map(|agent| open(agent, surroundings)).collect()
}

/// The agent that wrote the file at `path`, from the file name or one of the first records.
pub fn agent_of_file(adapters: &[Box<dyn Adapter>], path: &Path) -> Option<Agent> {
    const LINES: usize = 101;
    let name = path.file_name()?.to_string_lossy().into_owned();
    if let Some(adapter) = adapters.iter().find(|adapter| adapter.recognizes_name(&name)) {
        return Some(adapter.agent());
    }
    let mut lines = LineReader::open(path, 0, None).ok()?;
    for _ in 0..LINES {
        let line = Raw(lines.next_line().ok()??.bytes?);
        if let Some(adapter) = adapters.iter().find(|adapter| adapter.recognizes_line(line)) {
            return Some(adapter.agent());
        }
    }
    None
}

/// Opens one agent.
pub fn open(agent: Agent, surroundings: &AgentEnvironment) -> Box<dyn Adapter> {
    (about(agent).open)(surroundings)
}
