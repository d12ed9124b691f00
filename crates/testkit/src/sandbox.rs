//! A hermetic world for one test: its own home, its own environment, and nothing of the machine's user.
//!
//! Programs started by [`Sandbox::command`] see the sandbox's environment alone, so the variables of a surrounding
//! agent (`CLAUDECODE`, `CODEX_HOME`, API keys) never leak in, and every proxy variable points to a closed port of
//! loopback, so that nothing leaves the machine even where no network namespace is to be had.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use tempfile::TempDir;

use crate::process::end_processes_at_home_in;

/// A port of loopback where nobody listens ("discard", never bound on today's machines).
const CLOSED_PORT_URL: &str = "http://127.0.0.1:9";

/// Programs that a machine's user may have installed and that must not be found unless a test puts them there.
const SHIELDED: [&str; 9] = ["claude", "codex", "opencode", "gemini", "tine", "wezterm", "zellij", "kitty", "qmd"];

/// A temporary directory with a home, an environment and room for projects. It is removed with its owner.
pub struct Sandbox {
    /// Held for its end, which removes everything.
    _held: TempDir,
    path: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

impl Sandbox {
    /// Makes an empty world.
    pub fn new() -> Self {
        let held = tempfile::Builder::new().prefix("tine-").tempdir().expect("a temporary directory");
        let path = held.path().canonicalize().expect("the temporary directory");
        let mut sandbox = Self { _held: held, path, environment: BTreeMap::new() };
        sandbox.make_directories();
        sandbox.set_environment();
        sandbox.write(
            sandbox.home().join(".gitconfig"),
            "[user]\n\tname = Test Person\n\temail = test@example.invalid\n[init]\n\tdefaultBranch = main\n\
             [commit]\n\tgpgsign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n",
        );
        sandbox
    }

