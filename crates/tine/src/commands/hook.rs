//! `tine hook`: the agents' hooks call it when something happens in a session.
//!
//! If the user wants the code of every turn recorded, it starts a process for that and doesn't wait for it.
//!
//! It must never break or slow the agent: it always exits with 0, prints nothing on standard output, touches only the
//! registry, waits for nothing without a deadline, and writes its own errors to a log file. It parses its arguments itself
//! because it runs on every prompt, and building the whole command line parser takes longer than everything else.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use engine::{Context, HookCaller, HookEvent, HookPayload, Registry, SnapshotRequest};
use transcript::Agent;

use super::Outcome;
use crate::environment;

/// The rest of a larger input is ignored; no agent sends that much.
const MAX_PAYLOAD: usize = 64 << 20;
/// How long the agent may take to send the payload. A process that inherited the other end of the pipe may keep it open
/// forever, so a complete payload is enough.
const PAYLOAD_TIMEOUT: Duration = Duration::from_secs(3);
/// A larger log is rotated.
const MAX_LOG: u64 = 1 << 20;
/// How long to wait for another writer of the registry. After that the event is lost, which is better than a slow agent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Record what happens in an agent; called by the agents' hooks
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Event to record
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(HookEvent::ALL.map(HookEvent::as_str)))]
    pub event: String,
    /// Agent that reports the event
    #[arg(long, value_parser = crate::cli::agent_parser())]
    pub agent: Agent,
}

/// Runs with the arguments that clap parsed.
pub(crate) fn run(args: &Args) -> Outcome {
    Ok(run_words(&[args.event.clone(), "--agent".into(), args.agent.to_string()]))
}

/// Runs with the words after `hook`. It reports success to the agent whatever happens.
pub(crate) fn run_words(words: &[String]) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        log(&format!("panicked: {panic}"));
        std::process::exit(0);
    }));
    environment::stand_somewhere();
    if let Err(message) = record(words) {
        log(&format!("{}: {message}", words.join(" ")));
    }
    ExitCode::SUCCESS
}

fn record(words: &[String]) -> Result<(), String> {
    let (event, agent) = parse(words)?;
    let input = read_within(PAYLOAD_TIMEOUT).map_err(|error| format!("cannot read the payload: {error}"))?;
    let payload: HookPayload = serde_json::from_slice(&input).map_err(|error| format!("invalid payload: {error}"))?;
    let context = environment::context().map_err(|failure| failure.to_string())?;
    let caller = HookCaller {
        name: environment::session_name(),
        env_file: environment::environment_file(agent),
        mark: environment::fork_mark(),
        runner: agents::runner(),
    };
    let mut registry =
        Registry::open_within(&context.paths.registry, LOCK_TIMEOUT).map_err(|error| error.to_string())?;
    let adapter = agents::open(agent, &context.surroundings);
    let now = context.clock.now();
    let recorded = engine::record_hook(&mut registry, adapter.as_ref(), event, &payload, &caller, now)
        .map_err(|error| error.to_string())?;
    if let Some(notice) = &recorded.notice {
        writeln!(io::stderr().lock(), "tine: {notice}").or_log("write to standard error");
    }
    // An agent that works for tine, to make a fork, changes no code.
    if caller.mark.is_none() && !recorded.is_repeated {
        start_snapshot(&context, agent, event, &payload)?;
    }
    let (HookEvent::SessionStart, Some(name)) = (event, &recorded.name) else {
        return Ok(());
    };
    if let Some(file) = &caller.env_file {
        engine::write_name(file, &payload.session_id, name, caller.name.as_deref())
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    // What a hook prints at the start becomes context for the agent, so only the configured notes are printed, and once.
    if !recorded.is_repeated
        && let Some(notes) = engine::notes_for(&context, name).map_err(|error| error.to_string())?
    {
        io::stdout().lock().write_all(notes.as_bytes()).or_log("print the notes");
    }
    Ok(())
}

/// Starts a process that records the code, if the user wants that, and doesn't wait for it.
fn start_snapshot(context: &Context, agent: Agent, event: HookEvent, payload: &HookPayload) -> Result<(), String> {
    let Some(request) = SnapshotRequest::of_event(agent, event, payload) else { return Ok(()) };
    if !engine::are_snapshots_wanted(context) {
        return Ok(());
    }
    let request = serde_json::to_string(&request).map_err(|error| error.to_string())?;
    let mut command = Command::new(&context.program);
    command.args([environment::RECORD_CODE, &request]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Whatever ends the agent, or the hook, is not meant for it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(drop).map_err(|error| format!("cannot start recording the code: {error}"))
}

/// Records the code of a turn: what the process does that a hook has started.
pub(crate) fn record_code(request: &str) -> ExitCode {
    let record = || -> Result<(), String> {
        let request = serde_json::from_str(request).map_err(|error| error.to_string())?;
        let context = environment::context().map_err(|failure| failure.to_string())?;
        engine::record_snapshot(&context, &request).map(drop).map_err(|error| error.to_string())
    };
    environment::stand_somewhere();
    match record() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            log(&format!("{}: {message}", environment::RECORD_CODE));
            ExitCode::FAILURE
        }
    }
}

/// Reads standard input until it ends, holds a complete payload, or time is up.
fn read_within(limit: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let mut stdin = io::stdin().lock();
    let (mut content, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    while content.len() < MAX_PAYLOAD {
        let is_complete = || serde_json::from_slice::<serde::de::IgnoredAny>(&content).is_ok();
        if !is_readable(&stdin, Instant::now())? && (is_complete() || !is_readable(&stdin, deadline)?) {
            break;
        }
        match stdin.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => content.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(content)
}

/// Waits until there is something to read, or the end of the input; false after the deadline.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library can't wait for input with a deadline")]
fn is_readable(input: &io::StdinLock<'_>, deadline: Instant) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    let mut waiting = libc::pollfd { fd: input.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis();
        // SAFETY: the pointer is valid for the one entry that is passed.
        match unsafe { libc::poll(&raw mut waiting, 1, left.try_into().unwrap_or(libc::c_int::MAX)) } {
            0.. => return Ok(waiting.revents != 0),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(unix))]
fn is_readable(_input: &io::StdinLock<'_>, _deadline: Instant) -> io::Result<bool> {
    Ok(true)
}

fn parse(words: &[String]) -> Result<(HookEvent, Agent), String> {
    let (mut event, mut agent) = (None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let given = match word.as_str() {
            "--agent" => words.next().cloned(),
            word => word.strip_prefix("--agent=").map(str::to_owned),
        };
        match given {
            Some(word) => agent = word.parse().ok(),
            None => event = event.or(HookEvent::from_name(word)),
        }
    }
    event.zip(agent).ok_or_else(|| "no such event or agent".to_owned())
}

/// Writes an internal error to the log file next to the registry.
fn log(message: &str) {
    let Ok(context) = environment::context() else {
        return;
    };
    let file = context.paths.registry.with_file_name("hook.log");
    let line = format!("{} {}\n", context.clock.now(), transcript::text::one_line(message));
    append(&file, &line).or_log("write the hook log");
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > MAX_LOG) {
        fs::rename(file, file.with_extension("log.old"))?;
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(line.as_bytes())
}
