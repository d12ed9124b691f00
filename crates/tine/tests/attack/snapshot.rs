//! Kills at any moment while code is recorded or restored. A snapshot is complete or does not exist, and the working tree
//! is as before or as restored.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testkit::build::{ClaudeSession, Random};

use crate::world::{LOGIN, World};
use crate::{files_in, json, rounds, run, unfinished};

struct Lab {
    world: World,
    transcript: PathBuf,
}

fn prepare() -> Lab {
    let world = World::empty();
    world.sandbox.write(world.sandbox.root().join("config/tine/config.toml"), "[snapshots]\nenabled = true\n");
    for number in 0..300 {
        world.sandbox.write(world.shop.join(format!("folder-{}/file-{number}", number % 20)), &format!("{number}\n"));
    }
    world.sandbox.git(&world.shop, ["add", "."]);
    world.sandbox.git(&world.shop, ["commit", "--quiet", "--message", "more"]);
    let session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("one").text("done"));
    let transcript = session.write(&world.sandbox.claude_home());
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    Lab { world, transcript }
}

impl Lab {
    fn record(&self) -> Command {
        let size = fs::metadata(&self.transcript).expect("a transcript").len();
        let request = serde_json::json!({
            "agent": "claude", "session": LOGIN, "transcript": self.transcript, "size": size, "directory": null,
            "has_ended": true,
        });
        self.world.command(["record-code", &request.to_string()])
    }

    fn git<const N: usize>(&self, words: [&str; N]) -> String {
        self.world.sandbox.git(&self.world.shop, words)
    }

    fn reference(&self) -> Option<String> {
        let listed = self.git(["for-each-ref", "--format=%(refname)", "refs/tine"]);
        assert!(listed.lines().count() <= 1, "{listed}");
        listed.lines().next().map(str::to_owned)
    }

    /// Changes some files, and returns all of them.
    fn change(&self, random: &mut Random) -> BTreeMap<PathBuf, Vec<u8>> {
        for _ in 0..random.below(30) {
            let path = self.world.shop.join(format!("folder-{}/new-{}", random.below(30), random.below(5)));
            if random.below(4) == 0 {
                let _ = fs::remove_file(path);
            } else {
                self.world.sandbox.write(path, &format!("{}\n", random.below(1_000_000)).repeat(random.below(2000)));
            }
        }
        self.files()
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = files_in([self.world.shop.as_path()]);
        files.retain(|path, _| !path.starts_with(self.world.shop.join(".git")));
        files
    }

    /// The files of a snapshot.
    fn recorded(&self, reference: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let target = self.world.sandbox.root().join("recorded");
        let _ = fs::remove_dir_all(&target);
        fs::create_dir(&target).expect("a folder");
        let index = self.world.sandbox.root().join("recorded-index");
        let mut command = self.world.sandbox.command("git");
        command.current_dir(&self.world.shop).env("GIT_INDEX_FILE", &index).env("GIT_WORK_TREE", &target);
        command.env("GIT_DIR", self.world.shop.join(".git"));
        assert!(command.args(["read-tree", "--reset", "-u", reference]).status().expect("git").success());
        let strip = |(path, content): (PathBuf, Vec<u8>)| {
            (self.world.shop.join(path.strip_prefix(&target).expect("below")), content)
        };
        files_in([target.as_path()]).into_iter().map(strip).collect()
    }
}

/// Runs a command and kills it, or its whole group, at some moment.
fn kill_within(mut command: Command, usual: Duration, random: &mut Random) -> bool {
    let mut child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tine");
    thread::sleep(usual.mul_f64(random.fraction() * 1.1));
    let pid = Pid::from_child(&child);
    let _ = match random.below(2) {
        0 => kill_process_group(pid, Signal::KILL),
        _ => kill_process(pid, Signal::KILL),
    };
    let was_killed = !child.wait().expect("its end").success();
    // A git that outlives tine ends by itself.
    let begun = Instant::now();
    while rustix::process::test_kill_process_group(pid).is_ok() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    was_killed
}

