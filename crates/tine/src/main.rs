//! `tine`: branch any conversation with a coding agent.
//!
//! The binary reads the command line and the environment, asks the engine, and writes what people and programs see.
//! What two front ends need lives in the engine.

mod cli;
mod commands;
mod complete;
mod demo;
mod environment;
mod failure;
mod keymap;
mod mcp;
mod memory;
#[cfg(test)]
mod messages_tests;
#[cfg(test)]
mod reference_tests;
mod signals;
mod ui;
mod usage;
mod workbench;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use transcript::{secrets, text};

use cli::{Cli, ColorChoice, Command};
use failure::Failure;

fn main() -> ExitCode {
    signals::survive_file_size_limit();
    start_log();
    if let Some(words) = environment::words_for_a_hook() {
        return commands::hook::run_words(&words);
    }
    if let Some(request) = environment::code_to_record() {
        return commands::hook::record_code(&request);
    }
    failure::report_panics();
    memory::take_in_large_steps();
    // Answers a shell that asks for completions, and does nothing otherwise.
    CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    if environment::has_no_arguments() {
        let surface = environment::surface(ColorChoice::Auto);
        if surface.is_interactive && surface.is_terminal {
            return workbench::run(&surface).unwrap_or_else(|failure| failure.report(false));
        }
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    let json = cli.command.wants_json();
    let outcome = match cli.command {
        Command::Mcp(args) => mcp::run(&args),
        _ => commands::run(cli),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}

/// Starts the diagnostic log where `TINE_LOG` asks for one. Whatever goes wrong with it stops no command.
fn start_log() {
    let Some((path, level)) = environment::log_file() else {
        return;
    };
    match diagnostics::install(&path, level, loggable) {
        Ok(()) => {
            let (version, command) = (env!("CARGO_PKG_VERSION"), environment::command_name());
            diagnostics::info(format_args!("tine {version} {command}"));
        }
        Err(error) => ui::warn(&format!("cannot write the log {}: {error}", path.display())),
    }
}

/// A line for the log: without secrets, control characters, and more than one needs to know.
fn loggable(message: &str) -> String {
    text::clip(&text::one_line(&secrets::mask(message).0), 500)
}

/// The result of a command.
type Outcome = Result<ExitCode, Failure>;
