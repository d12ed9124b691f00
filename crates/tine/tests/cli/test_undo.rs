//! `tine undo` removes nothing that somebody went on with, and says what it could not remove.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::{CodexSession, Dialect};

use crate::world::{EXPORT, LOGIN, World};

fn fork(world: &World, source: &str, name: &str) -> (String, PathBuf) {
    let made = world.json(["fork", source, name, "--json"]);
    let text = |field: &str| made["session"][field].as_str().unwrap().to_owned();
    (text("id"), text("path").into())
}

pub(crate) fn append(path: &Path, records: &[Value]) {
    let mut text = fs::read_to_string(path).unwrap();
    text.extend(records.iter().map(|record| format!("{record}\n")));
    fs::write(path, text).unwrap();
}

/// A record of Claude Code that follows the last one.
pub(crate) fn claude_record(path: &Path, role: &str, text: &str) -> Value {
    let content = fs::read_to_string(path).unwrap();
    let records = content.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let last = records.filter_map(|record| record["uuid"].as_str().map(str::to_owned)).next_back();
    let message = json!({"role": role, "content": [{"type": "text", "text": text}]});
    json!({
        "type": role, "uuid": "00000000-0000-4000-8000-00000000000a", "parentUuid": last, "isSidechain": false,
        "sessionId": path.file_stem().unwrap().to_str(), "timestamp": "2026-11-15T12:00:01.000Z", "message": message,
    })
}

#[test]
fn a_fork_that_was_moved_is_left_where_it_is() {
    let world = World::new();
    let (id, path) = fork(&world, LOGIN, "moved");
    let folder = path.parent().unwrap().with_file_name(agents::claude::project_folder(&world.blog));
    fs::create_dir_all(&folder).unwrap();
    let moved = folder.join(format!("{id}.jsonl"));
    fs::rename(&path, &moved).unwrap();
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has moved to "), "{}", output.whole());
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
    let output = world.run(["undo", "--force"]);
    assert!(output.code == 1 && output.err.contains("is open"), "{}", output.whole());
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
    let output = world.run(["delete", "base", "--yes"]);
    assert!(output.err.contains("holds part of the history of"), "{}", output.whole());
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
    let printed = testkit::sandbox::text(&output.stderr);
    assert!(output.status.code() == Some(1) && printed.contains("cannot remove"), "{printed}");
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

#[test]
fn what_is_hinted_takes_back_the_operation_that_is_meant() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "grown");
    fork(&world, LOGIN, "later");
    append(&path, &[claude_record(&path, "assistant", "more")]);
    let output = world.run(["undo", "1"]);
    assert!(output.err.contains("`tine undo 1 --force`"), "{}", output.whole());
    let made = world.json(["fork", LOGIN, "tree", "--worktree", "--json"]);
    fs::write(PathBuf::from(made["workspace"]["path"].as_str().unwrap()).join("work"), "").unwrap();
    let output = world.run(["undo"]);
    assert!(output.err.contains("`tine undo 3 --force`"), "{}", output.whole());
    world.json(["fork", LOGIN, "copy", "--copy-to", "../copy", "--json"]);
    fs::write(world.shop.with_file_name("copy").join("work"), "").unwrap();
    let output = world.run(["undo"]);
    assert!(output.err.contains("`tine undo 4 --force`"), "{}", output.whole());
}

