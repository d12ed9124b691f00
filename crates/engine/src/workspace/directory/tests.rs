//! Copies of whole directories.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::progress::Quiet;

fn git() -> Git {
    Git::new("git".into())
}

fn run(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    for (key, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
        command.env(key, value);
    }
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.invalid");
    }
    let output = command.arg("-C").arg(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository with one commit.
fn repository(path: &Path) {
    fs::create_dir_all(path).unwrap();
    run(path, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(path.join("file"), "first\n").unwrap();
    run(path, &["add", "."]);
    run(path, &["commit", "--quiet", "--message=first"]);
}

/// Everything that a copy keeps of a tree: mode, kind, time, and size or where a link leads.
fn looks(top: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    fn collect(top: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, metadata) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let content = match () {
                () if metadata.is_symlink() => fs::read_link(&path).unwrap().as_os_str().as_bytes().to_owned(),
                () if metadata.is_file() => fs::read(&path).unwrap(),
                () => Vec::new(),
            };
            let name = path.strip_prefix(top).unwrap().to_owned();
            all.insert(name, (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), content));
            if metadata.is_dir() {
                collect(top, &path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    let metadata = top.metadata().unwrap();
    all.insert(PathBuf::new(), (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), Vec::new()));
    collect(top, top, &mut all);
    all
}

/// A copy, written and put in place.
fn copied(source: &Path, target: &Path) -> Result<DirectoryCopy> {
    let mut copy = DirectoryCopy::plan(&source.canonicalize().unwrap(), target)?;
    copy.write(Some(&git()), &Quiet)?;
    copy.put_in_place()?;
    Ok(copy)
}

#[test]
fn everything_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let source = top.join("source");
    fs::create_dir_all(source.join("a/b/empty")).unwrap();
    fs::create_dir_all(source.join("read-only")).unwrap();
    let names: [&[u8]; 7] =
        [b"plain", b"a/with space", b"a/new\nline", b"a/b/\xff\xfe", b"-rf", b"read-only/x", b"a/\xe2\x80\xae"];
    for (number, name) in names.iter().enumerate() {
        let path = source.join(OsStr::from_bytes(name));
        fs::write(&path, vec![b'x'; number * 70_000]).unwrap();
        let mode = [0o644, 0o755, 0o4755, 0o600, 0o2750, 0o444, 0o000][number];
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(
            FileTimes::new().set_modified(UNIX_EPOCH + Duration::new(1_000_000_000 + number as u64, 123_456_789)),
        )
        .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    if rustix::process::geteuid().as_raw() != 0 {
        fs::set_permissions(source.join(OsStr::from_bytes(names[6])), Permissions::from_mode(0o400)).unwrap();
    }
    fs::hard_link(source.join("plain"), source.join("a/b/other name of plain")).unwrap();
    fs::hard_link(source.join("plain"), source.join("third")).unwrap();
    symlink("plain", source.join("relative")).unwrap();
    symlink("../nowhere", source.join("a/dangling")).unwrap();
    symlink(source.join("plain"), source.join("absolute")).unwrap();
    symlink("b", source.join("a/folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(source.join("a/pipe")).status().unwrap().success());
    for (path, mode) in [("a/b/empty", 0o700), ("read-only", 0o555), ("a", 0o1777)] {
        let open = File::open(source.join(path)).unwrap();
        open.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::new(900_000_000, 5))).unwrap();
        open.set_permissions(Permissions::from_mode(mode)).unwrap();
    }
    let before = looks(&source);

    let mut copy = DirectoryCopy::plan(&source, &top.join("target")).unwrap();
    let told = copy.write(None, &Quiet).unwrap();
    assert!(!copy.path.exists() && copy.unfinished.exists(), "nothing has its final name before it is complete");
    copy.put_in_place().unwrap();
    assert_eq!((told.files, told.special, told.vanished), (9, 2, 0));
    let mut expected = before.clone();
    expected.retain(|path, _| !path.ends_with("socket") && !path.ends_with("pipe"));
    assert_eq!(looks(&copy.path), expected);
    assert_eq!(looks(&source), before);
    let inode = |name: &str| copy.path.join(name).metadata().unwrap().ino();
    assert!(inode("plain") == inode("third") && inode("plain") == inode("a/b/other name of plain"));
    assert_ne!(inode("plain"), source.join("plain").metadata().unwrap().ino());
    assert!(copy.is_untouched());
    copy.remove();
    assert!(!copy.path.exists() && !copy.unfinished.exists());
}

#[test]
fn a_target_is_new_or_empty_and_not_inside_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let source = top.join("source");
    fs::create_dir_all(source.join("inner")).unwrap();
    fs::create_dir_all(top.join("full/inner")).unwrap();
    fs::create_dir_all(top.join("empty")).unwrap();
    fs::write(top.join("file"), "").unwrap();
    symlink(&source, top.join("way in")).unwrap();
    symlink("nowhere", top.join("dangling")).unwrap();
    for (target, kind) in [
        ("source", "into_itself"),
        ("source/new", "into_itself"),
        ("source/inner/deeper/new", "into_itself"),
        ("way in/new", "into_itself"),
        ("full/../source/new", "into_itself"),
        ("missing/../source/new", "into_itself"),
        ("missing/../way in/new", "into_itself"),
        ("full", "target_exists"),
        ("file", "target_exists"),
        ("dangling", "target_exists"),
        (".", "target_exists"),
        ("/", "target_exists"),
    ] {
        let refused = DirectoryCopy::plan(&source, &top.join(target)).map(|copy| copy.path).unwrap_err();
        assert_eq!(refused.advice().kind, kind, "{target}: {refused}");
    }
    symlink("full", top.join("way")).unwrap();
    assert_eq!(new_place(&top.join("missing/../way/./new/")).unwrap(), top.join("full/new"));
    let bytes = top.join(OsStr::from_bytes(b"\xff"));
    assert_eq!(DirectoryCopy::plan(&source, &bytes).unwrap_err().advice().kind, "bad_target");

    let copy = copied(&source, &top.join("empty")).unwrap();
    assert!(copy.was_there && top.join("empty/inner").exists());
    copy.remove();
    assert_eq!(fs::read_dir(top.join("empty")).unwrap().count(), 0, "an empty directory is given back empty");

    let copy = copied(&source, &top.join("x/y/z")).unwrap();
    assert!(top.join("x/y/z/inner").exists());
    copy.remove();
    assert!(!top.join("x").exists(), "what was made above it goes with it");
}

#[test]
fn what_somebody_else_put_there_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    fs::create_dir(top.join("source")).unwrap();
    let mut copy = DirectoryCopy::plan(&top.join("source"), &top.join("target")).unwrap();
    let put = || {
        fs::create_dir_all(top.join("target")).unwrap();
        fs::write(top.join("target/precious"), "").unwrap();
    };
    put();
    copy.remove();
    assert!(top.join("target/precious").exists(), "before anything was begun");
    copy.write(None, &Quiet).unwrap();
    assert_eq!(copy.put_in_place().unwrap_err().advice().kind, "target_exists");
    copy.remove();
    assert!(top.join("target/precious").exists(), "when it came while we copied");
    assert!(!copy.unfinished.exists());
}

