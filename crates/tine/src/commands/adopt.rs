//! `tine adopt`: name a session that was started without tine.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{AdoptedView, Filter};
use transcript::SessionName;
use transcript::render::to_json_pretty;

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, Paint};

/// Name a session that you started without tine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine adopt 1f3a auth-fix
  tine adopt 1f3a --parent csv-export    record what it was forked from
  tine adopt --all --plan                show the names tine would choose here")]
pub(crate) struct Args {
    /// Session id, id prefix, transcript path, or `.` for the newest here
    #[arg(value_name = "ID", add = complete::sessions(), required_unless_present = "all")]
    pub session: Option<String>,
    /// Name of the session [default: derived from its title]
    #[arg(value_parser = clap::value_parser!(SessionName), conflicts_with = "all")]
    pub name: Option<SessionName>,
    /// Session that it was forked from
    #[arg(long, value_name = "SESSION", conflicts_with = "all")]
    pub parent: Option<String>,
    /// Name all unnamed sessions of DIR [default: this directory]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with = "session")]
    pub all: Option<PathBuf>,
    /// Show what would happen without doing it
    #[arg(long, alias = "dry-run")]
    pub plan: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut out = ui::out();
    let paint = Paint(desk.surface.color);
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let mut adopted = Vec::new();
    if let Some(directory) = &args.all {
        let directory = desk.tine.context().cwd.join(directory);
        if !directory.is_dir() {
            return Err(Failure::Engine(engine::WorkspaceError::NoDirectory(directory).into()));
        }
        let filter = Filter { agent: None, directory: Some(directory) };
        let mut taken = HashSet::new();
        for session in desk.tine.listing(&filter, &Bar::new())? {
            if session.view.name.is_some() {
                continue;
            }
            let name = match desk.tine.plan_adoption(&session, None, None, &taken) {
                // A conversation that was cleared away belongs to the session that it was.
                Err(engine::Error::Naming(engine::NamingError::Tracked { .. })) => continue,
                name => name?,
            };
            if !args.plan {
                desk.tine.adopt(&session, Some(name.clone()), None)?;
            }
            taken.insert(name.clone());
            adopted.push((session, name));
        }
    } else {
        let session = desk.select_whole(&sessions, args.session.as_deref().unwrap_or_default())?;
        let parent = args.parent.as_deref().map(|parent| desk.select_whole(&sessions, parent)).transpose()?;
        let name = match args.plan {
            true => desk.tine.plan_adoption(&session, args.name.clone(), parent.as_ref(), &HashSet::new())?,
            false => desk.tine.adopt(&session, args.name.clone(), parent.as_ref())?,
        };
        adopted.push((session, name));
    }
    if args.json {
        let views: Vec<_> = adopted.iter().map(|(session, name)| AdoptedView::new(session, name)).collect();
        writeln!(out, "{}", to_json_pretty(&views))?;
    } else {
        for (session, name) in &adopted {
            let title = ui::title(&session.view);
            writeln!(out, "{}  {}  {title}", paint.name(name.as_str()), session.view.id)?;
        }
        if args.plan {
            ui::print_message("nothing changed");
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