#[test]
fn notes_that_were_changed_since_stay() {
    let world = World::new();
    let projects = world.sandbox.claude_home().join("projects");
    let memory = projects.join(agents::claude::project_folder(&world.shop)).join("memory");
    world.sandbox.write(memory.join("MEMORY.md"), "as it was");
    world.sandbox.write(memory.join("more/deep.md"), "as it was");
    let before = world.agents_files();
    world.json(["fork", LOGIN, "there", "--to", "../blog", "--json"]);
    let brought = projects.join(agents::claude::project_folder(&world.blog)).join("memory");
    assert!(brought.join("more/deep.md").exists());
    fs::write(brought.join("MEMORY.md"), "what the agent learned").unwrap();
    let output = world.run(["undo", "1"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(output.err.contains("MEMORY.md: it has changed since it was copied"), "{}", output.whole());
    assert_eq!(fs::read_to_string(brought.join("MEMORY.md")).unwrap(), "what the agent learned");
    assert!(!brought.join("more").exists());
    // Where nothing was changed, nothing stays, the folders included.
    fs::remove_dir_all(brought.parent().unwrap()).unwrap();
    world.json(["fork", LOGIN, "there", "--to", "../blog", "--json"]);
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!brought.parent().unwrap().exists());
    assert_eq!(world.agents_files(), before);
}

#[test]
fn the_worktree_of_a_later_fork_is_not_an_earlier_ones() {
    let world = World::new();
    let made = world.json(["fork", LOGIN, "first", "--worktree=try", "--json"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    world.sandbox.git(&world.shop, ["worktree", "remove", tree.to_str().unwrap()]);
    world.sandbox.git(&world.shop, ["branch", "-D", "try"]);
    world.json(["fork", LOGIN, "second", "--worktree=try", "--json"]);
    let output = world.run(["undo", "1"]);
    assert!(output.code == 0 && output.err.contains("operation 2 created it"), "{}", output.whole());
    assert!(tree.join(".git").exists());
    assert_eq!(world.json(["info", "second", "--json"])["name"], "second");
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.exists());
}

/// `undo` said that all was undone, and nobody tried again.
#[test]
fn a_branch_that_git_cannot_delete_now_is_deleted_later() {
    let world = World::new();
    let has_branch = || world.sandbox.git(&world.shop, ["branch", "--list", "stuck"]).contains("stuck");
    let lock = world.shop.join(".git/packed-refs.lock");
    fs::write(&lock, "").unwrap();
    world.json(["fork", LOGIN, "stuck", "--worktree", "--json"]);
    let output = world.run(["undo"]);
    assert_eq!(output.code, 1, "{}", output.whole());
    assert!(
        output.err.contains("operation 1 was undone only in part: git cannot delete the branch `stuck`: "),
        "{}",
        output.whole()
    );
    assert!(output.err.contains("packed-refs.lock") && output.err.contains("tine retries"), "{}", output.whole());
    assert!(has_branch() && !world.shop.with_file_name("shop.worktrees").exists());
    let output = world.run(["list"]);
    assert!(output.code == 0 && output.err.contains("git cannot delete the branch `stuck`"), "{}", output.whole());
    // Nothing was cut off.
    assert!(output.err.contains("as stuck` is still only partly undone: git"), "{}", output.whole());
    fs::remove_file(&lock).unwrap();
    let output = world.run(["log", "--json"]);
    assert!(output.raw.contains("\"undone\"") && !has_branch(), "{}", output.whole());
    assert_eq!(world.run(["list"]).err, "");
}

#[test]
fn a_title_of_our_own_is_no_growth() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "one");
    assert_eq!(world.run(["rename", "one", "two"]).code, 0);
    assert_eq!(world.run(["undo"]).code, 0, "the name");
    assert_eq!(world.run(["rename", "one", "three"]).code, 0);
    let output = world.run(["undo", "1"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(!path.exists());
    let output = world.run(["undo"]);
    assert!(output.err.contains("nothing to undo"), "the name went with the session: {}", output.whole());
}

#[test]
fn a_transcript_that_was_only_touched_has_not_grown() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "touched");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
    let output = world.run(["undo"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(!path.exists());
    let (_, path) = fork(&world, LOGIN, "edited");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("14 tests", "15 tests")).unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has changed since"), "{}", output.whole());
}

#[test]
fn a_fork_that_was_opened_and_closed_has_not_grown() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "opened");
    let exit = claude_record(&path, "user", "<command-name>/exit</command-name>");
    append(&path, &[json!({"type": "mode", "mode": "default"}), json!({"type": "last-prompt"}), exit]);
    let output = world.run(["undo"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(!path.exists());
    let (_, path) = fork(&world, EXPORT, "opened");
    append(&path, &[json!({"type": "turn_context", "payload": {"cwd": world.shop}}), json!({"type": "world_state"})]);
    let output = world.run(["undo"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(!path.exists());
    // What was said counts, also where it opens no turn, and so does what was changed before it.
    let (_, path) = fork(&world, LOGIN, "answered");
    append(&path, &[json!({"type": "mode", "mode": "default"}), claude_record(&path, "assistant", "more")]);
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has changed since"), "{}", output.whole());
    let (_, path) = fork(&world, LOGIN, "edited");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("14 tests", "15 tests")).unwrap();
    append(&path, &[json!({"type": "mode", "mode": "default"})]);
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has changed since"), "{}", output.whole());
}

/// Files of a subagent were not seen, and were left when the session was removed.
#[test]
fn what_an_agent_put_beside_a_fork_counts_and_goes_with_it() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "grown");
    let folder = path.with_extension("");
    world.sandbox.write(folder.join("subagents/agent-1.jsonl"), "{}\n");
    let output = world.run(["undo"]);
    assert!(output.code == 1 && output.err.contains("has changed since"), "{}", output.whole());
    assert_eq!(world.run(["undo", "--force"]).code, 0);
    assert!(!path.exists() && !folder.exists());
}

