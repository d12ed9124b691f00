//! The configuration file: its settings and their defaults.
//!
//! A new setting is a field here and an entry in [`keys`]. Its doc comment is its description in docs/configuration.md,
//! which a test of the binary generates. An unknown key is a warning, because it may be meant for a newer tine; a value
//! of the wrong type is an error, because tine would not do what the user wants.

pub(crate) mod error;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use transcript::{Agent, SessionName};

use crate::advice::FileError;
use crate::context::Context;

pub use error::Error;

type Result<T> = std::result::Result<T, Error>;

/// Every key that means something. Profiles have names of the user's own and are not listed.
pub fn keys() -> Vec<String> {
    let worktree = ["worktree.place", "worktree.bring", "worktree.setup"].map(str::to_owned);
    let agents = Agent::ALL.map(|agent| format!("agents.{agent}.command"));
    let others = ["hooks.notes", "mcp.start", "mcp.elsewhere", "mcp.skip_permissions", "mcp.stop"].map(str::to_owned);
    let snapshots = ["enabled", "only", "except", "max_file_size", "keep_days", "keep"];
    let snapshots = snapshots.map(|key| format!("snapshots.{key}"));
    let workbench = ["workbench.mouse", "workbench.keys"].map(str::to_owned);
    worktree.into_iter().chain(agents).chain(others).chain(snapshots).chain(workbench).collect()
}

/// The settings in the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct Config {
    /// New worktrees, as `tine fork --worktree` creates them.
    pub worktree: WorktreeConfig,
    /// The agents' programs.
    pub agents: AgentsConfig,
    /// What the hooks add to a session.
    pub hooks: HooksConfig,
    /// What agents may do through `tine mcp`. Each setting is `"on"`, `"off"`, or `"ask"`, which asks you every time.
    pub mcp: McpConfig,
    /// Code as it was: what the hooks record at the end of every turn.
    pub snapshots: SnapshotsConfig,
    /// The workbench, which `tine` opens without a command.
    pub workbench: WorkbenchConfig,
    /// Launch options under a name, for `tine start --profile NAME`.
    pub profiles: BTreeMap<String, ProfileConfig>,
}

/// How the workbench behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct WorkbenchConfig {
    /// What the mouse does: `"off"` leaves it to the terminal, `"wheel"` scrolls, and `"full"` also clicks. `alt+z` switches.
    pub mouse: MouseLevel,
    /// Keys by action, such as `fork = ["f", "ctrl+f"]`. `tine config keys` lists the actions and their keys.
    pub keys: BTreeMap<String, Vec<String>>,
}

/// What the mouse does in the workbench.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum MouseLevel {
    /// Nothing. The terminal selects text with it.
    Off,
    /// Its wheel scrolls.
    #[default]
    Wheel,
    /// It also selects and opens.
    Full,
}

/// What agents may do through tine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct McpConfig {
    /// Start, resume and fork sessions in this project and its worktrees, and send messages to them.
    pub start: Permission,
    /// The same in other projects.
    pub elsewhere: Permission,
    /// Start agents that skip permission prompts, and let forks inherit such options.
    pub skip_permissions: Permission,
    /// Stop agents.
    pub stop: Permission,
}

impl Default for McpConfig {
    fn default() -> Self {
        McpConfig {
            start: Permission::On,
            elsewhere: Permission::Off,
            skip_permissions: Permission::Off,
            stop: Permission::On,
        }
    }
}

/// Whether agents may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// They may not.
    Off,
    /// The user is asked each time.
    Ask,
    /// They may.
    On,
}

/// What the hooks add to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct HooksConfig {
    /// File with notes that a named session receives when it starts. `{name}` is the name of the session.
    pub notes: Option<String>,
}

