//! The real agents edit files over several turns, with their tools and through the shell; a fork at each turn has the files of
//! that turn, and the source's repository does not notice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};

use crate::conversation::tine_json;

testkit::for_each_version!(c2_1_325 = "2.1.325", c2_1_197 = "2.1.197" => [forks_of_claude_have_the_files_of_their_turn]);
testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [forks_of_codex_have_the_files_of_their_turn]);

const CLAUDE: &str = "11111111-1111-4111-8111-111111111111";

fn git(directory: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
    let output = git.output().expect("git");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with line ends and indentation of all kinds.
fn project(sandbox: &Sandbox) -> PathBuf {
    let project = sandbox.project("app");
    for (name, text) in [
        ("unix.txt", "one\ntwo\nthree\n"),
        ("windows.txt", "one\r\ntwo\r\nthree\r\n"),
        ("tabs.rs", "fn a() {\n\tone();\n\t\ttwo(&x);\n}"),
        ("moved.txt", "one\ntwo\n"),
        ("untouched.txt", "same\n"),
    ] {
        fs::write(project.join(name), text).expect("a file");
    }
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "--message=files"]);
    project
}

type Tree = BTreeMap<String, Vec<u8>>;

fn tree(directory: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten().filter(|entry| entry.file_name() != ".git") {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(directory).expect("inside").to_string_lossy().into_owned();
                    tree.insert(name, fs::read(path).expect("a file"));
                }
            }
        }
    }
    tree
}

/// What must stay as it is in the source's repository.
fn state(project: &Path) -> (String, Vec<u8>, Vec<u8>, String, Tree) {
    let index = fs::read(project.join(".git/index")).expect("an index");
    let log = fs::read(project.join(".git/logs/HEAD")).expect("a log");
    git(project, &["fsck", "--strict"]);
    let stash = git(project, &["stash", "list"]);
    (git(project, &["status", "--porcelain"]), index, log, stash, tree(project))
}

fn forks_have_the_files_of_their_turn(sandbox: &Sandbox, project: &Path, id: &str, trees: &[Tree]) {
    git(project, &["status"]);
    let before = state(project);
    for (index, expected) in trees.iter().enumerate() {
        let turn = index + 1;
        let (point, name) = (format!("{id}@{turn}"), format!("then-{turn}"));
        let words = ["fork", &point, &name, "--worktree", "--code", "then", "--json"];
        let fork = tine_json(sandbox, project, &words);
        let path = fork["workspace"]["path"].as_str().expect("a path").to_owned();
        assert_eq!(&tree(Path::new(&path)), expected, "turn {turn}: {:#}", fork["code"]);
        assert_eq!(fork["code"]["turn"], json!(turn));
        let status = git(Path::new(&path), &["status", "--porcelain"]);
        assert!(!status.is_empty(), "the changes of the session are not committed");
    }
    assert_eq!(state(project), before);
    // A line of the first turn, and one that was there before.
    let blamed = |line: &str| -> Value { tine_json(sandbox, project, &["blame", line, "--json"])["lines"][0].clone() };
    let line = blamed("unix.txt:2");
    assert_eq!((&line["author"]["id"], &line["author"]["turn"]), (&json!(id), &json!(1)), "{line:#}");
    assert_eq!(line["author"]["prompt"], "first");
    assert_eq!(blamed("unix.txt:1")["author"], Value::Null);
    let shown = tine_json(sandbox, project, &["show", id, "--json"]).to_string();
    assert!(shown.contains(r#""notice":"files""#), "{shown}");
}

fn forks_of_claude_have_the_files_of_their_turn(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = project(&sandbox);
    let path = |name: &str| project.join(name).to_str().expect("text").to_owned();
    let read = |name: &str| Reply::tool("Read", json!({"file_path": path(name)}));
    let edit = |name: &str, old: &str, new: &str| {
        Reply::tool("Edit", json!({"file_path": path(name), "old_string": old, "new_string": new}))
    };
    let write = |name: &str, text: &str| Reply::tool("Write", json!({"file_path": path(name), "content": text}));
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "x"}));
    let mut trees = Vec::new();
    let turns: [(&str, Vec<Reply>); 4] = [
        ("first", vec![read("unix.txt"), edit("unix.txt", "two", "TWO\nmore"), write("new/n.txt", "new\n")]),
        (
            "second",
            vec![
                read("windows.txt"),
                edit("windows.txt", "two", "TWO\nmore"),
                read("tabs.rs"),
                edit("tabs.rs", "\t\ttwo(&x);", "\t\ttwo(&y);\n\t\tthree(\"$1\");"),
                bash("git mv moved.txt there.txt && git reset --quiet"),
            ],
        ),
        ("third", vec![bash("sed -i s/new/NEW/ new/n.txt"), read("new/n.txt"), edit("new/n.txt", "NEW", "N\nE")]),
        ("fourth", vec![read("unix.txt"), edit("unix.txt", "three", "3"), edit("windows.txt", "three", "3")]),
    ];
    for (prompt, replies) in turns {
        for reply in replies {
            model.push(reply);
        }
        model.push(Reply::text("done"));
        match trees.is_empty() {
            true => claude.start(&project, CLAUDE, prompt),
            false => claude.resume(&project, CLAUDE, prompt),
        };
        trees.push(tree(&project));
    }
    forks_have_the_files_of_their_turn(&sandbox, &project, CLAUDE, &trees);
}

fn forks_of_codex_have_the_files_of_their_turn(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = project(&sandbox);
    let exec = |command: &str| Reply::tool("exec_command", json!({"cmd": command}));
    let patch = |body: &str| exec(&format!("apply_patch <<'EOF'\n*** Begin Patch\n{body}\n*** End Patch\nEOF\n"));
    let mut trees = Vec::new();
    let mut id = String::new();
    let turns: [(&str, Vec<Reply>); 4] = [
        (
            "first",
            vec![
                patch("*** Update File: unix.txt\n@@\n one\n-two\n+TWO\n+more\n three"),
                patch("*** Add File: new/n.txt\n+new"),
            ],
        ),
        (
            "second",
            vec![
                patch("*** Update File: windows.txt\n@@\n one\n-two\n+TWO\n three"),
                patch("*** Update File: tabs.rs\n@@\n-\t\ttwo(&x);\n+\t\ttwo(&y);\n+\t\tthree(\"$1\");"),
                patch("*** Update File: moved.txt\n*** Move to: there.txt\n@@\n one\n-two\n+2"),
            ],
        ),
        (
            "third",
            vec![
                exec("sed -i s/new/NEW/ new/n.txt"),
                exec("cat new/n.txt"),
                patch("*** Update File: new/n.txt\n@@\n-NEW\n+N\n+E"),
            ],
        ),
        ("fourth", vec![patch("*** Update File: unix.txt\n@@\n-three\n+3"), exec("cat unix.txt")]),
    ];
    for (prompt, replies) in turns {
        for reply in replies {
            model.push(reply);
        }
        model.push(Reply::text("done"));
        match trees.is_empty() {
            true => id = codex.start(&project, prompt),
            false => drop(codex.resume(&project, &id, prompt)),
        }
        trees.push(tree(&project));
    }
    forks_have_the_files_of_their_turn(&sandbox, &project, &id, &trees);
}
