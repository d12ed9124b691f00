//! Forks in trouble: killed at any moment, on a full disk, several at once, of a source that grows.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::build::{ClaudeSession, CodexSession, Random};
use testkit::sandbox::text;

use crate::test_fork::unfinished;
use crate::world::{EXPORT, LOGIN, World};

/// A session of some hundred kilobytes, with subagents.
fn long_session(world: &World, turns: usize) -> ClaudeSession {
    let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop);
    for number in 0..turns {
        session = session.turn(|turn| {
            turn.prompt(format!("prompt {number}"))
                .subagent("help", |turn| turn.prompt("below").text("done"))
                .text("words ".repeat(3000))
        });
    }
    session
}

fn spawn(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn prompts(world: &World, session: &str) -> Vec<String> {
    let shown = world.json(["show", session, "--json"]);
    let turns = shown["turns"].as_array().unwrap();
    turns.iter().map(|turn| turn["prompt"].as_str().unwrap().to_owned()).collect()
}

/// git writes its index last. Files that were not in it yet were taken for somebody's work, and stayed for ever.
#[test]
fn a_worktree_whose_git_was_killed_as_well_is_removed() {
    let world = World::empty();
    long_session(&world, 2).write(&world.sandbox.claude_home());
    for number in 0..1500 {
        let path = world.shop.join(format!("folder-{}/file-{number}", number % 30));
        world.sandbox.write(path, &format!("content {number}\n").repeat(40));
    }
    world.sandbox.git(&world.shop, ["add", "."]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "more"]);
    let words = ["fork", LOGIN, "other", "--worktree", "--yes"];
    let tree = world.shop.with_file_name("shop.worktrees").join("other");
    let mut half_made = 0;
    for round in 0..12 {
        let mut command = world.command(words);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // From the moment at which git begins to write until a moment after.
        let begun = Instant::now();
        while !tree.exists() && child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(3 * round));
        let group = format!("-{}", child.id());
        let _ = world.sandbox.command("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        half_made += usize::from(!child.wait().unwrap().success());
        let output = world.run(["log", "--json"]);
        let log: Value = serde_json::from_str(&output.raw).unwrap();
        if log[0]["state"] == "done" {
            assert_eq!(world.run(["undo"]).code, 0);
        }
        let branches = world.sandbox.git(&world.shop, ["branch", "--format=%(refname:short)"]);
        assert_eq!((branches.trim(), tree.exists()), ("main", false), "round {round}: {}", output.whole());
        assert!(!world.shop.join(".git/worktrees/other").exists(), "round {round}: {}", output.whole());
    }
    assert!(half_made > 3, "only {half_made} were killed in time");
}

/// A disk that is full, as a limit on the size of files shows it.
#[test]
fn a_failed_fork_leaves_nothing() {
    let world = World::empty();
    let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop);
    for _ in 0..40 {
        session = session.turn(|turn| turn.prompt("again").text("words ".repeat(2000)));
    }
    session.write(&world.sandbox.claude_home());
    assert_eq!(world.run(["list"]).code, 0);
    let before = world.agents_files();
    // 256 KB for any file, which is enough for the registry.
    let mut command = world.sandbox.command("sh");
    command.args(["-c", "ulimit -f 512; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tine"), "fork", LOGIN]);
    let output = command.current_dir(&world.shop).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("error: cannot write") && printed.contains("the incomplete fork was removed"),
        "{printed}"
    );
    assert_eq!(world.agents_files(), before);
    assert_eq!(world.run(["fork", LOGIN]).code, 0);
}

/// The limit comes with a signal that ends a process by default.
#[test]
fn a_file_size_limit_ends_no_command() {
    let world = World::new();
    let limited = |script: &str, words: &[&str]| {
        let mut command = world.sandbox.command("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_tine")]).args(words).current_dir(&world.shop);
        command.output().unwrap()
    };
    let commands: &[&[&str]] = &[
        &["list"],
        &["show", LOGIN],
        &["search", "redirect"],
        &["index"],
        &["adopt", LOGIN, "auth"],
        &["fork", LOGIN],
        &["export", "exported"],
        &["setup", "claude"],
        &["doctor"],
        &["hook", "stop", "--agent", "claude"],
        &["mcp"],
    ];
    for words in commands {
        // Nothing can be written at all, with an empty home and with one that tine has used.
        for _ in 0..2 {
            let output = limited("ulimit -f 0; exec \"$@\" </dev/null", words);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {output:?}");
            if words[0] == "hook" {
                assert_eq!(output.status.code(), Some(0), "{output:?}");
            }
        }
    }
    let output = limited("ulimit -f 0; exec \"$@\" > listed", &["list"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("cannot write the output: File too large"), "{output:?}");
}

