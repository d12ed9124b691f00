//! `tine fork --carry`: what a worktree gets of the uncommitted changes.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use testkit::build::Random;

use super::test_fork_workspace::{everything, fork, git, kind, names};
use crate::world::{LOGIN, World};

/// Names that a careless program trips over, some of them folders of others.
const NAMES: [&[u8]; 15] = [
    b"plain",
    b"with space",
    b"new\nline",
    b"b\xffyte",
    b"-dash",
    b"*star[",
    b":colon",
    b"\"quote\"",
    b"dir/inner",
    b"dir/sub/deep",
    b"swap",
    b"swap/inside",
    b"swap/inside/deeper",
    b"tab\there",
    b"crlf.txt",
];

/// Makes one path something else: a file, a program, a link, nothing.
fn scribble(random: &mut Random, tree: &Path, name: &[u8]) {
    let path = tree.join(OsStr::from_bytes(name));
    let sort = random.below(7);
    for above in path.ancestors().skip(1).take_while(|above| *above != tree) {
        if above.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(above).unwrap();
        }
    }
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_file(&path);
    if sort == 0 {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let number = random.below(5);
    match sort {
        1 => symlink(format!("to {number}"), &path).unwrap(),
        2 => fs::write(&path, "").unwrap(),
        3 => fs::write(&path, [0, 255, 13, 10, u8::try_from(number).unwrap()]).unwrap(),
        4 => fs::write(&path, format!("lines\r\nof {number}\r\n")).unwrap(),
        _ => fs::write(&path, format!("lines\nof {number}\n")).unwrap(),
    }
    if sort == 5 {
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
}

/// What git says about a working tree.
fn told_by_git(world: &World, tree: &Path) -> [Vec<u8>; 5] {
    [
        git(world, tree, ["status", "--porcelain=v2", "-z", "--untracked-files=all"]),
        git(world, tree, ["diff", "--binary"]),
        git(world, tree, ["diff", "--binary", "--cached"]),
        git(world, tree, ["ls-files", "--stage", "-v", "-z"]),
        git(world, tree, ["stash", "list"]),
    ]
}

#[test]
fn what_is_not_committed_is_carried_exactly() {
    let world = World::new();
    let shop = &world.shop;
    // The session's own branch, of which nothing has to be told.
    git(&world, shop, ["switch", "--quiet", "--create", "fix/login"]);
    fs::write(shop.join(".gitignore"), "ignored\n").unwrap();
    fs::write(shop.join("ignored"), "").unwrap();
    fs::write(shop.join(".gitattributes"), "crlf.txt text eol=crlf\n").unwrap();
    // The ways in which git can keep an index.
    const WAYS: [&str; 5] = [
        "core.bigFileThreshold=1",
        "core.splitIndex=true",
        "core.checkStat=minimal",
        "feature.manyFiles=true",
        "index.version=4",
    ];
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let (key, value) = WAYS[seed as usize % WAYS.len()].split_once('=').unwrap();
        git(&world, shop, ["config", key, value]);
        git(&world, shop, ["update-index", "--force-write-index"]);
        for name in NAMES.iter().filter(|_| seed > 0) {
            scribble(&mut random, shop, name);
        }
        git(&world, shop, ["add", "--all"]);
        git(&world, shop, ["commit", "--quiet", "--allow-empty", "--message", "more"]);
        fs::write(shop.join("stashed"), "").unwrap();
        git(&world, shop, ["stash", "--quiet", "--include-untracked"]);
        for name in NAMES.iter().filter(|_| seed > 0) {
            if random.below(2) == 0 {
                scribble(&mut random, shop, name);
            }
        }
        git(&world, shop, ["add", "--all"]);
        for name in NAMES.iter().filter(|_| seed > 0) {
            if random.below(2) == 0 {
                scribble(&mut random, shop, name);
            }
        }
        fs::write(shop.join(format!("intended {seed}")), "later").unwrap();
        git(&world, shop, ["add", "--intent-to-add", &format!("intended {seed}")]);
        fs::write(shop.join("hidden"), "committed").unwrap();
        git(&world, shop, ["add", "hidden"]);
        git(&world, shop, ["update-index", "--assume-unchanged", "hidden"]);
        fs::write(shop.join("hidden"), "mine alone").unwrap();
        let (before, files) = (told_by_git(&world, shop), files_of(shop));
        // A file that only looks changed: git would note in the index that it is not.
        let touched = fs::File::open(shop.join("README.md")).unwrap();
        touched.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seed)).unwrap();
        let index = fs::read(shop.join(".git/index")).unwrap();

        let made = fork(&world, &["carried", "--worktree", "--carry"]);
        let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
        assert_eq!(made["warnings"], Value::Array(Vec::new()));
        assert_eq!(fs::read(shop.join(".git/index")).unwrap(), index, "the source's index");
        assert_eq!(files_of(shop), files, "the source's files");
        assert_eq!(told_by_git(&world, shop), before, "the source");
        for (found, expected) in told_by_git(&world, &tree).iter().zip(&before) {
            assert_eq!(String::from_utf8_lossy(found), String::from_utf8_lossy(expected), "seed {seed}");
        }
        let mut expected = files;
        expected.remove(Path::new("ignored"));
        assert_eq!(files_of(&tree), expected, "seed {seed}");

        // A change on top of what was carried is seen, and nothing else.
        git(&world, &tree, ["status"]);
        let path = tree.join(format!("intended {seed}"));
        fs::write(&path, "LATER").unwrap();
        assert_eq!(world.run(["undo"]).code, 1);
        fs::write(&path, "later").unwrap();
        git(&world, &tree, ["add", "--all"]);
        assert_eq!(world.run(["undo"]).code, 1, "what is staged is not what was carried");
        assert_eq!(world.run(["undo", "--force"]).code, 0);
        fork(&world, &["carried", "--worktree", "--carry"]);
        assert_eq!(world.run(["undo"]).code, 0);
        assert!(!tree.exists());
        git(&world, shop, ["update-index", "--no-assume-unchanged", "hidden"]);
        git(&world, shop, ["config", "--unset", key]);
    }
}

