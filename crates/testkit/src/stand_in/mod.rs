//! Stand-ins for the programs around tine: the terminals in whose panes agents run, and an agent.
//!
//! All of them are one program, `tine-stand-in`, linked into a sandbox's `bin/` under the names of those it stands in for.
//! A terminal runs what it is printed as a real child on a pseudo-terminal of its own, and prints what the real one prints; its
//! state is a folder in the sandbox. The agent keeps its sessions as Claude Code does and answers by itself. So driving a
//! session is tested in milliseconds and without anything installed; the real programs then prove that the stand-ins are
//! right.

mod claude;
mod elicit;
mod kitty;
mod pane;
mod tmux;
mod wezterm;
mod zellij;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use crate::Sandbox;
use crate::poll::{PATIENCE, wait_until};
use pane::Server;

/// A terminal that is stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// tmux.
    Tmux,
    /// WezTerm, whose list of panes names no process.
    Wezterm,
    /// kitty.
    Kitty,
    /// Zellij, whose list of panes names neither process nor device.
    Zellij,
}

impl Terminal {
    /// Every one.
    pub const ALL: [Terminal; 4] = [Terminal::Tmux, Terminal::Wezterm, Terminal::Kitty, Terminal::Zellij];

    /// The name of its program.
    pub fn as_str(self) -> &'static str {
        match self {
            Terminal::Tmux => "tmux",
            Terminal::Wezterm => "wezterm",
            Terminal::Kitty => "kitty",
            Terminal::Zellij => "zellij",
        }
    }

    /// What a process finds in its environment that runs in a pane.
    fn variables(self, server: &str, pane: u32) -> Vec<(&'static str, String)> {
        let server = server.to_owned();
        match self {
            Terminal::Tmux => vec![("TMUX", format!("{server},1,0")), ("TMUX_PANE", format!("%{pane}"))],
            Terminal::Wezterm => vec![("WEZTERM_UNIX_SOCKET", server), ("WEZTERM_PANE", pane.to_string())],
            Terminal::Kitty => vec![("KITTY_LISTEN_ON", server), ("KITTY_WINDOW_ID", pane.to_string())],
            Terminal::Zellij => {
                let named = [("ZELLIJ_SESSION_NAME", server), ("ZELLIJ_PANE_ID", pane.to_string())];
                [("ZELLIJ", "0".to_owned())].into_iter().chain(named).collect()
            }
        }
    }
}

/// A terminal that stands in for a real one, with one pane in which tine is run.
pub struct StandIn {
    /// Which.
    pub terminal: Terminal,
    server: String,
    state: Server,
    first: u32,
}

impl StandIn {
    /// Installs a terminal in a sandbox, and opens its first pane.
    pub fn start(sandbox: &Sandbox, terminal: Terminal) -> Self {
        sandbox.link(terminal.as_str(), program());
        let run = sandbox.root().join("run");
        let server = match terminal {
            Terminal::Tmux => run.join("tmux.sock").display().to_string(),
            Terminal::Wezterm => {
                let socket = run.join("wezterm/sock");
                sandbox.write(&socket, "");
                socket.display().to_string()
            }
            Terminal::Kitty => format!("unix:{}", run.join("kitty.sock").display()),
            Terminal::Zellij => "shop".to_owned(),
        };
        let state = Server::of(&run, terminal, &server);
        state.create();
        let mut command = sandbox.command(program());
        let first = state.reserve();
        command.args(pane::host_words(&state, first, &sandbox.work(), &["cat".to_owned()]));
        command.envs(terminal.variables(&server, first));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut host = command.spawn().expect("the stand-in");
        std::thread::spawn(move || host.wait());
        wait_until("the first pane", PATIENCE, || state.is_open(first));
        StandIn { terminal, server, state, first }
    }

