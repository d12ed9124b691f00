//! Worktrees that git does not make: the plan says why, and what git left half-done is taken away again.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::build::ClaudeSession;
use testkit::sandbox::{install_program, text};

use crate::world::{LOGIN, World};

/// What is told of a fork that fails: kind, message and hint.
fn trouble(world: &World, arguments: &[&str]) -> (String, String, String) {
    let output = world.run(["fork", LOGIN].iter().chain(arguments).copied().chain(["--json"]));
    assert_eq!(output.code, 1, "{output:?}");
    let error: Value = serde_json::from_str(&output.out).unwrap();
    let word = |field: &str| error["error"][field].as_str().unwrap_or_default().to_owned();
    (word("kind"), word("message"), word("hint"))
}

/// All branches and all worktrees of a repository.
fn state(world: &World, repository: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = world.sandbox.command("git").current_dir(repository).args(arguments).output().unwrap();
        text(&output.stdout)
    };
    git(&["for-each-ref"]) + &git(&["worktree", "list"])
}

fn configure(world: &World, configuration: &str) {
    let folder = world.sandbox.root().join("config/tine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), configuration).unwrap();
}

#[test]
fn a_hook_that_fails_leaves_neither_branch_nor_worktree() {
    let world = World::new();
    let (before, files) = (state(&world, &world.shop), world.agents_files());
    let hook = world.shop.join(".git/hooks/post-checkout");
    install_program(&hook, b"#!/bin/sh\nexit 1\n");
    let (kind, message, hint) = trouble(&world, &["hooked", "--worktree"]);
    assert_eq!(kind, "git");
    assert!(message.contains("printed no message (exit status: 1)"), "{message}");
    assert!(hint.contains("post-checkout"), "{hint}");
    assert_eq!(state(&world, &world.shop), before);
    assert!(!world.shop.with_file_name("shop.worktrees").exists());
    assert_eq!(world.agents_files(), files);
    assert_eq!(fs::read_dir(world.sandbox.claude_home().join("projects")).unwrap().count(), 1, "no empty folder");
    fs::remove_file(hook).unwrap();
    assert_eq!(world.run(["fork", LOGIN, "hooked", "--worktree"]).code, 0);
}

#[test]
fn a_place_that_cannot_be_written_leaves_no_branch() {
    let world = World::new();
    let before = state(&world, &world.shop);
    // git checks out no file that is larger than the limit; the signal that would end it is ignored.
    fs::write(world.shop.join("large"), vec![b'x'; 3 << 20]).unwrap();
    world.sandbox.git(&world.shop, ["add", "large"]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "large"]);
    let mut command = world.sandbox.command("sh");
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_tine"), "fork", LOGIN, "full", "--worktree"]);
    let output = command.current_dir(&world.shop).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("git could not create the worktree"), "{output:?}");
    let after = state(&world, &world.shop);
    assert_eq!(after.lines().count(), before.lines().count(), "{after}");
    assert!(!after.contains("full"), "{after}");
}

#[test]
fn the_plan_knows_what_git_would_refuse() {
    let world = World::new();
    world.sandbox.git(&world.shop, ["branch", "deep/below"]);
    let long = "x".repeat(252);
    let check = |branch: &str, expected: &str| {
        let (kind, message, hint) = trouble(&world, &["--plan", &format!("--worktree={branch}")]);
        assert_eq!(kind, expected, "{branch}: {message}");
        let shown = branch.escape_debug().to_string();
        assert!(!hint.is_empty() && message.contains(&shown), "{branch}: {message}, {hint}");
    };
    check("main/x", "branch_exists");
    check("deep", "branch_exists");
    check(&long, "bad_branch");
    check("\u{202e}", "bad_branch");
    check("log\u{200b}in", "bad_branch");
    world.sandbox.git(&world.shop, ["checkout", "--quiet", "-b", "other"]);
    check("@{-1}", "bad_branch");
    configure(&world, "[worktree]\nplace = \"{repository}/.git/HEAD/{branch}\"\n");
    check("somewhere", "bad_place");
}

#[test]
fn a_repository_without_commits_or_files_is_told_as_such() {
    let world = World::empty();
    let home = world.sandbox.claude_home();
    let check = |directory: &Path, expected: &str| {
        ClaudeSession::new(LOGIN).cwd(directory).turn(|turn| turn.prompt("hi").text("ok")).write(&home);
        let (kind, message, hint) = trouble(&world, &["--plan", "--worktree"]);
        assert_eq!(kind, expected, "{message}");
        assert!(!hint.is_empty() && !hint.contains("git init"), "{hint}");
        fs::remove_dir_all(home.join("projects")).unwrap();
    };
    let fresh = world.sandbox.work().join("fresh");
    fs::create_dir(&fresh).unwrap();
    world.sandbox.git(&fresh, ["init", "--quiet"]);
    check(&fresh, "no_commit");
    let bare = world.sandbox.work().join("bare.git");
    fs::create_dir(&bare).unwrap();
    world.sandbox.git(&bare, ["init", "--quiet", "--bare"]);
    check(&bare, "no_working_tree");
    check(&world.shop.join(".git"), "no_working_tree");
}

#[test]
fn the_worktree_of_a_submodule_is_not_inside_of_what_it_is_a_part_of() {
    let world = World::empty();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", world.blog.to_str().unwrap(), "lib"];
    world.sandbox.git(&world.shop, add);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "submodule"]);
    let session = ClaudeSession::new(LOGIN).cwd(world.shop.join("lib")).turn(|turn| turn.prompt("hi").text("ok"));
    session.write(&world.sandbox.claude_home());
    let made = world.json(["fork", LOGIN, "apart", "--worktree", "--json"]);
    let tree = world.shop.with_file_name("shop-lib.worktrees").join("apart");
    assert_eq!(made["workspace"]["path"], tree.to_str().unwrap());
    assert!(tree.join(".git").exists());
    let status = world.sandbox.command("git").current_dir(&world.shop).args(["status", "--short"]).output().unwrap();
    assert_eq!(text(&status.stdout), "");
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.parent().unwrap().exists());
}

