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
mod mcp;
mod memory;
mod ui;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

use cli::Cli;
use failure::Failure;

fn main() -> ExitCode {
    if let Some(words) = environment::words_for_a_hook() {
        return commands::hook::listen(&words);
    }
    failure::report_panics();
    memory::take_in_large_steps();
    // Answers a shell that asks for completions, and does nothing otherwise.
    CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    let json = cli.command.wants_json();
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}

/// The result of a command.
type Outcome = Result<ExitCode, Failure>;