/// Which code is recorded, and how long it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct SnapshotsConfig {
    /// Whether the working tree is recorded at the end of every turn, in private refs of its git repository.
    pub enabled: bool,
    /// Directories of the projects to record. Without any, all projects are recorded.
    pub only: Vec<String>,
    /// Directories of projects that are not recorded.
    pub except: Vec<String>,
    /// Size in megabytes above which a file is left out, unless git has the same content.
    pub max_file_size: u64,
    /// Days after which a snapshot is deleted.
    pub keep_days: u32,
    /// Snapshots to keep in one repository. The oldest ones are deleted.
    pub keep: usize,
}

impl Default for SnapshotsConfig {
    fn default() -> Self {
        SnapshotsConfig {
            enabled: false,
            only: Vec::new(),
            except: Vec::new(),
            max_file_size: 10,
            keep_days: 30,
            keep: 2000,
        }
    }
}

impl SnapshotsConfig {
    /// Whether the code in a directory is recorded.
    pub(crate) fn is_enabled_for(&self, directory: &Path, home: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = real(directory);
        let contains = |place: &String| directory.starts_with(real(&expand_home(place, home)));
        self.enabled && (self.only.is_empty() || self.only.iter().any(contains)) && !self.except.iter().any(contains)
    }
}

/// Launch options under a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub struct ProfileConfig {
    /// Agent that the profile is for. Without it, the profile fits any agent.
    pub agent: Option<Agent>,
    /// Arguments for the agent.
    pub args: Vec<String>,
    /// Model to use.
    pub model: Option<String>,
    /// Settings file for the agent.
    settings: Option<String>,
    /// File that contains the system prompt.
    system_prompt: Option<String>,
    /// Environment variables.
    #[serde(rename = "env")]
    pub environment: BTreeMap<String, String>,
}

impl ProfileConfig {
    pub(crate) fn settings_in(&self, home: &Path) -> Option<PathBuf> {
        self.settings.as_deref().map(|path| expand_home(path, home))
    }

    pub(crate) fn prompt_in(&self, home: &Path) -> Option<PathBuf> {
        self.system_prompt.as_deref().map(|path| expand_home(path, home))
    }
}

impl Config {
    /// The profile of a name.
    pub(crate) fn profile(&self, name: &str, file: &Path) -> Result<&ProfileConfig> {
        self.profiles.get(name).ok_or_else(|| Error::NoProfile {
            name: name.to_owned(),
            known: self.profiles.keys().cloned().collect(),
            file: file.to_owned(),
        })
    }
}

/// How tine creates worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
pub struct WorktreeConfig {
    /// Directory of a new worktree. `{repository}` is the path of the repository, `{name}` its last component,
    /// `{parent}` its parent directory, and `{branch}` the new branch.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: Template,
    /// Ignored files and folders to copy from the source's directory.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub bring: Vec<InnerPath>,
    /// Command to run in a new worktree: a line for the shell, or a list of words to run without one.
    pub setup: Option<Program>,
}

/// How agents are started. A table for an agent that this version doesn't know is not an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
#[serde(try_from = "toml::Table")]
pub struct AgentsConfig(BTreeMap<Agent, AgentConfig>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default)]
struct AgentConfig {
    /// Program to run: a name in PATH, or a path.
    command: Option<String>,
}

impl AgentsConfig {
    /// The program of an agent: a name that is looked up, or a path.
    pub fn command(&self, agent: Agent, home: &Path) -> PathBuf {
        let set = self.0.get(&agent).and_then(|config| config.command.as_deref());
        expand_home(set.unwrap_or(agent.as_str()), home)
    }

    /// Whether the user named the program of an agent.
    pub(crate) fn names_program(&self, agent: Agent) -> bool {
        self.0.get(&agent).is_some_and(|config| config.command.is_some())
    }
}

