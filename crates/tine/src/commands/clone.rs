//! `tine clone`: a session and its directory, whole.

use std::path::PathBuf;

use engine::{Error, Request, Selection, Where};
use transcript::SessionName;

use super::Desk;
use super::fork::{Options, Timeout, fork};
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::CopyBar;

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
        Err(Failure::Engine(Error::UnknownSession { .. } | Error::Unbegun(_))) if !args.options.plan => {
            let target = args.to.clone().unwrap_or_default();
            let unbegun = desk.tine.clone_unbegun(&args.session, args.name.clone(), &target, &CopyBar::new())?;
            match unbegun {
                Some((start, _)) => return super::start::open(desk, &start, &args.options),
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