#[test]
fn a_change_in_the_copy_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let source = top.join("source");
    repository(&source);
    fs::create_dir(source.join("empty")).unwrap();
    symlink("file", source.join("link")).unwrap();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change; 9] = [
        ("nothing", &|_| ()),
        ("status", &|copy| drop(run(copy, &["status"]))),
        ("content", &|copy| fs::write(copy.join("file"), "other\n").unwrap()),
        ("new", &|copy| fs::write(copy.join("empty/new"), "").unwrap()),
        ("gone", &|copy| fs::remove_dir(copy.join("empty")).unwrap()),
        ("mode", &|copy| fs::set_permissions(copy.join("file"), Permissions::from_mode(0o711)).unwrap()),
        ("link", &|copy| {
            fs::remove_file(copy.join("link")).unwrap();
            symlink("else", copy.join("link")).unwrap();
        }),
        ("commit", &|copy| drop(run(copy, &["commit", "--quiet", "--allow-empty", "--message=x"]))),
        ("branch", &|copy| drop(run(copy, &["branch", "other"]))),
    ];
    for (number, (what, change)) in changes.iter().enumerate() {
        let copy = copied(&source, &top.join(what)).unwrap();
        change(&copy.path);
        assert_eq!(copy.is_untouched(), number < 2, "{what}");
    }
}