impl TryFrom<toml::Table> for AgentsConfig {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> std::result::Result<Self, toml::de::Error> {
        let of = |agent: Agent| Some((agent, table.remove(agent.as_str())?));
        let given = Agent::ALL.into_iter().filter_map(of);
        given
            .map(|(agent, value)| Ok((agent, value.try_into()?)))
            .collect::<std::result::Result<_, _>>()
            .map(AgentsConfig)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for AgentsConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentsConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut properties = serde_json::Map::new();
        for agent in Agent::ALL {
            let mut schema = AgentConfig::json_schema(generator);
            schema.insert("description".into(), format!("{}.", agent.product_name()).into());
            properties.insert(agent.to_string(), schema.to_value());
        }
        schemars::json_schema!({ "type": "object", "properties": properties })
    }
}

/// A path with placeholders in braces.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
#[serde(try_from = "String")]
pub struct Template(String);

impl Default for Template {
    fn default() -> Self {
        Template("{repository}.worktrees/{branch}".into())
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let mut rest = text.as_str();
        while let Some(begin) = rest.find('{') {
            let end = rest[begin..].find('}').ok_or("missing `}` after `{`")? + begin;
            let word = &rest[begin + 1..end];
            if !Template::WORDS.contains(&word) {
                return Err(format!("unknown placeholder `{{{word}}}`; use {}", Template::allowed()));
            }
            rest = &rest[end + 1..];
        }
        if text.trim().is_empty() { Err("the value is empty".into()) } else { Ok(Template(text)) }
    }
}

impl Template {
    const WORDS: [&str; 4] = ["repository", "name", "parent", "branch"];

    fn allowed() -> String {
        Self::WORDS.map(|word| format!("{{{word}}}")).join(", ")
    }

    /// The path for a branch of the repository whose main working tree is `main`.
    pub(crate) fn fill(&self, main: &Path, branch: &str, home: &Path) -> PathBuf {
        let text = |path: Option<&Path>| path.unwrap_or(Path::new("")).to_string_lossy().into_owned();
        let (repository, parent) = (text(Some(main)), text(main.parent()));
        let name = text(main.file_name().map(Path::new));
        let branch = branch.replace('/', "-");
        // One pass, so that a directory called `{branch}` stays what it is.
        let mut filled = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let (word, behind) = behind.split_once('}').unwrap_or((behind, ""));
            filled.push_str(before);
            filled.push_str(match word {
                "repository" => &repository,
                "name" => &name,
                "parent" => &parent,
                _ => &branch,
            });
            rest = behind;
        }
        filled.push_str(rest);
        main.join(expand_home(&filled, home))
    }
}

/// A path inside a working tree.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
#[serde(try_from = "String")]
pub struct InnerPath(PathBuf);

impl TryFrom<String> for InnerPath {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let is_inside = |component: Component| matches!(component, Component::Normal(_) | Component::CurDir);
        let path: PathBuf = Path::new(&text).components().filter(|part| *part != Component::CurDir).collect();
        if path.as_os_str().is_empty() || !Path::new(&text).components().all(is_inside) {
            return Err(format!("`{text}` is outside the working tree; use a relative path without `..`"));
        }
        if path.starts_with(".git") {
            return Err(format!("`{text}` belongs to git"));
        }
        Ok(InnerPath(path))
    }
}

