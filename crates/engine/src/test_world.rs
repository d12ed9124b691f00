//! A home with a repository in it, for tests of what the command line does not reach.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use agents::AgentEnvironment;

use crate::Tine;
use crate::context::{Clock, Context, Environment, Paths};

/// A home with a repository in it.
pub(crate) struct World {
    root: tempfile::TempDir,
    pub(crate) repository: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let repository = root.path().canonicalize().expect("a path").join("app");
        fs::create_dir(&repository).expect("a folder");
        for words in [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "--message=first"]] {
            let mut git = Command::new("git");
            git.current_dir(&repository).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
            assert!(git.status().expect("git").success());
        }
        World { root, repository }
    }

    pub(crate) fn tine(&self) -> Tine {
        let root = self.root.path().canonicalize().expect("a path");
        let path = std::env::var_os("PATH").unwrap_or_default();
        Tine::open(Context {
            surroundings: AgentEnvironment { home: root.clone(), ..AgentEnvironment::default() },
            paths: Paths {
                config: root.join("config.toml"),
                registry: root.join("registry.db"),
                cache: root.join("cache"),
            },
            program: "tine".into(),
            worker: Vec::new(),
            cwd: self.repository.clone(),
            clock: Clock::System,
            environment: Environment::default(),
            launch_environment: Vec::new(),
            search_path: std::env::split_paths(&path).collect(),
            cancel: agents::Cancel::default(),
        })
        .expect("tine")
    }

    pub(crate) fn registry(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a path").join("registry.db")
    }

    pub(crate) fn claude_home(&self) -> PathBuf {
        self.root.path().join(".claude")
    }

    pub(crate) fn codex_home(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a path").join(".codex")
    }
}
