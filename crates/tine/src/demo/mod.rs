//! The demo: sample sessions of both agents in a temporary home directory, and a short tour of what tine does with them.
//!
//! It runs the real commands on real files; only the home directory is artificial.

mod samples;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use agents::AgentEnvironment;
use clap::Parser;
use engine::{Clock, Context, Paths, Quiet, Tine};
use jiff::Timestamp;

use crate::Outcome;
use crate::cli::Cli;
use crate::commands::{self, Desk};
use crate::environment::{self, Streams};
use crate::failure::Failure;
use crate::ui::{self, Paint};

/// Creates the home directory, runs the tour or opens the workbench, and removes the home directory unless `keep` is set.
pub(crate) fn run(keep: bool, workbench: bool, surface: &Streams) -> Outcome {
    let has_terminal = surface.is_interactive && surface.is_terminal;
    if workbench && !has_terminal {
        return Err(Failure::Other {
            kind: "no_terminal",
            message: "the workbench needs a terminal".into(),
            hint: Some("leave out `--workbench` for the tour".into()),
        });
    }
    let home = tempfile::Builder::new().prefix("tine-demo-").tempdir().map_err(|error| Failure::Other {
        kind: "no_space",
        message: format!("cannot create a temporary home directory: {error}"),
        hint: Some("set TMPDIR to a writable folder".into()),
    })?;
    // The sample projects lie below the temporary folder's real path, as an agent would record it.
    let root = home.path().canonicalize()?;
    let now = Timestamp::now();
    samples::write(&root, now)?;
    let surface = Streams { home: root.clone(), width: surface.width.map(|width| width.min(110)), ..surface.clone() };
    let desk = Desk { tine: Tine::open(context(&root, now))?, surface };
    samples::name(&desk.tine)?;
    if workbench {
        open_workbench(&root)?;
    } else {
        tour(&desk)?;
        let offer = "\nOpen the workbench on these sample sessions? `?` shows its keys, `q` leaves it.";
        if has_terminal && ui::confirm::confirmed(offer)? {
            open_workbench(&root)?;
        }
    }

    let mut out = ui::out();
    if keep {
        let kept = home.keep();
        let mut words = vec!["env".to_owned(), format!("HOME={}", kept.display())];
        words
            .extend(agents::location_variables().chain(["TINE_REGISTRY", "TINE_CACHE"]).map(|name| format!("{name}=")));
        writeln!(out, "The sample home is still there: {} tine list --all", words.join(" "))?;
    } else {
        home.close()?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the workbench on the sample sessions.
fn open_workbench(root: &Path) -> Result<(), Failure> {
    let mut command = std::process::Command::new(environment::own_path());
    for variable in agents::location_variables().chain(["TINE_REGISTRY", "TINE_CACHE", "TINE_CONFIG"]) {
        command.env_remove(variable);
    }
    for (variable, folder) in
        [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("XDG_CACHE_HOME", ".cache")]
    {
        command.env(variable, root.join(folder));
    }
    command.env("HOME", root).current_dir(root.join("shop")).status()?;
    Ok(())
}

fn context(root: &Path, now: Timestamp) -> Context {
    Context {
        surroundings: AgentEnvironment { home: root.to_owned(), ..AgentEnvironment::default() },
        paths: Paths {
            config: root.join(".config/tine/config.toml"),
            registry: root.join(".local/share/tine/registry.db"),
            cache: root.join(".cache/tine"),
        },
        worker: Vec::new(),
        program: "tine".into(),
        cwd: root.join("shop"),
        clock: Clock::Fixed(now),
        environment: engine::Environment::default(),
        launch_environment: Vec::new(),
        search_path: vec![root.join(samples::PROGRAMS)],
        cancel: engine::Cancel::default(),
    }
}

fn tour(desk: &Desk) -> Result<(), Failure> {
    print("You talk to coding agents all day. tine finds those conversations and lets you branch them.")?;
    print("This tour runs in a temporary home directory with sample conversations.")?;
    step(desk, "tine list --all", &[])?;

    print("\nOne list for Claude Code and Codex. Read any conversation, up to any turn:")?;
    step(desk, "tine show csv-export@1", &[])?;

    print("\nContinue from any turn in a new session. The original doesn't change:")?;
    step(desk, "tine fork login-fix@1 login-retry", &UNATTENDED)?;

    // On a busy machine, a search may answer before everything is embedded.
    let request = engine::IndexRequest { part: engine::IndexPart::Vectors, time: None, rebuild: false };
    desk.tine.update_index(request, &Quiet, &Quiet)?;
    print("\nCan't remember where you solved something? Ask in your own words:")?;
    step(desk, "tine search spreadsheet download", &[])?;

    print("\nStarting something similar? Find the session that fits, and fork it:")?;
    step(desk, "tine smart-fork write a CSV export for customers --auto --name customers", &UNATTENDED)?;

    print("\nSee which session was forked from which, and after which turn:")?;
    step(desk, "tine tree --all", &[])?;

    print(&format!(
        "\nThat was the tour. Your own files are untouched. Now try it in one of your projects:\n  \
         {own} list            list its sessions\n  \
         {own} show .          read the newest one\n  \
         {own} fork .@3        fork it after turn 3\n  \
         {own} search WORDS    find a conversation\n  \
         {own} doctor          check which agents tine found",
        own = own_name()
    ))
}

/// What keeps a fork from asking, and from starting an agent that may not be installed.
const UNATTENDED: [&str; 3] = ["--yes", "--in", "none"];

fn print(text: &str) -> Result<(), Failure> {
    let mut out = ui::out();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Prints a command line and runs it, with `more` arguments.
fn step(desk: &Desk, line: &str, more: &[&str]) -> Result<(), Failure> {
    print(&format!("\n{}", Paint(desk.surface.color).bold(&format!("$ {line}"))))?;
    let words = line.split(' ').chain(more.iter().copied());
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::Other {
        kind: "demo",
        message: error.to_string(),
        hint: None,
    })?;
    commands::at_desk(desk, cli.command).map(drop)
}

/// How to call this program again: by its name if the shell would find it, else by its path.
fn own_name() -> String {
    let own = environment::own_path().to_string_lossy().into_owned();
    if own.contains("/target/") { own } else { "tine".into() }
}
