//! How a session is launched: arguments, files, environment. Forks inherit it.
//!
//! Arguments that choose a session are never part of it, so that a resume or a fork does not double them. Files that are
//! given at launch are kept by content: a fork starts with what its source started with, even if the file has changed or
//! is gone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use agents::{GivenOption, Role};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName, secrets};

use crate::Tine;
use crate::error::{Error, Result};
use crate::private;
use crate::project;
use crate::registry::Registry;

/// The variable that names the session under which an agent was started.
pub(crate) const NAME_VARIABLE: &str = "TINE_SESSION";

/// How a session is launched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// What it is called in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Arguments, as they were given; files among them are the copies that are kept.
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
    /// What to say first.
    pub prompt: Option<String>,
    /// The agent's own arguments.
    pub args: Vec<String>,
}

/// A launch: what is kept of it, and what holds for it alone.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// How the session is launched from now on.
    pub profile: Profile,
    /// Arguments of this launch alone.
    pub once: Vec<String>,
    /// What is said first.
    pub prompt: Option<String>,
}

impl Launch {
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

    /// The same profile for people and programs to read: without passwords.
    pub fn shown(&self) -> Profile {
        let mut shown = self.clone();
        for (name, value) in &mut shown.environment {
            if let Some(masked) = masked(name, value) {
                *value = masked;
            }
        }
        shown
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Profile::default()
    }
}

/// A variable's value without its password or key; nothing where there is none.
pub fn masked(name: &str, value: &str) -> Option<String> {
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

impl Tine {
    /// Puts a launch together: the configuration's profile, then what was asked for.
    pub fn launch_for(&self, agent: Agent, request: &LaunchRequest) -> Result<Launch> {
        let options = self.store(agent).launch_options();
        let mut profile = Profile { commit: self.configuration_commit(agent), ..Profile::default() };
        let (mut args, mut settings, mut system_prompt) = (Vec::new(), None, None);
        if let Some(name) = &request.profile {
            let set = self.config()?.profile(name, &self.context().paths.config)?;
            if let Some(other) = set.agent.filter(|other| *other != agent) {
                return Err(Error::ProfileOfOther { name: name.clone(), agent: other });
            }
            profile.name = Some(name.clone());
            args.extend(set.args.clone());
            profile.environment.extend(set.environment.clone());
            args.extend(set.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
            let home = &self.context().surroundings.home;
            (settings, system_prompt) = (set.settings_in(home), set.prompt_in(home));
        }
        args.extend(request.args.iter().cloned());
        args.extend(request.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        let given = options.read(&args);
        for option in given.kept {
            let kept = self.with_files(option, |flag, path| {
                let kept = self.keep_file(flag, &path)?;
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
            let kept = self.keep_file(option, &self.context().cwd.join(path))?;
            let copy = kept.copy.to_string_lossy();
            // `-c key=` takes its value in the same word.
            match option.split_once(' ') {
                Some((flag, key)) => profile.args.extend([flag.to_owned(), format!("{key}{copy}")]),
                None => profile.args.extend([option.to_owned(), copy.into_owned()]),
            }
            profile.files.push(kept);
        }
        for (name, value) in &self.context().launch_environment {
            profile.environment.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let prompt = first_words(agent, given.said, request.prompt.clone())?;
        Ok(Launch { profile, once: given.once, prompt })
    }

    /// A launch of a session that is there: its profile with more arguments, which are not kept.
    pub fn launch_of(&self, agent: Agent, id: &SessionId, more: &[String], prompt: Option<String>) -> Result<Launch> {
        let profile = self.profile_of(agent, id)?;
        let given = self.store(agent).launch_options().read(more);
        let mut once = Vec::new();
        for option in given.kept {
            // The agent may run in another directory than the person stands in.
            once.extend(self.with_files(option, |_, path| Ok(path.to_string_lossy().into_owned()))?);
        }
        once.extend(given.once);
        Ok(Launch { profile, once, prompt: first_words(agent, given.said, prompt)? })
    }

    /// The words of an option, with every file among its values replaced. What is no file is the content itself, as
    /// Claude Code takes it.
    fn with_files(
        &self,
        option: GivenOption,
        mut replace: impl FnMut(&str, PathBuf) -> Result<String>,
    ) -> Result<Vec<String>> {
        let mut words = option.words;
        let (flag, values) = words.split_at_mut(1);
        for value in values {
            match option.role {
                Role::File => {
                    let path = self.context().cwd.join(&*value);
                    if path.is_file() {
                        *value = replace(&flag[0], path)?;
                    }
                }
                Role::FileOf(keys) => {
                    let Some((key, file)) = value.split_once('=').filter(|(key, _)| keys.contains(&key.trim())) else {
                        continue;
                    };
                    let path = self.context().cwd.join(file.trim().trim_matches(['"', '\'']));
                    if path.is_file() {
                        *value = format!("{key}={}", replace(&format!("{} {key}=", flag[0]), path)?);
                    }
                }
                Role::Kept | Role::Once | Role::Session => {}
            }
        }
        Ok(words)
    }

    /// Keeps a file by its content, beside the registry.
    fn keep_file(&self, option: &str, path: &Path) -> Result<KeptFile> {
        let content = fs::read(path).map_err(|source| Error::NoLaunchFile { path: path.to_owned(), source })?;
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

/// What is said first: the one word that is no option, or what was asked for.
fn first_words(agent: Agent, said: Vec<String>, prompt: Option<String>) -> Result<Option<String>> {
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
