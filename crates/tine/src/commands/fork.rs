//! `tine fork`: a new session whose history is a prefix of another's.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{Plan, Request, Where};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{SessionName, text};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Paint};

/// Fork a session at a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The source is never changed. `tine undo` takes a fork back.

Examples:
  tine fork .                        the newest session here, whole
  tine fork auth-fix@4 auth-cookie   as it was after turn 4, under a name of its own
  tine fork auth-fix --to ../other   to go on in another directory
  tine fork auth-fix cookies -w      in a new worktree, on a new branch `cookies`
  tine fork auth-fix@-1 --plan       say what would be done")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`; with @TURN up to that turn
    #[arg(value_name = "SESSION[@TURN]", add = complete::sessions())]
    pub session: String,
    /// The fork's name; without one, the source's with `-fork-1` behind it
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// Let the fork work in another directory
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Let the fork work in a new worktree, on a new branch of this name (default: the fork's name)
    #[arg(long, short, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "", conflicts_with = "to")]
    pub worktree: Option<String>,
    /// Fork a source that is at work, at its last complete turn
    #[arg(long)]
    pub now: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub plan: bool,
    /// Do not ask where there are warnings
    #[arg(long, short)]
    pub yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let selection = desk.select(&args.session)?;
    let mut request = Request::of(selection.session);
    request.turns = selection.turns;
    request.name.clone_from(&args.name);
    request.workspace = match (&args.to, &args.worktree) {
        (Some(directory), _) => Where::Directory(directory.clone()),
        (None, Some(branch)) => Where::Worktree(Some(branch.clone()).filter(|branch| !branch.is_empty())),
        (None, None) => Where::Same,
    };
    request.now = args.now;
    let plan = desk.tine.plan_fork(&request)?;
    let mut out = ui::out();
    if args.plan {
        match args.json {
            true => writeln!(out, "{}", to_json_pretty(&as_json(&plan, None, None)))?,
            false => show(&mut out, desk, &plan)?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let asks = !args.yes && !args.json && desk.surface.is_interactive && !plan.warnings.is_empty();
    if asks && !confirmed(desk, &plan)? {
        ui::say("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    let forked = desk.tine.apply_fork(&plan)?;
    desk.tine.remember_use(&request.source);
    if args.json {
        let session = serde_json::to_value(&forked.session).unwrap_or_default();
        writeln!(out, "{}", to_json_pretty(&as_json(&plan, Some(session), Some(forked.operation))))?;
    } else {
        let paint = Paint(desk.surface.color);
        for warning in &plan.warnings {
            ui::warn(warning);
        }
        ui::say(&format!(
            "forked {} after turn {} as {}; resume it with",
            plan.source.label(),
            plan.turns,
            paint.name(plan.name.as_str())
        ));
        writeln!(out, "cd {} && {}", quoted(&plan.workspace.path.to_string_lossy()), plan.command.join(" "))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The plan for people.
fn show(out: &mut impl Write, desk: &Desk, plan: &Plan) -> io::Result<()> {
    let paint = Paint(desk.surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    let part = if plan.whole { "all".to_owned() } else { format!("{} of {}", plan.turns, plan.source.turns) };
    fact("fork", &format!("{}, {part} turns", plan.source.label()))?;
    fact("as", &format!("{} ({})", paint.name(plan.name.as_str()), plan.id))?;
    fact("method", &format!("copy: {}", plan.why))?;
    let branch = plan.workspace.branch.as_deref().map(|branch| format!(" on {}", text::one_line(branch)));
    fact("works in", &format!("{}{}", ui::path(&desk.surface, &plan.workspace.path), branch.unwrap_or_default()))?;
    if let Some(tokens) = plan.tokens {
        let window = plan.context_window.map(|window| format!(" of {window}")).unwrap_or_default();
        fact("tokens", &format!("about {tokens}{window}"))?;
    }
    fact("file", &ui::path(&desk.surface, &plan.target))?;
    fact("resume", &plan.command.join(" "))?;
    for loss in &plan.losses {
        fact("lost", loss)?;
    }
    for warning in &plan.warnings {
        fact("warning", &paint.note(warning))?;
    }
    Ok(())
}

fn confirmed(desk: &Desk, plan: &Plan) -> Result<bool, Failure> {
    let mut stderr = io::stderr().lock();
    show(&mut stderr, desk, plan)?;
    write!(stderr, "go on? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The contract for programs; the same with and without a fork on disk.
fn as_json(plan: &Plan, session: Option<Value>, operation: Option<i64>) -> Value {
    let planned = json!({
        "agent": plan.source.agent, "id": plan.id, "name": plan.name, "title": plan.name,
        "cwd": plan.workspace.path.to_string_lossy(), "branch": plan.workspace.branch,
        "path": plan.target.to_string_lossy(), "created": null, "updated": null, "turns": plan.turns,
        "state": "stopped",
        "parent": {"agent": plan.source.agent, "id": plan.source.id, "name": plan.source.name, "turn": plan.turns},
    });
    let mut parent = serde_json::to_value(&plan.source).unwrap_or_default();
    parent["turn"] = json!(plan.turns);
    json!({
        "session": session.unwrap_or(planned),
        "parent": parent,
        "method": plan.method,
        "why": plan.why,
        "workspace": {
            "kind": plan.workspace.kind, "path": plan.workspace.path.to_string_lossy(), "branch": plan.workspace.branch,
        },
        "place": { "kind": "none" },
        "command": plan.command,
        "tokens": plan.tokens,
        "context_window": plan.context_window,
        "losses": plan.losses,
        "warnings": plan.warnings,
        "operation": operation,
    })
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