/// Killed at any moment, a deletion has happened or it has not, also where the trash is on another disk.
#[test]
fn a_killed_deletion_happens_or_does_not() {
    let mut random = Random::new(11);
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    for is_far in [false, true] {
        let world = World::empty();
        let registry = elsewhere.path().join("tine/registry.db");
        let command = |words: &[&str]| {
            let mut command = world.command(words);
            if is_far {
                command.env("TINE_REGISTRY", &registry);
            }
            command
        };
        let output = |words: &[&str]| text(&command(words).output().unwrap().stdout);
        long_session(&world, 30).write(&world.sandbox.claude_home());
        assert!(command(&["rename", LOGIN, "mine"]).output().unwrap().status.success());
        let before = world.agents_files();
        let (mut gone, mut stayed) = (0, 0);
        // Kills are spread over the whole of a deletion, however long it takes on this machine.
        let begun = Instant::now();
        assert!(command(&["delete", "mine", "--yes"]).output().unwrap().status.success());
        let whole = begun.elapsed().as_micros() as usize * 3 / 2;
        assert!(command(&["undo"]).output().unwrap().status.success());
        for _ in 0..40 {
            let mut deletion = command(&["delete", "mine", "--yes"]);
            let mut child = deletion.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(whole) as u64));
            child.kill().unwrap();
            child.wait().unwrap();
            let log: Value = serde_json::from_str(&output(&["log", "--json"])).unwrap();
            assert_ne!(log[0]["state"], "started", "{log:#}");
            let is_deleted = log[0]["kind"] == "delete" && log[0]["state"] == "done";
            assert_eq!(output(&["info", "mine"]).is_empty(), is_deleted, "{log:#}");
            if is_deleted {
                gone += 1;
                assert!(command(&["undo"]).output().unwrap().status.success());
            } else {
                stayed += 1;
            }
            let info: Value = serde_json::from_str(&output(&["info", "mine", "--json"])).unwrap();
            assert_eq!(info["id"], LOGIN);
            assert!(world.agents_files() == before);
        }
        assert!(gone > 0 && stayed > 0, "{gone} happened, {stayed} did not");
    }
}

/// Killed at any moment, an undo is finished by the next run or has not happened; nothing is there by half.
#[test]
fn a_killed_undo_happens_or_does_not() {
    let mut random = Random::new(13);
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let world = World::empty();
    let registry = elsewhere.path().join("tine/registry.db");
    // The trash is on another disk, too.
    let command = |words: &[&str]| {
        let mut command = world.command(words);
        command.env("TINE_REGISTRY", &registry);
        command
    };
    let run = |words: &[&str]| {
        let output = command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    for number in 0..150 {
        world.sandbox.write(world.shop.join(format!("folder-{}/{number}", number % 10)), "content");
    }
    world.sandbox.git(&world.shop, ["add", "."]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "more"]);
    long_session(&world, 12).write(&world.sandbox.claude_home());
    run(&["rename", LOGIN, "mine"]);
    let beside = || {
        let entries = fs::read_dir(world.shop.parent().unwrap()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let trees = world.sandbox.git(&world.shop, ["worktree", "list"]);
        (names, trees, world.sandbox.git(&world.shop, ["branch"]))
    };
    let before = (world.agents_files(), beside());
    let kinds: [&[&str]; 4] = [
        &["clone", "mine", "other"],
        &["fork", "mine", "other", "--worktree"],
        &["fork", "mine", "other"],
        &["delete", "mine", "--yes"],
    ];
    let mut finished = 0;
    for words in kinds {
        run(words);
        let begun = std::time::Instant::now();
        run(&["undo"]);
        let whole = usize::try_from(begun.elapsed().as_micros()).unwrap();
        for round in 0..6 {
            run(words);
            let mut child = command(&["undo"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(whole) as u64));
            child.kill().unwrap();
            child.wait().unwrap();
            finished += usize::from(run(&["list"]).1.contains("finished the interrupted undo"));
            let log: Value = serde_json::from_str(&run(&["log", "--json"]).0).unwrap();
            match log[0]["state"].as_str().unwrap() {
                "done" => drop(run(&["undo"])),
                state => assert_eq!(state, "undone", "{words:?}, {round}: {:#}", log[0]),
            }
            assert!(world.agents_files() == before.0, "{words:?}, {round}");
            assert_eq!(beside(), before.1, "{words:?}, {round}");
            assert_eq!(unfinished(world.sandbox.root()), [] as [PathBuf; 0], "{words:?}, {round}");
            assert_eq!(unfinished(elsewhere.path()), [] as [PathBuf; 0], "{words:?}, {round}");
            let info: Value = serde_json::from_str(&run(&["info", "mine", "--json"]).0).unwrap();
            assert_eq!(info["id"], LOGIN);
        }
    }
    assert!(finished > 0, "none was cut off in the middle");
}

/// Two at once said that they had undone the same.
#[test]
fn of_several_undos_at_once_each_has_its_own() {
    let world = World::new();
    for number in 0..6 {
        world.json(["fork", LOGIN, &format!("fork-{number}"), "--json"]);
    }
    for _ in 0..2 {
        let children: Vec<Child> = (0..4).map(|_| spawn(&world, &["undo"])).collect();
        let mut undone = Vec::new();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let printed = text(&output.stderr);
            match output.status.success() {
                true => undone.push(printed),
                false => {
                    assert!(printed.contains("is being undone") || printed.contains("nothing to undo"), "{printed}");
                }
            }
        }
        let count = undone.len();
        undone.sort();
        undone.dedup();
        assert!(count > 0 && undone.len() == count, "{undone:?}");
    }
}

