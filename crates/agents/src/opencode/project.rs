//! Which project a directory belongs to: OpenCode lists a session only there.
//!
//! The id of a project is, in this order: a digest of the address of the remote `origin`; what OpenCode has noted in
//! `<git directory>/opencode`; the hash of the first commit; `global` elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sha1::sha1_hex;

/// The id of what belongs to no repository.
const GLOBAL: &str = "global";

/// The project of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Project {
    pub id: String,
    /// The top of the worktree; `/` elsewhere.
    pub top: PathBuf,
    pub is_repository: bool,
}

impl Project {
    /// Finds the project of a directory.
    pub(super) fn of(directory: &Path) -> Project {
        let real = directory.canonicalize();
        let directory = real.as_deref().unwrap_or(directory);
        let global = || Project { id: GLOBAL.to_owned(), top: PathBuf::from("/"), is_repository: false };
        let Some(top) = directory.ancestors().find(|top| top.join(".git").exists()) else {
            return global();
        };
        let Some(common) = common_directory(top) else { return global() };
        let noted = || fs::read_to_string(common.join("opencode")).ok().map(|id| id.trim().to_owned());
        let id = origin(&common).and_then(|url| id_of_remote(&url));
        let id = id.or_else(|| noted().filter(|id| !id.is_empty())).or_else(|| first_commit(top));
        // Without commits, OpenCode treats a repository like any other directory.
        match id {
            Some(id) => Project { id, top: top.to_owned(), is_repository: true },
            None => Project { top: top.to_owned(), is_repository: true, ..global() },
        }
    }

    /// The directory as sessions record it besides its full path.
    pub(super) fn path_of(&self, directory: &Path) -> String {
        let real = directory.canonicalize();
        let directory = real.as_deref().unwrap_or(directory);
        directory.strip_prefix(&self.top).unwrap_or(Path::new("")).to_string_lossy().into_owned()
    }

    /// What the row of a new project has as its worktree.
    pub(super) fn worktree(&self) -> PathBuf {
        if self.id == GLOBAL { PathBuf::from("/") } else { self.top.clone() }
    }
}

/// The git directory that all worktrees of a repository share.
fn common_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let own = if git.is_dir() {
        git
    } else {
        let text = fs::read_to_string(&git).ok()?;
        top.join(text.strip_prefix("gitdir:")?.trim())
    };
    match fs::read_to_string(own.join("commondir")) {
        Ok(common) => Some(own.join(common.trim())),
        Err(_) => Some(own),
    }
}

/// The address of the remote `origin` in a repository's configuration.
fn origin(common: &Path) -> Option<String> {
    let config = fs::read_to_string(common.join("config")).ok()?;
    let mut is_origin = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_origin = line == "[remote \"origin\"]";
        } else if let Some((key, value)) = line.split_once('=')
            && is_origin
            && key.trim() == "url"
        {
            return Some(value.trim().trim_matches('"').to_owned());
        }
    }
    None
}

/// The id that OpenCode derives from a remote: the same for every way to reach it.
fn id_of_remote(url: &str) -> Option<String> {
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host).to_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| sha1_hex(format!("git-remote:{host}/{path}").as_bytes()))
}

fn first_commit(top: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(top).args(["rev-list", "--max-parents=0", "HEAD"]);
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut roots: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    roots.sort_unstable();
    roots.first().map(|root| (*root).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_remote_is_the_same_project() {
        let expected = Some(sha1_hex(b"git-remote:example.com/me/app"));
        for url in [
            "https://example.com/me/app.git",
            "https://user:secret@Example.com/me/app",
            "ssh://git@example.com:22/me/app.git",
            "git@example.com:me/app.git",
        ] {
            assert_eq!(id_of_remote(url), expected, "{url}");
        }
        assert_eq!(id_of_remote("/srv/app.git"), None);
        assert_eq!(id_of_remote("file:///srv/app.git"), None);
    }

    #[test]
    fn a_directory_outside_of_repositories_is_global() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().canonicalize().unwrap().join("a");
        fs::create_dir(&inner).unwrap();
        let project = Project::of(&inner);
        assert_eq!((project.id.as_str(), project.is_repository), (GLOBAL, false));
        assert_eq!(project.path_of(&inner), inner.strip_prefix("/").unwrap().to_string_lossy());
        fs::create_dir_all(inner.join(".git")).unwrap();
        fs::write(inner.join(".git/opencode"), "abc\n").unwrap();
        fs::create_dir(inner.join("sub")).unwrap();
        let project = Project::of(&inner.join("sub"));
        assert_eq!((project.id.as_str(), project.path_of(&inner.join("sub")).as_str()), ("abc", "sub"));
        assert_eq!(project.path_of(&inner), "");
    }
}
