//! What the engine knows of the world around it: folders, clock, current directory. The binary fills it in once;
//! nothing below asks the environment.

use std::ffi::OsString;
use std::path::PathBuf;

use agents::{AgentEnvironment, Cancel};
use jiff::Timestamp;

/// The world around one run of tine.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where agents keep their files.
    pub surroundings: AgentEnvironment,
    /// Where tine keeps its own.
    pub paths: Paths,
    /// The path of this program, which agents should call.
    pub program: PathBuf,
    /// The command that runs a worker: the program and its arguments. It calls [`crate::run_worker`].
    pub worker: Vec<OsString>,
    /// The user's current directory.
    pub cwd: PathBuf,
    /// The time, or a fixed one in tests.
    pub clock: Clock,
    /// The variables that are set. What an agent that runs around us left among them is not passed on.
    pub environment: Environment,
    /// Variables that a session and its forks are launched with, such as a proxy's address.
    pub launch_environment: Vec<(String, String)>,
    /// Where programs are looked up.
    pub search_path: Vec<PathBuf>,
    /// Ends whatever waits for something.
    pub cancel: Cancel,
}

/// Variables with their values, some of which are secret, and some of which are no text.
#[derive(Clone, Default)]
pub struct Environment(pub Vec<(String, OsString)>);

impl Environment {
    /// Those whose values are text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str()?)))
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

/// tine's own folders.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The configuration file.
    pub config: PathBuf,
    /// The registry, which is precious.
    pub registry: PathBuf,
    /// The cache, which can be deleted at any time.
    pub cache: PathBuf,
}

/// A source of the time.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The system's.
    System,
    /// Always this, for tests.
    Fixed(Timestamp),
}

impl Clock {
    /// The time now.
    pub fn now(self) -> Timestamp {
        match self {
            Clock::System => Timestamp::now(),
            Clock::Fixed(time) => time,
        }
    }
}

impl Context {
    /// The value of a variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.texts().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_owned()).filter(|value| !value.is_empty())
    }

    /// Where `program` is, as a shell would find it.
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        self.search_path.iter().map(|folder| folder.join(program)).find(|path| is_executable(path))
    }
}

#[cfg(unix)]
pub(crate) fn is_executable(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_executable(path: &std::path::Path) -> bool {
    path.is_file()
}

/// The variable that names the session under which an agent was started.
pub(crate) const NAME_VARIABLE: &str = "TINE_SESSION";

/// The variable that marks the agents which make a fork.
pub const MARK: &str = "TINE_FORK";
