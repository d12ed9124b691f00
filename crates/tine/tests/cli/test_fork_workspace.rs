//! Where a fork works: copies of directories, worktrees with what is not committed, and what the configuration says.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, LOGIN, World};

pub(crate) fn fork(world: &World, arguments: &[&str]) -> Value {
    world.json(["fork", LOGIN].iter().chain(arguments).copied().chain(["--json"]))
}

pub(crate) fn kind(world: &World, arguments: &[&str]) -> String {
    let output = world.run(["fork", LOGIN].iter().chain(arguments).copied().chain(["--json"]));
    assert_eq!(output.code, 1, "{output:?}");
    let error: Value = serde_json::from_str(&output.raw).unwrap();
    error["error"]["kind"].as_str().unwrap().to_owned()
}

/// What git prints, as bytes.
pub(crate) fn git<S: AsRef<OsStr>>(world: &World, directory: &Path, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
    let mut command = world.sandbox.command("git");
    command.current_dir(directory).env("GIT_LITERAL_PATHSPECS", "1").env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Everything below a directory: the mode, and what is in it or where it leads.
pub(crate) fn everything(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn collect(top: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            let content = match () {
                () if metadata.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                () if metadata.is_file() => fs::read(&path).unwrap(),
                () => Vec::new(),
            };
            let name = path.strip_prefix(top).unwrap().to_owned();
            all.insert(name, (metadata.permissions().mode(), content));
            if metadata.is_dir() {
                collect(top, &path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(top, top, &mut all);
    all
}

/// What is below `work/`, but for git's notes of worktrees and what it keeps for them.
pub(crate) fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

fn configure(world: &World, text: &str) {
    let folder = world.sandbox.root().join("config/tine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

#[test]
fn a_fork_gets_a_copy_of_the_directory() {
    let world = World::new();
    fs::write(world.shop.join("not committed"), "x").unwrap();
    fs::write(world.shop.join(OsStr::from_bytes(b"\xff\n")), "y").unwrap();
    let before = everything(&world.shop);
    let work = names(&world.sandbox.work());
    let made = fork(&world, &["elsewhere", "--copy-to", "../copies/shop"]);
    let copy = world.sandbox.work().join("copies/shop");
    assert_eq!((&made["workspace"]["kind"], &made["workspace"]["branch"]), (&"copy".into(), &"main".into()));
    assert_eq!(made["workspace"]["path"], copy.to_str().unwrap());
    assert_eq!(made["session"]["cwd"], copy.to_str().unwrap());
    assert_eq!(made["warnings"], Value::Array(Vec::new()));
    assert_eq!(everything(&copy), before);
    assert_eq!(everything(&world.shop), before);
    assert_eq!(world.run_in(&copy, ["list"]).out.lines().count(), 1);
    // Asking git is no change; a file is.
    world.sandbox.git(&copy, ["status"]);
    fs::write(copy.join("work"), "").unwrap();
    let refused = world.run(["undo"]);
    assert!(refused.err.contains("[ROOT]/work/copies/shop, created by operation 1, has changes"), "{refused:?}");
    assert!(copy.join("work").exists());
    fs::remove_file(copy.join("work")).unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(names(&world.sandbox.work()), work);
    fork(&world, &["elsewhere", "--copy-to", "../copies/shop"]);
    fs::write(copy.join("work"), "").unwrap();
    assert_eq!(world.run(["undo", "--force"]).code, 0);
    assert_eq!(names(&world.sandbox.work()), work);
    assert_eq!(everything(&world.shop), before);
}

#[test]
fn a_plan_of_a_copy_makes_nothing() {
    let world = World::new();
    let work = everything(&world.sandbox.work());
    let plan = fork(&world, &["--copy-to", "../copy", "--plan"]);
    assert_eq!(plan["workspace"]["kind"], "copy");
    assert_eq!(everything(&world.sandbox.work()), work);
    for (target, expected) in [("inner", "into_itself"), ("../blog", "target_exists")] {
        assert_eq!(kind(&world, &["--copy-to", target, "--plan"]), expected);
        assert_eq!(kind(&world, &["--copy-to", target]), expected);
    }
    assert_eq!(everything(&world.sandbox.work()), work);
}

/// A disk that is full, as a limit on the size of files shows it, and a file that cannot be read.
#[test]
fn a_failed_copy_leaves_nothing() {
    let world = World::new();
    fs::create_dir(world.shop.join("locked")).unwrap();
    fs::write(world.shop.join("locked/large"), vec![b'x'; 1 << 20]).unwrap();
    let (files, work) = (world.agents_files(), everything(&world.sandbox.work()));
    let run = |before: &[&str]| {
        let mut command = world.sandbox.command(before[0]);
        command.args(&before[1..]).args([env!("CARGO_BIN_EXE_tine"), "fork", LOGIN, "--copy-to", "../deep/copy"]);
        let output = command.current_dir(&world.shop).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(everything(&world.sandbox.work()), work);
        assert_eq!(world.agents_files(), files);
        String::from_utf8(output.stderr).unwrap()
    };
    // 512 KB for any file, and the signal that would end the process is ignored.
    let printed = run(&["sh", "-c", "trap '' XFSZ; ulimit -f 1024; exec \"$@\"", "sh"]);
    assert!(printed.contains("error: cannot write") && printed.contains("locked/large"), "{printed}");
    // The files are root's where the tests run as root, whom only the lack of a capability stops.
    let path = world.shop.join("locked/large");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    let work = everything_but(&world, &path);
    let mut command = match fs::read(&path) {
        Ok(_) => {
            let mut command = world.sandbox.command("setpriv");
            command.args(["--bounding-set", "-dac_override,-dac_read_search", env!("CARGO_BIN_EXE_tine")]);
            command
        }
        Err(_) => world.sandbox.command(env!("CARGO_BIN_EXE_tine")),
    };
    let output = command.args(["fork", LOGIN, "--copy-to", "../deep/copy"]).current_dir(&world.shop).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains("error: cannot copy") && printed.contains("work/shop/locked/large: Permission denied"),
        "{printed}"
    );
    assert_eq!(everything_but(&world, &path), work);
    assert_eq!(world.agents_files(), files);
    // A folder that is read-only is copied, and its copy can be removed.
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o555)).unwrap();
    fork(&world, &["--copy-to", "../deep/copy"]);
    let mut command = world.sandbox.command("setpriv");
    command.args(["--bounding-set", "-dac_override,-dac_read_search", env!("CARGO_BIN_EXE_tine"), "undo"]);
    assert!(command.output().unwrap().status.success());
    assert!(!world.sandbox.work().join("deep").exists());
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
}

fn everything_but(world: &World, path: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = everything_readable(&world.sandbox.work());
    all.remove(path.strip_prefix(world.sandbox.work()).unwrap());
    all
}

fn everything_readable(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let locked = top.join("shop/locked/large");
    let _ = fs::set_permissions(&locked, Permissions::from_mode(0o400));
    let all = everything(top);
    let _ = fs::set_permissions(&locked, Permissions::from_mode(0o000));
    all
}

#[test]
fn the_configuration_places_worktrees_and_fills_them() {
    let world = World::new();
    let shop = &world.shop;
    let outside = world.sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, shop.join("away")).unwrap();
    fs::write(shop.join(".gitignore"), ".env*\nconfig/local.json\nnode_modules\n").unwrap();
    fs::create_dir_all(shop.join("config")).unwrap();
    fs::write(shop.join("config/shared.json"), "{}").unwrap();
    git(&world, shop, ["add", "--all"]);
    git(&world, shop, ["commit", "--quiet", "--message", "more"]);
    fs::write(shop.join("README.md"), "changed, but not brought\n").unwrap();
    fs::write(shop.join(".env"), "SECRET=1").unwrap();
    fs::set_permissions(shop.join(".env"), Permissions::from_mode(0o600)).unwrap();
    fs::write(shop.join("config/local.json"), "{}").unwrap();
    fs::create_dir_all(shop.join("node_modules/a/b")).unwrap();
    fs::write(shop.join("node_modules/a/b/c"), "").unwrap();
    configure(
        &world,
        "[worktree]\nplace = \"~/trees/{name}/{branch}\"\nunheard = 1\n\
         bring = [\".env\", \"config\", \"node_modules\", \"missing\", \"README.md\", \"away/new/file\"]\n\
         setup = \"echo to stdout; cat \\\"$TINE_SOURCE_DIR/.env\\\" > .env.made; pwd > .env.where\"\n",
    );
    let output = world.run(["fork", LOGIN, "-w", "try/it", "--yes"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.err.contains("config.toml: unknown key `worktree.unheard` is ignored"), "{}", output.err);
    assert!(output.err.contains("to stdout") && !output.out.contains("to stdout"), "{output:?}");
    let tree = world.sandbox.home().join("trees/shop/try-it");
    let read = |name: &str| fs::read_to_string(tree.join(name)).unwrap();
    assert_eq!((read(".env"), read(".env.made")), ("SECRET=1".into(), "SECRET=1".into()));
    assert_eq!(read(".env.where").trim(), tree.to_str().unwrap());
    assert_eq!(tree.join(".env").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((read("config/local.json"), read("README.md")), ("{}".into(), "# shop\n".into()));
    assert!(tree.join("node_modules/a/b/c").exists());
    assert_eq!(names(&outside), [] as [&str; 0]);
    // A file that was brought is watched, although git ignores it.
    fs::write(tree.join(".env"), "SECRET=2").unwrap();
    assert_eq!(world.run(["undo"]).code, 1);
    fs::write(tree.join(".env"), "SECRET=1").unwrap();
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!world.sandbox.home().join("trees").exists());
}

#[test]
fn a_setup_that_fails_leaves_nothing() {
    let world = World::new();
    let (files, work) = (world.agents_files(), names(&world.sandbox.work()));
    let (one, other) = ("setup = \"touch made; exit 3\"", "setup = [\"/nowhere/program\", \"$(touch made)\"]");
    for (setup, said) in [(one, "exit status: 3"), (other, "No such file")] {
        configure(&world, &format!("[worktree]\n{setup}\n"));
        let output = world.run(["fork", LOGIN, "-w", "new"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.err.contains("failed in the new worktree") && output.err.contains(said), "{}", output.err);
        assert_eq!((world.agents_files(), names(&world.sandbox.work())), (files.clone(), work.clone()));
        assert_eq!(world.sandbox.git(&world.shop, ["branch"]), "* main");
        assert_eq!(world.sandbox.git(&world.shop, ["worktree", "list"]).lines().count(), 1);
    }
    configure(&world, "[worktree]\nsetup = [\"touch\", \"a b\"]\n");
    let made = fork(&world, &["-w", "new"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    assert!(tree.join("a b").exists());
    assert_eq!(world.run(["undo"]).code, 0, "what the setup made is no work of anybody");
}

#[test]
fn a_configuration_that_cannot_be_meant_is_refused_where_it_is_needed() {
    let world = World::new();
    configure(&world, "[worktree]\nplace = 7\n");
    assert_eq!(kind(&world, &["-w"]), "bad_config");
    let output = world.run(["fork", LOGIN, "-w"]);
    assert!(output.err.contains("config.toml, line 2: ") && output.err.contains("expected a string"), "{}", output.err);
    assert_eq!(world.run(["list"]).code, 0, "a listing does not read it");
}

/// A worktree that lies inside of its source would be carried into itself.
#[test]
fn the_files_of_a_worktree_are_written_by_several_processes_unless_git_is_told_otherwise() {
    let world = World::new();
    for number in 0..200 {
        fs::write(world.shop.join(format!("file-{number}")), "x").unwrap();
    }
    git(&world, &world.shop, ["add", "."]);
    git(&world, &world.shop, ["commit", "--quiet", "-m", "many files"]);
    let writers = |name: &str| {
        let trace = world.sandbox.root().join(name);
        let mut command = world.command(["fork", LOGIN, name, "--worktree", "--yes"]);
        let output = command.env("GIT_TRACE", &trace).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = world.sandbox.work().join(format!("shop.worktrees/{name}"));
        assert_eq!(git(&world, &tree, ["status", "--porcelain"]), b"", "all is there");
        let started = |line: &&str| line.contains("run_command:") && line.contains("checkout--worker");
        fs::read_to_string(trace).unwrap().lines().filter(started).count()
    };
    assert!(writers("many") >= 4);
    git(&world, &world.shop, ["config", "checkout.workers", "1"]);
    assert_eq!(writers("one"), 0);
}

#[test]
fn a_branch_that_is_checked_out_and_does_not_exist_yet_is_left_alone() {
    let world = World::new();
    let tree = world.sandbox.work().join("orphan");
    git(&world, &world.shop, [OsStr::new("worktree"), "add".as_ref(), "--detach".as_ref(), tree.as_os_str()]);
    git(&world, &tree, ["checkout", "--quiet", "--orphan", "feature"]);
    let refs = git(&world, &world.shop, ["for-each-ref"]);
    assert_eq!(kind(&world, &["--worktree", "feature"]), "branch_checked_out");
    assert_eq!(git(&world, &world.shop, ["for-each-ref"]), refs);
}

#[test]
fn a_worktree_can_lie_inside_of_the_source() {
    let world = World::new();
    configure(&world, "[worktree]\nplace = \".trees/{branch}\"\n");
    fs::write(world.shop.join("new"), "").unwrap();
    for name in ["first", "second"] {
        fork(&world, &[name, "-w", "--carry"]);
        let tree = world.shop.join(".trees").join(name);
        assert_eq!(git(&world, &tree, ["status", "--porcelain"]), b"?? new\n");
    }
    assert_eq!((world.run(["undo"]).code, world.run(["undo"]).code), (0, 0));
    assert!(!world.shop.join(".trees").exists());
}

/// A session that works below the top of its repository, in a directory that is not committed.
#[test]
fn only_the_sessions_own_directory_is_copied() {
    let world = World::empty();
    let below = world.shop.join("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("file"), "").unwrap();
    ClaudeSession::new(COOKIE).cwd(&below).turn(|turn| turn.prompt("a").text("b")).write(&world.sandbox.claude_home());
    let made = world.json(["fork", COOKIE, "--copy-to", "../copy", "--json"]);
    assert_eq!(names(&world.sandbox.work().join("copy")), ["file"]);
    assert_eq!(made["workspace"]["branch"], Value::Null);
}

#[test]
fn copies_at_once_do_not_take_each_others_place() {
    let world = World::new();
    for number in 0..600 {
        fs::write(world.shop.join(format!("file {number}")), "x").unwrap();
    }
    let children: Vec<_> = (0..5)
        .map(|number| {
            let mut command =
                world.command(["fork", LOGIN, &format!("fork-{number}"), "--copy-to", "../same", "--json"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1, "{outputs:?}");
    assert_eq!(everything(&world.sandbox.work().join("same")), everything(&world.shop));
    assert_eq!(names(&world.sandbox.work()), ["blog", "same", "shop"]);
}
