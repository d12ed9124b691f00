//! Worktrees of interrupted operations: distinguishes what git had written from someone's work.
//!
//! git writes the index after all files, so the index of an incomplete worktree is useless. The commit contains what
//! the checkout would have written.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use diagnostics::OrLog;

use super::status::to_path;
use super::{Git, Worktree, finish, guard};

impl Git {
    /// Whether an unfinished worktree contains anything that its checkout would not have written. Files may be missing
    /// or incomplete. Files added by tine can't be distinguished from the user's and count as ours. `index` is a
    /// temporary index file.
    pub(crate) fn holds_work(&self, worktree: &Worktree, index: &Path) -> bool {
        if worktree.fills || !worktree.path.exists() {
            return false;
        }
        let is_worktree = worktree.path.join(".git").symlink_metadata().is_ok();
        if is_worktree && self.head(&worktree.path).is_ok_and(|head| head != worktree.base) {
            return true;
        }
        let lock = index.with_extension("lock");
        let differs = self.differs(worktree, index);
        for file in [index, &lock] {
            fs::remove_file(file).or_log(format_args!("remove {}", file.display()));
        }
        // If git can't tell, nothing is removed.
        differs.unwrap_or(true)
    }

    fn differs(&self, worktree: &Worktree, index: &Path) -> Result<bool, String> {
        let repository = &worktree.repository;
        let folder = repository.join(self.run(repository, ["rev-parse", "--git-common-dir"])?);
        // The worktree's folder in the repository may be incomplete too.
        let command = |words: &[&OsStr]| {
            let mut command = self.command(&worktree.path);
            guard(&mut command);
            command.env("GIT_DIR", &folder).env("GIT_WORK_TREE", &worktree.path).env("GIT_INDEX_FILE", index);
            command.args(words);
            command
        };
        let ask = |words: &[&str]| finish(&mut command(&words.iter().map(OsStr::new).collect::<Vec<_>>()));
        ask(&["read-tree", &worktree.base])?;
        if !ask(&["ls-files", "--others", "--exclude-standard", "-z"])?.is_empty() {
            return Ok(true);
        }
        // It fails if something differs, which is checked next.
        ask(&["update-index", "-q", "--refresh"]).or_log("refresh an index");
        let changed = ask(&["diff-files", "--name-only", "--diff-filter=d", "--ignore-submodules=all", "-z"])?;
        let changed = changed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(to_path);
        let is_whole = |path: &Path| {
            let mut object = OsString::from(format!("{}:", worktree.base));
            object.push(path);
            let expected = command(&["cat-file".as_ref(), "--filters".as_ref(), &object]);
            is_beginning(&worktree.path.join(path), expected).unwrap_or(false)
        };
        Ok(!changed.into_iter().all(|path| is_whole(&path)))
    }

    /// Removes the folder of a worktree if git was killed before linking it: `git worktree remove` doesn't know it, and
    /// `prune` keeps it because it is locked.
    pub(super) fn remove_unlinked_entry(&self, worktree: &Worktree) {
        let Ok(common) = self.run(&worktree.repository, ["rev-parse", "--git-common-dir"]) else { return };
        let Some(name) = worktree.path.file_name() else { return };
        let folder = worktree.repository.join(common).join("worktrees");
        // If the name is taken, git appends a number.
        let is_named = |entry: &OsStr| {
            let rest = entry.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
            rest.is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| is_named(&entry.file_name())).map(|entry| entry.path());
        let own = worktree.path.join(".git");
        let unlinked: Vec<PathBuf> = entries.filter(|entry| is_unlinked(entry, &own)).collect();
        if unlinked.is_empty() {
            return;
        }
        // Another git process may be about to write the link.
        std::thread::sleep(LINKED_WITHIN);
        for entry in unlinked.iter().filter(|entry| is_unlinked(entry, &own)) {
            for file in FIRST_FILES.map(|file| entry.join(file)).iter().filter(|file| file.exists()) {
                fs::remove_file(file).or_log(format_args!("remove {}", file.display()));
            }
            fs::remove_dir(entry).or_log(format_args!("remove {}", entry.display()));
        }
    }
}

/// The files that git writes first into the folder of a worktree, in this order. The second one contains the path of the
/// worktree's `.git`; without the third one, no git command can use the worktree, nor delete its branch.
const FIRST_FILES: [&str; 3] = ["locked", "gitdir", "commondir"];

/// The time that git may need between the first and the last.
const LINKED_WITHIN: Duration = Duration::from_millis(200);

