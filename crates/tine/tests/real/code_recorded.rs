//! The real agents work with tine's hooks and snapshots on: the code of every turn is what was on disk, whoever changed it,
//! and the repository does not notice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::poll::poll;
use testkit::sandbox::expect_success;

use crate::conversation::tine_json;

testkit::for_each_version!(c2_1_325 = "2.1.325", c2_1_197 = "2.1.197" => [turns_of_claude_are_recorded]);
testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [turns_of_codex_are_recorded]);

const CLAUDE: &str = "11111111-1111-4111-8111-111111111111";

/// What a shell does in each turn.
const TURNS: [&str; 4] = [
    "printf 'one\\r\\n' > windows.txt; mkdir -p d; echo a > d/a; ln -s d/a link",
    "echo b >> d/a; chmod +x d/a; echo TOKEN=1 > .env",
    "true",
    "git add --all d; rm link; git mv README.md there.md",
];

type Tree = BTreeMap<PathBuf, Vec<u8>>;

fn tree(directory: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        for entry in entries.filter(|entry| entry.file_name() != ".git" && entry.file_name() != ".env") {
            let path = entry.path();
            let name = path.strip_prefix(directory).expect("inside").to_owned();
            match path.symlink_metadata().expect("metadata") {
                metadata if metadata.is_symlink() => {
                    drop(
                        tree.insert(name, fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()),
                    );
                }
                metadata if metadata.is_dir() => folders.push(path),
                _ => drop(tree.insert(name, fs::read(path).expect("a file"))),
            }
        }
    }
    tree
}

/// Runs the turns and compares what tine recorded of each. `turn` runs one and returns the session's id.
fn check(sandbox: &Sandbox, project: &Path, agent: &str, mut turn: impl FnMut(usize, &str) -> String) {
    let git = |words: &[&str]| {
        let output = sandbox.command("git").current_dir(project).args(words).output().expect("git");
        expect_success(&output);
        testkit::sandbox::text(&output.stdout)
    };
    let mut trees = Vec::new();
    let mut id = String::new();
    for (number, command) in TURNS.iter().enumerate() {
        // Somebody else works there, too.
        fs::write(project.join("mine"), format!("before turn {number}\n")).expect("a file");
        id = turn(number, command);
        trees.push(tree(project));
        let pattern = format!("refs/tine/snapshots/{agent}/{id}/{}-end-*", number + 1);
        let log = || fs::read_to_string(sandbox.root().join("data/tine/hook.log")).unwrap_or_default();
        poll(Duration::from_secs(60), || (!git(&["for-each-ref", &pattern]).is_empty()).then_some(()))
            .unwrap_or_else(|| panic!("turn {number} was not recorded: {}\n{}", log(), git(&["for-each-ref"])));
    }
    let state = || {
        (
            git(&["--no-optional-locks", "status", "--porcelain"]),
            git(&["reflog", "--all"]),
            git(&["stash", "list"]),
            fs::read(project.join(".git/index")).expect("an index"),
            tree(project),
        )
    };
    let before = state();
    for (index, expected) in trees.iter().enumerate() {
        let target = sandbox.root().join(format!("turn-{index}"));
        let words = ["restore", &format!("{id}@{}", index + 1), "--to", target.to_str().expect("text"), "--json"];
        let restored = tine_json(sandbox, project, &words);
        assert_eq!(&tree(&target), expected, "turn {index}: {restored:#}");
        assert_eq!(restored["source"], "snapshot");
        let left_out = restored["left_out"].to_string();
        assert_eq!(left_out.contains(".env"), index > 0, "{left_out}");
    }
    let changed = tine_json(sandbox, project, &["diff", &format!("{id}@2"), &format!("{id}@3"), "--json"]);
    assert_eq!(changed["files"].as_array().map(Vec::len), Some(1), "{changed:#}");
    assert_eq!(before, state());
    git(&["fsck", "--strict"]);
    let doctor = tine_json(sandbox, project, &["doctor", "--json"]);
    assert!(doctor["checks"].to_string().contains("\"snapshots\""), "{doctor:#}");
}

fn set_up(sandbox: &Sandbox, project: &Path, agent: &str, environment: Vec<(&'static str, String)>) {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(environment).current_dir(project).args(["setup", agent, "--snapshots", "--yes"]);
    expect_success(&command.output().expect("tine"));
}

fn turns_of_claude_are_recorded(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    set_up(&sandbox, &project, "claude", claude.environment());
    check(&sandbox, &project, "claude", |number, command| {
        model.push(Reply::tool("Bash", json!({"command": command, "description": "x"})));
        model.push(Reply::text("done"));
        match number {
            0 => drop(claude.start(&project, CLAUDE, "first")),
            _ => drop(claude.resume(&project, CLAUDE, &format!("turn {number}"))),
        }
        CLAUDE.to_owned()
    });
}

fn turns_of_codex_are_recorded(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    codex.trust(&project);
    set_up(&sandbox, &project, "codex", codex.environment());
    let mut id = String::new();
    check(&sandbox, &project, "codex", |number, command| {
        model.push(Reply::tool("exec_command", json!({"cmd": command})));
        model.push(Reply::text("done"));
        match number {
            0 => id = codex.start(&project, "first"),
            _ => drop(codex.resume(&project, &id, &format!("turn {number}"))),
        }
        id.clone()
    });
}
