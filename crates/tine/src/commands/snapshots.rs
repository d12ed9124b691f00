//! `tine snapshots`: the recorded code of turns, how much space it takes, and deleting it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{Kept, SnapshotList, SnapshotView};
use serde_json::json;
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::ui::{self, Bar, Paint, confirm};

/// List the code snapshots of this repository
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With hooks installed and `snapshots.enabled = true` in the configuration file, tine records the working tree at the end \
of every turn, in private refs of the repository. `git push` doesn't transfer them. Old ones are deleted automatically; \
`snapshots.keep_days` and `snapshots.keep` set the limits.

Examples:
  tine snapshots
  tine snapshots auth-fix
  tine snapshots --prune --older-than 7
  tine snapshots --prune --keep 0 --yes    delete all")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: Option<String>,
    /// Another repository [default: the one that contains this directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Delete old snapshots
    #[arg(long)]
    pub prune: bool,
    /// Delete those older than this many days [default: `snapshots.keep_days`]
    #[arg(long, value_name = "DAYS", requires = "prune")]
    pub older_than: Option<u32>,
    /// Keep at most this many [default: `snapshots.keep`]
    #[arg(long, value_name = "NUMBER", requires = "prune")]
    pub keep: Option<usize>,
    /// Skip confirmation prompts
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let session = match &args.session {
        Some(spec) => Some(desk.select_whole(&desk.tine.all_sessions(&Bar::new())?, spec)?),
        None => None,
    };
    let own = session.as_ref().and_then(|session| session.view.cwd.clone());
    let directory = args.dir.clone().or(own).unwrap_or_else(|| desk.tine.context().cwd.clone());
    let list = SnapshotList::of(&desk.tine, &directory, session.as_ref())?;
    if args.prune {
        return prune(desk, args, &list);
    }
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&list))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for snapshot in &list.snapshots {
        writeln!(out, "{}", line(desk, snapshot))?;
    }
    out.flush()?;
    let count = ui::count(list.snapshots.len() as u64, "snapshot");
    let place = ui::path(&desk.surface, &list.repository);
    ui::print_message(&format!("{count} in {place}; all snapshots there take {}", ui::bytes(list.bytes)));
    if !list.enabled {
        ui::print_message(
            "no new ones are taken here; `snapshots.enabled = true` in the configuration file changes that",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn line(desk: &Desk, snapshot: &SnapshotView) -> String {
    let paint = Paint(desk.surface.color);
    let age = ui::short_age(snapshot.taken, desk.tine.context().clock.now(), &desk.surface.zone);
    let session = snapshot.name.clone().unwrap_or_else(|| snapshot.session.as_str().chars().take(8).collect());
    let point = format!("{}@{}", text::one_line(&session), snapshot.turn);
    let left = match snapshot.left_out.len() as u64 {
        0 => String::new(),
        count => format!("  without {}", ui::count(count, "file")),
    };
    let commit = snapshot.commit.get(..10).unwrap_or_default();
    format!("{age:>10}  {}  {}{left}", paint.name(&format!("{point:<28}")), paint.dim(commit))
}

fn prune(desk: &Desk, args: &Args, list: &SnapshotList) -> Outcome {
    let settings = &desk.tine.config()?.snapshots;
    let kept = Kept {
        // A number to keep says nothing about age, and the other way round.
        days: args.older_than.unwrap_or(if args.keep.is_some() { u32::MAX } else { settings.keep_days }),
        count: args.keep.unwrap_or(if args.older_than.is_some() { usize::MAX } else { settings.keep }),
    };
    let expired = list.expired(kept, desk.tine.context().clock.now());
    let count = ui::count(expired.len() as u64, "snapshot");
    let place = ui::path(&desk.surface, &list.repository);
    if !expired.is_empty() && !args.yes {
        let what = format!("did not delete {count}");
        confirm::require_terminal(&desk.surface, args.json, &what, "pass `--yes` to delete them")?;
        if !confirm::confirmed(&format!("Delete {count} of {} in {place}?", list.snapshots.len()))? {
            ui::print_message("cancelled");
            return Ok(ExitCode::FAILURE);
        }
    }
    list.delete(&expired)?;
    if args.json {
        let mut out = ui::out();
        writeln!(out, "{}", to_json_pretty(&json!({ "repository": list.repository, "deleted": expired })))?;
        out.flush()?;
    } else {
        ui::print_message(&format!("deleted {count}; `git gc` frees their space"));
    }
    Ok(ExitCode::SUCCESS)
}
