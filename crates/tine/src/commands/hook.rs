//! `tine hook`: agents call it when something happens in them.
//!
//! It must never break or slow the agent: it always exits with 0, prints nothing on standard output, touches only the
//! registry, and writes its own troubles to a log file. The command line is looked at by hand, because this runs on every
//! prompt and parsing all commands takes longer than everything else.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use engine::{Caller, Event, Payload, Registry};
use transcript::Agent;

use super::Outcome;
use crate::environment;

/// More than this is no payload of an agent.
const LARGEST_PAYLOAD: u64 = 64 << 20;
/// The log is begun anew when it is larger than this.
const LARGEST_LOG: u64 = 1 << 20;
/// Another writer is waited for this long; then the event is lost rather than the agent kept waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Take note of what happens in an agent; agents call it, see `tine setup`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What happened
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Event::ALL.map(Event::as_str)))]
    pub event: String,
    /// The agent that calls
    #[arg(long, value_parser = crate::cli::agent_parser())]
    pub agent: Agent,
}

/// Runs with the command line as clap has parsed it.
pub(crate) fn run(args: &Args) -> Outcome {
    Ok(listen(&[args.event.clone(), "--agent".into(), args.agent.to_string()]))
}

/// Runs with the words behind `hook`. Whatever goes wrong, the agent is told that all is well.
pub(crate) fn listen(words: &[String]) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        log(&format!("panicked: {panic}"));
        std::process::exit(0);
    }));
    environment::stand_somewhere();
    if let Err(trouble) = hear(words) {
        log(&format!("{}: {trouble}", words.join(" ")));
    }
    ExitCode::SUCCESS
}

fn hear(words: &[String]) -> Result<(), String> {
    let (event, agent) = parse(words)?;
    let mut input = String::new();
    io::stdin().lock().take(LARGEST_PAYLOAD).read_to_string(&mut input).map_err(|error| error.to_string())?;
    let payload: Payload = serde_json::from_str(&input).map_err(|error| format!("the payload: {error}"))?;
    let context = environment::context().map_err(|failure| failure.to_string())?;
    let caller = Caller {
        name: environment::session_name(),
        env_file: environment::agents_env_file(),
        runner: agents::runner(),
    };
    let mut registry = Registry::open_within(&context.paths.registry, PATIENCE).map_err(|error| error.to_string())?;
    let store = agents::store(agent, &context.surroundings);
    let now = context.clock.now();
    let heard = registry.hear(store.as_ref(), event, &payload, &caller, now).map_err(|error| error.to_string())?;
    if let Some(notice) = &heard.notice {
        let _ = writeln!(io::stderr().lock(), "tine: {notice}");
    }
    let (Event::SessionStart, Some(name)) = (event, &heard.name) else {
        return Ok(());
    };
    if let Some(file) = &caller.env_file {
        engine::write_name(file, &payload.session_id, name, caller.name.as_deref())
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    // What is printed at a start is context to the agent; only notes that the person asked for are, and once.
    if !heard.is_repeated
        && let Some(notes) = engine::notes_for(&context, name).map_err(|error| error.to_string())?
    {
        let _ = io::stdout().lock().write_all(notes.as_bytes());
    }
    Ok(())
}

fn parse(words: &[String]) -> Result<(Event, Agent), String> {
    let (mut event, mut agent) = (None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let given = match word.as_str() {
            "--agent" => words.next().cloned(),
            word => word.strip_prefix("--agent=").map(str::to_owned),
        };
        match given {
            Some(word) => agent = word.parse().ok(),
            None => event = event.or(Event::of(word)),
        }
    }
    event.zip(agent).ok_or_else(|| "no such event or agent".to_owned())
}

/// Notes a trouble of our own where nobody is disturbed by it.
fn log(trouble: &str) {
    let Ok(context) = environment::context() else {
        return;
    };
    let file = context.paths.registry.with_file_name("hook.log");
    let line = format!("{} {}\n", context.clock.now(), transcript::text::one_line(trouble));
    let _ = append(&file, &line);
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > LARGEST_LOG) {
        fs::rename(file, file.with_extension("log.old"))?;
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(line.as_bytes())
}
