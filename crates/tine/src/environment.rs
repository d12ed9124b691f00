//! The one reader of the environment. Everybody else gets a [`Context`] or a [`Streams`].
//!
//! | variable | meaning |
//! |---|---|
//! | `TINE_CONFIG` | Configuration file, instead of `$XDG_CONFIG_HOME/tine/config.toml` |
//! | `TINE_REGISTRY` | Registry, instead of `$XDG_DATA_HOME/tine/registry.db` |
//! | `TINE_CACHE` | Cache folder, instead of `$XDG_CACHE_HOME/tine` |
//! | `TINE_MCP_TOKEN` | Token that clients of `tine mcp --http` must send, instead of a new one each time |
//! | `TINE_QMD_TIMEOUT` | Seconds that each of qmd's three kinds of search may take, instead of 20 |
//! | `TINE_LOG` | Diagnostic log: a level (`error`, `warn`, `info`, `debug`) to write to `$XDG_STATE_HOME/tine/tine.log`, or a file to write everything to |
//! | `TINE_NOW` | Current time, for tests |
//! | `TINE_SESSION` | Set by tine for an agent: the name of its session |
//! | `TINE_FORK` | Set by tine for an agent: the fork that it is creating |
//! | `CLAUDE_CONFIG_DIR`, `CODEX_HOME` | The agents' own folders, instead of `~/.claude` and `~/.codex` |
//! | `CLAUDE_ENV_FILE` | Set by Claude Code for hooks: where it reads variables for later commands |
//! | `NO_COLOR`, `CLICOLOR_FORCE`, `COLUMNS`, `TERM` | Colour and width of the output |

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use agents::{AgentEnvironment, Cancel};
use diagnostics::LevelFilter;
use diagnostics::OrLog;
use engine::{Clock, Context, Paths};
use jiff::tz::TimeZone;
use transcript::Agent;

use crate::cli::ColorChoice;
use crate::failure::Failure;

/// The variable by which a shell asks for completions.
pub(crate) const COMPLETE_VARIABLE: &str = "TINE_COMPLETE";

/// Reads where everything is.
pub(crate) fn context() -> Result<Context, Failure> {
    let home = path("HOME").or_else(|| path("USERPROFILE")).ok_or_else(|| Failure::Other {
        kind: "no_home",
        message: "cannot find your home directory".into(),
        hint: Some("set HOME".into()),
    })?;
    let cwd = env::current_dir().map_err(|error| Failure::Other {
        kind: "no_directory",
        message: format!("cannot read the current directory: {error}"),
        hint: Some("change to an existing directory".into()),
    })?;
    let base = |variable: &str, default: &str| own_folder(&home, variable, default);
    let paths = Paths {
        config: path("TINE_CONFIG").unwrap_or_else(|| base("XDG_CONFIG_HOME", ".config").join("config.toml")),
        registry: path("TINE_REGISTRY").unwrap_or_else(|| base("XDG_DATA_HOME", ".local/share").join("registry.db")),
        cache: path("TINE_CACHE").unwrap_or_else(|| base("XDG_CACHE_HOME", ".cache")),
    };
    let proc = Path::new("/proc/self/stat").exists().then(|| PathBuf::from("/proc"));
    let variables = agents::location_variables().filter_map(|name| Some((name, path(name)?))).collect();
    let surroundings = AgentEnvironment { home, proc, variables };
    let search_path = env::var_os("PATH").map(|list| env::split_paths(&list).collect()).unwrap_or_default();
    let clock = match env::var("TINE_NOW").ok().and_then(|time| time.parse().ok()) {
        Some(time) => Clock::Fixed(time),
        None => Clock::System,
    };
    let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let environment = engine::Environment(env::vars_os().filter_map(named).collect());
    let launch_environment = engine::launch_variables()
        .filter_map(|name| Some((name.to_owned(), env::var(name).ok().filter(|value| !value.is_empty())?)))
        .collect();
    let program = env::current_exe().unwrap_or_else(|_| own_path().into());
    Ok(Context {
        surroundings,
        paths,
        worker: vec![program.clone().into(), "worker".into()],
        program,
        cwd,
        clock,
        environment,
        launch_environment,
        search_path,
        cancel: Cancel::default(),
    })
}

/// The path and level of the diagnostic log; `None` unless the user wants one.
pub(crate) fn log_file() -> Option<(PathBuf, LevelFilter)> {
    let wanted = path("TINE_LOG")?;
    match wanted.to_str().and_then(|word| word.parse::<LevelFilter>().ok()) {
        Some(LevelFilter::OFF) => None,
        Some(level) => Some((state_folder()?.join("tine.log"), level)),
        None => Some((std::path::absolute(&wanted).unwrap_or(wanted), LevelFilter::DEBUG)),
    }
}

