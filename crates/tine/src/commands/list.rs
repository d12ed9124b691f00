//! `tine list`: sessions, newest first.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{Filter, Project};
use transcript::render::write_json_array;
use transcript::{Agent, SessionView, State, text};

use super::Desk;
use crate::Outcome;
use crate::cli::agent_parser;
use crate::environment::Streams;
use crate::failure::Failure;
use crate::ui::{self, Bar, Paint};

/// The message if no session exists.
pub(crate) const NO_SESSIONS: &str = "no sessions yet; start an agent or try `tine demo`";

/// List sessions, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lists the sessions of this directory, its repository and its worktrees.

Examples:
  tine list                       sessions of this repository
  tine list --all --agent codex   all Codex sessions on this machine
  tine ls --json | jq -r '.[].id'")]
pub(crate) struct Args {
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
    pub agent: Option<Agent>,
    /// List the sessions of another directory
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub dir: Option<PathBuf>,
    /// List the sessions of all directories
    #[arg(long, short)]
    pub all: bool,
    /// Maximum number of sessions
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let cwd = &desk.tine.context().cwd;
    let directory = match (&args.dir, args.all) {
        (Some(dir), _) => Some(cwd.join(dir)),
        (None, false) => Some(cwd.clone()),
        (None, true) => None,
    };
    if let Some(missing) = directory.as_deref().filter(|directory| args.dir.is_some() && !directory.is_dir()) {
        return Err(Failure::Other {
            kind: "no_directory",
            message: format!("directory {} not found", text::one_line(&missing.to_string_lossy())),
            hint: Some("`tine list --all` includes sessions whose directories no longer exist".into()),
        });
    }
    let filter = Filter { agent: args.agent, directory };
    let listing = desk.tine.listing(&filter, &Bar::new())?;
    let limit = args.limit.unwrap_or(usize::MAX);

    let mut out = ui::out();
    if args.json {
        write_json_array(&mut out, listing.take(limit).map(|session| session.view))?;
        writeln!(out)?;
    } else if listing.len() == 0 {
        ui::print_message(match &filter.directory {
            Some(_) => "no sessions in this directory; `tine list --all` lists all of them",
            None => NO_SESSIONS,
        });
    } else {
        let now = desk.tine.context().clock.now();
        let mut table = Table::new(&desk.surface, now, args.all, listing.label_width(), listing.any_live());
        if let Some(directory) = &filter.directory {
            table.trees = Trees::of_directory(directory);
        }
        let mut row = String::new();
        for session in listing.take(limit) {
            row.clear();
            table.row(&mut row, &session.view);
            row.push('\n');
            out.write_all(row.as_bytes())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The columns of a listing: what it is called, which agent, how old, how long, at work or not, what it is about.
pub(crate) struct Table<'a> {
    surface: &'a Streams,
    paint: Paint,
    now: jiff::Timestamp,
    label: usize,
    title: Option<usize>,
    folder: Option<usize>,
    live: bool,
    /// The other working trees of the repository, where the directory isn't shown.
    trees: Trees,
}

impl<'a> Table<'a> {
    pub(crate) fn new(surface: &'a Streams, now: jiff::Timestamp, folders: bool, label: usize, live: bool) -> Self {
        let label = label.clamp(8, 28);
        // The rest of the line is shared by the title and the directory, if it is shown.
        let fixed = label + 2 + 6 + 2 + 10 + 2 + 9 + 2 + if live { 9 } else { 0 };
        let left = surface.width.map(|width| width.saturating_sub(fixed).max(20));
        let folder = folders.then(|| left.map_or(usize::MAX, |left| left * 2 / 5));
        let title = left.map(|left| left - folder.map_or(0, |folder| (folder + 2).min(left)));
        Table { surface, paint: Paint(surface.color), now, label, title, folder, live, trees: Trees::default() }
    }

    /// Appends the row of a session.
    pub(crate) fn row(&self, row: &mut String, view: &SessionView) {
        let paint = self.paint;
        let age = view.updated.map(|time| ui::short_age(time, self.now, &self.surface.zone)).unwrap_or_default();
        let label = if view.name.is_some() { paint.name(ui::label(view)) } else { paint.bold(ui::label(view)) };
        row.push_str(&label);
        // Names and ids are ASCII, so their length is their width.
        fill(row, self.label.saturating_sub(ui::label(view).len()) + 2);
        row.push_str(view.agent.as_str());
        fill(row, 8usize.saturating_sub(view.agent.as_str().len()) + 10usize.saturating_sub(age.len()));
        row.push_str(&paint.dim(&age));
        let turns = ui::turns(view);
        fill(row, 11usize.saturating_sub(turns.len()).max(2));
        row.push_str(&turns);
        if self.live {
            let word = if view.state == State::Stopped { "" } else { view.state.as_str() };
            fill(row, 2);
            row.push_str(&paint.state(view.state, word));
            fill(row, 7 - word.len());
        }
        fill(row, 2);
        let title = match view.cwd.as_deref().and_then(|cwd| self.trees.name_of(cwd)) {
            Some(tree) => format!("[{}] {}", text::one_line(&tree), ui::title(view)),
            None => ui::title(view),
        };
        let folder =
            self.folder.map(|_| view.cwd.as_deref().map(|cwd| ui::path(self.surface, cwd)).unwrap_or_default());
        match (folder, self.title, self.folder) {
            (Some(folder), Some(title_width), Some(folder_width)) => {
                row.push_str(&text::pad(&title, title_width));
                fill(row, 2);
                row.push_str(&paint.dim(&text::clip(&folder, folder_width)));
            }
            (Some(folder), _, _) => {
                row.push_str(&title);
                fill(row, 2);
                row.push_str(&folder);
            }
            (None, Some(width), _) => row.push_str(&text::clip(&title, width)),
            (None, None, _) => row.push_str(&title),
        }
        row.truncate(row.trim_end().len());
        if let Some(width) = self.surface.width.filter(|width| *width < NARROW) {
            *row = ui::clip_painted(row, width);
        }
    }
}

/// The working trees of a repository, and which of them a listing is made in.
#[derive(Debug, Default)]
struct Trees {
    here: Option<PathBuf>,
    all: Vec<PathBuf>,
}

impl Trees {
    fn of_directory(directory: &Path) -> Self {
        let all = Project::of(directory).trees();
        let here = directory.canonicalize().ok().and_then(|directory| innermost(&all, &directory).cloned());
        if all.len() < 2 { Trees::default() } else { Trees { here, all } }
    }

    /// The name of a directory's working tree, unless it is the current one.
    fn name_of(&self, directory: &Path) -> Option<String> {
        let tree = innermost(&self.all, directory).filter(|tree| Some(*tree) != self.here.as_ref())?;
        Some(tree.file_name()?.to_string_lossy().into_owned())
    }
}

/// The innermost of some trees around a directory.
fn innermost<'a>(trees: &'a [PathBuf], directory: &Path) -> Option<&'a PathBuf> {
    let around = trees.iter().filter(|tree| directory.starts_with(tree));
    around.max_by_key(|tree| tree.as_os_str().len())
}

/// Below this width, the columns do not fit and rows are cut.
const NARROW: usize = 100;

fn fill(row: &mut String, columns: usize) {
    row.extend(std::iter::repeat_n(' ', columns));
}
