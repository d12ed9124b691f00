//! How failures look: `error:` and `hint:` on standard error, or one JSON object on standard output, and the exit code.

use std::error::Error as _;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use serde_json::json;
use transcript::render::to_json_line;
use transcript::{NameError, text};

use crate::ui::Paint;

/// The user can fix it.
const USER: u8 = 1;
/// The command line makes no sense.
const USAGE: u8 = 2;
/// A bug of ours, as in sysexits.h.
const BUG: i32 = 70;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine says so.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// Anything that only the command line knows.
    #[error("{message}")]
    Other {
        /// A word for programs.
        kind: &'static str,
        /// What is wrong.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

impl Failure {
    /// What programs are told of it.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        json!({ "error": { "kind": self.kind(), "message": self.to_string(), "hint": self.hint() } })
    }

    fn kind(&self) -> &'static str {
        match self {
            Failure::Engine(error) => error.kind(),
            Failure::Output(_) => "output",
            Failure::Other { kind, .. } => kind,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Failure::Engine(error) => error.hint(),
            Failure::Output(_) => None,
            Failure::Other { hint, .. } => hint.clone(),
        }
    }

    /// Tells it and gives the exit code. A reader that went away, as `head` does, is no failure.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if let Failure::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        // Where the output cannot be written, nobody would read it there.
        let as_json = as_json && !matches!(self, Failure::Output(_));
        tell(self.kind(), &self.to_string(), self.hint().as_deref(), as_json);
        ExitCode::from(USER)
    }
}

/// Tells about a command line that makes no sense; `--help` and `--version` come this way, too.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let is_question = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let message = error.render().to_string();
    let hint = sign_in_query(error.kind(), &message);
    if is_question || !crate::environment::arguments_ask_for_json() {
        let _ = error.print();
        if let Some(hint) = &hint {
            let paint = Paint(crate::environment::errors_have_color());
            let _ = writeln!(io::stderr().lock(), "\n{} {hint}", paint.bold("hint:"));
        }
        let shown = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        return if shown { ExitCode::SUCCESS } else { ExitCode::from(USAGE) };
    }
    if let Some(source) = error.source().and_then(|source| source.downcast_ref::<NameError>()) {
        let error = engine::Error::BadName(source.clone());
        tell(error.kind(), &error.to_string(), error.hint().as_deref(), true);
        return ExitCode::from(USAGE);
    }
    let message = message.strip_prefix("error: ").unwrap_or(&message).trim();
    // What stands behind an empty line is help.
    let lines: Vec<&str> = message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    tell("usage", &lines.join(" "), Some(hint.as_deref().unwrap_or("`tine --help` shows how")), true);
    ExitCode::from(USAGE)
}

/// What to do about a sign of a query, as in `tine search cache -stampede`, that is none of the command line.
fn sign_in_query(kind: ErrorKind, message: &str) -> Option<String> {
    let command =
        ["search", "smart-fork"].into_iter().find(|name| message.contains(&format!("Usage: tine {name} ")))?;
    let hint =
        format!("words that begin with `-` go in quotes, or all behind `--`: `tine {command} -- cache -stampede`");
    (kind == ErrorKind::UnknownArgument).then_some(hint)
}

/// Makes a panic a short report and the exit code of a bug.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if engine::is_panic_caught() {
            return;
        }
        let mut stderr = io::stderr().lock();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let _ = writeln!(
            stderr,
            "error: this is a bug in tine {}: {}",
            env!("CARGO_PKG_VERSION"),
            text::one_line(&message)
        );
        let _ = writeln!(stderr, "hint: please report it with the command that you ran and this place: {place}");
        if engine::distrust_index() {
            let _ = writeln!(stderr, "hint: the search index is verified before it is used again, so do try again");
        }
        std::process::exit(BUG);
    }));
}

fn tell(kind: &str, message: &str, hint: Option<&str>, as_json: bool) {
    if as_json {
        let value = json!({ "error": { "kind": kind, "message": message, "hint": hint } });
        let _ = writeln!(io::stdout().lock(), "{}", to_json_line(&value));
        return;
    }
    let mut stderr = io::stderr().lock();
    let paint = Paint(crate::environment::errors_have_color());
    let _ = writeln!(stderr, "{} {}", paint.bad("error:"), text::clean(message));
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "{} {}", paint.bold("hint:"), text::clean(hint));
    }
}