#[test]
fn a_worktree_in_which_somebody_is_stays() {
    let world = World::new();
    let made = world.json(["fork", LOGIN, "tree", "--worktree", "--json"]);
    let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
    let check = |expected: &str| {
        let output = world.run(["undo", "1"]);
        assert!(output.code == 1 && output.err.contains(expected), "{}", output.whole());
        assert!(tree.exists());
    };
    let mut sleeper = world.sandbox.command("sleep").arg("600").current_dir(&tree).spawn().unwrap();
    check("process ");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    world.sandbox.git(&world.shop, ["worktree", "lock", tree.to_str().unwrap()]);
    check("is locked");
    world.sandbox.git(&world.shop, ["worktree", "unlock", tree.to_str().unwrap()]);
    world.json(["fork", "tree", "beside", "--json"]);
    check("session `beside` works in");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.exists());
}

/// It was deleted, and the working tree was on a branch that nobody had ever committed to.
#[test]
fn a_branch_that_is_checked_out_elsewhere_stays() {
    let world = World::new();
    let git = |words: &[&str]| world.sandbox.git(&world.shop, words);
    let main = git(&["branch", "--show-current"]).trim().to_owned();
    let mine = world.shop.with_file_name("mine");
    let check = |name: &str, prepare: &dyn Fn(&str), expected: &str, in_place: Option<&str>| {
        let made = world.json(["fork", LOGIN, name, "--worktree", "--json"]);
        let tree = made["workspace"]["path"].as_str().unwrap().to_owned();
        let transcript = PathBuf::from(made["session"]["path"].as_str().unwrap());
        prepare(&tree);
        let output = world.run(["undo"]);
        assert!(output.code == 1 && output.err.contains(expected), "{}", output.whole());
        assert!(transcript.exists());
        let output = world.run(["undo", "--force"]);
        assert!(output.code == 0 && output.err.contains("kept "), "{}", output.whole());
        assert!(!transcript.exists());
        assert_eq!(git(&["rev-parse", name]), git(&["rev-parse", &main]), "the branch is there");
        let there = in_place.map(|_| world.sandbox.git(&tree, ["branch", "--show-current"]));
        assert_eq!(there.as_deref().map(str::trim), in_place);
        assert_eq!(git(&["status", "--porcelain"]), "");
        git(&["checkout", "--quiet", &main]);
    };
    let is_in_shop = "created by operation 1, is checked out in [ROOT]";
    let removed = |tree: &str| {
        git(&["worktree", "remove", tree]);
        git(&["checkout", "--quiet", "one"]);
    };
    check("one", &removed, is_in_shop, None);
    let moved = |tree: &str| drop(git(&["worktree", "move", tree, mine.to_str().unwrap()]));
    check("two", &moved, "/mine", None);
    assert_eq!(world.sandbox.git(&mine, ["branch", "--show-current"]).trim(), "two");
    let switched = |tree: &str| {
        world.sandbox.git(tree, ["checkout", "--quiet", "-b", "other"]);
        git(&["checkout", "--quiet", "three"]);
    };
    check("three", &switched, "is on branch `other`", Some("other"));
}

