//! Where Gemini CLI keeps its sessions: `tmp/<project>/chats/session-<time>-<first 8 characters of the id>.jsonl`.
//!
//! A project is a directory, and its folder names that directory in `.project_root`. Folder names are made from the
//! directory's last part, so only that file tells which directory it is.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use transcript::SessionId;

use crate::fields::Raw;
use crate::files::{entry_metadata, head_of, stamp};
use crate::{Discovery, SessionFile};

/// The file in a project's folder that names its directory.
pub(super) const PROJECT_ROOT: &str = ".project_root";
/// The folder of a project's sessions.
const CHATS: &str = "chats";
/// What the name of a session's file begins with; those of subagents don't.
const PREFIX: &str = "session-";

/// Gemini CLI's folder.
#[derive(Debug, Clone)]
pub(super) struct Home {
    root: PathBuf,
}

impl Home {
    pub(super) fn new(root: PathBuf) -> Self {
        Home { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file with the user's settings, hooks and MCP servers.
    pub(super) fn settings(&self) -> PathBuf {
        self.root.join("settings.json")
    }

    /// Every session's file, with one `stat` each.
    pub(super) fn discover(&self) -> Discovery {
        let mut found = Discovery::default();
        for project in self.projects(&mut found.unreadable) {
            let chats = project.join(CHATS);
            let first = found.files.len();
            for entry in list(&chats, &mut found.unreadable) {
                let is_named = entry.file_name().to_str().is_some_and(|name| short_id(name).is_some());
                if is_named && let Some(metadata) = entry_metadata(&entry).filter(fs::Metadata::is_file) {
                    found.files.push(SessionFile { path: entry.path(), stamp: stamp(&metadata) });
                }
            }
            drop_stubs(&mut found.files, first);
        }
        found
    }

    /// The file of a session, preferably in a directory's project.
    pub(super) fn find(&self, id: &SessionId, directory: &Path) -> Option<PathBuf> {
        let mut files = self.discover().files;
        files.retain(|file| file.is_called(id.as_str()) && id_inside(&file.path).as_deref() == Some(id.as_str()));
        let is_here = |file: &SessionFile| directory_of(&file.path).as_deref() == Some(directory);
        let here = files.iter().position(is_here).unwrap_or(0);
        (!files.is_empty()).then(|| files.swap_remove(here).path)
    }

    /// Where a new session belongs.
    pub(super) fn path_for(&self, id: &SessionId, directory: &Path, now: Timestamp) -> PathBuf {
        let name = format!("{PREFIX}{}-{}.jsonl", now.strftime("%Y-%m-%dT%H-%M"), id.short());
        self.project_folder(directory).join(CHATS).join(name)
    }

    /// The folder of a directory's project. One that doesn't exist yet gets the name that the client would choose.
    pub(super) fn project_folder(&self, directory: &Path) -> PathBuf {
        let projects = self.projects(&mut Vec::new());
        let of_directory = |project: &&PathBuf| root_of(project).as_deref() == Some(directory);
        if let Some(known) = projects.iter().find(of_directory) {
            return known.clone();
        }
        let listed = self.listed_projects();
        if let Some(slug) = listed.get(directory) {
            let folder = self.root.join("tmp").join(slug);
            if root_of(&folder).is_none() && root_of(&self.root.join("history").join(slug)).is_none() {
                return folder;
            }
        }
        let slug = slug_of(directory);
        let is_free = |candidate: &String| {
            let folders = ["tmp", "history"].map(|folder| self.root.join(folder).join(candidate));
            !listed.values().any(|taken| taken == candidate)
                && folders.iter().all(|folder| root_of(folder).is_none_or(|root| root == directory))
        };
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(numbered).find(is_free).unwrap_or(slug);
        self.root.join("tmp").join(free)
    }

    /// Other files of a session: those without messages that resuming it has left behind.
    pub(super) fn stubs_of(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        let entries = path.parent().map(|chats| list(chats, &mut Vec::new())).unwrap_or_default();
        let is_stub = |other: &PathBuf| {
            let name = other.file_name().and_then(|name| name.to_str()).and_then(short_id);
            other != path && name == Some(id.short()) && id_inside(other).as_deref() == Some(id.as_str())
        };
        entries.iter().map(fs::DirEntry::path).filter(is_stub).collect()
    }

    /// The names of projects that the client has registered, by directory.
    fn listed_projects(&self) -> HashMap<PathBuf, String> {
        let text = fs::read_to_string(self.root.join("projects.json")).unwrap_or_default();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let projects = parsed["projects"].as_object().cloned().unwrap_or_default();
        projects.into_iter().filter_map(|(path, slug)| Some((path.into(), slug.as_str()?.to_owned()))).collect()
    }

    fn projects(&self, unreadable: &mut Vec<(PathBuf, io::ErrorKind)>) -> Vec<PathBuf> {
        let entries = list(&self.root.join("tmp"), unreadable);
        let mut projects: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        projects.sort();
        projects
    }
}

/// The directory of the project that a session's file belongs to.
pub(super) fn directory_of(path: &Path) -> Option<PathBuf> {
    // A subagent's file is one folder deeper.
    path.ancestors().skip(1).take(3).find_map(root_of)
}

/// The directory that a project's folder names.
pub(super) fn root_of(project: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(project.join(PROJECT_ROOT)).ok()?;
    Some(PathBuf::from(text.trim())).filter(|path| path.is_absolute())
}

/// The part of an id that a file is named by: `session-<time>-<8 characters>.jsonl`, or `.json` in old versions.
pub(super) fn short_id(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"))?;
    let (_, short) = stem.strip_prefix(PREFIX)?.rsplit_once('-')?;
    (!short.is_empty() && SessionId::is_legal(short)).then_some(short)
}

/// The id in the first line of a file.
pub(super) fn id_inside(path: &Path) -> Option<String> {
    let head = head_of(path)?;
    let first = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let id = match Raw(first).get(b"sessionId").and_then(Raw::string) {
        Some(id) => Some(id.into_owned()),
        // An old file is one object over many lines, with the id among its first fields.
        None => Raw(&head).get(b"sessionId").and_then(Raw::string).map(Into::into),
    };
    id.filter(|id| SessionId::is_legal(id))
}

/// Resuming a session in a later minute leaves a second file with the same id in its name that has no messages, and
/// resuming an old one leaves the old file beside the new one. The largest one is the session.
fn drop_stubs(files: &mut Vec<SessionFile>, first: usize) {
    let mut largest: HashMap<String, (u64, PathBuf)> = HashMap::new();
    let name_of = |file: &SessionFile| {
        let name = file.path.file_name().and_then(|name| name.to_str());
        name.and_then(short_id).unwrap_or_default().to_owned()
    };
    for file in &files[first..] {
        let rank = (file.stamp.size, file.path.clone());
        let known = largest.entry(name_of(file)).or_insert_with(|| rank.clone());
        if *known < rank {
            *known = rank;
        }
    }
    if largest.len() == files.len() - first {
        return;
    }
    let mut index = 0;
    files.retain(|file| {
        index += 1;
        let Some((_, kept)) = largest.get(&name_of(file)).filter(|_| index > first) else { return true };
        *kept == file.path || id_inside(kept) != id_inside(&file.path)
    });
}

/// The name that the client gives to a project's folder.
fn slug_of(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut slug = String::new();
    for letter in name.chars() {
        match letter {
            'a'..='z' | '0'..='9' => slug.push(letter),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.strip_prefix('-').unwrap_or(&slug);
    let slug = slug.strip_suffix('-').unwrap_or(slug);
    if slug.is_empty() { "project".to_owned() } else { slug.to_owned() }
}

fn list(folder: &Path, unreadable: &mut Vec<(PathBuf, io::ErrorKind)>) -> Vec<fs::DirEntry> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| entry.or_log(format_args!("list {}", folder.display()))).collect(),
        Err(error) => {
            let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
            if !is_absent {
                unreadable.push((folder.to_owned(), error.kind()));
            }
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let home = Home::new(folder.path().to_owned());
        (folder, home)
    }

    #[test]
    fn projects_are_named_as_the_client_names_them() {
        let check = |path: &str, slug: &str| assert_eq!(slug_of(Path::new(path)), slug, "{path}");
        check("/home/me/My App", "my-app");
        check("/home/me/.config_x__y", "config-x-y");
        check("/home/me/Ünï", "n");
        check("/", "project");
        check("/home/me/---", "project");
    }

    #[test]
    fn a_folder_of_another_directory_is_not_taken() {
        let registry = r#"{"projects":{"/listed/app":"app-1","/moved/app":"app"}}"#;
        let (_folder, home) = home(&[("tmp/app/.project_root", "/one/app\n"), ("projects.json", registry)]);
        let check = |directory: &str, slug: &str| {
            assert_eq!(home.project_folder(Path::new(directory)), home.root.join("tmp").join(slug), "{directory}");
        };
        check("/one/app", "app");
        check("/listed/app", "app-1");
        check("/two/app", "app-2");
        // The registry is wrong: the folder belongs to another directory.
        check("/moved/app", "app-2");
        check("/new", "new");
    }

    #[test]
    fn a_stub_is_no_session() {
        let line = |id: &str| format!("{{\"sessionId\":\"{id}\",\"projectHash\":\"x\"}}\n");
        let (one, other) = (line("aaaaaaaa-1"), line("aaaaaaaa-2"));
        let real = format!("{one}{{\"id\":\"m\"}}\n");
        let (_folder, home) = home(&[
            ("tmp/p/chats/session-2026-11-19T10-00-aaaaaaaa.jsonl", &real),
            ("tmp/p/chats/session-2026-11-19T10-07-aaaaaaaa.jsonl", &one),
            ("tmp/p/chats/session-2026-11-19T10-09-aaaaaaaa.jsonl", &other),
            ("tmp/p/chats/aaaaaaaa-1/sub.jsonl", &one),
            ("tmp/p/logs.json", "[]"),
            ("tmp/p/chats/.x.tine-new", "[]"),
            ("tmp/bin", "a file"),
        ]);
        let found = home.discover();
        let mut names: Vec<_> =
            found.files.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["session-2026-11-19T10-00-aaaaaaaa.jsonl", "session-2026-11-19T10-09-aaaaaaaa.jsonl"]);
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        let found = home.find(&SessionId::new("aaaaaaaa-2").unwrap(), Path::new("/"));
        assert!(found.unwrap().ends_with("session-2026-11-19T10-09-aaaaaaaa.jsonl"));
    }
}