#[test]
fn a_killed_snapshot_is_complete_or_does_not_exist() {
    let lab = prepare();
    let begun = Instant::now();
    assert!(run(&mut lab.record()).status.success());
    let usual = begun.elapsed();
    let mut known = lab.files();
    let index = fs::read(lab.world.shop.join(".git/index")).expect("an index");
    let (state, killed) = (std::cell::RefCell::new(&mut known), std::cell::Cell::new(0));
    rounds("a_killed_snapshot", 10, |random| {
        let mut known = state.borrow_mut();
        if random.below(3) == 0
            && let Some(reference) = lab.reference()
        {
            lab.git(["update-ref", "-d", &reference]);
        }
        let now = lab.change(random);
        killed.set(killed.get() + u32::from(kill_within(lab.record(), usual, random)));
        if let Some(reference) = lab.reference() {
            let recorded = lab.recorded(&reference);
            assert!(recorded == now || recorded == **known, "neither the old nor the new code");
        }
        // The next one is not kept from its work.
        assert!(run(&mut lab.record()).status.success());
        assert!(lab.recorded(&lab.reference().expect("a snapshot")) == now, "not the code");
        **known = now;
        assert_eq!(fs::read(lab.world.shop.join(".git/index")).expect("an index"), index);
        let locks = files_in([lab.world.shop.join(".git/refs").as_path()]);
        assert!(locks.keys().all(|path| path.extension().is_none()), "{:?}", locks.keys());
        assert!(!Path::new(&lab.world.shop.join(".git/logs/refs/tine")).exists());
    });
    lab.git(["fsck", "--strict", "--no-dangling"]);
    assert!(killed.get() > 0, "none was killed");
}

#[test]
fn a_killed_restoration_happened_or_did_not() {
    let lab = prepare();
    assert!(run(&mut lab.record()).status.success());
    let then = lab.files();
    let words = ["restore", "login@1", "--to", ".", "--yes"];
    let usual = std::cell::Cell::new(None);
    rounds("a_killed_restoration", 10, |random| {
        let now = lab.change(random);
        if usual.get().is_none() {
            let begun = Instant::now();
            assert!(run(&mut lab.world.command(words)).status.success());
            usual.set(Some(begun.elapsed()));
            assert!(lab.files() == then);
            assert!(run(&mut lab.world.command(["undo"])).status.success());
        }
        if now == then {
            return;
        }
        let newest = || json(&mut lab.world.command(["log", "--json"]))[0]["id"].as_i64();
        let before = newest();
        let is_undo = random.below(3) == 0;
        if is_undo {
            assert!(run(&mut lab.world.command(words)).status.success());
        }
        let command = if is_undo { lab.world.command(["undo"]) } else { lab.world.command(words) };
        kill_within(command, usual.get().expect("a time"), random);
        let log = json(&mut lab.world.command(["log", "--json"]));
        // Killed early, it may not even be in the log.
        let is_done = log[0]["id"].as_i64() != before && log[0]["state"] == "done";
        let found = lab.files();
        assert!(found == if is_done { then.clone() } else { now }, "half restored: {:#}", log[0]);
        assert_eq!(unfinished(lab.world.sandbox.root()), [] as [PathBuf; 0]);
    });
}

/// As on a full disk: no file may grow.
#[test]
fn a_snapshot_that_cannot_be_written_does_not_exist() {
    let lab = prepare();
    lab.world.sandbox.write(lab.world.shop.join("large"), &"x".repeat(100_000));
    let record = lab.record();
    let mut command = lab.world.sandbox.command("sh");
    command.args(["-c", "ulimit -f 0; exec \"$@\"", "sh"]).arg(record.get_program()).args(record.get_args());
    command.current_dir(&lab.world.shop);
    assert!(!run(&mut command).status.success());
    assert_eq!(lab.reference(), None);
    assert!(run(&mut lab.record()).status.success());
    assert!(lab.recorded(&lab.reference().expect("a snapshot")) == lab.files());
}
