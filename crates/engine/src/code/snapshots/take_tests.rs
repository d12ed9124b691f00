//! Snapshots of all kinds of working trees, compared with what is on disk and with git.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;

/// A repository, and where its snapshots are prepared.
struct Lab {
    root: tempfile::TempDir,
    top: PathBuf,
    count: std::cell::Cell<u32>,
}

const LARGEST: u64 = 1000;

impl Lab {
    /// Without a commit.
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let top = root.path().canonicalize().expect("a path").join("app");
        let lab = Lab { root, top, count: 0.into() };
        fs::create_dir(&lab.top).expect("a folder");
        lab.git(&["init", "--quiet"]);
        lab.git(&["config", "user.name", "x"]);
        lab.git(&["config", "user.email", "x@example.com"]);
        lab
    }

    fn git(&self, words: &[&str]) -> String {
        git_in(&self.top, words)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=x"]);
    }

    /// Takes a snapshot and checks that nothing else changed. Returns its commit.
    fn take(&self) -> String {
        self.take_in(&self.top)
    }

    fn take_in(&self, top: &Path) -> String {
        let signs = || {
            let index = fs::read(git_in(top, &["rev-parse", "--path-format=absolute", "--git-path", "index"])).ok();
            let told = ["stash list", "reflog --all", "for-each-ref --exclude=refs/tine/**", "rev-parse HEAD"];
            let told = told.map(|line| said(top, &line.split(' ').collect::<Vec<_>>()));
            let status = said(top, &["--no-optional-locks", "status", "--porcelain", "--ignored"]);
            (index, told, status)
        };
        let before = signs();
        let git = Git::new("git".into());
        let place = git.tree_place(top).expect("a working tree");
        self.count.set(self.count.get() + 1);
        let scratch = self.root.path().join("scratch");
        private_folder(&scratch);
        let seen = scratch.join(format!("seen-{:x}", xxhash_rust::xxh3::xxh3_64(top.as_os_str().as_encoded_bytes())));
        let taker = Taker {
            git: &git,
            place: &place,
            scratch: &scratch,
            seen: &seen,
            max_file_size: LARGEST,
            now: Timestamp::UNIX_EPOCH,
            is_too_late: &|| false,
        };
        let name = format!("refs/tine/snapshots/claude/a/{}-end-00", self.count.get());
        let commit = taker.take(&name, "subject").expect("a snapshot").expect("in time");
        assert!(before == signs(), "the repository has changed: {:?}", signs());
        assert_eq!(self.git(&["rev-parse", &name]), commit);
        let left: Vec<_> = fs::read_dir(&scratch).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| name.to_string_lossy().starts_with("seen-")), "{left:?}");
        self.git(&["fsck", "--strict", "--no-dangling"]);
        commit
    }

    /// What is in a snapshot: path, mode and content.
    fn tree(&self, commit: &str) -> Vec<(String, Mode, String)> {
        let git = Git::new("git".into());
        let mut reader = git.blob_reader(&self.top).expect("a reader");
        let entries = git.tree_entries(&self.top, commit, &[]).expect("a tree").into_iter();
        let entries = entries.map(|TreeEntry { path, mode, object }| {
            let content = match mode {
                Mode::Submodule => object,
                _ => String::from_utf8_lossy(&reader.read(&object).expect("an answer").expect("a blob")).into_owned(),
            };
            (path.to_string_lossy().into_owned(), mode, content)
        });
        entries.collect()
    }

    /// The same, without modes.
    fn files(&self, commit: &str) -> Vec<(String, String)> {
        self.tree(commit).into_iter().map(|(path, _, content)| (path, content)).collect()
    }

    fn left_out(&self, commit: &str) -> Vec<(String, Reason)> {
        let message = self.git(&["log", "-1", "--format=%B", commit]);
        let trailers = Trailers::read(&format!("{message}\n")).expect("trailers");
        let left = trailers.left_out.into_iter();
        left.map(|left| (left.path.to_string_lossy().into_owned(), left.reason)).collect()
    }
}

fn private_folder(folder: &Path) {
    crate::private::create_folder(folder).expect("a folder");
}

fn command(directory: &Path, words: &[&str]) -> std::process::Output {
    Command::new("git").current_dir(directory).args(words).output().expect("git")
}

