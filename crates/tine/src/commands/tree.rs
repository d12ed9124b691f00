//! `tine tree`: who was forked from whom.

use std::io::Write;
use std::process::ExitCode;

use engine::{Known, Node, Session, Trees};
use transcript::render::to_json_pretty;
use transcript::{ParentSource, State, text};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Show which session was forked from which
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`@3` is the turn after which a session was forked. `~@3` means that tine inferred the parent from shared history.

Examples:
  tine tree                 forks in this directory and its worktrees
  tine tree auth-fix        one session, its ancestors and its forks
  tine tree --all --json")]
pub(crate) struct Args {
    /// Show only this session, its ancestors and its forks
    #[arg(value_name = "SESSION", add = complete::sessions())]
    pub session: Option<String>,
    /// Show forks in all directories
    #[arg(long, short, conflicts_with = "session")]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let chosen = args.session.as_deref().map(|spec| desk.select_whole(&sessions, spec)).transpose()?;
    let asked = match &chosen {
        Some(chosen) => Trees::Of(chosen),
        None if args.all => Trees::Everywhere,
        None => Trees::Here,
    };
    let trees = desk.tine.trees(&sessions, asked)?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&trees))?;
    } else if trees.is_empty() {
        ui::print_message(if args.all {
            "no forks yet"
        } else {
            "no forks in this directory; `tine tree --all` shows all of them"
        });
    } else {
        for (index, tree) in trees.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            draw(&mut out, desk, tree, "", "", chosen.as_ref())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn draw(
    out: &mut impl Write,
    desk: &Desk,
    tree: &Node,
    first: &str,
    rest: &str,
    marked: Option<&Session>,
) -> std::io::Result<()> {
    let line = line(desk, tree, marked);
    let width = desk.surface.width.map(|width| width.saturating_sub(text::width(first)));
    let shown = width.map_or(line.clone(), |width| ui::clip_painted(&line, width));
    writeln!(out, "{first}{shown}")?;
    for (index, child) in tree.children.iter().enumerate() {
        let last = index + 1 == tree.children.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(out, desk, child, &format!("{rest}{branch}"), &format!("{rest}{below}"), marked)?;
    }
    Ok(())
}

fn line(desk: &Desk, tree: &Node, marked: Option<&Session>) -> String {
    let paint = Paint(desk.surface.color);
    match &tree.session {
        Known::Gone(parent) => {
            let label = parent.name.as_ref().map_or_else(|| parent.id.short().to_owned(), ToString::to_string);
            paint.dim(&format!("{label}  {}  (gone)", parent.agent))
        }
        Known::Here(session) => {
            let view = &session.view;
            let now = desk.tine.context().clock.now();
            let mut line = match view.name {
                Some(_) => paint.name(ui::label(view)),
                None => paint.bold(ui::label(view)),
            };
            if let Some(parent) = &view.parent {
                let guess = if parent.source == ParentSource::Inferred { "~" } else { "" };
                let turn = parent.turn.map_or_else(|| "?".into(), |turn| turn.to_string());
                line.push_str(&format!(" {guess}@{turn}"));
            }
            if marked.is_some_and(|marked| marked.key() == session.key()) {
                line.push_str(" ←");
            }
            let age = view.updated.map(|time| ui::short_age(time, now, &desk.surface.zone)).unwrap_or_default();
            let turns = ui::turns(view);
            line.push_str(&paint.dim(&format!("  {}  {turns}  {age}", view.agent)));
            if view.state != State::Stopped {
                line.push_str(&format!("  {}", paint.state(view.state, view.state.as_str())));
            }
            line.push_str(&format!("  {}", ui::title(view)));
            line
        }
    }
}