#[test]
fn files_that_go_away_are_counted_and_no_reason_to_fail() {
    struct Remover(Mutex<bool>, PathBuf);
    impl CopyProgress for Remover {
        fn copied(&self, _files: u64, _bytes: u64) {
            // All workers wait here until the first one has removed everything.
            let mut done = self.0.lock().unwrap();
            if !std::mem::replace(&mut done, true) {
                fs::remove_dir_all(&self.1).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let source = top.join("source");
    for number in 0..500 {
        fs::create_dir_all(source.join("inner").join(format!("{}", number % 50))).unwrap();
        fs::write(source.join(format!("inner/{}/{number}", number % 50)), "x").unwrap();
    }
    let told = copy(&source, &top.join("copy"), &Remover(Mutex::new(false), source.join("inner"))).unwrap();
    assert!(told.vanished > 0 && told.files < 500, "{told:?}");
}

#[test]
fn a_copied_worktree_has_a_repository_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let (main, tree) = (top.join("main"), top.join("tree"));
    repository(&main);
    run(&main, &["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    run(&main, &["worktree", "add", "--quiet", "-b", "inner", tree.join("inner").to_str().unwrap()]);
    fs::write(tree.join("file"), "staged\n").unwrap();
    run(&tree, &["add", "file"]);
    fs::write(tree.join("file"), "not staged\n").unwrap();
    let state = |directory: &Path| {
        ["status --porcelain=v2 --branch", "diff --cached", "for-each-ref", "worktree list"]
            .map(|words| run(directory, &words.split(' ').collect::<Vec<_>>()))
    };
    let before = [state(&main), state(&tree), state(&tree.join("inner"))];
    let copy = copied(&tree, &top.join("copy")).unwrap();
    assert!(copy.path.join(".git").is_dir());
    assert_eq!(state(&copy.path)[..3], before[1][..3], "branch, staged, not staged, and all references");
    assert_eq!(run(&copy.path, &["rev-parse", "--show-toplevel"]), copy.path.to_str().unwrap());
    assert_eq!(run(&copy.path, &["worktree", "list"]).lines().count(), 1);
    // Nothing that is done in the copy reaches the source.
    for directory in [copy.path.clone(), copy.path.join("inner")] {
        fs::write(directory.join("new"), "").unwrap();
        run(&directory, &["add", "--all"]);
        run(&directory, &["commit", "--quiet", "--message=in the copy"]);
        run(&directory, &["switch", "--quiet", "-c", "elsewhere"]);
        run(&directory, &["fsck", "--strict"]);
    }
    assert_eq!([state(&main), state(&tree), state(&tree.join("inner"))], before);
}

#[test]
fn worktrees_inside_of_a_copied_repository_belong_to_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let main = top.join("main");
    repository(&main);
    run(&main, &["worktree", "add", "--quiet", "-b", "outer", top.join("outer").to_str().unwrap()]);
    run(&main, &["worktree", "add", "--quiet", "-b", "inner", main.join("trees/inner").to_str().unwrap()]);
    let refs = run(&main, &["for-each-ref"]);
    let copy = copied(&main, &top.join("copy")).unwrap();
    let list = run(&copy.path, &["worktree", "list"]);
    assert!(list.contains("/copy/trees/inner") && !list.contains("/outer") && !list.contains("/main"), "{list}");
    let inner = copy.path.join("trees/inner");
    run(&inner, &["commit", "--quiet", "--allow-empty", "--message=in the copy"]);
    run(&copy.path, &["switch", "--quiet", "outer"]);
    assert_eq!(run(&main, &["for-each-ref"]), refs);
    assert_ne!(run(&copy.path, &["for-each-ref"]), refs);
}

#[test]
fn a_copied_submodule_has_a_repository_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let (main, library) = (top.join("main"), top.join("library"));
    repository(&main);
    repository(&library);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.to_str().unwrap(), "sub"];
    run(&main, &add);
    run(&main, &["commit", "--quiet", "--message=sub"]);
    let refs = run(&main.join("sub"), &["for-each-ref"]);
    // The whole, in which the submodule's folder lies, and the submodule alone.
    for (source, sub) in [(main.clone(), "sub"), (main.join("sub"), "")] {
        let copy = copied(&source, &top.join(format!("copy-{sub}"))).unwrap();
        let sub = if sub.is_empty() { copy.path.clone() } else { copy.path.join(sub) };
        assert_eq!(run(&sub, &["rev-parse", "--show-toplevel"]), sub.to_str().unwrap());
        run(&sub, &["commit", "--quiet", "--allow-empty", "--message=in the copy"]);
        run(&sub, &["branch", "new"]);
        assert_eq!(run(&main.join("sub"), &["for-each-ref"]), refs);
    }
    assert_eq!(run(&top.join("copy-sub"), &["status", "--porcelain"]), " M sub");
}

#[test]
fn holes_stay_holes() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    let sizes = [("end", 1 << 32), ("middle", (3 << 30) + 5), ("none", 100)];
    for (name, size) in sizes {
        let file = File::create(source.join(name)).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"middle", size / 2).unwrap();
        if name != "end" {
            file.write_all_at(b"end", size - 3).unwrap();
        }
        file.set_len(size).unwrap();
    }
    File::create(source.join("hole")).unwrap().set_len(1 << 32).unwrap();
    copy(&source, &target, &Quiet).unwrap();
    for (name, size) in sizes.into_iter().chain([("hole", 1 << 32)]) {
        let [before, after] = [&source, &target].map(|folder| File::open(folder.join(name)).unwrap());
        let metadata = after.metadata().unwrap();
        assert_eq!(metadata.len(), size, "{name}");
        assert!(metadata.blocks() < 1000, "{name} takes {} blocks", metadata.blocks());
        for at in [0, 10, size / 2 - 5, size / 2, size - 10] {
            let mut buffers = [[0; 10]; 2];
            before.read_exact_at(&mut buffers[0], at).unwrap();
            after.read_exact_at(&mut buffers[1], at).unwrap();
            assert_eq!(buffers[0], buffers[1], "{name} at {at}");
        }
    }
}