/// Killed at any moment, a fork is there or it is not; the next run removes what is left of it.
#[test]
fn a_killed_fork_is_cleaned_up() {
    let world = World::empty();
    let source = long_session(&world, 30).write(&world.sandbox.claude_home());
    let mut thread = CodexSession::new(EXPORT).cwd(&world.shop);
    for number in 0..30 {
        thread = thread.turn(|turn| turn.prompt(format!("prompt {number}")).text("words ".repeat(3000)));
    }
    let rollout = thread.write(&world.sandbox.codex_home());
    let contents = [&source, &rollout].map(|path| fs::read(path).unwrap());
    let count = || world.json(["list", "--all", "--json"]).as_array().unwrap().len();
    assert_eq!(count(), 2);
    let mut random = Random::new(7);
    let mut cut_off = 0;
    for number in 0..200 {
        let name = format!("fork-{number}");
        let copy = format!("../copies/{number}");
        let mut words = vec!["fork", if number % 3 == 0 { EXPORT } else { LOGIN }, &name];
        match number % 4 {
            0 => words.push("--worktree"),
            1 => words.extend(["--copy-to", &copy]),
            _ => {}
        }
        let mut child = spawn(&world, &words);
        std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        child.kill().unwrap();
        cut_off += usize::from(!child.wait().unwrap().success());
        let sessions = count();
        let log = world.json(["log", "--json"]);
        let of_state = |state: &str| {
            let operations = log.as_array().unwrap().iter();
            operations.filter(|operation| operation["state"] == state).count()
        };
        assert_eq!(sessions, of_state("done") + 2, "{log:#}");
        assert_eq!(of_state("started"), 0, "{log:#}");
        assert_eq!(unfinished(world.sandbox.root()), [] as [PathBuf; 0]);
        let is_there = world.run(["info", &name]).code == 0;
        assert_eq!(
            is_there,
            log[0]["what"].as_str().is_some_and(|what| what.ends_with(&name)) && log[0]["state"] == "done"
        );
        if number % 4 == 0 {
            let tree = world.shop.with_file_name("shop.worktrees").join(&name);
            assert_eq!(tree.exists(), is_there, "{}", tree.display());
            assert_eq!(world.sandbox.git(&world.shop, ["branch"]).contains(&name), is_there);
        }
        if number % 4 == 1 {
            assert_eq!(world.shop.with_file_name("copies").join(number.to_string()).exists(), is_there);
        }
    }
    assert!(cut_off > 50, "only {cut_off} were cut off");
    assert_eq!([&source, &rollout].map(|path| fs::read(path).unwrap()), contents);
}

