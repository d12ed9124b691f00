//! `tine delete`, and `tine undo` of it.

use std::fs;
use std::path::Path;

use testkit::build::{CodexSession, Dialect};

use crate::world::{LOGIN, STREAM, World};

/// Where the session's transcript is.
fn path(world: &World, session: &str) -> std::path::PathBuf {
    world.json(["info", session, "--json"])["path"].as_str().unwrap().into()
}

#[test]
fn a_deleted_session_is_gone_and_comes_back_as_it_was() {
    let world = World::new();
    for (source, name) in [(LOGIN, "first-try"), (STREAM, "second-try")] {
        let id = world.json(["fork", source, name, "--json"])["session"]["id"].as_str().unwrap().to_owned();
        let (before, transcript) = (world.agents_files(), path(&world, &id));
        let deleted = world.run(["delete", name, "--yes"]);
        assert_eq!((deleted.code, deleted.out.as_str()), (0, ""), "{}", deleted.err);
        assert!(!transcript.exists());
        assert_eq!(world.run(["info", &id]).code, 1);
        assert!(world.agents_files().keys().all(|file| !file.to_string_lossy().contains(&id)));
        // The name is free meanwhile.
        assert_eq!(world.run(["info", name]).code, 1);
        world.run(["undo"]);
        assert_eq!(world.agents_files(), before);
        assert_eq!(world.json(["info", name, "--json"])["id"].as_str().unwrap(), id);
        let again = world.run(["undo", "2"]);
        assert_eq!(again.code, 1, "{}", again.out);
    }
}

#[test]
fn a_name_that_was_taken_meanwhile_stays_with_its_new_owner() {
    let world = World::new();
    world.json(["fork", LOGIN, "the-name", "--json"]);
    assert_eq!(world.run(["delete", "the-name", "--yes"]).code, 0);
    let owner = world.json(["fork", LOGIN, "the-name", "--json"])["session"]["id"].clone();
    let undone = world.run(["undo", "2"]);
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert!(undone.err.contains("the name `the-name` is now taken"), "{}", undone.err);
    assert_eq!(world.json(["info", "the-name", "--json"])["id"], owner);
}

#[test]
fn what_others_need_is_not_deleted() {
    let world = World::new();
    let home = world.sandbox.codex_home();
    let parent = CodexSession::new("019a9000-0000-7000-8000-00000000aaaa")
        .dialect(Dialect::Paginated)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("one").text("yes"));
    parent.write(&home);
    parent.fork("019a9000-0000-7000-8000-00000000bbbb").turn(|turn| turn.prompt("two").text("yes")).write(&home);
    insta::assert_snapshot!(world.run(["delete", "019a9000-0000-7000-8000-00000000aaaa", "--yes"]).whole());
    assert_eq!(world.run(["delete", "019a9000-0000-7000-8000-00000000bbbb", "--yes"]).code, 0);
    assert_eq!(world.run(["delete", "019a9000-0000-7000-8000-00000000aaaa", "--yes"]).code, 0);
}

#[test]
fn nobody_is_asked_where_nobody_is() {
    let world = World::new();
    let before = world.agents_files();
    insta::assert_snapshot!(world.run(["delete", LOGIN]).whole());
    assert_eq!(world.agents_files(), before);
}

#[test]
fn the_trash_is_private_and_an_undo_into_something_else_is_refused() {
    let world = World::new();
    let transcript = path(&world, LOGIN);
    assert_eq!(world.run(["delete", LOGIN, "--yes"]).code, 0);
    let trash = world.sandbox.root().join("data/tine/trash");
    assert_eq!(mode(&trash) & 0o077, 0, "others can look into the trash");
    fs::write(&transcript, "somebody else's").unwrap();
    let refused = world.run(["undo"]);
    assert!(refused.err.contains("already exists"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&transcript).unwrap(), "somebody else's");
}

/// It stayed half done, and every command failed until the folder could be written again.
#[test]
fn what_cannot_be_deleted_stays_and_is_all_that_fails() {
    let world = World::new();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let before = world.agents_files();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" || exit 99; \
                  \"$2\" delete \"$3\" --yes; echo \"delete $?\"; \"$2\" list --all; echo \"list $?\"";
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(world.sandbox.claude_home());
        command.arg(env!("CARGO_BIN_EXE_tine")).arg(LOGIN).env("TINE_REGISTRY", elsewhere.path().join("registry.db"));
        command.current_dir(&world.shop).output().unwrap()
    };
    let mut output = run(&["--mount"]);
    if testkit::sandbox::text(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let (printed, said) = (testkit::sandbox::text(&output.stdout), testkit::sandbox::text(&output.stderr));
    assert!(printed.contains("delete 1\n") && printed.ends_with("list 0\n"), "{printed}{said}");
    assert!(said.contains("Read-only") && !said.contains("interrupted"), "{said}");
    assert_eq!(world.agents_files(), before);
    assert_eq!(fs::read_dir(elsewhere.path().join("trash")).unwrap().count(), 0);
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions())
}

