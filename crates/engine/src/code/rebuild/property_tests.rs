//! Random edits of a random tree, by the tools of both agents and behind their backs: whatever is called exact or consistent
//! is what the file held, at every turn.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::rebuild;
use crate::code::Certainty;
use crate::code::then::{Held, TreeThen};
use crate::sessions::catalog::Quiet;
use crate::test_world::World;

const FILES: [&str; 5] = ["a.txt", "src/b.txt", "src/c d.txt", "new.txt", "src/new/n.txt"];
const ID: &str = "01a1e069-e243-7b42-9fdf-a28cec9bdca5";
const START: i64 = 1_790_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Claude,
    /// With items (paginated) or with events.
    Codex {
        items: bool,
    },
}

#[derive(Debug, Clone)]
enum Op {
    Turn,
    Write(usize),
    Edit(usize),
    Delete(usize),
    Move(usize, usize),
    Read(usize),
    /// A command that names the file.
    Shell(usize),
    /// A command that doesn't.
    Script(usize),
    /// A person edits, deletes or commits.
    Human(usize),
    HumanDeletes(usize),
    Commit,
    Checkout,
}

fn op() -> impl Strategy<Value = Op> {
    let file = 0..FILES.len();
    prop_oneof![
        4 => Just(Op::Turn),
        4 => file.clone().prop_map(Op::Write),
        6 => file.clone().prop_map(Op::Edit),
        1 => file.clone().prop_map(Op::Delete),
        1 => (file.clone(), file.clone()).prop_map(|(from, to)| Op::Move(from, to)),
        2 => file.clone().prop_map(Op::Read),
        1 => file.clone().prop_map(Op::Shell),
        1 => file.clone().prop_map(Op::Script),
        1 => file.clone().prop_map(Op::Human),
        1 => file.prop_map(Op::HumanDeletes),
        1 => Just(Op::Commit),
        1 => Just(Op::Checkout),
    ]
}

impl Op {
    /// Whether only the agent's own records tell of it.
    fn is_recorded(&self) -> bool {
        matches!(self, Op::Turn | Op::Write(_) | Op::Edit(_) | Op::Delete(_) | Op::Move(..) | Op::Read(_))
    }
}

type Tree = BTreeMap<&'static str, Vec<u8>>;

struct Player {
    world: World,
    agent: Agent,
    lines: Vec<Value>,
    seconds: i64,
    /// Makes every content unlike every other.
    count: u32,
    parent: Option<String>,
    is_running: bool,
    /// The tree at the end of each turn.
    truth: Vec<Tree>,
}

impl Player {
    fn new(agent: Agent) -> Self {
        let world = World::new();
        let mut player = Player {
            world,
            agent,
            lines: Vec::new(),
            seconds: 0,
            count: 0,
            parent: None,
            is_running: false,
            truth: Vec::new(),
        };
        fs::create_dir_all(player.world.repository.join("src")).unwrap();
        for file in &FILES[..3] {
            fs::write(player.path(file), "one\ntwo\nthree\nfour\n").unwrap();
        }
        fs::write(player.path("untouched.txt"), "same\n").unwrap();
        player.commit();
        if let Agent::Codex { items } = agent {
            let mode = if items { json!("paginated") } else { Value::Null };
            let cwd = player.world.repository.clone();
            player.codex(
                "session_meta",
                &json!({"id": ID, "session_id": ID, "timestamp": player.time(), "cwd": cwd, "history_mode": mode}),
            );
        }
        player.turn();
        player
    }

    fn path(&self, file: &str) -> PathBuf {
        self.world.repository.join(file)
    }

    fn time(&self) -> String {
        jiff::Timestamp::from_second(START + self.seconds).unwrap().to_string()
    }

    fn next(&mut self) -> String {
        self.count += 1;
        self.seconds += 2;
        format!("line {}", self.count)
    }

    fn tree(&self) -> Tree {
        FILES.into_iter().filter_map(|file| Some((file, fs::read(self.path(file)).ok()?))).collect()
    }