    /// The environment of its first pane.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        self.terminal.variables(&self.server, self.first)
    }

    /// The panes that are open, without the first, by number.
    pub fn panes(&self) -> Vec<u32> {
        self.state.panes().into_iter().filter(|pane| *pane != self.first).collect()
    }

    /// The pane that was brought to front last.
    pub fn focused(&self) -> Option<u32> {
        self.state.focused()
    }

    /// The process that runs in a pane.
    pub fn process(&self, pane: u32) -> Option<u32> {
        self.state.process(pane)
    }

    /// What a pane shows.
    pub fn screen(&self, pane: u32) -> String {
        self.state.screen(pane)
    }

    /// Types into a pane, as a person would.
    pub fn type_in(&self, pane: u32, keys: &str) {
        self.state.write(pane, keys);
    }

    /// Runs a program of the sandbox in a new pane, as a person would who types it there.
    pub fn run(&self, command: &Command) -> u32 {
        let pane = self.state.reserve();
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let directory = command.get_current_dir().expect("a directory");
        let mut host = Command::new(program());
        host.args(pane::host_words(&self.state, pane, directory, &words)).env_clear();
        let variables: BTreeMap<_, _> = command.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
        host.envs(variables).envs(self.terminal.variables(&self.server, pane));
        host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut host = host.spawn().expect("the stand-in");
        std::thread::spawn(move || host.wait());
        wait_until("a pane", PATIENCE, || self.state.is_open(pane));
        pane
    }
}

/// Installs an agent in a sandbox that answers every prompt with `to PROMPT`; see the module [`claude`].
pub fn install_claude(sandbox: &Sandbox) -> PathBuf {
    sandbox.link("claude", program())
}

/// Installs a script that keeps sessions as Codex does and answers every prompt with `Ready.`. It runs the hooks of the tine
/// that `STAND_IN_HOOKS` names, and fails after a fork where `STAND_IN_FAILS` is set.
pub fn install_codex(sandbox: &Sandbox) -> PathBuf {
    sandbox.script("codex", include_str!("codex.sh"))
}

/// Installs an MCP server that asks the user; see the module [`elicit`].
pub fn install_elicit(sandbox: &Sandbox) -> PathBuf {
    sandbox.link("elicit", program())
}

/// The program. Cargo builds it with the tests of the whole workspace; whoever runs the tests of one crate gets it here.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = env::current_exe().expect("the test's own program");
        // Tests are in a folder below the programs, benchmarks beside them.
        let beside = test.parent().expect("the folder of the test");
        let folder = if beside.ends_with("deps") { beside.parent().unwrap_or(beside) } else { beside };
        let program = folder.join("tine-stand-in");
        if let (Some(cargo), Some(target)) = (env::var_os("CARGO"), folder.parent()) {
            let mut build = Command::new(cargo);
            build.args(["build", "--quiet", "--offline", "-p", "tine-testkit", "--bin", "tine-stand-in"]);
            build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
            if folder.ends_with("release") {
                build.arg("--release");
            }
            let built = build.status().expect("cargo");
            assert!(built.success() || program.is_file(), "the stand-in could not be built");
        }
        assert!(program.is_file(), "{} is missing: run the tests by cargo", program.display());
        program
    })
}

/// What `tine-stand-in` does.
pub fn main() -> ExitCode {
    let mut words = env::args();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    if words.first().is_some_and(|word| word == pane::HOST) {
        return pane::host(&words[1..]);
    }
    let called = Path::new(&called).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let printed = match called.as_str() {
        "tmux" => tmux::run(&words),
        "wezterm" => wezterm::run(&words),
        "kitty" => kitty::run(&words),
        "zellij" => zellij::run(&words),
        "claude" => return claude::run(&words),
        "elicit" => return elicit::run(),
        other => Err(format!("nobody stands in for `{other}`")),
    };
    match printed {
        Ok(printed) => {
            let _ = std::io::stdout().write_all(printed.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder in which the stand-ins of a sandbox keep their state.
fn runtime() -> PathBuf {
    PathBuf::from(env::var_os("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR"))
}

/// Words of a command line, taken one after the other.
struct Words<'a>(std::slice::Iter<'a, String>);

impl<'a> Words<'a> {
    fn of(words: &'a [String]) -> Self {
        Words(words.iter())
    }

    fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }

    /// The value of an option.
    fn value(&mut self, option: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{option} needs a value"))
    }

    /// Everything that is left.
    fn rest(&mut self) -> Vec<String> {
        self.0.by_ref().cloned().collect()
    }
}

/// Standard input, to its end.
fn input() -> String {
    std::io::read_to_string(std::io::stdin()).unwrap_or_default()
}

/// Text as a terminal pastes it for a program that asked for brackets.
fn bracketed(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

/// Writes a file that others read at any time.
fn write_at_once(path: &Path, content: &str) {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let written = fs::write(&new, content).and_then(|()| fs::rename(&new, path));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
