//! Records sample sessions by driving the real agents against the model double.
//!
//! `cargo run -p tine-testkit --example record -- DIRECTORY [FILTER]` writes, for each agent and version, one folder per
//! scenario with the agents' home as it was afterwards, the requests that the double saw, and the screens of panes.
#![allow(clippy::print_stderr, reason = "an example that people run by hand")]

mod claude;
mod codex;

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use testkit::agents::{CLAUDE_VERSIONS, CODEX_VERSIONS};
use testkit::{Model, Pane, Sandbox};

/// One recorded scenario: a world, a model, and where the result goes.
pub struct Scene {
    /// The world of the scenario.
    pub sandbox: Sandbox,
    /// Its model.
    pub model: Model,
    directory: PathBuf,
}

impl Scene {
    /// Keeps a picture of a pane beside the recorded files.
    pub fn picture(&self, name: &str, pane: &Pane<'_>) {
        let directory = self.directory.join("screens");
        fs::create_dir_all(&directory).expect("screens");
        fs::write(directory.join(format!("{name}.txt")), pane.history()).expect("a screen");
    }

    /// Keeps what a command printed beside the recorded files.
    pub fn note(&self, name: &str, content: &str) {
        fs::write(self.directory.join(name), content).expect("a note");
    }
}

type Scenario = (&'static str, fn(&Scene, &str));

fn main() {
    let mut arguments = std::env::args().skip(1);
    let target = PathBuf::from(arguments.next().expect("the directory to write to"));
    let filter = arguments.next().unwrap_or_default();
    let mut failures = 0;
    for version in CLAUDE_VERSIONS {
        failures += record(&target, &filter, "claude", version, &claude::SCENARIOS);
    }
    for version in CODEX_VERSIONS {
        failures += record(&target, &filter, "codex", version, &codex::SCENARIOS);
    }
    assert_eq!(failures, 0, "some scenarios failed");
}

fn record(target: &Path, filter: &str, agent: &str, version: &str, scenarios: &[Scenario]) -> usize {
    let mut failures = 0;
    for (name, play) in scenarios {
        let title = format!("{agent}-{version}/{name}");
        if !title.contains(filter) {
            continue;
        }
        let directory = target.join(&title);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("the directory of the scenario");
        let scene = Scene { sandbox: Sandbox::new(), model: Model::start(), directory: directory.clone() };
        let started = std::time::Instant::now();
        let played = std::panic::catch_unwind(AssertUnwindSafe(|| play(&scene, version)));
        scene.model.save(&directory.join("requests.jsonl"));
        copy(&scene.sandbox.home(), &directory.join("home"));
        scene.note("sandbox.txt", &format!("{}\n", scene.sandbox.root().display()));
        eprintln!("{title}: {} in {:.1?}", if played.is_ok() { "recorded" } else { "FAILED" }, started.elapsed());
        failures += usize::from(played.is_err());
    }
    failures
}

/// Copies plain files and directories; sockets and links are left out.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            let _ = fs::copy(entry.path(), target);
        }
    }
}
