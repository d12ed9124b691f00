//! `tine tree`: who was forked from whom.

use std::io::Write;
use std::process::ExitCode;

use engine::{Known, Node, Project, Session};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{ParentSource, State, text};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Show lineage: which session was forked from which, and at which turn
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A `~` before the turn marks a parent that was inferred from the shared history.

Examples:
  tine tree                 the families of this directory and its worktrees
  tine tree auth-fix        the family of one session
  tine tree --all --json")]
pub(crate) struct Args {
    /// Only the family of this session
    #[arg(value_name = "SESSION", add = complete::sessions())]
    pub session: Option<String>,
    /// Families of every directory
    #[arg(long, short, conflicts_with = "session")]
    pub all: bool,
    /// Print JSON: sessions with their `children`
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let chosen = args.session.as_deref().map(|spec| desk.select_whole(&sessions, spec)).transpose()?;
    let project = Project::of(&desk.tine.context().cwd);
    let holders = desk.tine.registry().holders()?;
    let trees: Vec<Node> = engine::forest(&sessions, &holders)
        .into_iter()
        .filter(|tree| match &chosen {
            Some(chosen) => tree.holds(chosen.view.agent, &chosen.view.id),
            None => args.all || is_here(tree, &project),
        })
        // A session without forks is no lineage, unless it was asked for.
        .filter(|tree| chosen.is_some() || !tree.children.is_empty())
        .collect();
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&trees.iter().map(as_json).collect::<Vec<_>>()))?;
    } else if trees.is_empty() {
        ui::say(if args.all {
            "no session was forked yet"
        } else {
            "no session was forked here; see `tine tree --all`"
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

pub(crate) fn is_here(tree: &Node, project: &Project) -> bool {
    let own = match &tree.session {
        Known::Here(session) => session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd)),
        Known::Gone(_) => false,
    };
    own || tree.children.iter().any(|child| is_here(child, project))
}

/// A tree for programs.
pub(crate) fn as_json(tree: &Node) -> Value {
    let mut value = match &tree.session {
        Known::Here(session) => serde_json::to_value(&session.view).unwrap_or_default(),
        Known::Gone(parent) => {
            json!({ "agent": parent.agent, "id": parent.id, "name": parent.name, "gone": true })
        }
    };
    if let Value::Object(fields) = &mut value {
        fields.insert("children".into(), tree.children.iter().map(as_json).collect());
    }
    value
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
            let turns = ui::count(u64::from(view.turns), "turn");
            line.push_str(&paint.dim(&format!("  {}  {turns}  {age}", view.agent)));
            if view.state != State::Stopped {
                line.push_str(&format!("  {}", paint.state(view.state, view.state.as_str())));
            }
            line.push_str(&format!("  {}", ui::title(view)));
            line
        }
    }
}