impl InnerPath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(untagged, expecting = "expected a shell command, or a list of words to run without a shell")]
pub enum Program {
    /// A line for a shell.
    Line(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

/// The notes for a session that starts, if the user wants them. Fast without a configuration.
pub fn notes_for(context: &Context, name: &SessionName) -> Result<Option<String>> {
    const LONGEST: u64 = 64 << 10;
    let (config, _) = read(&context.paths.config)?;
    let Some(place) = config.hooks.notes else {
        return Ok(None);
    };
    let path = expand_home(&place.replace("{name}", name.as_str()), &context.surroundings.home);
    let mut notes = Vec::new();
    // Opening a pipe would block until another process writes to it.
    match fs::metadata(&path).and_then(|metadata| metadata.is_file().then(|| fs::File::open(&path)).transpose()) {
        Ok(None) => return Ok(None),
        Ok(Some(file)) => drop(file.take(LONGEST).read_to_end(&mut notes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(FileError::Read { path, source }.into()),
    }
    let notes = String::from_utf8_lossy(&notes).into_owned();
    Ok(Some(notes).filter(|notes| !notes.trim().is_empty()))
}

/// Turns snapshots on in the configuration file, by adding to its end. Returns whether they are on now: a file that
/// mentions them is left to the user.
pub fn enable_snapshots(context: &Context) -> Result<bool> {
    let path = &context.paths.config;
    let (config, _) = read(path)?;
    if config.snapshots != SnapshotsConfig::default() {
        return Ok(config.snapshots.enabled);
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let before = if text.is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let added = format!("{before}[snapshots]\nenabled = true\n");
    if toml::from_str::<toml::Table>(&format!("{text}{added}")).is_err() {
        return Ok(false);
    }
    let failed = |source| FileError::Write { path: path.clone(), source };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let opened = fs::OpenOptions::new().create(true).append(true).open(path);
    opened.and_then(|mut file| file.write_all(added.as_bytes())).map_err(failed)?;
    Ok(true)
}

/// The settings in a file, and the keys in it that mean nothing.
pub(crate) fn read(path: &Path) -> Result<(Config, Vec<String>)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Config::default(), Vec::new())),
        Err(source) => return Err(FileError::Read { path: path.to_owned(), source }.into()),
    };
    let bad = |error: toml::de::Error| {
        let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        Error::Invalid { path: path.to_owned(), line, message: error.message().to_owned() }
    };
    let config = toml::from_str(&text).map_err(bad)?;
    let table: toml::Table = toml::from_str(&text).map_err(bad)?;
    let mut unknown = Vec::new();
    find_unknown(&table, "", &keys(), &mut unknown);
    Ok((config, unknown))
}

fn find_unknown(table: &toml::Table, above: &str, keys: &[String], unknown: &mut Vec<String>) {
    for (key, value) in table {
        let name = format!("{above}{key}");
        let below = format!("{name}.");
        match value {
            toml::Value::Table(table) if keys.iter().any(|known| known.starts_with(&below)) => {
                find_unknown(table, &below, keys, unknown);
            }
            // Profiles have names chosen by the user; their contents are checked when they are read.
            _ if keys.contains(&name) || name == "profiles" => {}
            _ => unknown.push(name),
        }
    }
}

/// `~` at the beginning of a path is the person's home.
fn expand_home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Config, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn projects_are_chosen_by_their_directories() {
        let check = |text: &str, directory: &str, expected: bool| {
            let (config, unknown) = parsed(text).unwrap();
            assert!(unknown.is_empty(), "{unknown:?}");
            let home = Path::new("/home/me");
            assert_eq!(config.snapshots.is_enabled_for(Path::new(directory), home), expected, "{text} {directory}");
        };
        check("", "/src/app", false);
        check("[snapshots]\nenabled = true\n", "/src/app", true);
        check("[snapshots]\nenabled = true\nexcept = [\"~/big\"]\n", "/home/me/big/x", false);
        check("[snapshots]\nenabled = true\nexcept = [\"~/big\"]\n", "/home/me/bigger", true);
        check("[snapshots]\nenabled = true\nonly = [\"/src\"]\n", "/src/app", true);
        check("[snapshots]\nenabled = true\nonly = [\"/src\"]\n", "/other", false);
        check("[snapshots]\nonly = [\"/src\"]\n", "/src/app", false);
    }

    #[test]
    fn nothing_is_set_where_there_is_no_file() {
        let (config, unknown) = read(Path::new("/nowhere/config.toml")).unwrap();
        assert_eq!((config, unknown), (Config::default(), Vec::new()));
    }

