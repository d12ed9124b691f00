//! `tine undo` removes nothing that somebody went on with, and says what it could not remove.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use testkit::build::{CodexSession, Dialect};

use crate::world::{LOGIN, World};

fn fork(world: &World, source: &str, name: &str) -> (String, PathBuf) {
    let made = world.json(["fork", source, name, "--json"]);
    let text = |field: &str| made["session"][field].as_str().unwrap().to_owned();
    (text("id"), text("path").into())
}

#[test]
fn a_fork_that_was_moved_is_left_where_it_is() {
    let world = World::new();
    let (id, path) = fork(&world, LOGIN, "moved");
    let folder = path.parent().unwrap().with_file_name(agents::claude::project_folder(&world.blog));
    fs::create_dir_all(&folder).unwrap();
    let moved = folder.join(format!("{id}.jsonl"));
    fs::rename(&path, &moved).unwrap();
    let told = world.run(["undo"]);
    assert!(told.code == 1 && told.err.contains("is now "), "{}", told.whole());
    assert!(moved.exists());
    assert_eq!(world.json(["info", "moved", "--json"])["path"], moved.to_str().unwrap());
}

#[test]
fn a_fork_that_is_open_is_not_removed_under_its_agent() {
    let world = World::new();
    let (id, path) = fork(&world, LOGIN, "open");
    let pid = std::process::id();
    let live = json!({
        "pid": pid, "sessionId": id, "cwd": world.shop, "kind": "interactive", "status": "idle",
        "procStart": agents::process_start(pid),
    });
    world.sandbox.write(world.sandbox.claude_home().join(format!("sessions/{pid}.json")), &live.to_string());
    let told = world.run(["undo", "--force"]);
    assert!(told.code == 1 && told.err.contains("is open"), "{}", told.whole());
    assert!(path.exists());
}

#[test]
fn a_fork_that_others_refer_to_stays() {
    let world = World::empty();
    let home = world.sandbox.codex_home();
    let id = "019a9000-0000-7000-8000-00000000aaaa";
    let base =
        CodexSession::new(id).dialect(Dialect::Paginated).cwd(&world.shop).turn(|turn| turn.prompt("one").text("yes"));
    let path = base.write(&home);
    base.fork("019a9000-0000-7000-8000-00000000bbbb").turn(|turn| turn.prompt("two").text("yes")).write(&home);
    // An operation that made the base, as a fork does.
    world.run(["adopt", id, "base"]);
    let told = world.run(["delete", "base", "--yes"]);
    assert!(told.err.contains("holds a part of the history of"), "{}", told.whole());
    assert!(path.exists());
}

#[test]
fn what_cannot_be_removed_is_told_and_stays_known() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "stuck");
    // Nobody removes a folder in the place of the file's folder from a read-only file system; a mount shows it.
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && exec \"$2\" undo";
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(path.parent().unwrap());
        command.arg(env!("CARGO_BIN_EXE_tine")).current_dir(&world.shop).output().unwrap()
    };
    let mut output = run(&["--mount"]);
    if testkit::sandbox::text(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let told = testkit::sandbox::text(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains("cannot remove"), "{told}");
    assert!(path.exists());
    assert_eq!(world.json(["info", "stuck", "--json"])["name"], "stuck");
    assert_eq!(world.run(["undo"]).code, 0, "it can be tried again");
    assert!(!path.exists());
}

#[test]
fn files_that_git_ignores_are_work_as_well() {
    let world = World::new();
    fs::write(world.shop.join(".git/info/exclude"), "*.log\nbuild/\n").unwrap();
    let config = world.sandbox.root().join("config/tine/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, "[worktree]\nsetup = \"mkdir -p build/deep && touch build/deep/made first.log\"\n").unwrap();
    for (name, file) in [("one", "second.log"), ("two", "build/deep/more"), ("three", "first.log")] {
        let made = world.json(["fork", LOGIN, name, "--worktree", "--json"]);
        let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
        fs::write(tree.join(file), "of somebody").unwrap();
        let refused = world.run(["undo"]);
        assert_eq!(refused.code, 1, "{file}: {refused:?}");
        assert!(tree.join(file).exists());
        assert_eq!(world.run(["undo", "--force"]).code, 0);
        assert!(!tree.exists());
    }
    let made = world.json(["fork", LOGIN, "four", "--worktree", "--json"]);
    let undone = world.run(["undo"]);
    assert_eq!(undone.code, 0, "what the setup made is no work: {undone:?}");
    assert!(!PathBuf::from(made["workspace"]["path"].as_str().unwrap()).exists());
}