/// A fork in a worktree, with its directory.
fn fork_in_worktree(world: &World, name: &str) -> std::path::PathBuf {
    let made = world.json(["fork", LOGIN, name, "--worktree", "--yes", "--json"]);
    made["workspace"]["path"].as_str().unwrap().into()
}

/// Both stayed, and nobody mentioned them.
#[test]
fn the_worktree_of_a_deleted_session_goes_along_and_comes_back() {
    let world = World::new();
    let git = |words: &[&str]| world.sandbox.git(&world.shop, words);
    let before = (git(&["worktree", "list"]), git(&["branch"]));
    let tree = fork_in_worktree(&world, "try");
    world.sandbox.write(world.shop.join(".git/info/exclude"), "built\n");
    world.sandbox.write(tree.join("built"), "ignored, and kept all the same");
    let with_it = (git(&["worktree", "list"]), git(&["branch", "-v"]), world.agents_files());
    let output = world.run(["delete", "try", "--worktree", "--yes"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(
        output.err.contains("removed its worktree") && output.err.contains("and the branch `try`"),
        "{}",
        output.whole()
    );
    assert_eq!((git(&["worktree", "list"]), git(&["branch"])), before);
    assert!(!tree.parent().unwrap().exists());
    assert!(!world.run(["doctor"]).out.contains("worktree  "));

    assert_eq!(world.run(["undo"]).code, 0);
    assert!((git(&["worktree", "list"]), git(&["branch", "-v"]), world.agents_files()) == with_it);
    assert_eq!(world.sandbox.git(&tree, ["status", "--porcelain", "--branch"]).trim(), "## try");
    assert_eq!(fs::read_to_string(tree.join("built")).unwrap(), "ignored, and kept all the same");
    assert_eq!(world.json(["info", "try", "--json"])["cwd"], tree.to_str().unwrap());
}

#[test]
fn work_in_the_worktree_of_a_deleted_session_stays() {
    let world = World::new();
    let tree = fork_in_worktree(&world, "try");
    world.sandbox.write(tree.join("work"), "uncommitted");
    let before = world.agents_files();
    let output = world.run(["delete", "try", "--worktree", "--yes"]);
    assert!(output.code == 1 && output.err.contains("it has uncommitted changes"), "{}", output.whole());
    assert!(world.agents_files() == before && tree.join("work").exists());
    // What is committed stays on the branch.
    world.sandbox.git(&tree, ["add", "."]);
    world.sandbox.git(&tree, ["commit", "--quiet", "--message", "work"]);
    let output = world.run(["delete", "try", "--worktree", "--yes"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(output.err.contains("kept the branch `try`, which has new commits"), "{}", output.whole());
    assert!(!tree.exists() && world.sandbox.git(&world.shop, ["log", "-1", "--format=%s", "try"]).trim() == "work");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.sandbox.git(&tree, ["status", "--porcelain", "--branch"]).trim(), "## try");
    // Another session works there, too.
    assert_eq!(world.run(["fork", "try", "second", "--yes"]).code, 0);
    let output = world.run(["delete", "try", "--worktree", "--yes"]);
    assert!(output.code == 1 && output.err.contains("`second` also works there"), "{}", output.whole());
}

#[test]
fn a_worktree_that_is_left_behind_is_mentioned() {
    let world = World::new();
    let tree = fork_in_worktree(&world, "try");
    assert!(!world.run(["doctor"]).out.contains("no longer used by a session"));
    let output = world.run(["delete", "try", "--yes"]);
    assert!(output.code == 0 && tree.exists(), "{}", output.whole());
    assert!(output.err.contains("and the branch `try`; to remove it, run `git -C "), "{}", output.whole());
    let output = world.run(["doctor"]);
    assert!(output.out.contains("(branch `try`), created by `fork "), "{}", output.whole());
    assert!(output.out.contains("no longer used by a session"), "{}", output.whole());
}