/// The folder for logs and reports.
pub(crate) fn state_folder() -> Option<PathBuf> {
    Some(own_folder(&path("HOME")?, "XDG_STATE_HOME", ".local/state"))
}

/// The operating system and the processor.
pub(crate) fn platform() -> (&'static str, &'static str) {
    (env::consts::OS, env::consts::ARCH)
}

/// The command that was called, without its arguments.
pub(crate) fn command_name() -> String {
    env::args_os().nth(1).unwrap_or_default().to_string_lossy().into_owned()
}

/// Changes to an existing directory if the current one was removed, such as an agent's worktree.
pub(crate) fn stand_somewhere() {
    if env::current_dir().is_err() {
        env::set_current_dir("/").or_log("leave the directory that is gone");
    }
}

/// How output reaches the user.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    /// Whether questions can be asked: standard input and standard error are terminals.
    pub is_interactive: bool,
    /// Whether standard output is a terminal.
    pub is_terminal: bool,
    /// Whether colour is wanted.
    pub color: bool,
    /// The columns to fill; nothing where output goes to a file or a program.
    pub width: Option<usize>,
    /// The user's time zone.
    pub zone: TimeZone,
    /// The home directory, which is shown as `~`.
    pub home: PathBuf,
}

/// Looks at the terminal.
pub(crate) fn surface(choice: ColorChoice) -> Streams {
    let is_terminal = io::stdout().is_terminal();
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    let color = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if no_color() => false,
        ColorChoice::Auto => is_set("CLICOLOR_FORCE") || (is_terminal && !dumb),
    };
    Streams {
        is_interactive: io::stdin().is_terminal() && io::stderr().is_terminal(),
        is_terminal,
        color,
        width: columns.or_else(|| is_terminal.then(|| measured().unwrap_or(80))),
        zone: TimeZone::system(),
        home: path("HOME").unwrap_or_default(),
    }
}

/// Whether `tine` was called without arguments.
pub(crate) fn has_no_arguments() -> bool {
    env::args_os().len() <= 1
}

/// Whether the command line, which could not be parsed, asks for JSON.
pub(crate) fn arguments_ask_for_json() -> bool {
    env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Whether errors are coloured; they may occur before the command line is parsed.
pub(crate) fn errors_have_color() -> bool {
    let mut arguments = env::args_os().take_while(|argument| argument != "--");
    let never = arguments.any(|argument| argument == "--color=never" || argument == "never");
    !never && !no_color() && io::stderr().is_terminal()
}

/// The words after `hook`, if that is the command. Hooks run on every prompt, and this is all they need.
pub(crate) fn words_for_a_hook() -> Option<Vec<String>> {
    let mut arguments = env::args_os().skip(1);
    let is_hook = arguments.next().is_some_and(|word| word == "hook");
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let asks_for_help = words.iter().any(|word| word == "--help" || word == "-h");
    (is_hook && !asks_for_help).then_some(words)
}

/// The word by which a hook calls this program to record the code of a turn, with the request after it.
pub(crate) const RECORD_CODE: &str = "record-code";

/// The request, if this process was started to record code.
pub(crate) fn code_to_record() -> Option<String> {
    let mut arguments = env::args_os().skip(1);
    arguments.next().filter(|word| word == RECORD_CODE)?;
    arguments.next()?.into_string().ok()
}

/// The token that clients of the HTTP server have to send, if the user chose one.
pub(crate) fn mcp_token() -> Option<String> {
    env::var("TINE_MCP_TOKEN").ok().filter(|token| !token.is_empty())
}

/// The name under which the agent around us was started.
pub(crate) fn session_name() -> Option<String> {
    env::var("TINE_SESSION").ok().filter(|name| !name.is_empty())
}

/// The mark of the fork for which tine started the agent around us.
pub(crate) fn fork_mark() -> Option<String> {
    env::var(engine::FORK_MARK).ok().filter(|mark| !mark.is_empty())
}

/// The file from which the agent around us reads variables for later commands.
pub(crate) fn environment_file(agent: Agent) -> Option<PathBuf> {
    path(agents::about(agent).variables.environment_file?)
}

/// How to call this program again: by its name where the shell found it, else by its whole path.
pub(crate) fn own_path() -> OsString {
    let own = env::args_os().next().unwrap_or_else(|| "tine".into());
    let path = Path::new(&own);
    if path.components().count() < 2 {
        return own;
    }
    std::path::absolute(path).map(PathBuf::into_os_string).unwrap_or(own)
}

/// tine's folder below one of the base directories of the XDG specification, which ignores relative paths.
fn own_folder(home: &Path, variable: &str, default: &str) -> PathBuf {
    path(variable).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(default)).join("tine")
}

fn path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Set to anything at all, as no-color.org has it.
fn no_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}
