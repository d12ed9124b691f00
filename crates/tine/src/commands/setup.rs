//! `tine setup`: make the agents report to tine.

use std::io::{self, Write};
use std::process::ExitCode;

use engine::{Scope, SetupPlan, SetupRequest, SetupStatus, SetupView, SnapshotsConfig};
use transcript::Agent;
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::cli::agent_parser;
use crate::failure::Failure;
use crate::ui::{self, Paint, confirm};

/// Install tine's hooks and MCP server in your agents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With hooks, tine notices forks made inside an agent immediately. With the MCP server, agents can search and fork sessions. \
Your own hooks, servers, comments and formatting stay as they are, and each file is backed up first.

Examples:
  tine setup                       set up all installed agents
  tine setup claude --plugin       install a plugin with a /tine:tine command
  tine setup claude --project      only for this project
  tine setup --status              show what is installed and whether it runs
  tine setup --uninstall --yes     remove everything that setup installed")]
pub(crate) struct Args {
    /// Agent to set up [default: all installed agents]
    #[arg(value_parser = agent_parser(), conflicts_with = "all")]
    pub agent: Option<Agent>,
    /// Set up all installed agents (the default)
    #[arg(long)]
    pub all: bool,
    /// Install in the settings of this project (Claude Code only)
    #[arg(long, conflicts_with = "plugin")]
    pub project: bool,
    /// Install as a plugin (Claude Code only)
    #[arg(long)]
    pub plugin: bool,
    /// Skip confirmation prompts
    #[arg(long, short)]
    pub yes: bool,
    /// Show what is installed and whether the hooks run
    #[arg(long, conflicts_with_all = ["uninstall", "project", "plugin", "yes"])]
    pub status: bool,
    /// Also record the code at the end of every turn, for `tine diff`, `tine restore` and forks
    #[arg(long, conflicts_with_all = ["uninstall", "status"])]
    pub snapshots: bool,
    /// Remove everything that setup installed
    #[arg(long)]
    pub uninstall: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let scope = match (args.project, args.plugin) {
        (true, _) => Some(Scope::Project),
        (_, true) => Some(Scope::Plugin),
        _ => None,
    };
    let agents: Vec<Agent> = args.agent.into_iter().collect();
    if args.status {
        return status(desk, &agents, args.json, None);
    }
    let request = SetupRequest { agents, scope, uninstall: args.uninstall };
    let plan = desk.tine.plan_setup(&request)?;
    if !plan.steps.is_empty() && !args.yes && !confirmed(desk, args, &plan)? {
        ui::print_message("cancelled");
        return Ok(ExitCode::FAILURE);
    }
    // Even without a step: this cleans up after a killed run.
    desk.tine.apply_setup(&plan)?;
    if args.json {
        if args.snapshots {
            enable_snapshots(desk)?;
        }
        return status(desk, plan.agents(), true, Some(&plan));
    }
    let mut stderr = io::stderr().lock();
    // The question has already shown them.
    if args.yes {
        show(&mut stderr, desk, &plan)?;
    }
    for agent in plan.agents() {
        let is_touched = plan.steps.iter().any(|step| step.change.agent == *agent);
        let outcome = match (is_touched, args.uninstall) {
            (true, false) => "set up; restart open sessions to use it",
            (true, true) => "removed",
            (false, true) => "nothing to remove",
            (false, false) if plan.notes.iter().any(|(of, _)| of == agent) => continue,
            (false, false) => "already set up",
        };
        writeln!(stderr, "{agent}: {outcome}")?;
    }
    drop(stderr);
    let asks = !args.yes && !args.uninstall && !plan.steps.is_empty() && desk.surface.is_interactive;
    if args.snapshots || (asks && are_snapshots_wanted(desk)?) {
        enable_snapshots(desk)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks whether to record code, unless the user has decided already.
fn are_snapshots_wanted(desk: &Desk) -> Result<bool, Failure> {
    if desk.tine.config()?.snapshots != SnapshotsConfig::default() {
        return Ok(false);
    }
    ui::print_message("tine can record the code at the end of every turn, in private refs of the git repository");
    Ok(confirm::confirmed("Record code?")?)
}

fn enable_snapshots(desk: &Desk) -> Result<(), Failure> {
    let context = desk.tine.context();
    let file = ui::path(&desk.surface, &context.paths.config);
    match engine::enable_snapshots(context)? {
        true => ui::print_message(&format!(
            "code is recorded from now on; `snapshots` in {file} sets where and for how long"
        )),
        false => ui::print_message(&format!("set `snapshots.enabled = true` in {file} to record code")),
    }
    Ok(())
}

/// The changes and what is worth knowing, file by file.
fn show(out: &mut dyn Write, desk: &Desk, plan: &SetupPlan) -> io::Result<()> {
    for step in &plan.steps {
        let change = &step.change;
        writeln!(out, "{} {}", text::pad(change.agent.as_str(), 7), ui::path(&desk.surface, &change.path))?;
        for what in &change.what {
            writeln!(out, "  {}", text::one_line(what))?;
        }
    }
    for (agent, note) in &plan.notes {
        writeln!(out, "{agent}: {}", text::clean(note))?;
    }
    Ok(())
}

fn confirmed(desk: &Desk, args: &Args, plan: &SetupPlan) -> Result<bool, Failure> {
    confirm::require_terminal(&desk.surface, args.json, "changed nothing", "pass `--yes` to make the changes")?;
    show(&mut io::stderr().lock(), desk, plan)?;
    Ok(confirm::confirmed("Make these changes?")?)
}

fn status(desk: &Desk, agents: &[Agent], json: bool, plan: Option<&SetupPlan>) -> Outcome {
    let all = desk.tine.setup_status(agents)?;
    let mut out = ui::out();
    if json {
        writeln!(out, "{}", to_json_pretty(&SetupView::new(&all, plan)))?;
    } else {
        for status in &all {
            print_status(&mut out, desk, status)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print_status(out: &mut dyn Write, desk: &Desk, status: &SetupStatus) -> io::Result<()> {
    let paint = Paint(desk.surface.color);
    let word = match (status.installed, status.places.is_empty()) {
        (true, _) => paint.good("installed"),
        (false, true) => paint.dim("not installed"),
        (false, false) => paint.bad("installed, but not working"),
    };
    writeln!(out, "{}: {word}", status.agent.product_name())?;
    for place in &status.places {
        writeln!(out, "  {}  {}", text::pad(place.scope.as_str(), 8), ui::path(&desk.surface, &place.path))?;
        let which = match (place.exists, place.is_this) {
            (false, _) => paint.bad("not found"),
            (true, false) => paint.note("another copy of tine"),
            (true, true) => "this tine".to_owned(),
        };
        writeln!(out, "  {}  {} ({which})", text::pad("calls", 8), ui::path(&desk.surface, &place.program))?;
        if !place.missing.is_empty() {
            writeln!(out, "  {}  {}", text::pad("missing", 8), place.missing.join(", "))?;
        }
        match place.trusted {
            Some(true) => writeln!(out, "  {}  yes", text::pad("trusted", 8))?,
            Some(false) => {
                writeln!(out, "  {}  {}", text::pad("trusted", 8), paint.bad("no: the agent ignores them"))?;
            }
            None => {}
        }
        for obstacle in &place.obstacles {
            writeln!(out, "  {}  {}", text::pad("problem", 8), text::clean(obstacle))?;
        }
    }
    for server in &status.servers {
        let which = if server.exists { String::new() } else { format!(" ({})", paint.bad("not found")) };
        let (path, program) = (ui::path(&desk.surface, &server.path), ui::path(&desk.surface, &server.program));
        writeln!(out, "  {}  {path} calls {program}{which}", text::pad("server", 8))?;
    }
    let (now, zone) = (desk.tine.context().clock.now(), &desk.surface.zone);
    let last = status.events.iter().filter_map(|event| event.last.map(|last| (last, event.event))).max();
    match last {
        Some((last, event)) => writeln!(out, "  {}  {}, {event}", text::pad("last ran", 8), ui::ago(last, now, zone))?,
        None if !status.places.is_empty() => writeln!(out, "  {}  never", text::pad("last ran", 8))?,
        None => {}
    }
    if !status.installed && status.places.iter().all(|place| place.obstacles.is_empty()) {
        let hint = format!("run `tine setup {}` to fix this", status.agent);
        writeln!(out, "  {}", paint.dim(&hint))?;
    }
    Ok(())
}
