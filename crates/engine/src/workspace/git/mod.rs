//! Runs git: queries a repository and, in `worktree`, `submodules` and `carry`, changes it. `trees` and `status` parse
//! git's lists. Every command is built here: queries run nothing that the repository configures.

pub(crate) mod carry;
pub(crate) mod filters;
pub(crate) mod half_made;
pub(crate) mod objects;
pub(crate) mod past;
pub(crate) mod refs;
pub(crate) mod status;
pub(crate) mod submodules;
pub(crate) mod trees;
pub(crate) mod working_files;
pub(crate) mod worktree;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use diagnostics::OrLog;

pub(crate) use trees::WorktreeState;
pub use worktree::Worktree;

use crate::workspace::{Error, Result};

/// Variables by which git tells its hooks where they are. tine may run in a hook, whose repository is a different one.
pub(crate) const LOCAL_VARIABLES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

/// An installed git.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
    /// Where new objects go instead of the repository, and where the repository has its own.
    own_objects: Option<(PathBuf, PathBuf)>,
}

impl Git {
    pub(crate) fn new(program: PathBuf) -> Self {
        Git { program, own_objects: None }
    }

    /// Queries an untrusted repository. Arguments are passed as a vector; no shell sees them. The repository, including
    /// its index, is not changed, and nothing that it configures runs: see [`guard`].
    fn output<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> std::result::Result<Vec<u8>, String> {
        let mut command = self.command(directory);
        guard(&mut command);
        finish(command.args(arguments))
    }

    /// The same, as text.
    fn run<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> std::result::Result<String, String> {
        self.output(directory, arguments).map(|output| to_text(&output))
    }

    /// Changes a repository on the user's behalf, with its hooks, filters and remotes, as if the user ran git.
    fn change<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> std::result::Result<String, String> {
        finish(self.command(directory).args(arguments)).map(|output| to_text(&output))
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-optional-locks").arg("-C").arg(directory).stdin(Stdio::null());
        for variable in LOCAL_VARIABLES {
            command.env_remove(variable);
        }
        if let Some((own, repositorys)) = &self.own_objects {
            command.env("GIT_OBJECT_DIRECTORY", own).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", repositorys);
        }
        command
    }

    /// A command that queries an untrusted repository, for a caller that handles its output.
    pub(crate) fn query_command(&self, directory: &Path) -> Command {
        let mut command = self.command(directory);
        guard(&mut command);
        command
    }

    /// The output of such a command.
    pub(crate) fn finish(command: &mut Command, directory: &Path) -> Result<Vec<u8>> {
        finish(command).map_err(Self::failed(directory))
    }

