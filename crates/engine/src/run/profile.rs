//! How a session is launched: arguments, files, environment. Forks inherit it.
//!
//! Arguments that choose a session are never part of it, so that a resume or a fork does not repeat them. Files are
//! kept by content: a fork starts with the same file as its source, even if the original has changed or no longer
//! exists.

pub(crate) mod chosen;
pub(crate) mod process;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use agents::{GivenOption, Role};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName, SessionView, secrets};

use crate::advice::FileError;
use crate::config::ProfileConfig;
use crate::context::NAME_VARIABLE;
use crate::ctx::Ctx;
use crate::private;
pub use crate::registry::{KeptFile, Profile};
use crate::run::place::Place;
use crate::run::{Error, Result};
use crate::sessions::project;

/// The variables that decide how an agent reaches its model. A session keeps them, and forks inherit them.
pub fn launch_variables() -> impl Iterator<Item = &'static str> {
    const PROXIES: [&str; 8] =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"];
    Agent::ALL.into_iter().flat_map(|agent| agents::about(agent).variables.endpoints).copied().chain(PROXIES)
}

/// The user's options for a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// A profile from the configuration.
    pub profile: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// A settings file.
    pub settings: Option<PathBuf>,
    /// A file with the system prompt.
    pub system_prompt: Option<PathBuf>,
    /// The first prompt.
    pub prompt: Option<String>,
    /// The agent's own arguments.
    pub args: Vec<String>,
}

/// A launch: the profile that is kept, and what applies to this launch alone.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// How the session is launched from now on.
    pub profile: Profile,
    /// Arguments of this launch alone.
    pub once: Vec<String>,
    /// The first prompt.
    pub prompt: Option<String>,
    /// The id for a new session, if the user chose one.
    pub(crate) id: Option<SessionId>,
}

impl Launch {
    /// Refuses a launch without a prompt where an agent without a terminal would have nothing to answer.
    pub fn check_prompt(&self, place: Place) -> Result<()> {
        match (place, &self.prompt) {
            (Place::Headless, None) => Err(Error::NoPrompt),
            _ => Ok(()),
        }
    }

    /// The arguments.
    pub(crate) fn options(&self) -> Vec<String> {
        [self.profile.args.as_slice(), &self.once].concat()
    }
}

impl Profile {
    /// The variables of a launch: its own, and the name under which the agent is started.
    pub fn variables(&self, name: Option<&SessionName>) -> BTreeMap<String, String> {
        let name = name.map(|name| (NAME_VARIABLE.to_owned(), name.to_string()));
        self.environment.clone().into_iter().chain(name).collect()
    }

    /// The same profile without passwords, for output.
    pub fn shown(&self) -> Profile {
        let mut shown = self.clone();
        shown.args = self.shown_words(&self.args);
        for (name, value) in &mut shown.environment {
            if let Some(masked) = masked(name, value) {
                *value = masked;
            }
        }
        shown
    }

    /// A command with this profile's arguments, without the secrets in them.
    pub fn shown_words(&self, command: &[String]) -> Vec<String> {
        // A word may be a secret only because of the option before it.
        let before = std::iter::once("").chain(self.args.iter().map(String::as_str));
        let masked: BTreeMap<&str, String> = before
            .zip(&self.args)
            .filter_map(|(before, word)| {
                let line = format!("{before} {word}");
                let (line, count) = secrets::mask(&line);
                let is_its = count > 0 && line.starts_with(before);
                is_its.then(|| (word.as_str(), line[before.len()..].trim_start().to_owned()))
            })
            .collect();
        command.iter().map(|word| masked.get(word.as_str()).unwrap_or(word).clone()).collect()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Profile::default()
    }
}