#[test]
fn what_somebody_put_where_a_worktree_was_stays() {
    let world = World::new();
    let git = |words: &[&str]| world.sandbox.git(&world.shop, words);
    for (name, is_worktree) in [("one", true), ("two", false)] {
        let made = world.json(["fork", LOGIN, name, "--worktree", "--json"]);
        let tree = PathBuf::from(made["workspace"]["path"].as_str().unwrap());
        match is_worktree {
            true => {
                git(&["worktree", "remove", tree.to_str().unwrap()]);
                git(&["worktree", "add", "--quiet", "-b", "of-somebody", tree.to_str().unwrap()]);
            }
            false => {
                fs::remove_dir_all(&tree).unwrap();
                fs::create_dir(&tree).unwrap();
            }
        }
        fs::write(tree.join("precious"), "").unwrap();
        let output = world.run(["undo"]);
        assert!(
            output.code == 1 && output.err.contains("is no longer the worktree created by operation"),
            "{}",
            output.whole()
        );
        let output = world.run(["undo", "--force"]);
        assert!(output.code == 0 && output.err.contains("kept "), "{}", output.whole());
        assert!(tree.join("precious").exists());
        assert_eq!(git(&["branch", "--list", name]).is_empty(), is_worktree);
    }
}

#[test]
fn a_fork_in_the_trash_is_brought_back_first() {
    let world = World::new();
    let (_, path) = fork(&world, LOGIN, "one");
    assert_eq!(world.run(["delete", "one", "--yes"]).code, 0);
    let output = world.run(["undo", "1"]);
    assert!(output.code == 1 && output.err.contains("`tine undo 2` restores it"), "{}", output.whole());
    fs::write(&path, "of somebody").unwrap();
    let output = world.run(["undo"]);
    assert!(
        output.err.contains("already exists") && output.err.contains("then run `tine undo 2` again"),
        "{}",
        output.whole()
    );
    fs::remove_file(&path).unwrap();
    let trash = world.sandbox.root().join("data/tine/trash");
    assert!(trash.exists(), "{}", trash.display());
    fs::remove_dir_all(trash).unwrap();
    let output = world.run(["undo"]);
    assert!(output.err.contains("the files deleted by operation 2 are no longer in the trash"), "{}", output.whole());
    assert_eq!(world.run(["undo"]).code, 0, "the deletion is not tried again");
}

#[test]
fn a_fork_of_what_is_taken_back_hangs_below_its_source() {
    let world = World::new();
    let made = world.json(["fork", &format!("{LOGIN}@2"), "middle", "--json"]);
    assert_eq!(made["session"]["turns"], 2);
    fork(&world, "middle", "last");
    assert_eq!(world.run(["undo", "1"]).code, 0);
    let parent = &world.json(["info", "last", "--json"])["parent"];
    assert_eq!((&parent["id"], &parent["turn"]), (&LOGIN.into(), &2.into()));
}

/// An old client's list of sessions.
#[test]
fn what_is_deleted_is_not_in_the_agents_own_list() {
    let world = World::new();
    let project = world.sandbox.claude_home().join("projects").join(agents::claude::project_folder(&world.shop));
    let list = world.sandbox.write(project.join("sessions-index.json"), r#"{"version":1,"entries":[]}"#);
    let (id, _) = fork(&world, LOGIN, "one");
    let is_listed = || fs::read_to_string(&list).unwrap().contains(&id);
    assert!(is_listed());
    assert_eq!(world.run(["delete", "one", "--yes"]).code, 0);
    assert!(!is_listed());
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(is_listed());
}
