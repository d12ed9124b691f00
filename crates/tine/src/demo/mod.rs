//! The demo: sample sessions of both agents in a throw-away home, and a short walk through what tine does with them.
//!
//! It runs the real commands on real files; only the home is made up.

mod samples;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use agents::Surroundings;
use engine::{Clock, Context, Paths, Tine};
use jiff::Timestamp;

use crate::Outcome;
use crate::commands::{Desk, fork, list, show, tree};
use crate::environment::{self, Surface};
use crate::failure::Failure;
use crate::ui::{self, Paint};

/// Makes the home, tells the story, and removes the home again unless it is to be kept.
pub(crate) fn run(keep: bool, surface: &Surface) -> Outcome {
    let home = tempfile::Builder::new().prefix("tine-demo-").tempdir().map_err(|error| Failure::Other {
        kind: "no_space",
        message: format!("cannot make a throw-away home: {error}"),
        hint: Some("set TMPDIR to a folder that can be written".into()),
    })?;
    // The sample projects lie below the temporary folder's real path, as an agent would record it.
    let root = home.path().canonicalize()?;
    let now = Timestamp::now();
    samples::write(&root, now)?;
    let surface = Surface { home: root.clone(), width: surface.width.map(|width| width.min(110)), ..surface.clone() };
    let desk = Desk { tine: Tine::open(context(&root, now))?, surface };
    samples::name(&desk.tine, now)?;
    story(&desk)?;

    let mut out = ui::out();
    if keep {
        let kept = home.keep();
        let mut words = vec!["env".to_owned(), format!("HOME={}", kept.display())];
        words.extend(["CLAUDE_CONFIG_DIR", "CODEX_HOME", "TINE_REGISTRY", "TINE_CACHE"].map(|name| format!("{name}=")));
        writeln!(out, "The sample home is kept: {} tine list --all", words.join(" "))?;
    } else {
        home.close()?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn context(root: &Path, now: Timestamp) -> Context {
    Context {
        surroundings: Surroundings { home: root.to_owned(), proc: None, claude_config_dir: None, codex_home: None },
        paths: Paths {
            config: root.join(".config/tine/config.toml"),
            registry: root.join(".local/share/tine/registry.db"),
            cache: root.join(".cache/tine"),
        },
        program: "tine".into(),
        cwd: root.join("shop"),
        clock: Clock::Fixed(now),
        environment: engine::Environment::default(),
        launch_environment: Vec::new(),
        search_path: Vec::new(),
        cancel: engine::Cancel::default(),
    }
}

fn story(desk: &Desk) -> Result<(), Failure> {
    let tell = |text: &str| -> Result<(), Failure> {
        let mut out = ui::out();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    };
    let command = |line: &str| tell(&format!("\n{}", Paint(desk.surface.color).bold(&format!("$ {line}"))));

    tell("You talk to coding agents all day; tine finds those conversations again and branches them.")?;
    tell("Here is a throw-away home with two projects and conversations with Claude Code and Codex.")?;
    command("tine list --all")?;
    list::run(desk, &list::Args { agent: None, dir: None, all: true, limit: None, json: false })?;

    tell("\nOne list for both agents. Any of them can be read, up to any turn:")?;
    command("tine show csv-export@1")?;
    show::run(desk, &show_args("csv-export@1"))?;

    tell("\nGo on from any turn, in a new session; the old one stays as it was:")?;
    command("tine fork login-fix@1 login-retry")?;
    fork::run(desk, &fork_args("login-fix@1", "login-retry")?)?;

    tell("\nWhat was forked from what, and after which turn, whoever made the fork:")?;
    command("tine tree --all")?;
    tree::run(desk, &tree::Args { session: None, all: true, json: false })?;

    tell(&format!(
        "\nThat was the demo; nothing of yours was touched. Now with your own sessions, from the folder of a project:\n  \
         {own} list            what was talked about here\n  \
         {own} show .          read the newest one\n  \
         {own} fork .@3        go on from its third turn\n  \
         {own} doctor          which agents were found",
        own = own_name()
    ))?;
    Ok(())
}

fn fork_args(session: &str, name: &str) -> Result<fork::Args, Failure> {
    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: fork::Args,
    }
    let words = <Words as clap::Parser>::try_parse_from(["fork", session, name, "--yes", "--in", "none"]);
    words.map(|words| words.args).map_err(|error| Failure::Other {
        kind: "demo",
        message: error.to_string(),
        hint: None,
    })
}

fn show_args(session: &str) -> show::Args {
    show::Args { session: session.into(), turn: None, tools: false, json: false, markdown: false, html: false }
}

/// How to call this program again: by its name if the shell would find it, else by its path.
fn own_name() -> String {
    let own = environment::own_path().to_string_lossy().into_owned();
    if own.contains("/target/") { own } else { "tine".into() }
}
