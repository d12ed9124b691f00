//! Where OpenCode keeps its sessions: rows of one SQLite database, `<data>/opencode/opencode.db`.
//!
//! The path of a session is `<database>/<id>`, as if the database were a folder; see [`crate::storage`].

use std::path::{Path, PathBuf};

use transcript::SessionId;

use crate::AgentEnvironment;

/// OpenCode's folders.
#[derive(Debug, Clone)]
pub(super) struct OpenCodeFolders {
    /// The folder that contains the database.
    pub data: PathBuf,
    /// The database.
    pub database: PathBuf,
    /// The folder with the user's settings and plugins.
    pub config: PathBuf,
    /// The user's settings, if a variable names another file.
    pub config_file: Option<PathBuf>,
    /// The folder with its state, in which tine's plugin says what a process is doing.
    pub state: PathBuf,
    /// The folder with its list of models.
    pub cache: PathBuf,
}

impl OpenCodeFolders {
    /// `OPENCODE_DB` names another database, and the XDG variables move the folders.
    pub(super) fn new(surroundings: &AgentEnvironment) -> Self {
        let variable = |name: &str| surroundings.variables.get(name).filter(|path| !path.as_os_str().is_empty());
        let folder = |name: &str, usual: &str| {
            let base = variable(name).cloned().unwrap_or_else(|| surroundings.home.join(usual));
            base.join("opencode")
        };
        let data = folder("XDG_DATA_HOME", ".local/share");
        let database = variable("OPENCODE_DB").map_or_else(|| data.join("opencode.db"), |path| data.join(path));
        let config = variable("OPENCODE_CONFIG_DIR").cloned();
        OpenCodeFolders {
            data: database.parent().unwrap_or(&data).to_owned(),
            database,
            config: config.unwrap_or_else(|| folder("XDG_CONFIG_HOME", ".config")),
            config_file: variable("OPENCODE_CONFIG").cloned(),
            state: folder("XDG_STATE_HOME", ".local/state"),
            cache: folder("XDG_CACHE_HOME", ".cache"),
        }
    }

    /// The path of a session.
    pub(super) fn path_of(&self, id: &SessionId) -> PathBuf {
        self.database.join(id.as_str())
    }
}

/// The database and the id in the path of a session. Works without looking at the disk for the usual names of databases.
pub(super) fn split(path: &Path) -> Option<(&Path, &str)> {
    let id = path.file_name()?.to_str()?;
    let database = path.parent()?;
    let is_usual = || database.extension().is_some_and(|end| end == "db" || end == "sqlite");
    let is_id = id.starts_with("ses_") && SessionId::is_legal(id);
    (is_id && (is_usual() || database.is_file())).then_some((database, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_below_a_database_is_a_session() {
        let check = |path: &str, expected: Option<(&str, &str)>| {
            let found = split(Path::new(path)).map(|(database, id)| (database.to_str().unwrap(), id));
            assert_eq!(found, expected, "{path}");
        };
        check("/d/opencode.db/ses_1", Some(("/d/opencode.db", "ses_1")));
        check("/d/opencode.db/.ses_1.tine-new", None);
        check("/d/opencode.db/ses_1.jsonl", None);
        check("/trash/0-ses_1", None);
        check("/trash/ses_1", None);
        check("/d/opencode.db", None);
    }

    #[test]
    fn variables_move_the_folders() {
        let surroundings = |variables: &[(&'static str, &str)]| AgentEnvironment {
            home: "/h".into(),
            variables: variables.iter().map(|(name, value)| (*name, PathBuf::from(value))).collect(),
            ..AgentEnvironment::default()
        };
        let check = |variables: &[(&'static str, &str)], database: &str, config: &str| {
            let home = OpenCodeFolders::new(&surroundings(variables));
            assert_eq!((home.database.to_str(), home.config.to_str()), (Some(database), Some(config)));
        };
        check(&[], "/h/.local/share/opencode/opencode.db", "/h/.config/opencode");
        check(&[("XDG_DATA_HOME", "/d"), ("XDG_CONFIG_HOME", "/c")], "/d/opencode/opencode.db", "/c/opencode");
        check(&[("OPENCODE_DB", "/x/y.db")], "/x/y.db", "/h/.config/opencode");
        check(&[("OPENCODE_DB", "other.db")], "/h/.local/share/opencode/other.db", "/h/.config/opencode");
        check(&[("OPENCODE_CONFIG_DIR", "/e")], "/h/.local/share/opencode/opencode.db", "/e");
    }
}