fn said(directory: &Path, words: &[&str]) -> String {
    let output = command(directory, words);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn git_in(directory: &Path, words: &[&str]) -> String {
    let output = command(directory, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn a_snapshot_has_the_files_that_git_does_not_ignore() {
    let lab = Lab::new();
    lab.write("new", "n");
    let unborn = lab.take();
    assert_eq!(lab.files(&unborn), pairs(&[("new", "n")]));

    for (path, content) in [("a", "1"), ("d/e/f", "2"), ("gone", "3"), (".gitignore", "built\n*.log\n"), ("x.log", "l")]
    {
        lab.write(path, content);
    }
    lab.git(&["add", "--force", "x.log"]);
    lab.commit();
    lab.write("built/b", "ignored");
    fs::remove_file(lab.top.join("gone")).expect("removed");
    lab.write("d/e/f", "changed");
    lab.write("staged", "s");
    lab.git(&["add", "staged"]);
    lab.write("intended", "i");
    lab.git(&["add", "--intent-to-add", "intended"]);
    fs::set_permissions(lab.top.join("a"), fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("../etc\npasswd", lab.top.join("link")).expect("a link");
    let first = lab.take();
    let file = |path: &str, mode, content: &str| (path.to_owned(), mode, content.to_owned());
    let expected = vec![
        file(".gitignore", Mode::File, "built\n*.log\n"),
        file("a", Mode::Executable, "1"),
        file("d/e/f", Mode::File, "changed"),
        file("intended", Mode::File, "i"),
        file("link", Mode::Symlink, "../etc\npasswd"),
        file("new", Mode::File, "n"),
        file("staged", Mode::File, "s"),
        file("x.log", Mode::File, "l"),
    ];
    assert_eq!(lab.tree(&first), expected);
    assert_eq!(lab.left_out(&first), []);

    // Without a change, the commit is the same, also if a file was only touched.
    assert_eq!(lab.take(), first);
    lab.write("a", "1");
    assert_eq!(lab.take(), first);
    // The same size at the same time.
    for content in ["changing", "CHANGING", "chanGing"] {
        lab.write("d/e/f", content);
        assert!(lab.files(&lab.take()).contains(&("d/e/f".into(), content.into())));
    }
    // Without what was seen, the tree is the same.
    let tree = |commit: &str| lab.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    let known = lab.take();
    fs::remove_dir_all(lab.root.path().join("scratch")).expect("removed");
    assert_eq!(tree(&lab.take()), tree(&known));
    // A file becomes a folder, and a folder a file.
    fs::remove_file(lab.top.join("a")).expect("removed");
    fs::remove_dir_all(lab.top.join("d")).expect("removed");
    lab.write("a/b", "4");
    lab.write("d", "5");
    let turned = lab.files(&lab.take());
    assert!(turned.contains(&("a/b".into(), "4".into())) && turned.contains(&("d".into(), "5".into())));
    assert!(!turned.iter().any(|(path, _)| path == "a" || path == "d/e/f"));
}

#[test]
fn bytes_are_kept_as_they_are_and_no_program_of_the_repository_runs() {
    let lab = Lab::new();
    let ran = lab.root.path().join("ran");
    lab.git(&["config", "core.autocrlf", "true"]);
    lab.git(&["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
    lab.git(&["config", "core.logAllRefUpdates", "always"]);
    for filter in ["clean", "smudge", "process"] {
        lab.git(&["config", &format!("filter.bad.{filter}"), &format!("touch {}; cat", ran.display())]);
    }
    for hook in ["reference-transaction", "post-commit", "pre-commit", "post-index-change"] {
        let path = lab.top.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("a hook");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    lab.write(
        ".gitattributes",
        "*.lfs filter=bad\n*.id ident\n*.txt text eol=crlf\n*.utf16 working-tree-encoding=UTF-16\n",
    );
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let files = [
        ("a.txt", "1\r\n2\n"),
        ("b.id", "$Id: 123 $\r\n"),
        ("c.lfs", pointer),
        ("d", "x\r\n"),
        ("e.utf16", "\u{feff}x"),
    ];
    for (path, content) in files {
        lab.write(path, content);
    }
    // As after `git add`, which converts.
    lab.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "filter.bad.process=",
        "-c",
        "filter.bad.clean=cat",
        "add",
        "a.txt",
        "b.id",
        "c.lfs",
        "d",
    ]);
    lab.git(&["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "commit", "--quiet", "--message=x"]);
    let _ = fs::remove_file(&ran);
    // `git status` in the checks runs the filters itself.
    let git = Git::new("git".into());
    let place = git.tree_place(&lab.top).expect("a working tree");
    let scratch = lab.root.path().join("scratch");
    private_folder(&scratch);
    let seen = scratch.join("seen");
    let taker = Taker {
        git: &git,
        place: &place,
        scratch: &scratch,
        seen: &seen,
        max_file_size: LARGEST,
        now: Timestamp::UNIX_EPOCH,
        is_too_late: &|| false,
    };
    for number in 1..3 {
        let name = format!("refs/tine/snapshots/claude/a/{number}-end-00");
        let commit = taker.take(&name, "subject").expect("a snapshot").expect("in time");
        let found = lab.files(&commit);
        for (path, content) in files {
            assert!(found.contains(&(path.into(), content.into())), "{path}: {found:?}");
        }
    }
    assert!(!ran.exists());
    assert!(!lab.top.join(".git/logs/refs/tine").exists());
}

#[test]
fn secrets_large_files_and_other_repositories_are_left_out_and_listed() {
    let lab = Lab::new();
    lab.write("tracked.pem", "k");
    lab.write("changed.pem", "k");
    lab.write("large", &"x".repeat(2000));
    lab.commit();
    lab.write("changed.pem", "new key");
    lab.write(".env", "TOKEN=1");
    lab.write(".env.example", "TOKEN=");
    lab.write("huge", &"x".repeat(1001));
    lab.write("fits", &"x".repeat(1000));
    fs::create_dir(lab.top.join("other")).expect("a folder");
    git_in(&lab.top.join("other"), &["init", "--quiet"]);
    lab.write("other/x", "x");
    let expected = || {
        let left = [
            ("changed.pem", Reason::Secret),
            (".env", Reason::Secret),
            ("huge", Reason::Large),
            ("other", Reason::Repository),
        ];
        let mut left: Vec<(String, Reason)> = left.map(|(path, reason)| (path.to_owned(), reason)).into();
        left.sort();
        left
    };
    for _ in 0..2 {
        let commit = lab.take();
        let paths: Vec<String> = lab.tree(&commit).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, [".env.example", "fits", "large", "tracked.pem"]);
        assert_eq!(lab.left_out(&commit), expected());
    }
    let objects = said(&lab.top, &["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!objects.contains("TOKEN=1") && !objects.contains("new key"));
    // Once git has the key, it is part of the tree.
    lab.git(&["add", "changed.pem"]);
    assert!(lab.files(&lab.take()).contains(&("changed.pem".into(), "new key".into())));
}

#[test]
fn links_lead_nowhere_and_hostile_names_are_only_names() {
    let lab = Lab::new();
    lab.write("d/secret", "mine");
    lab.write("plain", "p");
    lab.commit();
    // The folder was replaced by a link to somewhere else.
    let outside = lab.root.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("secret"), "theirs").expect("a file");
    fs::remove_dir_all(lab.top.join("d")).expect("removed");
    symlink(&outside, lab.top.join("d")).expect("a link");
    lab.write("-rf", "1");
    lab.write("new\nline \"q\" \\", "2");
    lab.write("\u{1b}[31mred", "3");
    lab.write(":(glob)*", "4");
    let raw = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff\xfe");
    fs::write(lab.top.join(raw), "5").expect("a file");
    for _ in 0..2 {
        let tree = lab.tree(&lab.take());
        let link = ("d".to_owned(), Mode::Symlink, outside.display().to_string());
        assert!(tree.contains(&link), "{tree:?}");
        assert!(!tree.iter().any(|(.., content)| content == "theirs" || content == "mine"));
        let contents: Vec<&str> = tree.iter().map(|(.., content)| content.as_str()).collect();
        for content in ["1", "2", "3", "4", "5", "p"] {
            assert!(contents.contains(&content), "{tree:?}");
        }
    }
}

#[test]
fn worktrees_submodules_sparse_checkouts_and_conflicts() {
    let lab = Lab::new();
    let module = lab.root.path().join("module");
    fs::create_dir(&module).expect("a folder");
    git_in(&module, &["init", "--quiet"]);
    let commit_module = || {
        git_in(
            &module,
            &[
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@example.com",
                "commit",
                "--quiet",
                "--allow-empty",
                "--message=x",
            ],
        );
        git_in(&module, &["rev-parse", "HEAD"])
    };
    let first = commit_module();
    lab.write("in/a", "a");
    lab.write("out/b", "b");
    lab.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        module.to_str().expect("text"),
        "sub",
    ]);
    lab.commit();
    let submodule = |commit: &str| lab.tree(commit).into_iter().find(|(path, ..)| path == "sub").map(|(.., id)| id);
    assert_eq!(submodule(&lab.take()), Some(first));
    git_in(
        &lab.top.join("sub"),
        &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--allow-empty", "--message=y"],
    );
    let moved = git_in(&lab.top.join("sub"), &["rev-parse", "HEAD"]);
    assert_eq!(submodule(&lab.take()), Some(moved));

    // Each working tree has its own files, in one repository.
    let other = lab.root.path().canonicalize().expect("a path").join("other");
    lab.git(&["worktree", "add", "--quiet", other.to_str().expect("text")]);
    fs::write(other.join("in/a"), "in the worktree").expect("a file");
    assert!(lab.files(&lab.take_in(&other)).contains(&("in/a".into(), "in the worktree".into())));
    assert!(lab.files(&lab.take()).contains(&("in/a".into(), "a".into())));

    // What a sparse checkout leaves out is as it is in the commit.
    git_in(&other, &["checkout", "--quiet", "--", "."]);
    git_in(&other, &["sparse-checkout", "set", "in"]);
    assert!(!other.join("out/b").exists());
    for mode in ["--no-sparse-index", "--sparse-index"] {
        git_in(&other, &["sparse-checkout", "reapply", mode]);
        let sparse = lab.files(&lab.take_in(&other));
        assert!(sparse.contains(&("out/b".into(), "b".into())) && sparse.contains(&("in/a".into(), "a".into())));
    }

    // In the middle of a merge, files are as they are on disk.
    lab.git(&["switch", "--quiet", "--create", "one"]);
    lab.write("in/a", "one\n");
    lab.git(&["commit", "--quiet", "--all", "--message=one"]);
    lab.git(&["switch", "--quiet", "--create", "two", "HEAD~1"]);
    lab.write("in/a", "two\n");
    lab.git(&["commit", "--quiet", "--all", "--message=two"]);
    assert!(!command(&lab.top, &["merge", "one"]).status.success());
    let conflict = fs::read_to_string(lab.top.join("in/a")).expect("a file");
    assert!(conflict.contains("<<<<<<<"));
    assert!(lab.files(&lab.take()).contains(&("in/a".into(), conflict)));
}

#[test]
fn git_keeps_snapshots_and_does_not_push_them() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.commit();
    lab.write("a", "only in the snapshot");
    let first = lab.take();
    lab.write("a", "1");
    let remote = lab.root.path().join("remote");
    fs::create_dir(&remote).expect("a folder");
    git_in(&remote, &["init", "--quiet", "--bare"]);
    lab.git(&["push", "--quiet", remote.to_str().expect("text"), "HEAD"]);
    assert!(!git_in(&remote, &["for-each-ref"]).contains("tine"));
    lab.git(&["-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now"]);
    assert_eq!(lab.files(&first), pairs(&[("a", "only in the snapshot")]));

    // The objects of deleted snapshots may be gone, although they were seen.
    for _ in 0..2 {
        lab.take();
    }
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/tine"]);
    Git::new("git".into())
        .delete_refs(&lab.top, &refs.lines().map(str::to_owned).collect::<Vec<_>>())
        .expect("deleted");
    lab.write("b", "2");
    lab.take();
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/tine"]);
    Git::new("git".into()).delete_refs(&lab.top, &[refs]).expect("deleted");
    lab.git(&["gc", "--quiet", "--prune=now"]);
    let again = lab.take();
    assert_eq!(lab.files(&again), pairs(&[("a", "1"), ("b", "2")]));
    fs::remove_file(lab.top.join("b")).expect("removed");
    assert_eq!(lab.files(&lab.take()), pairs(&[("a", "1")]));
}

#[test]
fn many_files_that_git_has_are_not_written_again() {
    let lab = Lab::new();
    for number in 0..200 {
        lab.write(&format!("d{}/f{number}", number % 7), &format!("file {number}\n"));
    }
    lab.commit();
    let count = || lab.git(&["count-objects"]);
    let before = count();
    let commit = lab.take();
    assert_eq!(lab.git(&["rev-parse", &format!("{commit}^{{tree}}")]), lab.git(&["rev-parse", "HEAD^{tree}"]));
    let objects = |text: &str| text.split(' ').next().and_then(|count| count.parse::<u32>().ok()).expect("a number");
    assert_eq!(objects(&count()), objects(&before) + 1);
}
