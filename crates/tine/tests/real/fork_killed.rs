//! A tine that is killed while an agent makes a fork for it: the next run leaves the source, finished forks, and nothing
//! else, for tine and for the agent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::build::Random;
use testkit::model::Model;
use testkit::poll::{PATIENCE, wait_until};

use crate::conversation::tine_json;

const SOURCE: &str = "11111111-1111-4111-8111-111111111111";
const KILLS: usize = 8;

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [forks_of_claude_are_killed]);
    use super::forks_of_claude_are_killed;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [forks_of_codex_are_killed]);
    use super::forks_of_codex_are_killed;
}

fn forks_of_claude_are_killed(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    claude.start(&project, SOURCE, "first");
    kill_forks(&sandbox, &project, &claude.environment(), SOURCE, &sandbox.claude_home().join("projects"));
}

fn forks_of_codex_are_killed(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let source = codex.start(&project, "first");
    kill_forks(&sandbox, &project, &codex.environment(), &source, &sandbox.codex_home().join("sessions"));
}

fn kill_forks(sandbox: &Sandbox, project: &Path, environment: &[(&'static str, String)], source: &str, home: &Path) {
    let tine = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(environment.iter().cloned()).current_dir(project).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let transcript = PathBuf::from(tine_json(sandbox, project, &["info", source, "--json"])["path"].as_str().unwrap());
    let before = std::fs::read(&transcript).unwrap();
    let mut random = Random::new(5);
    let mut cut_off = 0;
    for method in ["native", "seed"] {
        let begun = Instant::now();
        let whole = tine(&["fork", source, "--yes", "--method", method]).status().unwrap();
        assert!(whole.success(), "{method}");
        let longest = begun.elapsed();
        for _ in 0..KILLS {
            let mut child = tine(&["fork", source, "--yes", "--method", method]).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(longest.as_micros() as usize) as u64));
            child.kill().unwrap();
            cut_off += usize::from(!child.wait().unwrap().success());
            check(sandbox, project, home, source);
        }
    }
    // Whatever the agents still did that nobody waited for.
    wait_until("the end of all agents", PATIENCE, || processes_of(sandbox).is_empty());
    check(sandbox, project, home, source);
    assert!(std::fs::read(&transcript).unwrap() == before, "the source is as it was");
    assert!(cut_off > 0, "none was cut off");
}

/// What tine lists, what its log says and what is on disk is the same.
fn check(sandbox: &Sandbox, project: &Path, home: &Path, source: &str) {
    let listed = tine_json(sandbox, project, &["list", "--all", "--json"]);
    let log = tine_json(sandbox, project, &["log", "--json"]);
    let done = log.as_array().unwrap().iter().filter(|operation| operation["state"] == "done");
    let mut expected: BTreeSet<&str> =
        done.map(|operation| operation["effects"]["session"].as_str().unwrap()).collect();
    expected.insert(source);
    let listed: BTreeSet<&str> =
        listed.as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap()).collect();
    assert_eq!(listed, expected, "{log:#}");
    assert!(log.as_array().unwrap().iter().all(|operation: &Value| operation["state"] != "started"), "{log:#}");
    let on_disk = files_below(home);
    let strange = on_disk.iter().filter(|file| !expected.iter().any(|id| file.to_string_lossy().contains(id)));
    let strange: Vec<(&PathBuf, String)> = strange.map(|file| (file, beginning_of(file))).collect();
    assert!(strange.is_empty(), "{strange:#?} of {expected:?}, {log:#}");
}

fn beginning_of(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    format!("{} bytes: {}", bytes.len(), String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// The processes that run in the sandbox.
fn processes_of(sandbox: &Sandbox) -> Vec<u32> {
    let home = format!("HOME={}\0", sandbox.home().display());
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number: &u32| {
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&home)
        })
        .collect()
}