/// A file system of two megabytes that nobody else sees, over the folder in which the fork belongs.
#[test]
fn a_full_disk_leaves_nothing() {
    let world = World::empty();
    let source = long_session(&world, 200).write(&world.sandbox.claude_home());
    let content = fs::read(&source).unwrap();
    assert!(content.len() > 3 << 20);
    let target = world.blog.canonicalize().unwrap();
    let folder = source.parent().unwrap().with_file_name(agents::claude::project_folder(&target));
    fs::create_dir_all(&folder).unwrap();
    let script = "mount -t tmpfs -o size=2m none \"$1\" && { \"$2\" fork \"$3\" --to \"$4\"; code=$?; \
                  echo left; find \"$1\" -mindepth 1; exit $code; }";
    let run = |separate: &[&str]| -> Output {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]);
        command.arg(&folder).arg(env!("CARGO_BIN_EXE_tine")).args([LOGIN]).arg(&target);
        command.current_dir(&world.shop).output().unwrap()
    };
    // Where this is not the system's administrator, it can be one in a namespace of its own.
    let mut output = run(&["--mount"]);
    if text(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("No space left") && printed.contains("the incomplete fork was removed"), "{printed}");
    assert_eq!(text(&output.stdout), "left\n");
    assert_eq!(fs::read(&source).unwrap(), content);
    assert_eq!(world.json(["list", "--all", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(world.run(["fork", LOGIN]).code, 0);
}

#[test]
fn several_forks_of_one_source_at_once_are_all_right() {
    let world = World::empty();
    long_session(&world, 10).write(&world.sandbox.claude_home());
    let children: Vec<Child> = (0..8).map(|_| spawn(&world, &["fork", LOGIN, "--json"])).collect();
    let mut names = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        names.push(printed["session"]["name"].as_str().unwrap().to_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 8, "{names:?}");
    let expected = prompts(&world, LOGIN);
    for name in &names {
        assert_eq!(prompts(&world, name), expected);
    }
    assert_eq!(world.json(["list", "--all", "--json"]).as_array().unwrap().len(), names.len() + 1);
}

#[test]
fn a_source_that_grows_is_forked_as_it_was() {
    let world = World::empty();
    let path = long_session(&world, 60).write(&world.sandbox.claude_home());
    let content = fs::read(&path).unwrap();
    let all = prompts(&world, LOGIN);
    let begin = content.len() / 10;
    fs::write(&path, &content[..begin]).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let writer = std::thread::spawn(move || {
        // Pieces that end anywhere in a line, as a reader may find them.
        for piece in content[begin..].chunks(7_001) {
            file.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(4));
        }
    });
    let mut lengths = Vec::new();
    for number in 0..12 {
        let made = world.json(["fork", LOGIN, &format!("grown-{number}"), "--json"]);
        let turns = prompts(&world, made["session"]["id"].as_str().unwrap());
        assert_eq!(turns, all[..turns.len()], "fork {number}");
        lengths.push(turns.len());
    }
    writer.join().unwrap();
    assert!(lengths.is_sorted() && lengths[0] < all.len(), "{lengths:?}");
    assert_eq!(prompts(&world, LOGIN), all);
}

#[test]
fn forks_of_forks_keep_their_lineage() {
    let world = World::new();
    let mut source = LOGIN.to_owned();
    for generation in 1..=5 {
        let name = format!("generation-{generation}");
        let made = world.json(["fork", &source, &name, "--json"]);
        assert_eq!(made["session"]["parent"]["id"], made["parent"]["id"]);
        assert_eq!(prompts(&world, &name), prompts(&world, LOGIN));
        source = name;
    }
    let info = world.json(["info", "generation-5", "--json"]);
    assert_eq!(info["parent"]["name"], "generation-4");
    let path = PathBuf::from(info["path"].as_str().unwrap());
    let ids = ["generation-3", "generation-2"].map(|name| world.json(["info", name, "--json"])["id"].clone());
    let content = fs::read_to_string(path).unwrap();
    for id in ids {
        assert!(!content.contains(id.as_str().unwrap()), "an older ancestor is left in it");
    }
}

/// Forks that nobody named, all at once: each goes on under its own name, in its own workspace.
#[test]
fn forks_at_once_are_called_what_they_are_told() {
    let world = World::new();
    assert_eq!(world.run(["list"]).code, 0);
    let check = |arguments: &[&str], at_once: usize| {
        let children: Vec<Child> = (0..at_once).map(|_| spawn(&world, arguments)).collect();
        let mut places = std::collections::BTreeSet::new();
        for output in children.into_iter().map(|child| child.wait_with_output().unwrap()) {
            assert!(output.status.success(), "{arguments:?}: {} {}", text(&output.stdout), text(&output.stderr));
            let made: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(made["environment"]["TINE_SESSION"], made["session"]["name"]);
            if made["workspace"]["kind"] != "same" {
                let path = made["workspace"]["path"].as_str().unwrap();
                assert!(path.ends_with(made["session"]["name"].as_str().unwrap()), "{path}");
                assert_eq!(made["session"]["cwd"], path);
                assert!(made["command"].to_string().contains(made["session"]["id"].as_str().unwrap()));
            }
            places.insert(made["session"]["path"].to_string());
        }
        assert_eq!(places.len(), at_once);
    };
    check(&["fork", LOGIN, "--json"], 6);
    check(&["fork", LOGIN, "--worktree", "--json"], 4);
    check(&["clone", LOGIN, "--json"], 4);
}

#[test]
fn a_codex_that_exits_at_once_is_not_waited_for() {
    let world = World::new();
    let check = |script: &str, expected: &str| {
        world.sandbox.script("codex", script);
        let begun = std::time::Instant::now();
        let output = world.run(["fork", EXPORT, "--method", "native", "--yes"]);
        assert!(output.code == 1 && output.err.contains(expected), "{}", output.whole());
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    };
    check("#!/bin/sh\nexit 3\n", "failed: it exited immediately (exit status: 3)\n");
    check("#!/bin/sh\necho 'cannot find its library' >&2\nexit 1\n", "failed: cannot find its library\n");
    check("#!/bin/sh\nexit 3\n", "hint: the incomplete fork was removed");
}