    #[test]
    fn every_key_is_read() {
        let (config, unknown) = parsed(
            "[worktree]\nplace = \"~/trees/{name}-{branch}\"\nbring = [\".env\", \"./config/local.json\"]\n\
             setup = [\"npm\", \"ci\"]\n[agents.claude]\ncommand = \"~/bin/claude\"\n[agents.codex]\ncommand = \"cdx\"\n",
        )
        .unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
        let home = Path::new("/home/me");
        let place = config.worktree.place.fill(Path::new("/src/shop"), "try/it", home);
        assert_eq!(place, Path::new("/home/me/trees/shop-try-it"));
        let bring: Vec<&Path> = config.worktree.bring.iter().map(InnerPath::as_path).collect();
        assert_eq!(bring, [Path::new(".env"), Path::new("config/local.json")]);
        assert_eq!(config.worktree.setup, Some(Program::Words(vec!["npm".into(), "ci".into()])));
        assert_eq!(config.agents.command(Agent::Claude, home), Path::new("/home/me/bin/claude"));
        assert_eq!(config.agents.command(Agent::Codex, home), Path::new("cdx"));
        assert_eq!(Config::default().agents.command(Agent::Codex, home), Path::new("codex"));
    }

    #[test]
    fn a_place_is_filled_in_once() {
        let fill = |template: &str, main: &str| {
            let template = Template::try_from(template.to_owned()).unwrap();
            template.fill(Path::new(main), "a/b", Path::new("/home/me")).to_string_lossy().into_owned()
        };
        assert_eq!(fill("{repository}.worktrees/{branch}", "/src/shop"), "/src/shop.worktrees/a-b");
        assert_eq!(fill("{parent}/{name}/{branch}", "/src/{branch}"), "/src/{branch}/a-b");
        assert_eq!(fill("../trees/{branch}", "/src/shop"), "/src/shop/../trees/a-b");
        assert_eq!(fill("~", "/src/shop"), "/home/me");
        assert_eq!(fill("~other/{branch}", "/src/shop"), "/src/shop/~other/a-b");
    }

    #[test]
    fn unknown_keys_are_named() {
        let text =
            "color = 1\n[worktree]\nplaces = \"x\"\n[agents.claude]\nmodel = \"m\"\n[agents.cursor]\ncommand = \"g\"\n";
        let (_, mut unknown) = parsed(text).unwrap();
        unknown.sort();
        assert_eq!(unknown, ["agents.claude.model", "agents.cursor", "color", "worktree.places"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_line() {
        for (text, line, said) in [
            ("[worktree]\n\nplace = 3\n", 3, "expected a string"),
            ("[worktree]\nplace = \"{branhc}\"\n", 2, "unknown placeholder `{branhc}`; use {repository}"),
            ("[worktree]\nplace = \"{branch\"\n", 2, "missing `}`"),
            ("[worktree]\nplace = \"\"\n", 2, "the value is empty"),
            ("[worktree]\nbring = \".env\"\n", 2, "expected a sequence"),
            ("[worktree]\nbring = [\n  \"a\",\n  \"../b\"]\n", 2, "without `..`"),
            ("[worktree]\nbring = [\"/etc/passwd\"]\n", 2, "a relative path"),
            ("[worktree]\nbring = [\".git/config\"]\n", 2, "belongs to git"),
            ("[worktree]\nbring = [\".\"]\n", 2, "a relative path"),
            ("# one\n[worktree]\nsetup = 1\n", 3, "a shell command, or a list of words"),
            ("[worktree]\nsetup = [\"a\", 1]\n", 2, "a shell command, or a list of words"),
            ("worktree = 3\n", 1, "expected"),
            ("[worktree\n", 1, ""),
            ("a = 1\na = 2\n", 2, "duplicate key"),
        ] {
            let error = parsed(text).unwrap_err();
            let Error::Invalid { line: found, ref message, .. } = error else { panic!("{error}") };
            assert_eq!(found, line, "{text}: {message}");
            assert!(message.contains(said), "{text}: {message}");
        }
    }
}
