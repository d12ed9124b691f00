//! `tine clone`: a session and its directory, whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{EmptyClone, Error, Request, Selection, SessionsError, Where};
use transcript::render::to_json_pretty;
use transcript::{SessionName, text};

use super::Desk;
use super::fork::{Options, Timeout, fork};
use super::start;
use crate::Outcome;
use crate::cli::POINT;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, CopyBar, Paint, plan};

/// Clone a session together with its directory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Waits until the session is idle, then copies its directory and its conversation. The original stays as it is. Same as \
`tine fork SESSION --copy-to DIR --wait`.

Examples:
  tine clone auth-fix                      into DIRECTORY.clones/auth-fix-fork-1
  tine clone auth-fix auth-try --to ~/try  into a directory of your choice")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION[@TURN]", help = POINT, add = complete::points())]
    pub session: String,
    /// Name of the clone [default: SOURCE-fork-N]
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// Directory to copy to [default: DIRECTORY.clones/NAME]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    #[command(flatten)]
    pub options: Options,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let selection = match desk.select(&args.session) {
        Err(Failure::Engine(Error::Sessions(SessionsError::Unknown { .. } | SessionsError::EmptySession(_)))) => {
            let target = args.to.clone().unwrap_or_default();
            match desk.tine.plan_empty_clone(&args.session, args.name.clone(), &target)? {
                Some(plan) => return clone_empty(desk, args, plan, &target),
                // No pending start has that name either; the first error fits best.
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

/// Clones a session without messages, or prints the plan.
fn clone_empty(desk: &Desk, args: &Args, plan: EmptyClone, target: &Path) -> Outcome {
    let options = &args.options;
    if options.plan {
        let place = options.place.choice(desk, options.json)?;
        let mut out = ui::out();
        match options.json {
            true => writeln!(out, "{}", to_json_pretty(&plan.view(place, None)))?,
            false => show(&mut out, desk, &plan)?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (plan, operation) = desk.tine.apply_empty_clone(plan, target, &CopyBar::new())?;
    start::open(desk, &plan, operation, options)
}

fn show(out: &mut impl Write, desk: &Desk, plan: &EmptyClone) -> io::Result<()> {
    let paint = Paint(desk.surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("clone", &format!("{}, which has no messages yet", plan.source))?;
    fact("as", &paint.name(plan.start.name.as_str()))?;
    let branch = plan.workspace.branch.as_deref().map(|branch| format!(" on {}", text::one_line(branch)));
    let path = ui::path(&desk.surface, &plan.workspace.path);
    fact("works in", &format!("a copy of the directory, {path}{}", branch.unwrap_or_default()))?;
    fact("start", &plan::line(&plan.start.words))
}
