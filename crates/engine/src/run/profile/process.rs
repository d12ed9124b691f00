//! How a running agent was launched that tine did not start, read from its process.

use std::path::Path;

use agents::{GivenOption, Holder, LaunchOptions};
use transcript::{secrets, text};

use super::{Profile, file_in, launch_variables, with_files};
use crate::ctx::Ctx;
use crate::run::Result;
use crate::run::profile;
use crate::sessions::session::Session;

/// How a fork of a session is launched, and what it can't inherit: as tine launches the session, else as its running
/// agent was launched. Nothing is written.
pub(crate) fn inherited_profile(ctx: &Ctx, session: &Session) -> Result<(Profile, Vec<String>)> {
    let agent = session.view.agent;
    let stored = ctx.registry().profile(agent, &session.view.id)?;
    if !session.is_open() {
        return Ok((stored.unwrap_or_default(), Vec::new()));
    }
    let proc = ctx.context().surroundings.proc.as_deref();
    // A daemon's arguments are not those of the terminal that shows the session.
    let pid = session.live.as_ref().and_then(|live| live.pid).filter(|_| session.holder() == Some(Holder::Agent));
    let process = proc.zip(pid).and_then(|(proc, pid)| Some((proc, pid, agents::arguments_of(proc, pid)?)));
    let options = agents::about(agent).options;
    match (stored, process) {
        (Some(stored), None) => Ok((stored, Vec::new())),
        (Some(stored), Some((_, _, arguments))) => {
            let known = options.read(&stored.args).kept;
            let extra = options.read(&arguments).kept.into_iter().filter(|option| !known.contains(option));
            let losses = extra.map(|option| format!("{}: it was given for this run only", quoted(&option)));
            let losses = losses.collect();
            Ok((stored, losses))
        }
        (None, None) => {
            let agent = agent.product_name();
            Ok((Profile::default(), vec![format!("options that {agent} was started with: they can't be read")]))
        }
        (None, Some((proc, pid, arguments))) => profile_of_process(ctx, &options, proc, pid, &arguments, session),
    }
}

fn profile_of_process(
    ctx: &Ctx,
    options: &LaunchOptions,
    proc: &Path,
    pid: u32,
    arguments: &[String],
    session: &Session,
) -> Result<(Profile, Vec<String>)> {
    let (mut profile, mut losses) = (Profile::default(), Vec::new());
    let directory = agents::directory_of(proc, pid).or_else(|| session.view.cwd.clone()).unwrap_or_default();
    for option in options.read(arguments).kept {
        if options.find(flag_of(&option)).is_none() {
            losses.push(format!("{}: tine doesn't know this option", quoted(&option)));
        } else if names_missing_file(&option, &directory) {
            losses.push(format!("{}: the file no longer exists", quoted(&option)));
        } else {
            let words = with_files(option, &directory, |flag, path| {
                let (kept, _) = profile::kept_file(ctx, flag, &path)?;
                let copy = kept.copy.to_string_lossy().into_owned();
                profile.files.push(kept);
                Ok(copy)
            })?;
            profile.args.extend(words);
        }
    }
    for name in launch_variables() {
        profile.environment.extend(agents::variable_of(proc, pid, name).map(|value| (name.to_owned(), value)));
    }
    if !profile.is_empty() {
        profile.commit = profile::configuration_commit(ctx, session.view.agent);
    }
    Ok((profile, losses))
}

/// Copies the files of a profile that was only planned so far.
pub(crate) fn keep_files(ctx: &Ctx, profile: &Profile) {
    for file in profile.files.iter().filter(|file| !file.copy.exists()) {
        if let Err(error) = profile::keep_file(ctx, &file.option, &file.original) {
            ctx.warn(format!("the fork might not start: {error}"));
        }
    }
}

fn flag_of(option: &GivenOption) -> &str {
    let word = option.words.first().map_or("", String::as_str);
    word.split_once('=').map_or(word, |(flag, _)| flag)
}

/// Whether an option names a missing file. A value can also be the content itself.
fn names_missing_file(option: &GivenOption, directory: &Path) -> bool {
    let values = option.words.iter().skip(1).filter(|value| !value.trim_start().starts_with(['{', '[']));
    let mut files = values.filter_map(|value| file_in(option.role, value, directory));
    files.any(|(_, path)| !path.is_file())
}

/// An option as it was typed, without secrets.
fn quoted(option: &GivenOption) -> String {
    let line = text::one_line(&option.words.join(" "));
    format!("`{}`", text::clip(&secrets::mask(&line).0, 80))
}
