//! How sessions were launched.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId};

use super::{Registry, json_column};
use crate::registry::Result;

/// How a session is launched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptFile {
    /// The option before it.
    pub option: String,
    /// Its old path.
    pub original: PathBuf,
    /// Where its content is kept.
    pub copy: PathBuf,
}

impl Registry {
    pub(crate) fn profile(&self, agent: Agent, id: &SessionId) -> Result<Option<Profile>> {
        let profile = self.ask(|connection| {
            let query = "SELECT profile FROM sessions WHERE agent = ?1 AND id = ?2 AND profile IS NOT NULL";
            connection.query_row(query, params![agent.as_str(), id.as_str()], |row| json_column(row, 0)).optional()
        })?;
        Ok(profile.flatten())
    }
}
