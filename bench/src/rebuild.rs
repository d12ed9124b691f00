//! `tine fork --code then`: rebuilding a tree against reading the transcript and `git worktree add`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Bench;
use crate::measure::{Measurement, once, report};

const ID: &str = "33333333-3333-4333-8333-333333333333";
const TURNS: usize = 300;
const EDITS: usize = 1_000;
const FILES: usize = 200;

pub(crate) fn run(bench: &Bench) {
    println!();
    let home = bench.folder.join("rebuild");
    let repository = home.join("repository");
    let transcript = home.join(format!(".claude/projects/-rebuild/{ID}.jsonl"));
    if !home.join("complete").exists() {
        let _ = fs::remove_dir_all(&home);
        make(&repository, &transcript);
        fs::write(home.join("complete"), "").expect("the mark");
    }
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin:/usr/local/bin").current_dir(&repository);
        command.args(arguments);
        command
    };
    once(&mut tine(&["list", "--all"]));
    let tree = repository.with_file_name("tree");
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&repository).args(words);
        command
    };
    let quicker = |known: Option<Measurement>, run: Measurement| {
        known.map_or(run, |known| if run.time < known.time { run } else { known })
    };
    let (mut read, mut add, mut fork) = (None, None, None);
    let point = format!("{ID}@{}", TURNS / 2);
    for _ in 0..5 {
        // The whole transcript, for a reader that throws it away.
        read = Some(quicker(read, once(&mut tine(&["show", ID, "--json"]))));
        let path = tree.to_string_lossy().into_owned();
        add = Some(quicker(add, once(&mut git(&["worktree", "add", "--quiet", "-b", "floor", &path]))));
        once(&mut git(&["worktree", "remove", "--force", &path]));
        once(&mut git(&["branch", "--quiet", "-D", "floor"]));
        fork = Some(quicker(fork, once(&mut tine(&["fork", &point, "--worktree", "--code", "then", "--yes"]))));
        once(&mut tine(&["undo"]));
    }
    let (read, add, fork) = (read.expect("a run"), add.expect("a run"), fork.expect("a run"));
    let what = format!("fork with the files of a turn, {TURNS} turns, {EDITS} edits");
    report(&what, fork.time, "tine show + git worktree", read.time + add.time, Some(2.0));
    let file = repository.join("src/f0.txt");
    let blame = once(&mut tine(&["blame", &format!("{}:1", file.display())]));
    report("tine blame of a line", blame.time, "tine show", read.time, None);
}

/// A repository, and a session that edits its files one after the other.
fn make(repository: &Path, transcript: &Path) {
    let path = |number: usize| repository.join(format!("src/f{number}.txt"));
    fs::create_dir_all(repository.join("src")).expect("a folder");
    let mut texts: Vec<String> =
        (0..FILES).map(|file| (0..400).map(|line| format!("file {file} line {line}\n")).collect()).collect();
    for (number, text) in texts.iter().enumerate() {
        fs::write(path(number), text).expect("a file");
    }
    for number in 0..2_000 {
        fs::write(repository.join(format!("other{number}.txt")), format!("{number}\n").repeat(50)).expect("a file");
    }
    let script = "git init -q && git add . && git -c user.name=t -c user.email=t@example.invalid commit -qm all";
    let mut commit = Command::new("sh");
    let date = "2026-01-01T00:00:00Z";
    commit.env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date).args(["-c", script]);
    once(commit.current_dir(repository));
    let mut lines = String::new();
    let mut count = 0usize;
    let mut add = |kind: &str, content: serde_json::Value, result: serde_json::Value| {
        let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let line = serde_json::json!({
            "type": kind, "uuid": id(count), "parentUuid": count.checked_sub(1).map(id), "sessionId": ID, "cwd": repository,
            "version": "2.1.325", "timestamp": format!("2026-01-01T{:02}:{:02}:{:02}.000Z", 1 + count / 3600, count / 60 % 60, count % 60),
            "toolUseResult": result, "message": {"role": kind, "id": format!("m{count}"), "content": content},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
        count += 1;
    };
    let mut edit = 0;
    for turn in 0..TURNS {
        add("user", format!("prompt {turn}").into(), serde_json::Value::Null);
        while edit < (turn + 1) * EDITS / TURNS {
            let (file, line) = (edit % FILES, edit * 7 % 400);
            let old = texts[file].lines().nth(line).expect("a line").to_owned();
            let new = format!("edit {edit}");
            let before = texts[file].clone();
            texts[file] = before.replacen(&format!("{old}\n"), &format!("{new}\n"), 1);
            let call = format!("t{edit}");
            let input = serde_json::json!({"file_path": path(file), "old_string": format!("{old}\n"), "new_string": format!("{new}\n")});
            add(
                "assistant",
                serde_json::json!([{"type": "tool_use", "id": call, "name": "Edit", "input": input}]),
                serde_json::Value::Null,
            );
            let patch = serde_json::json!([{"oldStart": line + 1, "oldLines": 1, "newStart": line + 1, "newLines": 1, "lines": [format!("-{old}"), format!("+{new}")]}]);
            let result = serde_json::json!({
                "filePath": path(file), "oldString": format!("{old}\n"), "newString": format!("{new}\n"), "originalFile": before,
                "structuredPatch": patch, "replaceAll": false,
            });
            add("user", serde_json::json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]), result);
            edit += 1;
        }
        add("assistant", serde_json::json!([{"type": "text", "text": "done"}]), serde_json::Value::Null);
    }
    for (number, text) in texts.iter().enumerate() {
        fs::write(path(number), text).expect("a file");
    }
    fs::create_dir_all(transcript.parent().expect("a folder")).expect("a folder");
    fs::write(transcript, lines).expect("a transcript");
}
