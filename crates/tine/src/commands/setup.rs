//! `tine setup`: let the agents tell tine what happens in them.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use engine::{Scope, SetupPlan, SetupRequest, SetupStatus};
use serde_json::json;
use transcript::Agent;
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::cli::agent_parser;
use crate::failure::Failure;
use crate::ui::{self, Paint};

/// Install hooks and the MCP server in the agents: forks made inside of them are noticed, and they can search and fork
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nobody else's hooks and servers are touched, nor comments or formatting; files are backed up beside themselves first.
Without hooks everything works, too, only later: tine notices a fork when it next looks.

Examples:
  tine setup                       all agents that are here, after a question
  tine setup claude --plugin       as a plugin of Claude Code, with a command /tine:tine
  tine setup claude --project      in the settings of this project alone
  tine setup --status              what is installed where, and whether it fires
  tine setup --uninstall --yes     take out what was put in")]
pub(crate) struct Args {
    /// The agent; without one, all that are here
    #[arg(value_parser = agent_parser(), conflicts_with = "all")]
    pub agent: Option<Agent>,
    /// All agents that are here
    #[arg(long)]
    pub all: bool,
    /// In the settings of this project (Claude Code)
    #[arg(long, conflicts_with = "plugin")]
    pub project: bool,
    /// As a plugin (Claude Code)
    #[arg(long)]
    pub plugin: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Tell what is installed where, and whether it fires
    #[arg(long, conflicts_with_all = ["uninstall", "project", "plugin", "yes"])]
    pub status: bool,
    /// Take out what was put in
    #[arg(long)]
    pub uninstall: bool,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let scope = match (args.project, args.plugin) {
        (true, _) => Some(Scope::Project),
        (_, true) => Some(Scope::Plugin),
        _ => None,
    };
    let agents = match args.agent {
        Some(agent) => vec![agent],
        // Only Claude Code has these.
        None if scope.is_some() => vec![Agent::Claude],
        None => desk.tine.agents_here(),
    };
    if agents.is_empty() {
        return Err(Failure::Other {
            kind: "no_agent",
            message: "no agent was found".into(),
            hint: Some("install one, or name it: `tine setup claude`".into()),
        });
    }
    if args.status {
        return status(desk, &agents, args.json, None);
    }
    let request = SetupRequest { agents: agents.clone(), scope, uninstall: args.uninstall };
    let plan = desk.tine.plan_setup(&request)?;
    if !plan.steps.is_empty() {
        if !args.yes && !confirmed(desk, args, &plan)? {
            ui::say("nothing was done");
            return Ok(ExitCode::FAILURE);
        }
        desk.tine.apply_setup(&plan)?;
    }
    if args.json {
        return status(desk, &agents, true, Some(&plan));
    }
    let mut stderr = io::stderr().lock();
    // Who was asked has seen them.
    if args.yes {
        show(&mut stderr, desk, &plan)?;
    }
    for agent in agents {
        let is_touched = plan.steps.iter().any(|step| step.change.agent == agent);
        let told = match (is_touched, args.uninstall) {
            (true, false) => "set up; sessions that are open may have to be started again",
            (true, true) => "taken out",
            (false, true) => "there was nothing to take out",
            (false, false) if plan.notes.iter().any(|(of, _)| *of == agent) => continue,
            (false, false) => "already set up",
        };
        writeln!(stderr, "{agent}: {told}")?;
    }
    Ok(ExitCode::SUCCESS)
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
    if !desk.surface.is_interactive || args.json {
        return Err(Failure::Other {
            kind: "not_confirmed",
            message: "nothing was changed, because nobody can be asked".into(),
            hint: Some("say `--yes`".into()),
        });
    }
    let mut stderr = io::stderr().lock();
    show(&mut stderr, desk, plan)?;
    write!(stderr, "change this? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn status(desk: &Desk, agents: &[Agent], json: bool, plan: Option<&SetupPlan>) -> Outcome {
    let all = agents.iter().map(|agent| desk.tine.setup_status(*agent)).collect::<Result<Vec<_>, _>>()?;
    let mut out = ui::out();
    if json {
        let mut told = json!({ "agents": all });
        if let Some(plan) = plan {
            told["changes"] = plan.steps.iter().map(|step| json!(step.change)).collect();
            told["notes"] = plan.notes.iter().map(|(agent, note)| json!({ "agent": agent, "note": note })).collect();
        }
        writeln!(out, "{}", to_json_pretty(&told))?;
    } else {
        for status in &all {
            tell(&mut out, desk, status)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn tell(out: &mut dyn Write, desk: &Desk, status: &SetupStatus) -> io::Result<()> {
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
            (false, _) => paint.bad("which is not there"),
            (true, false) => paint.note("another one than this"),
            (true, true) => "this one".to_owned(),
        };
        writeln!(out, "  {}  {} ({which})", text::pad("calls", 8), ui::path(&desk.surface, &place.program))?;
        if !place.missing.is_empty() {
            writeln!(out, "  {}  {}", text::pad("missing", 8), place.missing.join(", "))?;
        }
        match place.trusted {
            Some(true) => writeln!(out, "  {}  yes", text::pad("trusted", 8))?,
            Some(false) => writeln!(out, "  {}  {}", text::pad("trusted", 8), paint.bad("no, so it is passed over"))?,
            None => {}
        }
        for obstacle in &place.obstacles {
            writeln!(out, "  {}  {}", text::pad("but", 8), text::clean(obstacle))?;
        }
    }
    for server in &status.servers {
        let which = if server.exists { String::new() } else { format!(" ({})", paint.bad("which is not there")) };
        let (path, program) = (ui::path(&desk.surface, &server.path), ui::path(&desk.surface, &server.program));
        writeln!(out, "  {}  {path} calls {program}{which}", text::pad("server", 8))?;
    }
    let (now, zone) = (desk.tine.context().clock.now(), &desk.surface.zone);
    let last = status.events.iter().filter_map(|event| event.last.map(|last| (last, event.event))).max();
    match last {
        Some((last, event)) => writeln!(out, "  {}  {}, {event}", text::pad("last ran", 8), ui::ago(last, now, zone))?,
        None if !status.places.is_empty() => writeln!(out, "  {}  not yet", text::pad("last ran", 8))?,
        None => {}
    }
    if !status.installed && status.places.iter().all(|place| place.obstacles.is_empty()) {
        let hint = format!("`tine setup {}` puts that right", status.agent);
        writeln!(out, "  {}", paint.dim(&hint))?;
    }
    Ok(())
}
