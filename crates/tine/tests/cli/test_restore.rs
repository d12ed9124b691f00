//! `tine restore`: files as they were, and back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::recorded::Recorded;

/// Every file below a directory: its mode, and its content or target.
fn files(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().expect("metadata");
            let content = if metadata.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                if entry.file_name() != ".git" {
                    folders.push(path);
                }
                continue;
            } else {
                fs::read(&path).expect("a file")
            };
            found.insert(
                path.strip_prefix(directory).expect("below").to_owned(),
                (metadata.permissions().mode(), content),
            );
        }
    }
    found
}

/// Two turns that differ in every way that files can.
fn two_turns() -> (Recorded, BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    let mut recorded = Recorded::new();
    recorded.write("changed", "1\r\n");
    recorded.write("run", "#!/bin/sh\n");
    fs::set_permissions(recorded.top().join("run"), fs::Permissions::from_mode(0o755)).expect("a mode");
    recorded.write("gone", "g");
    recorded.write("turns/into/folder", "f");
    recorded.write("file", "f");
    symlink("changed", recorded.top().join("link")).expect("a link");
    recorded.write(".gitignore", "built\n");
    recorded.write("built", "ignored");
    recorded.turn();
    let then = files(recorded.top());
    recorded.write("changed", "2");
    fs::set_permissions(recorded.top().join("changed"), fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::set_permissions(recorded.top().join("run"), fs::Permissions::from_mode(0o644)).expect("a mode");
    for path in ["gone", "link", "file"] {
        fs::remove_file(recorded.top().join(path)).expect("removed");
    }
    fs::remove_dir_all(recorded.top().join("turns")).expect("removed");
    recorded.write("turns", "a file now");
    recorded.write("file/below", "a folder now");
    recorded.write("link", "no link");
    recorded.write("new", "n");
    recorded.write("built", "ignored, but new");
    recorded.write(".env", "TOKEN=1");
    recorded.turn();
    (recorded, then)
}

#[test]
fn the_working_tree_is_restored_and_the_undo_is_exact() {
    let (recorded, then) = two_turns();
    let world = &recorded.world;
    let now = files(recorded.top());
    let index = fs::read(recorded.top().join(".git/index")).expect("an index");
    let plan = world.json(["restore", "work@1", "--to", ".", "--plan", "--json"]);
    assert_eq!(files(recorded.top()), now);
    let count =
        |change: &str| plan["files"].as_array().expect("files").iter().filter(|file| file["change"] == change).count();
    assert_eq!((count("create"), count("replace"), count("remove")), (3, 3, 3), "{plan:#}");
    let refused = world.run(["restore", "work@1", "--to", "."]);
    assert!(refused.code == 1 && refused.err.contains("pass `--yes`"), "{}", refused.whole());
    assert_eq!(files(recorded.top()), now);

    let done = world.run(["restore", "work@1", "--to", ".", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.whole());
    let mut expected = then;
    // Ignored files and secrets stay, and a file keeps its permissions.
    for path in [".env", "built"] {
        expected.insert(path.into(), now[Path::new(path)].clone());
    }
    expected.get_mut(Path::new("changed")).expect("a file").0 = 0o100_600;
    assert_eq!(files(recorded.top()), expected);
    assert_eq!(fs::read(recorded.top().join(".git/index")).expect("an index"), index);
    assert!(world.run(["log"]).out.contains("restore work@1"));
    assert!(world.run(["restore", "work@1", "--to", "."]).err.contains("is already in the state of work@1"));

    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(files(recorded.top()), now);
    assert_eq!(fs::read_dir(world.sandbox.root().join("data/tine/trash")).expect("the trash").count(), 0);
}

#[test]
fn paths_are_restored_alone_and_changes_since_are_kept() {
    let (recorded, _) = two_turns();
    let world = &recorded.world;
    assert_eq!(world.run(["restore", "work@1", "changed", "gone", "--to", ".", "--yes"]).code, 0);
    assert_eq!(recorded.read("changed").as_deref(), Some("1\r\n"));
    assert_eq!((recorded.read("gone").as_deref(), recorded.read("new").as_deref()), (Some("g"), Some("n")));
    recorded.write("gone", "mine");
    let refused = world.run(["undo"]);
    assert!(refused.code == 1 && refused.err.contains("has changed since operation"), "{}", refused.whole());
    assert_eq!((recorded.read("gone").as_deref(), recorded.read("changed").as_deref()), (Some("mine"), Some("1\r\n")));
    assert_eq!(world.run(["undo", "--force"]).code, 0);
    assert_eq!((recorded.read("gone").as_deref(), recorded.read("changed").as_deref()), (None, Some("2")));
    let unknown = world.run(["restore", "work@1", "nowhere", "--to", "."]);
    assert!(unknown.code == 1 && unknown.err.contains("`nowhere` did not exist at that turn"), "{}", unknown.whole());
}

#[test]
fn another_directory_gets_the_files_and_keeps_its_own() {
    let (recorded, then) = two_turns();
    let world = &recorded.world;
    let target = world.sandbox.root().join("work/then/deep");
    let done = world.run(["restore", "work@1", "--to", target.to_str().expect("text")]);
    assert_eq!(done.code, 0, "{}", done.whole());
    let mut expected = then;
    expected.remove(Path::new("built"));
    assert_eq!(files(&target), expected);
    fs::write(target.join("own"), "o").expect("a file");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(files(&target).keys().collect::<Vec<_>>(), [Path::new("own")]);
    // What is there is replaced only on request.
    fs::write(target.join("changed"), "other").expect("a file");
    let refused = world.run(["restore", "work@1", "--to", target.to_str().expect("text")]);
    assert!(refused.code == 1, "{}", refused.whole());
    assert_eq!(fs::read_to_string(target.join("changed")).expect("a file"), "other");
}

#[test]
fn a_tree_cannot_write_outside_of_the_directory() {
    let (recorded, _) = two_turns();
    let world = &recorded.world;
    // A link where a folder belongs leads elsewhere.
    let outside = world.sandbox.directory("outside");
    let target = world.sandbox.directory("target");
    symlink(&outside, target.join("turns")).expect("a link");
    let done = world.run(["restore", "work@1", "--to", target.to_str().expect("text"), "--yes"]);
    assert_eq!(done.code, 0, "{}", done.whole());
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
    assert_eq!(fs::read_to_string(target.join("turns/into/folder")).expect("a file"), "f");
    let undone = world.run(["undo"]);
    assert_eq!(undone.code, 0, "{}", undone.whole());
    assert_eq!(fs::read_link(target.join("turns")).expect("a link"), outside);
    // A repository that came from elsewhere may have any snapshot.
    let blob = recorded.git(["rev-parse", "HEAD:README.md"]);
    let inner = recorded.world.sandbox.root().join("tree");
    fs::write(&inner, format!("100644 blob {blob}\tconfig\n")).expect("a list");
    let mktree = |list: &str| {
        fs::write(&inner, list).expect("a list");
        let output = std::process::Command::new("sh")
            .current_dir(recorded.top())
            .args(["-c", "git mktree < \"$1\"", "sh", inner.to_str().expect("text")])
            .output()
            .expect("git");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let folder = mktree(&format!("100644 blob {blob}\tconfig\n"));
    let tree = mktree(&format!("040000 tree {folder}\t.git\n040000 tree {folder}\t..\n100644 blob {blob}\tfine\n"));
    let name = recorded.git(["for-each-ref", "--format=%(refname)", "refs/tine"]);
    let name = name.lines().next().expect("a ref");
    let message = recorded.git(["log", "-1", "--format=%B", name]);
    let commit = recorded.git(["commit-tree", &tree, "-m", &message]);
    recorded.git(["update-ref", name, &commit]);
    let fresh = world.sandbox.root().join("work/fresh");
    let done = world.run(["restore", "work@1", "--to", fresh.to_str().expect("text")]);
    assert_eq!(done.code, 0, "{}", done.whole());
    assert_eq!(files(&fresh).keys().collect::<Vec<_>>(), [Path::new("fine")]);
    assert!(!fresh.join(".git").exists() && !fresh.with_file_name("config").exists());
}