    fn failed(directory: &Path) -> impl Fn(String) -> Error + '_ {
        move |message| Error::Git { directory: directory.to_owned(), message }
    }

    /// A setting of a repository.
    fn setting(&self, directory: &Path, key: &str) -> Option<String> {
        self.run(directory, ["config", "--get", key]).ok()
    }

    /// The top of the working tree that contains `directory`.
    pub(crate) fn top(&self, directory: &Path) -> Option<PathBuf> {
        self.run(directory, ["rev-parse", "--show-toplevel"]).ok().map(PathBuf::from)
    }

    /// Why there is no working tree at `directory`.
    pub(crate) fn no_working_tree(&self, directory: &Path) -> Error {
        match self.run(directory, ["rev-parse", "--git-dir"]) {
            Ok(_) => Error::NoWorkingTree(directory.to_owned()),
            Err(said) => match refused_owner(&said) {
                Some(repository) => Error::DubiousOwner(repository),
                None => Error::NoRepository(directory.to_owned()),
            },
        }
    }

    /// The commit that is checked out.
    pub(crate) fn head(&self, directory: &Path) -> Result<String> {
        self.run(directory, ["rev-parse", "--verify", "HEAD^{commit}"]).map_err(|message| {
            let is_born = self.run(directory, ["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok();
            match is_born || !self.is_in_repository(directory) {
                true => Self::failed(directory)(message),
                false => Error::NothingCommitted(directory.to_owned()),
            }
        })
    }

    /// The commit that a revision refers to.
    pub(crate) fn commit(&self, directory: &Path, word: &str) -> Option<String> {
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{word}^{{commit}}")];
        self.run(directory, words).ok().filter(|commit| !commit.is_empty())
    }

    /// The folder for data of one working tree.
    pub(crate) fn own_folder(&self, directory: &Path) -> Result<PathBuf> {
        let folder = self.run(directory, ["rev-parse", "--absolute-git-dir"]).map_err(Self::failed(directory))?;
        Ok(PathBuf::from(folder))
    }

    /// An operation in progress, such as a merge.
    pub(crate) fn unfinished(&self, directory: &Path) -> Option<&'static str> {
        const MARKS: [(&str, &str); 5] = [
            ("MERGE_HEAD", "a merge"),
            ("rebase-merge", "a rebase"),
            ("rebase-apply", "a rebase"),
            ("CHERRY_PICK_HEAD", "a cherry-pick"),
            ("REVERT_HEAD", "a revert"),
        ];
        let folder = self.own_folder(directory).ok()?;
        MARKS.iter().find(|(mark, _)| folder.join(mark).exists()).map(|(_, what)| *what)
    }

    /// Whether there are uncommitted changes, including those in submodules.
    pub(crate) fn is_dirty(&self, directory: &Path) -> bool {
        self.run(directory, ["status", "--porcelain", "--ignore-submodules=none"])
            .is_ok_and(|changes| !changes.is_empty())
    }

    /// Whether a text is a valid branch name.
    pub(crate) fn is_branch_name(&self, directory: &Path, name: &str) -> bool {
        // git takes a leading dash for an option; `@{-1}` and the like refer to another branch.
        let means_itself =
            || self.run(directory, ["check-ref-format", "--branch", name]).is_ok_and(|told| told == name);
        // Each part is a file name, temporarily with the suffix `.lock`.
        let fits = name.split('/').all(|part| part.len() + ".lock".len() <= 255);
        // git accepts invisible characters, which make a name look like another one.
        let is_plain = !transcript::text::is_deceptive(name);
        !name.starts_with('-') && name != "@" && fits && is_plain && means_itself()
    }

    /// A branch that excludes another one: `a` and `a/b` cannot both exist.
    pub(crate) fn rival_of(&self, directory: &Path, name: &str) -> Option<String> {
        let above = name.match_indices('/').map(|(at, _)| &name[..at]).find(|above| self.has_branch(directory, above));
        above.map(str::to_owned).or_else(|| {
            let words = ["for-each-ref", "--count=1", "--format=%(refname:short)", &format!("refs/heads/{name}/")];
            self.run(directory, words).ok().filter(|below| !below.is_empty())
        })
    }

    /// The outermost repository that contains a submodule; `None` if it is not a submodule.
    pub(crate) fn outermost(&self, top: &Path) -> Option<PathBuf> {
        let above = |top: &PathBuf| {
            let told = self.run(top, ["rev-parse", "--show-superproject-working-tree"]).ok();
            told.filter(|told| !told.is_empty()).map(PathBuf::from)
        };
        std::iter::successors(above(&top.to_owned()), above).last()
    }

    /// Whether a directory is in a repository, even one without checked-out files.
    pub(crate) fn is_in_repository(&self, directory: &Path) -> bool {
        self.run(directory, ["rev-parse", "--git-dir"]).is_ok()
    }

    pub(crate) fn has_branch(&self, directory: &Path, name: &str) -> bool {
        self.run(directory, ["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")]).is_ok()
    }

    /// Whether a repository has all of these commits; false if there are none.
    pub(crate) fn has_commits(&self, directory: &Path, commits: &[String]) -> bool {
        let wanted = commits.iter().map(|commit| format!("{commit}^{{commit}}"));
        let arguments = ["rev-parse", "--quiet"].map(str::to_owned).into_iter().chain(wanted);
        !commits.is_empty() && self.run(directory, arguments).is_ok()
    }

    /// Removes the path of the working tree from a repository's configuration file, so that the tree is around the
    /// repository.
    pub(crate) fn forget_place_in(&self, config: &Path) {
        // Inside the repository, git would first change to the working tree, which may not exist.
        let folder = Path::new("/");
        for key in ["core.worktree", "core.bare"] {
            // It may not be set.
            let arguments =
                [OsStr::new("config"), "--file".as_ref(), config.as_ref(), "--unset-all".as_ref(), key.as_ref()];
            self.change(folder, arguments).or_log(format_args!("remove {key} from {}", config.display()));
        }
    }
}

/// Keeps git from running anything that a repository configures: hooks, a file system monitor, a pager, and programs
/// that fetch the missing objects of a partial clone. Filters are configured by name; [`Git::is_dirty_unfiltered`]
/// finds them.
fn guard(command: &mut Command) {
    for setting in ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat"] {
        command.args(["-c", setting]);
    }
    command.envs([
        ("GIT_NO_LAZY_FETCH", "1"),
        // No protocol has this name, so none is allowed. Before 2.45, git supports only this.
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // Messages are compared.
        ("LC_ALL", "C"),
    ]);
}

fn finish(command: &mut Command) -> std::result::Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    // A failing hook may print nothing.
    let said = [&output.stderr, &output.stdout].map(|said| String::from_utf8_lossy(said).trim().to_owned());
    let said = said.into_iter().find(|said| !said.is_empty());
    Err(said.unwrap_or_else(|| format!("git printed no message ({})", output.status)))
}

fn to_text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

/// The repository that git refuses to open, because it belongs to another user.
fn refused_owner(said: &str) -> Option<PathBuf> {
    let (_, rest) = said.split_once("detected dubious ownership in repository at '")?;
    rest.split_once('\'').map(|(repository, _)| PathBuf::from(repository))
}
