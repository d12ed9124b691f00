//! Kills at any moment, of one process or of its whole group. The next run finishes or removes what was begun.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use testkit::build::{ClaudeSession, CodexSession};
use testkit::sandbox::text;

use crate::world::{EXPORT, LOGIN, World};
use crate::{assert_untouched, files_in, json, rounds, run, unfinished};

/// A repository with some hundred files, and a named session of each agent in it.
fn prepare() -> World {
    let world = World::empty();
    for number in 0..400 {
        let content = format!("content {number}\n").repeat(50);
        world.sandbox.write(world.shop.join(format!("folder-{}/file-{number}", number % 20)), &content);
    }
    world.sandbox.git(&world.shop, ["add", "."]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "more"]);
    let mut claude = ClaudeSession::new(LOGIN).cwd(&world.shop);
    let mut codex = CodexSession::new(EXPORT).cwd(&world.shop);
    for number in 0..20 {
        claude = claude.turn(|turn| {
            let turn =
                turn.prompt(format!("prompt {number}")).subagent("help", |turn| turn.prompt("look").text("found"));
            turn.text("words ".repeat(2000))
        });
        codex = codex.turn(|turn| turn.prompt(format!("prompt {number}")).text("words ".repeat(2000)));
    }
    claude.write(&world.sandbox.claude_home());
    codex.write(&world.sandbox.codex_home());
    for (id, name) in [(LOGIN, "login"), (EXPORT, "export")] {
        assert_eq!(world.run(["adopt", id, name]).code, 0);
    }
    world
}

/// Worktrees and branches that belong to forks, as git knows them.
fn branches(world: &World) -> BTreeSet<String> {
    let listed = world.sandbox.git(&world.shop, ["branch", "--format=%(refname:short)"]);
    let trees = world.sandbox.git(&world.shop, ["worktree", "list", "--porcelain"]);
    let checked_out = trees.lines().filter_map(|line| line.strip_prefix("branch refs/heads/"));
    listed.lines().chain(checked_out).map(str::to_owned).filter(|branch| branch != "main").collect()
}

#[test]
fn what_was_killed_is_finished_or_gone() {
    let world = prepare();
    let (login, export) = ("login", "export");
    let beside = world.shop.parent().unwrap().to_owned();
    let before = world.agents_files();
    let source = files_in([world.shop.as_path()]);
    let killed = std::cell::Cell::new(0);
    // How long each kind takes when nobody interferes, so that kills are spread over all of it.
    let usual = std::cell::RefCell::new(std::collections::HashMap::<usize, Duration>::new());
    rounds("what_was_killed", 40, |random| {
        let kind = random.below(6);
        let session = *random.choose(&[login, export]);
        let words: &[&str] = match kind {
            0 => &["fork", session, "other", "--yes"],
            1 | 2 => &["fork", session, "other", "--worktree", "--yes"],
            3 => &["clone", session, "other", "--yes"],
            4 => &["delete", session, "--yes"],
            _ => &["rename", session, "other"],
        };
        let time = *usual.borrow_mut().entry(kind).or_insert_with(|| {
            let begun = Instant::now();
            succeed(&mut world.command(words));
            let time = begun.elapsed();
            succeed(&mut world.command(["undo"]));
            time
        });
        let is_undo = random.below(3) == 0;
        if is_undo {
            succeed(&mut world.command(words));
        }
        let mut command = if is_undo { world.command(["undo"]) } else { world.command(words) };
        let mut child =
            command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tine starts");
        std::thread::sleep(time.mul_f64(random.fraction() * 1.1));
        let pid = Pid::from_child(&child);
        let is_group = random.below(2) == 0;
        // The process may have ended by itself; then there is nothing to kill.
        let _ = if is_group { kill_process_group(pid, Signal::KILL) } else { kill_process(pid, Signal::KILL) };
        killed.set(killed.get() + usize::from(!child.wait().unwrap().success()));
        if !is_group {
            // A git that outlives tine ends by itself.
            wait_for_group(pid);
        }
        let log = json(&mut world.command(["log", "--json"]));
        let states: BTreeSet<&str> =
            log.as_array().unwrap().iter().map(|operation| operation["state"].as_str().unwrap()).collect();
        assert!(states.iter().all(|state| !matches!(*state, "started" | "undoing")), "{:#}", log[0]);
        assert_eq!(unfinished(world.sandbox.root()), [] as [PathBuf; 0]);
        let is_done = log[0]["state"] == "done" && log[0]["kind"] != "adopt";
        check_fork(&world, kind, is_done, &log[0]);
        if is_done {
            succeed(&mut world.command(["undo"]));
        }
        assert_eq!(branches(&world), BTreeSet::new(), "{words:?}, group: {is_group}, undo: {is_undo}");
        let left: Vec<_> = std::fs::read_dir(&beside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.iter().filter(|name| *name != "shop" && *name != "blog").collect::<Vec<_>>(), [] as [&str; 0]);
        assert_untouched(&before);
        assert_eq!(world.agents_files().len(), before.len(), "{words:?}");
        assert_untouched(&source);
        for (id, name) in [(LOGIN, login), (EXPORT, export)] {
            assert_eq!(json(&mut world.command(["info", name, "--json"]))["id"], id);
        }
    });
    world.sandbox.git(&world.shop, ["fsck", "--no-dangling"]);
    assert!(killed.get() > 5, "only {} were killed", killed.get());
}

/// Runs a command that nothing disturbs.
#[track_caller]
fn succeed(command: &mut Command) {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
}

/// A fork, its worktree and its copy are there exactly when the log says that they are.
fn check_fork(world: &World, kind: usize, is_done: bool, operation: &Value) {
    if kind > 3 {
        return;
    }
    let is_known = run(&mut world.command(["info", "other", "--json"])).status.success();
    assert_eq!(is_known, is_done, "{operation:#}");
    if matches!(kind, 1 | 2) {
        assert_eq!(branches(world).contains("other"), is_done, "{operation:#}");
        let tree = world.shop.with_file_name("shop.worktrees").join("other");
        assert_eq!(tree.join("folder-0/file-0").exists(), is_done, "{operation:#}");
    }
}

/// Waits until nobody of a process group runs any more.
fn wait_for_group(group: Pid) {
    let runs = || {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.into_iter().any(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
            fields.is_some_and(|fields| {
                fields.first() != Some(&"Z") && fields.get(2) == Some(&&*group.as_raw_nonzero().to_string())
            })
        })
    };
    let begun = Instant::now();
    while runs() && begun.elapsed() < crate::PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!runs(), "a process of group {group:?} does not end");
}