    fn git(&self, words: &[&str]) {
        let date = format!("{} +0000", START + self.seconds);
        let mut git = Command::new("git");
        git.current_dir(&self.world.repository)
            .args(["-c", "user.name=x", "-c", "user.email=x@example.com"])
            .args(words);
        git.env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&mut self) {
        self.seconds += 2;
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=x"]);
        self.seconds += 2;
    }

    fn codex(&mut self, kind: &str, payload: &Value) {
        self.seconds += 2;
        let ordinal = self.lines.len();
        let mut line = json!({"timestamp": self.time(), "type": kind, "payload": payload});
        if self.agent == (Agent::Codex { items: true }) {
            line["ordinal"] = json!(ordinal);
        }
        self.lines.push(line);
    }

    fn claude(&mut self, kind: &str, content: &Value, more: &Value) {
        self.seconds += 2;
        let id = format!("00000000-0000-4000-8000-{:012}", self.lines.len());
        let mut line = json!({
            "type": kind, "uuid": id, "parentUuid": self.parent, "timestamp": self.time(), "sessionId": ID,
            "cwd": self.world.repository, "version": "2.1.325", "isSidechain": false,
            "message": {"role": kind, "id": format!("msg_{}", self.lines.len()), "content": content},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            line[key] = value.clone();
        }
        self.parent = Some(id);
        self.lines.push(line);
    }

    fn turn(&mut self) {
        if self.is_running {
            self.end_turn();
        }
        self.is_running = true;
        let prompt = format!("prompt {}", self.truth.len() + 1);
        match self.agent {
            Agent::Claude => self.claude("user", &json!(prompt), &json!({})),
            Agent::Codex { items } => {
                let turn = format!("01a1e069-e243-7b42-9fdf-{:012}", self.truth.len());
                self.codex("event_msg", &json!({"type": "task_started", "turn_id": turn}));
                let content = json!([{"type": "input_text", "text": prompt}]);
                self.codex("response_item", &json!({"type": "message", "role": "user", "content": content}));
                let event = match items {
                    true => {
                        json!({"type": "item_completed", "turn_id": turn, "item": {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": prompt}]}})
                    }
                    false => json!({"type": "user_message", "message": prompt}),
                };
                self.codex("event_msg", &event);
            }
        }
    }

    fn end_turn(&mut self) {
        match self.agent {
            Agent::Claude => self.claude("assistant", &json!([{"type": "text", "text": "done"}]), &json!({})),
            Agent::Codex { .. } => {
                let content = json!([{"type": "output_text", "text": "done"}]);
                self.codex("response_item", &json!({"type": "message", "role": "assistant", "content": content}));
                self.codex("event_msg", &json!({"type": "task_complete"}));
            }
        }
        self.truth.push(self.tree());
        self.seconds += 10;
    }

    /// A tool of Claude Code that has changed the file already.
    fn claude_tool(&mut self, name: &str, input: &Value, result: &Value) {
        let id = format!("toolu_{}", self.lines.len());
        self.claude("assistant", &json!([{"type": "tool_use", "id": id, "name": name, "input": input}]), &json!({}));
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": "ok"}]);
        self.claude("user", &content, &json!({"toolUseResult": result}));
    }

    fn codex_patch(&mut self, changes: &Value) {
        let call = format!("call_{}", self.lines.len());
        let input = "*** Begin Patch\n*** End Patch";
        self.codex(
            "response_item",
            &json!({"type": "custom_tool_call", "name": "apply_patch", "input": input, "call_id": call}),
        );
        let event = match self.agent == (Agent::Codex { items: true }) {
            true => {
                json!({"type": "item_completed", "turn_id": "t", "item": {"type": "FileChange", "id": call, "changes": changes, "status": "completed"}})
            }
            false => json!({"type": "patch_apply_end", "call_id": call, "success": true, "changes": changes}),
        };
        self.codex("event_msg", &event);
        self.codex("response_item", &json!({"type": "custom_tool_call_output", "call_id": call, "output": "Success."}));
    }

    fn run(&mut self, command: &str, output: &str) {
        match self.agent {
            Agent::Claude => {
                self.claude_tool("Bash", &json!({"command": command}), &json!({"stdout": output, "stderr": ""}));
            }
            Agent::Codex { .. } => {
                let call = format!("call_{}", self.lines.len());
                let arguments = json!({"cmd": command}).to_string();
                self.codex(
                    "response_item",
                    &json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}),
                );
                let output =
                    format!("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}");
                self.codex(
                    "response_item",
                    &json!({"type": "function_call_output", "call_id": call, "output": output}),
                );
            }
        }
    }

    fn change(&mut self, file: &str) {
        let line = self.next();
        let mut text = fs::read_to_string(self.path(file)).unwrap_or_default();
        text.push_str(&format!("{line}\n"));
        self.put(file, &text);
    }

    fn put(&self, file: &str, text: &str) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), text).unwrap();
    }

    fn play(&mut self, op: &Op) {
        match *op {
            Op::Turn => self.turn(),
            Op::Write(file) => {
                let (path, before) = (self.path(FILES[file]), fs::read_to_string(self.path(FILES[file])).ok());
                let text = format!("{}\ntwo\nthree\nfour\n", self.next());
                self.put(FILES[file], &text);
                match self.agent {
                    Agent::Claude => {
                        let kind = if before.is_some() { "update" } else { "create" };
                        let result = json!({"type": kind, "filePath": path, "content": text, "originalFile": before, "structuredPatch": []});
                        self.claude_tool("Write", &json!({"file_path": path, "content": text}), &result);
                    }
                    Agent::Codex { .. } => {
                        self.codex_patch(&json!({path.to_str().unwrap(): {"type": "add", "content": text}}));
                    }
                }
            }
            Op::Edit(file) => {
                let path = self.path(FILES[file]);
                let Ok(before) = fs::read_to_string(&path) else { return };
                let new = self.next();
                let lines: Vec<&str> = before.lines().collect();
                let at = self.count as usize % lines.len().max(1);
                let Some(old) = lines.get(at).copied().filter(|old| before.matches(old).count() == 1) else { return };
                let after = before.replacen(old, &new, 1);
                self.put(FILES[file], &after);
                let start = at + 1;
                match self.agent {
                    Agent::Claude => {
                        let patch = json!([{"oldStart": start, "oldLines": 1, "newStart": start, "newLines": 1, "lines": [format!("-{old}"), format!("+{new}")]}]);
                        let result = json!({"filePath": path, "oldString": old, "newString": new, "originalFile": before, "structuredPatch": patch, "replaceAll": false});
                        self.claude_tool("Edit", &json!({"file_path": path}), &result);
                    }
                    Agent::Codex { .. } => {
                        let diff = format!("@@ -{start} +{start} @@\n-{old}\n+{new}\n");
                        self.codex_patch(&json!({path.to_str().unwrap(): {"type": "update", "unified_diff": diff, "move_path": null}}));
                    }
                }
            }
            Op::Delete(file) => {
                let path = self.path(FILES[file]);
                let Ok(before) = fs::read_to_string(&path) else { return };
                self.next();
                fs::remove_file(&path).unwrap();
                match self.agent {
                    Agent::Claude => self.run(&format!("rm '{}'", FILES[file]), ""),
                    Agent::Codex { .. } => {
                        self.codex_patch(&json!({path.to_str().unwrap(): {"type": "delete", "content": before}}));
                    }
                }
            }
            Op::Move(from, to) => {
                let (source, target) = (self.path(FILES[from]), self.path(FILES[to]));
                let Ok(before) = fs::read_to_string(&source) else { return };
                let Some(old) = before.lines().next().map(str::to_owned).filter(|_| from != to && !target.exists())
                else {
                    return;
                };
                let new = self.next();
                fs::remove_file(&source).unwrap();
                self.put(FILES[to], &before.replacen(&old, &new, 1));
                match self.agent {
                    Agent::Claude => {
                        self.run(
                            &format!("sed 's/x/y/' '{}' > '{}'; rm '{}'", FILES[from], FILES[to], FILES[from]),
                            "",
                        );
                    }
                    Agent::Codex { .. } => {
                        let diff = format!("@@ -1 +1 @@\n-{old}\n+{new}\n");
                        self.codex_patch(&json!({source.to_str().unwrap(): {"type": "update", "unified_diff": diff, "move_path": target}}));
                    }
                }
            }
            Op::Read(file) => {
                let path = self.path(FILES[file]);
                let Ok(text) = fs::read_to_string(&path) else { return };
                match self.agent {
                    Agent::Claude => {
                        let lines = text.matches('\n').count() + 1;
                        let read = json!({"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines});
                        self.claude_tool("Read", &json!({"file_path": path}), &json!({"type": "text", "file": read}));
                    }
                    Agent::Codex { .. } => self.run(&format!("cat {}", FILES[file]), &text),
                }
            }
            Op::Shell(file) => {
                self.change(FILES[file]);
                self.run(&format!("echo x | tee -a '{}'", FILES[file]), "");
            }
            Op::Script(file) => {
                self.change(FILES[file]);
                self.run("python3 generate.py", "");
            }
            Op::Human(file) => self.change(FILES[file]),
            Op::HumanDeletes(file) => {
                self.next();
                fs::remove_file(self.path(FILES[file])).unwrap_or_default();
            }
            Op::Commit => self.commit(),
            Op::Checkout => {
                // A person takes back what is not committed in one file. The content was there before, so it must not look as
                // if nothing had happened.
                self.change("a.txt");
                self.seconds += 2;
            }
        }
    }

    fn finish(mut self) -> (World, Vec<Tree>) {
        self.end_turn();
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        let path = match self.agent {
            Agent::Claude => testkit::build::claude_project_directory(
                &self.world.claude_home(),
                self.world.repository.to_str().unwrap(),
            )
            .join(format!("{ID}.jsonl")),
            Agent::Codex { .. } => {
                self.world.codex_home().join(format!("sessions/2026/11/15/rollout-2026-11-15T00-00-00-{ID}.jsonl"))
            }
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        (self.world, self.truth)
    }
}

/// What a file held according to a rebuilt tree.
fn rebuilt(tree: &TreeThen, file: &str, repository: &Path) -> Option<Vec<u8>> {
    if let Some(changed) = tree.changed.iter().find(|changed| changed.path == Path::new(file)) {
        return changed.then.as_ref().map(|(_, held)| match held {
            Held::Bytes(bytes) => bytes.clone(),
            Held::Object(_) => unreachable!("nothing is taken from a snapshot"),
        });
    }
    let name = format!("{}:{file}", tree.head.as_deref().expect("a commit"));
    let shown = Command::new("git").current_dir(repository).args(["show", &name]).output().unwrap();
    shown.status.success().then_some(shown.stdout)
}

/// How many files were judged, by certainty.
fn check(agent: Agent, ops: &[Op]) -> BTreeMap<&'static str, usize> {
    let mut player = Player::new(agent);
    ops.iter().for_each(|op| player.play(op));
    let (world, truth) = player.finish();
    let tine = world.tine();
    let session = tine.resolve(ID, &Quiet).expect("a session").session;
    assert_eq!(session.view.turns as usize, truth.len(), "{agent:?} {ops:?}");
    let all_recorded = ops.iter().all(Op::is_recorded);
    let mut counts = BTreeMap::new();
    for (index, truth) in truth.iter().enumerate() {
        let turn = index as u32 + 1;
        let tree = rebuild(&tine.ctx, &session, turn).expect("a tree");
        for file in FILES {
            let verdict = tree.files.iter().find(|verdict| verdict.path == Path::new(file));
            let (found, expected) = (rebuilt(&tree, file, &world.repository), truth.get(file).cloned());
            let told = || {
                let text =
                    |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                format!(
                    "{agent:?} {ops:?}\nturn {turn}, {file}: {verdict:?}\nfound {:?}\nexpected {:?}",
                    text(&found),
                    text(&expected)
                )
            };
            let is_sure = verdict.is_some_and(|verdict| verdict.certainty >= Certainty::Consistent);
            assert!(!is_sure || found == expected, "{}", told());
            // With Claude Code, `rm` and `mv` are commands.
            if all_recorded
                && (agent != Agent::Claude || !ops.iter().any(|op| matches!(op, Op::Delete(_) | Op::Move(..))))
            {
                assert!(found == expected, "{}", told());
                let is_lost = agent != Agent::Claude && ops.iter().any(|op| matches!(op, Op::Write(_) | Op::Move(..)));
                assert!(
                    is_lost || verdict.is_none_or(|verdict| verdict.certainty >= Certainty::Consistent),
                    "{}",
                    told()
                );
            }
            *counts.entry(verdict.map_or("committed", |verdict| verdict.certainty.as_str())).or_default() += 1;
        }
        assert_eq!(rebuilt(&tree, "untouched.txt", &world.repository).as_deref(), Some(&b"same\n"[..]));
    }
    counts
}

fn cases() -> u32 {
    std::env::var("TINE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_called_certain_is_right(ops in prop::collection::vec(op(), 1..24), which in 0..3usize) {
        let agent = [Agent::Claude, Agent::Codex { items: true }, Agent::Codex { items: false }][which];
        check(agent, &ops);
    }

    #[test]
    fn what_agents_recorded_is_rebuilt_in_full(ops in prop::collection::vec(op().prop_filter("recorded", Op::is_recorded), 1..24), which in 0..3usize) {
        let agent = [Agent::Claude, Agent::Codex { items: true }, Agent::Codex { items: false }][which];
        check(agent, &ops);
    }
}

/// The verdicts are worth something: most files of an ordinary session are certain.
#[test]
fn an_ordinary_session_is_certain() {
    let ops = [Op::Write(3), Op::Edit(0), Op::Turn, Op::Edit(0), Op::Edit(1), Op::Turn, Op::Edit(3), Op::Read(1)];
    for agent in [Agent::Claude, Agent::Codex { items: true }, Agent::Codex { items: false }] {
        let counts = check(agent, &ops);
        assert_eq!((counts.get("doubtful"), counts.get("unknown")), (None, None), "{agent:?} {counts:?}");
    }
}

#[test]
fn a_person_and_a_command_make_a_file_doubtful() {
    let doubts = |ops: &[Op]| {
        let mut player = Player::new(Agent::Claude);
        ops.iter().for_each(|op| player.play(op));
        let (world, _) = player.finish();
        let tine = world.tine();
        let session = tine.resolve(ID, &Quiet).expect("a session").session;
        let tree = rebuild(&tine.ctx, &session, 1).expect("a tree");
        let file = tree.files.into_iter().find(|file| file.path == Path::new("a.txt")).expect("a verdict");
        (file.certainty, file.why.unwrap_or_default())
    };
    let (certainty, why) = doubts(&[Op::Edit(0), Op::Human(0), Op::Turn]);
    assert_eq!((certainty, why.as_str()), (Certainty::Doubtful, "changed outside the session after turn 1"));
    let (certainty, why) = doubts(&[Op::Edit(0), Op::Shell(0), Op::Turn]);
    assert_eq!((certainty, why.as_str()), (Certainty::Doubtful, "`echo x | tee -a 'a.txt'` in turn 1"));
    // What is seen afterwards settles it.
    let (certainty, why) = doubts(&[Op::Edit(0), Op::Shell(0), Op::Read(0), Op::Turn]);
    assert_eq!((certainty, why.as_str()), (Certainty::Exact, ""));
}