/// All files of a working tree but git's own. Folders do not count: git does not know empty ones.
fn files_of(tree: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = everything(tree);
    all.retain(|path, _| !path.starts_with(".git") && (tree.join(path).is_symlink() || !tree.join(path).is_dir()));
    all
}

#[test]
fn nothing_to_carry_is_nothing() {
    let world = World::new();
    let made = fork(&world, &["clean", "-w", "--carry"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    assert_eq!(git(&world, &tree, ["status", "--porcelain"]), b"");
    assert_eq!(world.run(["undo"]).code, 0);
}

/// Of a sparse checkout only a part is there, and only that is carried.
#[test]
fn a_sparse_checkout_stays_sparse() {
    let world = World::new();
    let shop = &world.shop;
    for path in ["src/a", "src/b", "docs/a", "docs/b"] {
        world.sandbox.write(shop.join(path), path);
    }
    git(&world, shop, ["add", "--all"]);
    git(&world, shop, ["commit", "--quiet", "--message", "more"]);
    for sparse_index in ["--no-sparse-index", "--sparse-index"] {
        git(&world, shop, ["sparse-checkout", "set", "--cone", sparse_index, "src"]);
        fs::write(shop.join("src/a"), "changed").unwrap();
        fs::remove_file(shop.join("src/b")).unwrap();
        let (before, files) = (told_by_git(&world, shop), files_of(shop));
        assert!(!shop.join("docs").exists());
        let made = fork(&world, &["sparse", "-w", "--carry"]);
        let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
        assert_eq!((told_by_git(&world, &tree), files_of(&tree)), (before, files));
        assert_eq!(world.run(["undo"]).code, 0);
        git(&world, shop, ["checkout", "--quiet", "--", "src"]);
    }
}

#[test]
fn unmerged_files_are_not_carried() {
    let world = World::new();
    let shop = &world.shop;
    git(&world, shop, ["switch", "--quiet", "--create", "fix/login"]);
    fs::write(shop.join("README.md"), "stashed\n").unwrap();
    git(&world, shop, ["stash", "--quiet"]);
    fs::write(shop.join("README.md"), "committed\n").unwrap();
    git(&world, shop, ["commit", "--quiet", "--all", "--message", "other"]);
    assert!(!world.sandbox.command("git").current_dir(shop).args(["stash", "pop"]).output().unwrap().status.success());
    assert_eq!(kind(&world, &["-w", "--carry"]), "unmerged");
    assert_eq!(kind(&world, &["-w", "--carry", "--plan"]), "unmerged");
    assert_eq!(fork(&world, &["-w", "--yes"])["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn repositories_inside_of_the_source_are_carried_unless_they_are_worktrees() {
    let world = World::new();
    let shop = &world.shop;
    world.sandbox.git(shop, ["worktree", "add", "--quiet", "-b", "other", "trees/other"]);
    world.sandbox.git(world.sandbox.work(), ["clone", "--quiet", "blog", "shop/nested"]);
    let output = world.run(["fork", LOGIN, "carried", "-w", "--carry"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.err.contains("`trees/other/` is a separate worktree and was not copied"), "{}", output.err);
    let tree = shop.with_file_name("shop.worktrees").join("carried");
    assert_eq!(git(&world, &tree.join("nested"), ["status", "--porcelain"]), b"");
    assert!(!tree.join("trees").exists());
    assert_eq!(world.run(["undo"]).code, 0);
}

/// A library with a library in it, as a submodule of the shop.
fn with_submodules(world: &World) {
    let work = world.sandbox.work();
    let (inner, outer) = (world.sandbox.project("inner lib"), world.sandbox.project("outer"));
    let add = |tree: &Path, what: &Path, name: &str| {
        let what = what.to_str().unwrap();
        world.sandbox.git(tree, ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", what, name]);
        world.sandbox.git(tree, ["commit", "--quiet", "--message", "submodule"]);
    };
    add(&outer, &inner, "inner lib");
    add(&world.shop, &outer, "libs/outer");
    add(&world.shop, &world.blog, "not there");
    let update = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive"];
    world.sandbox.git(&world.shop, update);
    world.sandbox.git(&world.shop, ["submodule", "--quiet", "deinit", "not there"]);
    // From here on the addresses lead nowhere, as they do without a network.
    for gone in ["inner lib", "outer"] {
        fs::rename(work.join(gone), work.join(format!("{gone} gone"))).unwrap();
    }
}

#[test]
fn submodules_are_made_from_those_of_the_source() {
    let world = World::new();
    with_submodules(&world);
    let config = fs::read(world.shop.join(".git/config")).unwrap();
    let made = fork(&world, &["subs", "-w"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    assert_eq!(fs::read_to_string(tree.join("libs/outer/inner lib/README.md")).unwrap(), "# inner lib\n");
    assert_eq!(names(&tree.join("not there")), [] as [&str; 0], "only those that the source has");
    assert_eq!(git(&world, &tree, ["status", "--porcelain"]), b"");
    let origin = |tree: &Path| git(&world, &tree.join("libs/outer"), ["config", "remote.origin.url"]);
    assert_eq!(origin(&tree), origin(&world.shop), "it fetches from where the source's does");
    assert_eq!(fs::read(world.shop.join(".git/config")).unwrap(), config);
    assert!(!fs::read_to_string(tree.join("libs/outer/.git")).unwrap().contains("shop/.git/modules"));
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.exists());
    assert_eq!(git(&world, &world.shop, ["status", "--porcelain"]), b"");
}

#[test]
fn changes_in_submodules_are_carried() {
    let world = World::new();
    with_submodules(&world);
    let sub = world.shop.join("libs/outer");
    fs::write(sub.join("committed"), "here alone").unwrap();
    git(&world, &sub, ["add", "committed"]);
    git(&world, &sub, ["commit", "--quiet", "--message", "here alone"]);
    git(&world, &sub, ["checkout", "--quiet", "--detach"]);
    fs::write(sub.join("README.md"), "changed\n").unwrap();
    fs::write(sub.join("inner lib/new"), "").unwrap();
    let state = |tree: &Path| {
        [tree.to_owned(), tree.join("libs/outer"), tree.join("libs/outer/inner lib")]
            .map(|tree| (told_by_git(&world, &tree), git(&world, &tree, ["submodule", "status"])))
    };
    let before = state(&world.shop);
    let made = fork(&world, &["subs", "-w", "--carry"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    assert_eq!(state(&world.shop), before);
    for ((found, _), (expected, _)) in state(&tree).iter().zip(&before) {
        assert_eq!(
            found.each_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            expected.each_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        );
    }
    fs::write(tree.join("libs/outer/README.md"), "changes\n").unwrap();
    assert_eq!(world.run(["undo"]).code, 1);
    fs::write(tree.join("libs/outer/README.md"), "changed\n").unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.exists());
}