/// Lets everything that a repository can configure leave its name in `ran`, and touches the files, so that git looks at
/// them again.
fn make_hostile(world: &World, repository: &Path, ran: &Path) {
    let marks = |name: &str| format!("sh -c 'echo {name} >> {}; cat'", ran.display());
    let folder = world.sandbox.git(repository, ["rev-parse", "--absolute-git-dir"]);
    let script = repository.with_file_name("mark.sh");
    install_program(&script, format!("#!/bin/sh\necho script >> {}\n", ran.display()).as_bytes());
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"] {
        install_program(&Path::new(&folder).join("hooks").join(hook), &fs::read(&script).unwrap());
    }
    fs::create_dir_all(Path::new(&folder).join("info")).unwrap();
    fs::write(Path::new(&folder).join("info/attributes"), "* filter=a=b diff=evil\n*.md filter=evil\n").unwrap();
    let included = Path::new(&folder).join("included");
    fs::write(&included, format!("[filter \"a=b\"]\n\tclean = \"{}\"\n", marks("included"))).unwrap();
    let script = script.to_str().unwrap();
    let upload = format!("{script};false");
    for (key, value) in [
        ("core.fsmonitor", script),
        ("core.pager", script),
        ("core.editor", script),
        ("core.sshCommand", script),
        ("pager.status", script),
        ("alias.status", &format!("!{script}")),
        ("diff.external", script),
        ("diff.evil.textconv", script),
        ("diff.evil.command", script),
        ("filter.evil.clean", &marks("clean")),
        ("filter.evil.smudge", &marks("smudge")),
        ("filter.evil.process", &marks("process")),
        ("filter.evil.required", "true"),
        ("include.path", included.to_str().unwrap()),
        ("status.submoduleSummary", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", repository.to_str().unwrap()),
        ("remote.origin.uploadpack", &upload),
        ("protocol.allow", "always"),
    ] {
        world.sandbox.git(repository, ["config", key, value]);
    }
    fs::write(repository.join("README.md"), fs::read(repository.join("README.md")).unwrap()).unwrap();
}

#[test]
fn a_plan_runs_nothing_that_a_repository_configures() {
    let world = World::new();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", world.blog.to_str().unwrap(), "lib"];
    world.sandbox.git(&world.shop, add);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "submodule"]);
    let ran = world.sandbox.root().join("ran");
    make_hostile(&world, &world.shop.join("lib"), &ran);
    make_hostile(&world, &world.shop, &ran);
    let _ = fs::remove_file(&ran);
    for words in [&["--worktree"][..], &["--worktree", "--carry"], &["--copy-to", "../copy"], &[]] {
        let output = world.run(["fork", LOGIN, "planned", "--plan"].iter().chain(words));
        assert_eq!(output.code, 0, "{output:?}");
        assert!(!ran.exists(), "{words:?}: {}", fs::read_to_string(&ran).unwrap());
    }
    // What is lacking is not fetched, either.
    let output = world.run(["fork", LOGIN, "planned", "--plan", "--worktree"]);
    assert_eq!(output.code, 0, "{output:?}");
    let tree =
        world.sandbox.command("git").current_dir(&world.shop).args(["rev-parse", "HEAD^{tree}"]).output().unwrap();
    let tree = text(&tree.stdout).trim().to_owned();
    fs::remove_file(world.shop.join(".git/objects").join(&tree[..2]).join(&tree[2..])).unwrap();
    let _ = fs::remove_file(&ran);
    world.run(["fork", LOGIN, "planned", "--plan", "--worktree"]);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    // The same repository runs all of that for a git that is not told otherwise.
    let mut status = world.sandbox.command("git");
    let _ = status.current_dir(&world.shop).args(["status", "--porcelain"]).output().unwrap();
    assert!(ran.exists());
}

#[test]
fn changes_are_seen_without_the_filters_of_a_repository() {
    let world = World::new();
    let warns = |world: &World| {
        let plan = world.json(["fork", LOGIN, "planned", "--plan", "--worktree", "--json"]);
        plan["warnings"].to_string().contains("uncommitted")
    };
    // A filter of the user's own goes on to work.
    world.sandbox.git(&world.shop, ["config", "--global", "filter.upper.clean", "tr a-z A-Z"]);
    world.sandbox.write(world.shop.join(".gitattributes"), "*.txt filter=upper\n");
    world.sandbox.write(world.shop.join("words.txt"), "hello\n");
    world.sandbox.git(&world.shop, ["add", "."]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "words"]);
    world.sandbox.write(world.shop.join("words.txt"), "Hello\n");
    assert!(!warns(&world));
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", world.blog.to_str().unwrap(), "lib"];
    world.sandbox.git(&world.shop, add);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "submodule"]);
    assert!(!warns(&world));
    world.sandbox.write(world.shop.join("lib/new"), "x");
    assert!(warns(&world), "a change in a submodule");
}

#[test]
fn a_repository_of_another_user_is_reported_as_such() {
    let mut world = World::new();
    world.sandbox.set("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let (kind, message, hint) = trouble(&world, &["--plan", "--worktree"]);
    assert_eq!(kind, "dubious_ownership");
    assert!(message.contains("belongs to another user"), "{message}");
    assert!(hint.contains("git config --global --add safe.directory") && hint.contains("/work/shop"), "{hint}");
}
