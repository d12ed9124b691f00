//! `tine clone`: a session and its directory, whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{EmptyClone, Error, Request, Selection, Where};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{SessionName, text};

use super::Desk;
use super::fork::{Options, Timeout, fork};
use super::start;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, CopyBar, Paint, plan};

/// Clone a session with its whole directory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Waits until the session is idle, copies its directory and its conversation, and leaves both as they are.
The same as `tine fork SESSION --copy-to DIR --wait`.

Examples:
  tine clone auth-fix                    into a folder beside the session's directory
  tine clone auth-fix again --to ~/try   into a directory of your choice")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`; with @TURN up to that turn
    #[arg(value_name = "SESSION[@TURN]", add = complete::sessions())]
    pub session: String,
    /// The clone's name; without one, the source's with `-fork-1` behind it
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// Where the copy of the directory goes (default: `<directory>.clones/<name>`)
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    #[command(flatten)]
    pub options: Options,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let selection = match desk.select(&args.session) {
        Err(Failure::Engine(Error::UnknownSession { .. } | Error::Unbegun(_))) => {
            let target = args.to.clone().unwrap_or_default();
            match desk.tine.plan_empty_clone(&args.session, args.name.clone(), &target)? {
                Some(plan) => return clone_empty(desk, args, plan, &target),
                // Nobody was started under that name, either; the first answer says so best.
                None => desk.select(&args.session)?,
            }
        }
        other => other?,
    };
    let wait = if args.options.now { None } else { Some(args.options.wait.unwrap_or(Timeout(None))) };
    fork(desk, selection, &args.options, wait, |selection: Selection| {
        let mut request = Request::of(selection.session);
        request.turns = selection.turns;
        request.name.clone_from(&args.name);
        request.workspace = Where::Copy(args.to.clone().unwrap_or_default());
        request
    })
}

/// Clones a session in which nothing was said yet, or says how.
fn clone_empty(desk: &Desk, args: &Args, plan: EmptyClone, target: &Path) -> Outcome {
    let options = &args.options;
    if options.plan {
        let place = options.place.choice(desk, options.json)?;
        let mut out = ui::out();
        match options.json {
            true => {
                let told = start::as_json(&plan.start, place, None, None);
                writeln!(out, "{}", to_json_pretty(&as_json(&plan, &told, None)))?;
            }
            false => show(&mut out, desk, &plan)?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (plan, operation) = desk.tine.apply_empty_clone(plan, target, &CopyBar::new())?;
    start::open(desk, &plan.start, options, &|told| as_json(&plan, &told, Some(operation)))
}

fn show(out: &mut impl Write, desk: &Desk, plan: &EmptyClone) -> io::Result<()> {
    let paint = Paint(desk.surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("clone", &format!("{}, in which nothing was said yet", plan.source))?;
    fact("as", &paint.name(plan.start.name.as_str()))?;
    let branch = plan.workspace.branch.as_deref().map(|branch| format!(" on {}", text::one_line(branch)));
    let path = ui::path(&desk.surface, &plan.workspace.path);
    fact("works in", &format!("a copy of the directory, {path}{}", branch.unwrap_or_default()))?;
    fact("start", &plan::line(&plan.start.words))
}

/// The contract of a fork; `told` is how the clone was started.
fn as_json(plan: &EmptyClone, told: &Value, operation: Option<i64>) -> Value {
    let session = |id: &Value, name: &SessionName, directory: &Path, parent: Value| {
        json!({
            "agent": plan.start.agent, "id": id, "name": name, "title": name, "cwd": directory.to_string_lossy(),
            "branch": plan.workspace.branch, "path": null, "created": null, "updated": null, "turns": 0,
            "state": "stopped", "parent": parent,
        })
    };
    let source_id = json!(plan.source_id);
    let from = json!({ "agent": plan.start.agent, "id": source_id, "name": plan.source, "turn": 0 });
    let mut parent = session(&source_id, &plan.source, &plan.directory, Value::Null);
    parent["turn"] = json!(0);
    let mut contract = json!({
        "session": session(&told["id"], &plan.start.name, &plan.workspace.path, from),
        "parent": parent,
        "method": "copy",
        "why": "nothing was said in it yet, so an empty conversation begins in a copy of its directory",
        "workspace": {
            "kind": plan.workspace.kind, "path": plan.workspace.path.to_string_lossy(), "branch": plan.workspace.branch,
        },
        "place": told["place"],
        "profile": told["profile"],
        "prompt": null,
        "command": told["command"],
        "environment": told["environment"],
        "tokens": 0,
        "context_window": null,
        "losses": [],
        "warnings": [],
        "operation": operation,
    });
    if told["answer"].is_string() {
        contract["answer"] = told["answer"].clone();
    }
    contract
}