    /// The directory that holds everything, without symbolic links in its path.
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Where projects are made. The drivers tell the agents to trust it.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// The first directory of PATH, for programs that a test installs.
    pub fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    /// Claude Code's home.
    pub fn claude_home(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// Codex's home.
    pub fn codex_home(&self) -> PathBuf {
        self.home().join(".codex")
    }

    /// OpenCode's folder for data.
    pub fn opencode_data(&self) -> PathBuf {
        self.root().join("data/opencode")
    }

    /// Gemini CLI's home.
    pub fn gemini_home(&self) -> PathBuf {
        self.home().join(".gemini")
    }

    /// Temporary files of the programs that run in it.
    pub fn tmp(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// Sets a variable for everything started from now on.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.environment.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Unsets a variable for everything started from now on.
    pub fn unset(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.environment.remove(name.as_ref());
        self
    }

    /// Fixes the clock that tine reads, as an RFC 3339 time.
    pub fn set_now(&mut self, time: &str) -> &mut Self {
        self.set("TINE_NOW", time)
    }

    /// The environment that programs get.
    pub fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.environment
    }

    /// A command that knows only this world: started in `work/`, without input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let program = program.as_ref();
        let mut command = Command::new(self.find(program).as_deref().map_or(program, Path::as_os_str));
        command.env_clear().envs(&self.environment).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    /// Runs git and returns what it printed, without the last line break.
    ///
    /// # Panics
    /// When git fails.
    pub fn git<S: AsRef<OsStr>>(&self, directory: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
        let arguments: Vec<OsString> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let output = self
            .command("git")
            .current_dir(directory)
            .args(&arguments)
            .output()
            .unwrap_or_else(|error| panic!("git could not be started: {error}"));
        assert!(output.status.success(), "git {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    /// Makes a git repository with one commit in `work/`.
    pub fn project(&self, name: &str) -> PathBuf {
        let path = self.work().join(name);
        self.write(path.join("README.md"), &format!("# {name}\n"));
        self.git(&path, ["init", "--quiet"]);
        self.git(&path, ["add", "."]);
        // A fixed date makes the commit's id the same in every run.
        let committed = self
            .command("git")
            .current_dir(&path)
            .envs([("GIT_AUTHOR_DATE", "2026-11-01T12:00:00Z"), ("GIT_COMMITTER_DATE", "2026-11-01T12:00:00Z")])
            .args(["commit", "--quiet", "--message", "The beginning"])
            .output()
            .expect("git commit");
        assert!(committed.status.success(), "git commit failed: {}", text(&committed.stderr));
        path
    }

    /// Makes a plain directory in `work/`.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Writes a file and the directories above it. A relative path is one below `work/`.
    pub fn write(&self, path: impl AsRef<Path>, content: &str) -> PathBuf {
        let path = self.work().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
        }
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Installs an executable script in `bin/`.
    pub fn script(&self, name: &str, content: &str) -> PathBuf {
        let path = self.bin().join(name);
        install_program(&path, content.as_bytes());
        path
    }

    /// Puts a program of the machine into `bin/` under a name.
    pub fn link(&self, name: &str, program: &Path) -> PathBuf {
        let path = self.bin().join(name);
        let _ = fs::remove_file(&path);
        symlink(program, &path);
        path
    }

    /// Where a program is found on the sandbox's PATH.
    pub fn find(&self, program: &OsStr) -> Option<PathBuf> {
        if Path::new(program).components().count() > 1 {
            return None;
        }
        let path = self.environment.get(OsStr::new("PATH"))?;
        env::split_paths(path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
    }

    fn make_directories(&self) {
        // The runtime directory must be the user's alone; programs refuse it otherwise.
        for name in ["home", "work", "bin", "tmp", "config", "data", "cache", "state", "run"] {
            let path = self.root().join(name);
            fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        make_private(&self.root().join("run"));
    }

    fn set_environment(&mut self) {
        let root = self.root().to_owned();
        let directories = [
            ("HOME", "home"),
            ("TMPDIR", "tmp"),
            ("CLAUDE_CODE_TMPDIR", "tmp"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
            ("CODEX_HOME", "home/.codex"),
            ("GIT_CONFIG_GLOBAL", "home/.gitconfig"),
        ];
        for (name, directory) in directories {
            self.set(name, root.join(directory));
        }
        let texts = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LANG", "C.UTF-8"),
            ("TERM", "xterm-256color"),
            ("SHELL", "/bin/bash"),
            ("USER", "tester"),
            ("TZ", "UTC"),
            ("no_proxy", "127.0.0.1,localhost"),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ];
        for (name, value) in texts {
            self.set(name, value);
        }
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            self.set(name, CLOSED_PORT_URL);
        }
        let path = self.search_path();
        self.set("PATH", path);
    }

    /// `bin/` and the system's directories. Tools that live elsewhere are linked into `bin/`; where a system directory
    /// holds a program that must not be found, a directory of links stands in for it.
    fn search_path(&self) -> OsString {
        let mut directories = vec![self.bin()];
        for system in ["/usr/bin", "/bin"].map(Path::new) {
            let stands_for_another = system.is_symlink();
            if stands_for_another || !system.is_dir() {
                continue;
            }
            if SHIELDED.iter().any(|name| system.join(name).exists()) {
                directories.push(shielded_copy(system));
            } else {
                directories.push(system.to_owned());
            }
        }
        for tool in ["git", "tmux", "bash", "node"] {
            if !directories.iter().any(|directory| directory.join(tool).is_file())
                && let Some(found) = on_path(tool)
            {
                symlink(&found, &self.bin().join(tool));
            }
        }
        env::join_paths(directories).expect("no colon in the sandbox's paths")
    }
}

impl Drop for Sandbox {
    /// Ends what still runs in the sandbox, such as a daemon that an agent left behind, before its files go.
    fn drop(&mut self) {
        end_processes_at_home_in(&self.home());
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// What a program printed, as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Panics with everything that a program printed unless it succeeded, and returns its standard output.
#[track_caller]
pub fn expect_success(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}\nstdout: {}\nstderr: {}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Writes a program, and the directories above it, that can be run at once.
///
/// A process of its own writes it. A file that this process had open for writing would be open in whatever another
/// test starts at that moment, too, until that has become its own program; and what somebody has open for writing the
/// system does not run ("Text file busy").
pub fn install_program(path: &Path, content: &[u8]) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
    }
    let mut writer = Command::new("sh")
        .args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh");
    writer
        .stdin
        .take()
        .expect("a pipe")
        .write_all(content)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(writer.wait().expect("sh").success(), "{} cannot be written", path.display());
}

fn on_path(tool: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(tool)).find(|candidate| candidate.is_file())
}

/// A directory of links to the programs of a system directory, without those that must not be found. Making thousands of
/// links takes longer than most tests, so all sandboxes of a machine share one for as long as the system stays as it is.
fn shielded_copy(system: &Path) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(system).expect("the system's programs");
    let owner = fs::metadata("/proc/self").map_or(0, |own| own.uid());
    let state = format!("{}-{}-{}", metadata.dev(), metadata.ino(), metadata.mtime_nsec() ^ metadata.mtime());
    let copy = env::temp_dir().join(format!("tine-shielded-{owner}-{state}"));
    if copy.is_dir() {
        return copy;
    }
    let new = tempfile::Builder::new().prefix("tine-shielded-new-").tempdir().expect("a directory of links");
    let entries = fs::read_dir(system).expect("the system's programs");
    for entry in entries.flatten() {
        if !SHIELDED.iter().any(|name| entry.file_name() == *name) {
            symlink(&entry.path(), &new.path().join(entry.file_name()));
        }
    }
    // Another process may have been quicker. A directory is never renamed onto one that holds something.
    if fs::rename(new.path(), &copy).is_ok() {
        let _ = new.keep();
    }
    copy
}

fn symlink(target: &Path, link: &Path) {
    std::os::unix::fs::symlink(target, link).unwrap_or_else(|error| panic!("{}: {error}", link.display()));
}

fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("permissions");
}