/// Whether git was killed while it wrote the first files into the folder of a worktree whose `.git` is `own`.
fn is_unlinked(entry: &Path, own: &Path) -> bool {
    let Ok(files) = fs::read_dir(entry) else { return false };
    let is_first = |file: &OsStr| FIRST_FILES.iter().any(|first| file == *first);
    let has_only_first = files.flatten().all(|file| is_first(&file.file_name()));
    let [_, link, common] = FIRST_FILES.map(|file| fs::read(entry.join(file)).unwrap_or_default());
    let points_to = link.trim_ascii_end();
    let is_own = points_to.is_empty() || points_to == own.as_os_str().as_encoded_bytes();
    has_only_first && is_own && common.is_empty()
}

/// Whether a file contains the beginning of a command's output, as if it was being written.
fn is_beginning(path: &Path, mut command: Command) -> io::Result<bool> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut expected = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut found, mut wanted) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let is_beginning = loop {
        let length = file.read(&mut found)?;
        if length == 0 {
            break true;
        }
        if expected.read_exact(&mut wanted[..length]).is_err() || found[..length] != wanted[..length] {
            break false;
        }
    };
    drop(expected);
    child.wait()?;
    Ok(is_beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(directory: &Path, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(directory).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A repository in `root` with three files, and a worktree that does not exist yet.
    fn planned_worktree(root: &Path) -> Worktree {
        let repository = root.join("app");
        fs::create_dir_all(repository.join("folder")).unwrap();
        git(&repository, &["init", "--quiet"]);
        for (path, content) in [("one", "1 one\n"), ("folder/two", "2 two\n"), (".gitignore", "built\n")] {
            fs::write(repository.join(path), content).unwrap();
        }
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "--quiet", "--message=first"]);
        Worktree {
            base: git(&repository, &["rev-parse", "HEAD"]),
            repository,
            path: root.join("app.worktrees/try"),
            branch: "try".into(),
            parents: Vec::new(),
            brought: Vec::new(),
            fills: false,
            state: None,
            newest_ignored: None,
        }
    }

    /// It kept the next fork of that name from its branch.
    #[test]
    fn the_lock_of_a_git_that_was_killed_just_now_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let worktree = planned_worktree(&root.path().canonicalize().unwrap());
        let subject = Git::new(PathBuf::from("git"));
        let lock = worktree.repository.join(".git/refs/heads/try.lock");
        fs::write(&lock, "").unwrap();
        subject.remove(&worktree).unwrap();
        assert!(!lock.exists());
        subject.add(&worktree).unwrap();
    }

    /// What was written before the index was taken for somebody's work.
    #[test]
    fn files_that_are_not_in_the_index_yet_are_what_git_wrote() {
        let root = tempfile::tempdir().unwrap();
        let worktree = planned_worktree(&root.path().canonicalize().unwrap());
        let (repository, tree) = (worktree.repository.clone(), worktree.path.clone());
        let subject = Git::new(PathBuf::from("git"));
        let index = root.path().join("index");
        let check = |change: &dyn Fn(), expected: bool| {
            let _ = fs::remove_dir_all(&tree);
            git(&repository, &["worktree", "prune"]);
            git(&repository, &["worktree", "add", "--quiet", "-B", "try", tree.to_str().unwrap()]);
            change();
            assert_eq!(subject.holds_work(&worktree, &index), expected);
            assert!(!index.exists());
        };
        let own = repository.join(".git/worktrees/try");
        check(&|| (), false);
        check(&|| fs::remove_file(own.join("index")).unwrap(), false);
        check(&|| fs::remove_dir_all(&own).unwrap(), false);
        check(&|| fs::remove_file(tree.join(".git")).unwrap(), false);
        check(&|| fs::remove_dir_all(tree.join("folder")).unwrap(), false);
        check(&|| fs::write(tree.join("one"), "1 o").unwrap(), false);
        check(&|| fs::write(tree.join("one"), "").unwrap(), false);
        check(&|| fs::write(tree.join("one"), "1 one\nmore\n").unwrap(), true);
        check(&|| fs::write(tree.join("one"), "one").unwrap(), true);
        check(&|| fs::write(tree.join("folder/three"), "3").unwrap(), true);
        check(&|| fs::write(tree.join("built"), "ignored").unwrap(), false);
        // The folder of a worktree that git was killed before linking stayed for ever, and so did the branch of one whose
        // `commondir` was empty, because every git command failed over it.
        let link = tree.join(".git").to_str().unwrap().to_owned() + "\n";
        for files in [&[][..], &[("gitdir", "")], &[("gitdir", &link)], &[("gitdir", &link), ("commondir", "")]] {
            git(&repository, &["worktree", "remove", "--force", tree.to_str().unwrap()]);
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("locked"), "initializing").unwrap();
            for (file, content) in files {
                fs::write(own.join(file), content).unwrap();
            }
            subject.remove(&worktree).unwrap();
            assert!(!own.exists());
            git(&repository, &["worktree", "add", "--quiet", "-B", "try", tree.to_str().unwrap()]);
        }
        check(&|| drop(git(&tree, &["commit", "--quiet", "--allow-empty", "--message=mine"])), true);
    }
}
