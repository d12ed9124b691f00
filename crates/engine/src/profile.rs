//! How a session is launched: arguments, files, environment. Forks inherit it.
//!
//! Arguments that choose a session are never part of it, so that a resume or a fork does not double them. Files that are
//! given at launch are kept by content: a fork starts with what its source started with, even if the file has changed or
//! is gone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use agents::{LaunchOptions, Takes};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId};

use crate::Tine;
use crate::error::{Error, Result};
use crate::private;
use crate::project;
use crate::registry::Registry;

/// How a session is launched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// What it is called in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Arguments, as they were given.
    pub args: Vec<String>,
    /// Files that were given, by content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
    /// Variables such as a proxy's address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The commit of the repository in which the agent's configuration is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A file that was given at launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// The option that it stands behind.
    pub option: String,
    /// Where it was.
    pub original: PathBuf,
    /// Where its content is kept.
    pub copy: PathBuf,
}

/// What a person asks for at launch.
#[derive(Debug, Clone, Default)]
pub struct LaunchRequest {
    /// A profile of the configuration.
    pub profile: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// A file of settings.
    pub settings: Option<PathBuf>,
    /// A file with the system prompt.
    pub system_prompt: Option<PathBuf>,
    /// The agent's own arguments.
    pub args: Vec<String>,
}

impl Profile {
    /// The arguments of a launch.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.args.clone();
        for file in &self.files {
            // `-c key=` and the like take their value in the same word.
            let copy = file.copy.to_string_lossy();
            match file.option.strip_suffix('=') {
                Some(option) if option.contains(' ') => {
                    let (flag, key) = option.split_once(' ').unwrap_or((option, ""));
                    words.extend([flag.to_owned(), format!("{key}={copy}")]);
                }
                _ => words.extend([file.option.clone(), copy.into_owned()]),
            }
        }
        words
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Profile::default()
    }
}

/// Arguments without those that choose a session.
pub(crate) fn without_session(args: &[String], options: &LaunchOptions) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = args.iter().peekable();
    if let Some(first) = args.first()
        && options.commands.contains(&first.as_str())
    {
        words.next();
        words.next_if(|word| !word.starts_with('-'));
    }
    while let Some(word) = words.next() {
        let (flag, has_value) = word.split_once('=').map_or((word.as_str(), false), |(flag, _)| (flag, true));
        let Some((_, takes)) = options.session.iter().find(|(name, _)| *name == flag) else {
            kept.push(word.clone());
            // Behind `--` stand words, whatever they look like.
            if word == "--" {
                kept.extend(words.by_ref().cloned());
            }
            continue;
        };
        match takes {
            _ if has_value => {}
            Takes::Nothing => {}
            Takes::Value => drop(words.next()),
            Takes::MaybeValue => drop(words.next_if(|word| !word.starts_with('-'))),
        }
    }
    kept
}