/// Variables for output: those that hold a password are left out.
pub fn shown_variables(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_plain = |(name, value): &(&String, &String)| masked(name, value).is_none();
    variables.iter().filter(is_plain).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A variable's value without its password or key, if it has one.
fn masked(name: &str, value: &str) -> Option<String> {
    let start = value.find("://").map_or(0, |scheme| scheme + 3);
    let end = value[start..].find(['/', '?', '#']).map_or(value.len(), |end| start + end);
    let password = value[start..end].rfind('@').and_then(|at| {
        let colon = value[start..start + at].find(':')?;
        Some((start + colon + 1, start + at))
    });
    if let Some((from, to)) = password {
        return Some(format!("{}{}{}", &value[..from], secrets::MARK, &value[to..]));
    }
    let line = format!("{name}={value}");
    let (line, count) = secrets::mask(&line);
    (count > 0).then(|| line.split_once('=').map_or(secrets::MARK, |(_, value)| value).to_owned())
}

/// The launch of a new session: the profile from the configuration, then the person's own options.
pub(crate) fn launch_for(ctx: &Ctx, agent: Agent, request: &LaunchRequest) -> Result<Launch> {
    let options = agents::about(agent).options;
    let mut profile = Profile { commit: configuration_commit(ctx, agent), ..Profile::default() };
    let (mut args, mut settings, mut system_prompt) = (Vec::new(), None, None);
    if let Some(name) = &request.profile {
        let set = ctx.config()?.profile(name, &ctx.context().paths.config)?;
        if let Some(other) = set.agent.filter(|other| *other != agent) {
            return Err(Error::ProfileOfOther { name: name.clone(), agent: other });
        }
        profile.name = Some(name.clone());
        args.extend(set.args.clone());
        profile.environment.extend(set.environment.clone());
        args.extend(set.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        let home = &ctx.context().surroundings.home;
        (settings, system_prompt) = (set.settings_in(home), set.prompt_in(home));
    }
    args.extend(request.args.iter().cloned());
    args.extend(request.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
    let given = options.read(&args);
    let id = chosen::id_of_start(agent, &given.chosen)?;
    for option in given.kept {
        let kept = with_files(option, &ctx.context().cwd, |flag, path| {
            let kept = keep_file(ctx, flag, &path)?;
            let copy = kept.copy.to_string_lossy().into_owned();
            profile.files.push(kept);
            Ok(copy)
        })?;
        profile.args.extend(kept);
    }
    let settings = request.settings.clone().or(settings);
    let system_prompt = request.system_prompt.clone().or(system_prompt);
    for (option, what, path) in
        [(options.settings, "a settings file", settings), (options.system_prompt, "a system prompt", system_prompt)]
    {
        let Some(path) = path else {
            continue;
        };
        let option = option.ok_or(Error::NoSuchOption { agent, what })?;
        let kept = keep_file(ctx, option, &ctx.context().cwd.join(path))?;
        let copy = kept.copy.to_string_lossy();
        // `-c key=` takes its value in the same word.
        match option.split_once(' ') {
            Some((flag, key)) => profile.args.extend([flag.to_owned(), format!("{key}{copy}")]),
            None => profile.args.extend([option.to_owned(), copy.into_owned()]),
        }
        profile.files.push(kept);
    }
    for (name, value) in &ctx.context().launch_environment {
        profile.environment.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let prompt = first_prompt(agent, given.said, request.prompt.clone())?;
    Ok(Launch { profile, once: given.once, prompt, id })
}

/// Whether sessions can be started by a profile: its agent has the options for its files, and the files can be read from
/// where we are. Nothing is written.
pub(crate) fn check_profile(ctx: &Ctx, set: &ProfileConfig) -> Result<()> {
    let home = &ctx.context().surroundings.home;
    let options = set.agent.map(|agent| (agent, agents::about(agent).options));
    let files = [
        ("a settings file", set.settings_in(home), options.map(|(agent, options)| (agent, options.settings))),
        ("a system prompt", set.prompt_in(home), options.map(|(agent, options)| (agent, options.system_prompt))),
    ];
    for (what, path, option) in files {
        let Some(path) = path else { continue };
        if let Some((agent, None)) = option {
            return Err(Error::NoSuchOption { agent, what });
        }
        kept_file(ctx, "", &ctx.context().cwd.join(path))?;
    }
    Ok(())
}

/// The launch of an existing session: its profile, with more arguments for this time only.
pub(crate) fn launch_of(ctx: &Ctx, session: &SessionView, more: &[String], prompt: Option<String>) -> Result<Launch> {
    let agent = session.agent;
    let profile = profile_of(ctx, agent, &session.id)?;
    let given = agents::about(agent).options.read(more);
    chosen::check_resume(session, &given.chosen)?;
    let mut once = Vec::new();
    for option in given.kept {
        // The agent may run in another directory than tine.
        once.extend(with_files(option, &ctx.context().cwd, |_, path| Ok(path.to_string_lossy().into_owned()))?);
    }
    once.extend(given.once);
    Ok(Launch { profile, once, prompt: first_prompt(agent, given.said, prompt)?, id: None })
}

/// Keeps a file by its content, beside the registry.
fn keep_file(ctx: &Ctx, option: &str, path: &Path) -> Result<KeptFile> {
    let (kept, content) = kept_file(ctx, option, path)?;
    let copy = &kept.copy;
    let failed = |source| FileError::Write { path: copy.clone(), source };
    if !copy.exists() {
        private::create_folder(copy.parent().unwrap_or(copy)).map_err(failed)?;
        let new = copy.with_extension("tine-new");
        let write = || {
            let mut file = private::open_file(&new)?;
            file.write_all(&content)?;
            file.sync_all()?;
            private::rename(&new, copy)
        };
        write().map_err(failed)?;
    }
    Ok(kept)
}

/// How a file would be kept, and its content. Nothing is written.
fn kept_file(ctx: &Ctx, option: &str, path: &Path) -> Result<(KeptFile, Vec<u8>)> {
    let content = fs::read(path).map_err(|source| Error::NoLaunchFile { path: path.to_owned(), source })?;
    let folder = ctx.context().paths.registry.with_file_name("profiles");
    let hash = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&content));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copy = folder.join(hash).join(name);
    Ok((KeptFile { option: option.to_owned(), original: path.to_owned(), copy }, content))
}

fn configuration_commit(ctx: &Ctx, agent: Agent) -> Option<String> {
    project::current_commit(ctx.adapter(agent).home())
}

/// The profile that tine knows for a session.
pub(crate) fn profile_of(ctx: &Ctx, agent: Agent, id: &SessionId) -> Result<Profile> {
    Ok(ctx.registry().profile(agent, id)?.unwrap_or_default())
}

/// The words of an option, with every file among its values replaced. A value that is no file is the content itself, which
/// Claude Code accepts.
fn with_files(
    option: GivenOption,
    directory: &Path,
    mut replace: impl FnMut(&str, PathBuf) -> Result<String>,
) -> Result<Vec<String>> {
    let mut words = option.words;
    let (flag, values) = words.split_at_mut(1);
    for value in values {
        let Some((key, path)) = file_in(option.role, value, directory).filter(|(_, path)| path.is_file()) else {
            continue;
        };
        *value = match key {
            Some(key) => format!("{key}={}", replace(&format!("{} {key}=", flag[0]), path)?),
            None => replace(&flag[0], path)?,
        };
    }
    Ok(words)
}

/// The file that an option's value names, and the key before it.
fn file_in(role: Role, value: &str, directory: &Path) -> Option<(Option<String>, PathBuf)> {
    match role {
        Role::File => Some((None, directory.join(value))),
        Role::FileOf(keys) => {
            let (key, file) = value.split_once('=').filter(|(key, _)| keys.contains(&key.trim()))?;
            Some((Some(key.to_owned()), directory.join(file.trim().trim_matches(['"', '\'']))))
        }
        Role::Kept | Role::Once | Role::Session(_) => None,
    }
}

/// The first prompt: the only argument that is not an option, or the prompt that was given separately.
fn first_prompt(agent: Agent, said: Vec<String>, prompt: Option<String>) -> Result<Option<String>> {
    let mut said = said.into_iter();
    let prompt = prompt.or_else(|| said.next());
    match said.next() {
        Some(word) => Err(Error::NotAnOption { agent, word }),
        None => Ok(prompt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_and_nothing_else() {
        let check = |value: &str, expected: Option<&str>| {
            assert_eq!(masked("HTTPS_PROXY", value).as_deref(), expected, "{value}");
        };
        check("http://bob:pw@proxy:8080/", Some("http://bob:[secret]@proxy:8080/"));
        check("http://bob:p:w@x@proxy", Some("http://bob:[secret]@proxy"));
        check("bob:pw@proxy:8080", Some("bob:[secret]@proxy:8080"));
        check("http://:pw@proxy", Some("http://:[secret]@proxy"));
        check("http://bob@proxy:8080", None);
        check("http://127.0.0.1:8080/a:b@c", None);
        check("127.0.0.1,localhost", None);
        assert_eq!(masked("MY_API_KEY", "abcd1234efgh").as_deref(), Some("[secret]"));
        assert_eq!(masked("FOO", "b r"), None);
    }
}
