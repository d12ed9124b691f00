//! `tine fork --no-start`: nothing is sent to a model until the fork is resumed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::stand_in::{install_claude, install_codex};

use crate::test_fork_methods::world;
use crate::test_mcp_smart_fork::call;
use crate::world::{EXPORT, LOGIN, World};

/// Transcripts that tine keeps for forks that have not started.
fn kept(world: &World) -> Vec<PathBuf> {
    let folder = world.sandbox.root().join("data/tine/seeds");
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// The agents' transcripts.
fn transcripts(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = world.agents_files();
    files.retain(|path, _| path.extension().is_some_and(|extension| extension == "jsonl"));
    files
}

/// Forks a Claude session for Codex without starting it.
fn fork(world: &World, name: &str, more: &[&str]) -> Value {
    let words = ["fork", LOGIN, name, "--agent", "codex", "--method", "seed", "--no-start", "--json", "--yes"];
    world.json(words.iter().chain(more))
}

#[test]
fn nothing_is_sent_before_the_first_resume() {
    for (hooks, source, target, method) in [
        (false, LOGIN, "codex", "seed"),
        (true, LOGIN, "codex", "seed"),
        (false, EXPORT, "claude", "seed"),
        (true, EXPORT, "claude", "seed"),
        (false, LOGIN, "claude", "seed"),
        (true, EXPORT, "codex", "seed"),
    ] {
        let case = format!("{source} to {target}, hooks: {hooks}");
        let world = world(hooks);
        assert_eq!(world.run(["adopt", source, "origin"]).code, 0);
        let before = transcripts(&world);
        let words = ["fork", "origin@1", "twig", "--agent", target, "--method", method, "--no-start", "--json"];
        let made = world.json(words);
        assert_eq!(transcripts(&world), before, "{case}");
        assert_eq!((&made["requests"], &made["method"]), (&json!([]), &json!("seed")), "{case}");
        assert_eq!(made["later_requests"].as_array().unwrap().len(), 1, "{case}: {made:#}");
        assert_eq!(made["command"], json!(["tine", "resume", "twig"]), "{case}");
        assert_eq!((&made["session"]["unstarted"], &made["session"]["turns"]), (&json!(true), &json!(0)), "{case}");
        let [file] = &kept(&world)[..] else { panic!("{case}: {:?}", kept(&world)) };
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{case}");

        let shown = world.json(["show", "twig", "--json"]);
        let seed = shown["turns"][0]["prompt"].as_str().unwrap().to_owned();
        assert!(seed.contains("prompt 1") && !seed.contains("prompt 2"), "{case}: {seed}");
        // The source may change or vanish.
        fs::remove_file(made["parent"]["path"].as_str().unwrap()).unwrap();
        let resumed = world.json(["resume", "twig", "--in", "none", "--json"]);
        assert_eq!((&resumed["session"]["name"], &resumed["session"]["turns"]), (&json!("twig"), &json!(1)), "{case}");
        assert_eq!(resumed["session"]["parent"]["id"], source, "{case}");
        assert!(resumed["session"]["unstarted"].is_null(), "{case}: {resumed:#}");
        assert!(resumed["command"].as_array().unwrap().contains(&resumed["session"]["id"]), "{case}: {resumed:#}");
        assert_eq!(kept(&world), Vec::<PathBuf>::new(), "{case}");
        let shown = world.json(["show", "twig", "--json"]);
        assert_eq!(shown["turns"][0]["prompt"].as_str().map(str::trim), Some(seed.trim()), "{case}");
        let info = world.json(["info", "twig", "--json"]);
        assert_eq!((&info["seed"]["turn"], &info["seed"]["parent"]), (&json!(1), &json!(source)), "{case}");

        // It is a fork like any other now.
        let again = transcripts(&world).len();
        assert_eq!(world.json(["resume", "twig", "--in", "none", "--json"])["session"], resumed["session"], "{case}");
        assert_eq!(transcripts(&world).len(), again, "{case}");
        let log = world.json(["log", "--json"]);
        assert_eq!((&log[0]["kind"], &log[0]["state"]), (&json!("fork"), &json!("done")), "{case}");
        let output = world.run(["undo"]);
        assert_eq!(output.code, 0, "{case}: {output:?}");
        assert_eq!(world.run(["info", "twig"]).code, 1, "{case}");
        assert_eq!(transcripts(&world).len(), before.len() - 1, "{case}");
    }
}

#[test]
fn a_fork_that_has_not_started_says_so_everywhere() {
    let mut world = world(false);
    world.sandbox.set_now("2026-11-15T12:00:00Z");
    assert_eq!(world.run(["adopt", LOGIN, "login-fix"]).code, 0);
    let words = ["fork", "login-fix", "cookies", "--agent", "codex", "--method", "seed", "--no-start"];
    insta::assert_snapshot!("no_start_plan", world.run(words.iter().chain(&["--plan"])).whole());
    insta::assert_snapshot!("no_start_fork", world.run(words).whole());
    let list = world.run(["list"]).out;
    let row = list.lines().find(|line| line.contains("cookies")).unwrap();
    assert!(row.contains("not started  transcript of login-fix up to turn 2"), "{row}");
    let tree = world.run(["tree", "cookies"]).out;
    assert!(tree.contains("cookies @2 ←  codex  not started"), "{tree}");
    assert_eq!(world.run(["status", "cookies"]).out, "not started\n");
    let info = world.run(["info", "cookies"]).out;
    assert!(info.contains("not started; `tine resume cookies` starts it"), "{info}");
    assert!(info.contains("2 turns, about"), "{info}");
    let show = world.run(["show", "cookies"]);
    assert!(show.out.contains("(transcript of login-fix up to turn 2, about"), "{show:?}");
    assert!(show.err.contains("cookies has not started"), "{show:?}");
    for words in [vec!["fork", "cookies", "--method", "copy"], vec!["read", "cookies"]] {
        let output = world.run(&words);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(
            output.err.contains("`cookies` has not started\nhint: start it with `tine resume cookies`"),
            "{output:?}"
        );
    }
    assert_eq!(world.run(["fork", "login-fix", "--no-start", "--in", "tmux"]).code, 2);
    // Other methods send nothing anyway.
    let copy = world.json(["fork", "login-fix", "copied", "--no-start", "--json"]);
    assert_eq!((&copy["method"], &copy["place"]["kind"]), (&json!("copy"), &json!("none")));
    assert!(copy["session"]["unstarted"].is_null());
}

#[test]
fn a_fork_that_has_not_started_is_undone_deleted_and_renamed() {
    let world = world(false);
    let before = transcripts(&world);
    let tree = world.shop.with_file_name("shop.worktrees").join("twig");
    fork(&world, "twig", &["--worktree"]);
    assert!(tree.is_dir());
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!((tree.exists(), kept(&world)), (false, Vec::new()));
    assert_eq!(world.run(["info", "twig"]).code, 1);

    fork(&world, "twig", &["--worktree"]);
    let text = fs::read(&kept(&world)[0]).unwrap();
    assert_eq!(world.run(["rename", "twig", "branch"]).code, 0);
    assert_eq!(fs::read(&kept(&world)[0]).unwrap(), text);
    assert_eq!(world.run(["delete", "branch", "--yes"]).code, 0);
    assert_eq!((world.run(["info", "branch"]).code, kept(&world)), (1, Vec::new()));
    let output = world.run(["undo"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(world.json(["info", "branch", "--json"])["unstarted"], true);
    assert_eq!(transcripts(&world), before);

    let resumed = world.json(["resume", "branch", "--in", "none", "--json"]);
    assert_eq!(resumed["session"]["cwd"].as_str(), tree.to_str());
    // The renaming and the fork are still taken back, one after the other.
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(world.run(["status", "twig"]).code, 0);
    let output = world.run(["undo"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!((tree.exists(), transcripts(&world)), (false, before));
}

#[test]
fn several_forks_wait_to_be_started() {
    let world = world(false);
    let made = fork(&world, "twig", &["--times", "2"]);
    assert_eq!((made.as_array().unwrap().len(), kept(&world).len()), (2, 2));
    let sent = world.json(["send", "twig-2", "go on", "--wait", "--json"]);
    assert_eq!((&sent["session"]["name"], &sent["session"]["turns"]), (&json!("twig-2"), &json!(2)));
    assert_eq!(kept(&world).len(), 1);
    assert_eq!(world.run(["undo", "--force"]).code, 0);
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}

#[test]
fn a_start_that_fails_can_be_tried_again() {
    for (source, agent) in [(LOGIN, "codex"), (EXPORT, "claude")] {
        let world = world(false);
        let before = transcripts(&world);
        world.json(["fork", source, "twig", "--agent", agent, "--method", "seed", "--no-start", "--json"]);
        let program = world.sandbox.bin().join(agent);
        fs::remove_file(&program).unwrap();
        world.sandbox.script(agent, "#!/bin/sh\necho 'out of credits' >&2\nexit 1\n");
        let output = world.run(["resume", "twig", "--in", "none"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.err.contains("`twig` was not started") && output.err.contains("retries"), "{output:?}");
        assert_eq!((world.json(["info", "twig", "--json"])["unstarted"].clone(), kept(&world).len()), (json!(true), 1));
        assert_eq!(transcripts(&world), before);
        fs::remove_file(&program).unwrap();
        match agent {
            "codex" => install_codex(&world.sandbox),
            _ => install_claude(&world.sandbox),
        };
        assert_eq!(world.json(["resume", "twig", "--in", "none", "--json"])["session"]["turns"], 1);
    }
}

#[test]
fn a_killed_start_leaves_the_fork_started_or_not() {
    for (source, agent) in [(LOGIN, "codex"), (EXPORT, "claude")] {
        let world = world(false);
        let before = transcripts(&world).len();
        let (mut started, mut waiting) = (0, 0);
        for round in 0..16 {
            world.json(["fork", source, "twig", "--agent", agent, "--method", "seed", "--no-start", "--json"]);
            let mut command = world.command(["resume", "twig", "--in", "none"]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(12 * round));
            child.kill().unwrap();
            child.wait().unwrap();
            let info = world.json(["info", "twig", "--json"]);
            let (keeps, transcripts) = (kept(&world).len(), transcripts(&world).len() - before);
            match info["unstarted"] == true {
                true => {
                    waiting += 1;
                    assert_eq!((keeps, transcripts), (1, 0), "{agent}, round {round}");
                }
                false => {
                    started += 1;
                    assert_eq!((keeps, transcripts, &info["turns"]), (0, 1, &json!(1)), "{agent}, round {round}");
                }
            }
            let output = world.run(["undo"]);
            assert_eq!(output.code, 0, "{agent}, round {round}: {output:?}");
            assert_eq!((kept(&world).len(), self::transcripts(&world).len()), (0, before), "{agent}, round {round}");
        }
        assert!(waiting > 0, "{agent}: {started} started, {waiting} waiting");
    }
}

#[test]
fn a_killed_fork_that_is_not_to_start_is_there_or_not() {
    let world = world(false);
    let mut made = 0;
    for round in 0..12 {
        let mut command = world.command(["fork", LOGIN, "twig", "--agent", "codex", "--method", "seed", "--no-start"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let is_there = world.run(["info", "twig"]).code == 0;
        assert_eq!(kept(&world).len(), usize::from(is_there), "round {round}");
        if is_there {
            made += 1;
            assert_eq!(world.run(["undo"]).code, 0);
        }
    }
    assert!(made < 12, "none was killed in time");
}

#[test]
fn two_resumes_at_once_start_a_fork_once() {
    let world = world(false);
    let before = transcripts(&world).len();
    fork(&world, "twig", &[]);
    let resume = || {
        let mut command = world.command(["resume", "twig", "--in", "none"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [resume(), resume()].map(|child| child.wait_with_output().unwrap());
    assert!(both.iter().any(|output| output.status.success()), "{both:?}");
    for output in both.iter().filter(|output| !output.status.success()) {
        assert!(String::from_utf8_lossy(&output.stderr).contains("`twig` is being started"), "{output:?}");
    }
    assert_eq!((transcripts(&world).len(), kept(&world).len()), (before + 1, 0));
}

#[test]
fn a_fork_starts_where_it_is_told_to() {
    let world = world(false);
    fork(&world, "twig", &["--worktree"]);
    let moved = world.blog.clone();
    fs::remove_dir_all(world.shop.with_file_name("shop.worktrees")).unwrap();
    // Nothing is sent before it is clear that it can go on.
    assert_eq!(world.run(["resume", "twig", "--in", "headless"]).code, 1);
    assert_eq!(world.run(["resume", "twig", "--in", "none"]).code, 1);
    assert_eq!(kept(&world).len(), 1);
    let resumed = world.json(["resume", "twig", "--to", moved.to_str().unwrap(), "--in", "none", "--json"]);
    assert_eq!(resumed["session"]["cwd"].as_str(), moved.to_str());
}

#[test]
fn a_fork_over_mcp_that_is_not_opened_sends_nothing() {
    let world = world(false);
    let before = transcripts(&world);
    let asked = json!({"session": LOGIN, "name": "twig", "agent": "codex", "method": "seed", "open": false});
    let made = call(&world, "fork_session", &asked);
    assert_eq!((&made["session"]["unstarted"], &made["requests"]), (&json!(true), &json!([])), "{made:#}");
    assert_eq!((transcripts(&world), kept(&world).len()), (before.clone(), 1));
    let sent = call(&world, "send_message", &json!({"sessions": ["twig"], "message": "go on", "wait": "all"}));
    assert_eq!((sent["error"].clone(), kept(&world).len()), (Value::Null, 0), "{sent:#}");
    assert_eq!(
        (world.json(["info", "twig", "--json"])["turns"].clone(), transcripts(&world).len()),
        (json!(2), before.len() + 1)
    );
}
