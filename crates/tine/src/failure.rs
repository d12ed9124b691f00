//! How errors look: `error:` and `hint:` on standard error, or a JSON object on standard output, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use diagnostics::OrLog;
use engine::{Refusal, Session, SessionsError, Target};
use serde_json::{Value, json};
use transcript::render::to_json_line;
use transcript::text;

use crate::ui::Paint;

/// The user can fix it.
const USER: u8 = 1;
/// The command line is invalid.
const USAGE: u8 = 2;
/// An internal error, as in sysexits.h.
const BUG: i32 = 70;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// An error of the command line itself.
    #[error("{message}")]
    Other {
        /// A kind for programs.
        kind: &'static str,
        /// The message.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// An error with results that programs still need.
    #[error("{failure}")]
    WithOutput {
        /// The error.
        failure: Box<Failure>,
        /// The results next to the error.
        output: Value,
    },
}

/// What was selected: a session, or one without messages, which selecting reports as an error.
pub(crate) fn target(selected: Result<Session, Failure>) -> Result<Target, Failure> {
    match selected {
        Err(Failure::Engine(engine::Error::Sessions(SessionsError::EmptySession(name)))) => {
            Ok(Target::EmptySession(name))
        }
        selected => Ok(selected?.into()),
    }
}

/// Error types that some functions of the engine return.
macro_rules! from_engine {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::Engine(error.into())
            }
        })*
    };
}

from_engine!(
    engine::CodeError,
    engine::ConfigError,
    engine::RegistryError,
    engine::RunError,
    engine::SearchError,
    engine::SessionsError
);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { kind, message, hint } = refusal;
        Failure::Other { kind, message, hint }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal { kind: failure.kind(), message: failure.to_string(), hint: failure.hint() }
    }
}

impl Failure {
    /// Adds results that programs still need. If output can't be written, they are left out.
    pub(crate) fn with_output(self, output: &Value) -> Failure {
        match self {
            Failure::Output(_) | Failure::WithOutput { .. } => self,
            failure => Failure::WithOutput { failure: Box::new(failure), output: output.clone() },
        }
    }

    /// The JSON for programs.
    pub(crate) fn as_json(&self) -> Value {
        let mut output = match self {
            Failure::WithOutput { output, .. } => output.clone(),
            _ => json!({}),
        };
        output["error"] = json!({ "kind": self.kind(), "message": self.to_string(), "hint": self.hint() });
        output
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Failure::Engine(error) => error.kind(),
            Failure::Output(_) => "output",
            Failure::Other { kind, .. } => kind,
            Failure::WithOutput { failure, .. } => failure.kind(),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Failure::Engine(error) => error.hint(),
            Failure::Output(_) => None,
            Failure::Other { hint, .. } => hint.clone(),
            Failure::WithOutput { failure, .. } => failure.hint(),
        }
    }

    /// Prints the error and returns the exit code. A closed pipe, as with `head`, is not an error.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if let Failure::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        // If standard output cannot be written, the error would be lost there.
        let as_json = as_json && !matches!(self, Failure::Output(_));
        match as_json {
            true => print_json(&self.as_json()),
            false => print_error(&self.to_string(), self.hint().as_deref()),
        }
        ExitCode::from(USER)
    }
}

/// Reports an invalid command line. `--help` and `--version` come this way too.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let shows_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if shows_help || matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        error.print().or_log("print the help");
        return if shows_help { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
    }
    let failure = crate::usage::failure(error);
    match crate::environment::arguments_ask_for_json() {
        true => print_json(&failure.as_json()),
        false => print_error(&failure.to_string(), failure.hint().as_deref()),
    }
    ExitCode::from(USAGE)
}

/// Reports a panic in short form, with the exit code of an internal error.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if engine::is_panic_caught() {
            return;
        }
        let mut stderr = io::stderr().lock();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        writeln!(stderr, "error: internal error in tine {}: {}", env!("CARGO_PKG_VERSION"), text::one_line(message))
            .or_log("write to standard error");
        writeln!(stderr, "hint: please report this with the command that you ran; location: {place}")
            .or_log("write to standard error");
        if engine::require_index_check() {
            writeln!(stderr, "hint: try again; tine checks the search index first").or_log("write to standard error");
        }
        std::process::exit(BUG);
    }));
}

fn print_json(value: &Value) {
    writeln!(io::stdout().lock(), "{}", to_json_line(value)).or_log("write to standard output");
}

fn print_error(message: &str, hint: Option<&str>) {
    let mut stderr = io::stderr().lock();
    let paint = Paint(crate::environment::errors_have_color());
    writeln!(stderr, "{} {}", paint.bad("error:"), text::clean(message)).or_log("write to standard error");
    if let Some(hint) = hint {
        writeln!(stderr, "{} {}", paint.bold("hint:"), text::clean(hint)).or_log("write to standard error");
    }
}