impl Tine {
    /// Puts a profile together: the configuration's, then what was asked for.
    pub fn profile_for(&self, agent: Agent, request: &LaunchRequest) -> Result<Profile> {
        let options = self.store(agent).launch_options();
        let mut profile = Profile { commit: self.configuration_commit(agent), ..Profile::default() };
        let mut args = Vec::new();
        if let Some(name) = &request.profile {
            let set = self.config()?.profile(name)?;
            if let Some(other) = set.agent.filter(|other| *other != agent) {
                return Err(Error::ProfileOfOther { name: name.clone(), agent: other });
            }
            profile.name = Some(name.clone());
            args.extend(set.args.clone());
            profile.environment.extend(set.environment.clone());
            args.extend(set.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
            let home = &self.context().surroundings.home;
            self.keep(&mut profile, options.settings, "a settings file", set.settings_in(home).as_deref(), agent)?;
            self.keep(&mut profile, options.system_prompt, "a system prompt", set.prompt_in(home).as_deref(), agent)?;
        }
        args.extend(request.args.iter().cloned());
        args.extend(request.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        let args = without_session(&args, &options);
        profile.args = self.keep_files(&mut profile, args, &options)?;
        self.keep(&mut profile, options.settings, "a settings file", request.settings.as_deref(), agent)?;
        self.keep(&mut profile, options.system_prompt, "a system prompt", request.system_prompt.as_deref(), agent)?;
        for (name, value) in &self.context().launch_environment {
            profile.environment.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(profile)
    }

    /// Takes files out of the arguments and keeps their content.
    fn keep_files(&self, profile: &mut Profile, args: Vec<String>, options: &LaunchOptions) -> Result<Vec<String>> {
        let mut kept = Vec::new();
        let mut words = args.into_iter();
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (word.clone(), None),
            };
            if !options.files.contains(&flag.as_str()) {
                kept.push(word);
                continue;
            }
            let Some(value) = value.or_else(|| words.next()) else {
                kept.push(word);
                continue;
            };
            let path = self.context().cwd.join(&value);
            // What is no file is the content itself, as Claude Code takes it.
            match path.is_file() {
                true => profile.files.push(self.keep_file(&flag, &path)?),
                false => kept.extend([flag, value]),
            }
        }
        Ok(kept)
    }

    fn keep(
        &self,
        profile: &mut Profile,
        option: Option<&str>,
        what: &'static str,
        path: Option<&Path>,
        agent: Agent,
    ) -> Result<()> {
        let Some(path) = path else {
            return Ok(());
        };
        let option = option.ok_or(Error::NoSuchOption { agent, what })?;
        let kept = self.keep_file(option, &self.context().cwd.join(path))?;
        profile.files.retain(|file| file.option != option);
        profile.files.push(kept);
        Ok(())
    }

    /// Keeps a file by its content, beside the registry.
    fn keep_file(&self, option: &str, path: &Path) -> Result<KeptFile> {
        let content = fs::read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let folder = self.context().paths.registry.with_file_name("profiles");
        let hash = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&content));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let copy = folder.join(hash).join(name);
        let failed = |source| Error::CannotWrite { path: copy.clone(), source };
        if !copy.exists() {
            private::create_folder(copy.parent().unwrap_or(&folder)).map_err(failed)?;
            let new = copy.with_extension("tine-new");
            private::open_file(&new).and_then(|mut file| file.write_all(&content)).map_err(failed)?;
            fs::rename(&new, &copy).map_err(failed)?;
        }
        Ok(KeptFile { option: option.to_owned(), original: path.to_owned(), copy })
    }

    fn configuration_commit(&self, agent: Agent) -> Option<String> {
        project::current_commit(self.store(agent).home())
    }

    /// How a session is launched, as far as tine knows.
    pub fn profile_of(&self, agent: Agent, id: &SessionId) -> Result<Profile> {
        Ok(self.registry().profile(agent, id)?.unwrap_or_default())
    }
}

impl Registry {
    fn profile(&self, agent: Agent, id: &SessionId) -> Result<Option<Profile>> {
        let text: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT profile FROM sessions WHERE agent = ?1 AND id = ?2 AND profile IS NOT NULL";
            connection.query_row(query, params![agent.as_str(), id.as_str()], |row| row.get(0)).optional()
        })?;
        Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn arguments_that_choose_a_session_are_left_out() {
        let claude = agents::launch_options(Agent::Claude);
        let check = |given: &str, expected: &str| {
            assert_eq!(without_session(&words(given), &claude), words(expected), "{given}");
        };
        check("--session-id abc --model opus", "--model opus");
        check("--session-id=abc --model opus", "--model opus");
        check("--resume abc --verbose", "--verbose");
        check("--resume --verbose", "--verbose");
        check("-r abc -c --continue --fork-session --verbose", "--verbose");
        check("--resume=abc --fork-session x", "x");
        check("--verbose -- --resume x", "--verbose -- --resume x");
        let codex = agents::launch_options(Agent::Codex);
        let check = |given: &str, expected: &str| {
            assert_eq!(without_session(&words(given), &codex), words(expected), "{given}");
        };
        check("resume abc --model x", "--model x");
        check("resume --last --model x", "--model x");
        check("--model x resume", "--model x resume");
    }
}
