//! The real agents resume what the builders write: the whole history reaches the model.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{CLAUDE_VERSIONS, ClaudeDriver, CodexDriver};
use testkit::build::{ClaudeSession, CodexSession, Dialect};
use testkit::model::{Block, Model, Reply, Request};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const FORK: &str = "22222222-2222-4222-8222-222222222222";
const GRANDCHILD: &str = "33333333-3333-4333-8333-333333333333";

/// A conversation with everything that a turn can hold, for either agent's shell.
macro_rules! conversation {
    ($session:expr, $shell:literal, $argument:literal) => {
        $session
            .turn(|turn| {
                turn.prompt("one")
                    .thinking("A thought.")
                    .text("I look.")
                    .tool($shell, json!({$argument: "ls"}), "README.md")
                    .text("first answer")
            })
            .turn(|turn| {
                turn.prompt("two")
                    .parallel([($shell, json!({$argument: "a"}), "out a"), ($shell, json!({$argument: "b"}), "out b")])
                    .parallel_reversed([($shell, json!({$argument: "c"}), "out c"), ($shell, json!({$argument: "d"}), "out d")])
                    .failing_tool($shell, json!({$argument: "false"}), "Exit code 1")
                    .text("second answer")
            })
    };
}

/// What a request holds of the conversation above.
fn check_conversation(request: &Request, prompts: &[&str]) {
    assert_eq!(request.prompts(), prompts);
    let texts = request.texts("assistant");
    assert_eq!(texts, ["I look.", "first answer", "second answer"]);
    let blocks: Vec<Block> = request.messages().into_iter().flat_map(|message| message.blocks).collect();
    assert!(blocks.contains(&Block::Thinking("A thought.".to_owned())), "{blocks:?}");
    let mut outputs: Vec<String> = request.tool_results().into_iter().map(|(_, text)| text).collect();
    outputs.sort();
    assert_eq!(outputs.len(), 6, "{outputs:?}");
    for wanted in ["README.md", "out a", "out b", "out c", "out d", "Exit code 1"] {
        assert!(outputs.iter().any(|output| output.contains(wanted)), "{wanted} is missing in {outputs:?}");
    }
}

mod claude {
    use super::*;

    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        a_whole_conversation_is_resumed,
        after_a_compaction_the_summary_is_resumed,
        the_newest_branch_in_the_file_is_resumed,
        a_branch_and_a_subagent_are_resumed,
        a_killed_turn_is_resumed,
        a_long_directory_name_is_found,
    ]);

    fn resume(version: &str, session: impl FnOnce(ClaudeSession) -> ClaudeSession, check: impl FnOnce(&Request)) {
        let (sandbox, model) = (Sandbox::new(), Model::start());
        let claude = ClaudeDriver::new(&sandbox, &model, version);
        let project = sandbox.project("app");
        let built = session(ClaudeSession::new(ID).cwd(&project).version(version));
        let path = built.write(&sandbox.claude_home());
        let before = fs::read(&path).expect("the built transcript");
        assert_eq!(claude.resume(&project, built.id(), "go on"), "ok 1");
        check(&model.last_turn());
        assert!(fs::read(&path).expect("the transcript").starts_with(&before), "it goes on in the same file");
    }

    fn a_whole_conversation_is_resumed(version: &str) {
        resume(
            version,
            |session| conversation!(session, "Bash", "command"),
            |request| check_conversation(request, &["one", "two", "go on"]),
        );
    }

    fn after_a_compaction_the_summary_is_resumed(version: &str) {
        resume(
            version,
            |session| {
                session
                    .interactive()
                    .turn(|turn| turn.prompt("before").text("old answer"))
                    .turn(|turn| turn.prompt("still before").text("kept answer"))
                    .compact("What was said.")
                    .turn(|turn| turn.prompt("after").text("new answer"))
            },
            |request| {
                let user = request.texts("user").join("\n");
                assert!(user.contains("What was said."), "{user}");
                let texts = request.texts("assistant");
                assert!(!texts.contains(&"old answer".to_owned()), "{texts:?}");
                assert_eq!(texts.last().map(String::as_str), Some("new answer"));
                assert!(request.prompts().ends_with(&["after".to_owned(), "go on".to_owned()]));
            },
        );
    }

    fn the_newest_branch_in_the_file_is_resumed(version: &str) {
        resume(
            version,
            |session| {
                session
                    .interactive()
                    .turn(|turn| turn.prompt("one").text("1"))
                    .turn(|turn| turn.prompt("left out").text("2"))
                    .rewind_to(1)
                    .turn(|turn| turn.prompt("another two").text("3"))
            },
            |request| assert_eq!(request.prompts(), ["one", "another two", "go on"]),
        );
    }

    fn a_branch_and_a_subagent_are_resumed(version: &str) {
        resume(
            version,
            |session| {
                let trunk = session.turn(|turn| {
                    turn.prompt("send one")
                        .subagent("Look", |turn| {
                            turn.prompt("below").tool("Bash", json!({"command": "x"}), "y").text("seen")
                        })
                        .text("It saw.")
                });
                trunk.branch(FORK).title("side-road").turn(|turn| turn.prompt("in the branch").text("yes"))
            },
            |request| {
                assert_eq!(request.session.as_deref(), Some(FORK));
                assert_eq!(request.prompts(), ["send one", "in the branch", "go on"]);
            },
        );
    }

    fn a_killed_turn_is_resumed(version: &str) {
        resume(
            version,
            |session| {
                session
                    .turn(|turn| turn.prompt("one").text("1").interrupted())
                    .turn(|turn| turn.prompt("two").tool("Bash", json!({"command": "x"}), "never").killed())
            },
            |request| assert_eq!(request.prompts().first().map(String::as_str), Some("one")),
        );
    }

    fn a_long_directory_name_is_found(version: &str) {
        let (sandbox, model) = (Sandbox::new(), Model::start());
        let claude = ClaudeDriver::new(&sandbox, &model, version);
        let directory = sandbox.directory(&format!("{}/{}/ü_漢 😀", "a".repeat(120), "b".repeat(120)));
        ClaudeSession::new(ID).cwd(&directory).turn(|turn| turn.prompt("one").text("1")).write(&sandbox.claude_home());
        claude.resume(&directory, ID, "go on");
        assert_eq!(model.last_turn().prompts(), ["one", "go on"]);
    }
}

mod codex {
    use super::*;

    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        a_whole_conversation_is_resumed,
        after_a_compaction_the_summary_is_resumed,
        a_killed_turn_and_a_subagent_are_resumed,
    ]);

    fn dialect(version: &str) -> Dialect {
        if version == "0.140.0" { Dialect::Legacy } else { Dialect::Paginated }
    }

    fn resume(version: &str, session: impl FnOnce(CodexSession) -> CodexSession, check: impl FnOnce(&Request)) {
        let (sandbox, model) = (Sandbox::new(), Model::start());
        let codex = CodexDriver::new(&sandbox, &model, version);
        let project = sandbox.project("app");
        let built = session(CodexSession::new(ID).cwd(&project).dialect(dialect(version)));
        let path = built.write(&sandbox.codex_home());
        let before = fs::read(&path).expect("the built rollout");
        assert_eq!(codex.resume(&project, ID, "go on"), "ok 1");
        check(&model.last_turn());
        assert!(fs::read(&path).expect("the rollout").starts_with(&before), "it goes on in the same file");
    }

    fn a_whole_conversation_is_resumed(version: &str) {
        resume(
            version,
            |session| conversation!(session, "exec_command", "cmd"),
            |request| check_conversation(request, &["one", "two", "go on"]),
        );
    }

    fn after_a_compaction_the_summary_is_resumed(version: &str) {
        resume(
            version,
            |session| {
                session
                    .turn(|turn| turn.prompt("before").text("old answer"))
                    .compact("What was said.")
                    .turn(|turn| turn.prompt("after").text("new answer"))
            },
            |request| {
                assert!(request.texts("user").join("\n").contains("What was said."));
                assert_eq!(request.texts("assistant"), ["new answer"]);
            },
        );
    }

    fn a_killed_turn_and_a_subagent_are_resumed(version: &str) {
        resume(
            version,
            |session| {
                session
                    .turn(|turn| {
                        turn.prompt("one").subagent("Look", |turn| turn.prompt("below").text("seen")).text("1")
                    })
                    .turn(|turn| turn.prompt("two").text("2").interrupted())
                    .turn(|turn| turn.prompt("three").tool("exec_command", json!({"cmd": "x"}), "never").killed())
            },
            |request| {
                assert_eq!(request.prompts(), ["one", "two", "three", "go on"]);
                assert!(
                    request.tool_results().iter().any(|(_, text)| text == "aborted"),
                    "{:?}",
                    request.tool_results()
                );
            },
        );
    }

    /// A reference to the source, and a reference to that.
    #[test]
    fn forks_by_reference_are_resumed() {
        let (sandbox, model) = (Sandbox::new(), Model::start());
        let codex = CodexDriver::new(&sandbox, &model, "0.166.0");
        let project = sandbox.project("app");
        let source = conversation!(CodexSession::new(ID).cwd(&project), "exec_command", "cmd");
        let child = source.fork(FORK).turn(|turn| turn.prompt("child").text("third answer"));
        let grandchild = child.fork(GRANDCHILD).turn(|turn| turn.prompt("grandchild").text("fourth answer"));
        for session in [&source, &child, &grandchild] {
            session.write(&sandbox.codex_home());
        }
        codex.resume(&project, GRANDCHILD, "go on");
        assert_eq!(model.last_turn().prompts(), ["one", "two", "child", "grandchild", "go on"]);
        assert_eq!(model.last_turn().tool_results().len(), 6);
    }

    #[test]
    fn a_legacy_fork_is_resumed_by_both_versions() {
        for version in ["0.140.0", "0.166.0"] {
            let (sandbox, model) = (Sandbox::new(), Model::start());
            let codex = CodexDriver::new(&sandbox, &model, version);
            let project = sandbox.project("app");
            let source =
                CodexSession::new(ID).cwd(&project).dialect(Dialect::Legacy).turn(|turn| turn.prompt("one").text("1"));
            let child = source.fork(FORK).turn(|turn| turn.prompt("two").text("2"));
            source.write(&sandbox.codex_home());
            child.write(&sandbox.codex_home());
            codex.resume(&project, FORK, "go on");
            assert_eq!(model.last_turn().prompts(), ["one", "two", "go on"]);
            assert_eq!(model.last_turn().session.as_deref(), Some(FORK));
        }
    }
}

/// Nothing is built that the real agent does not write: every key of a built line is one of a recorded line.
mod keys {
    use super::*;

    #[test]
    fn of_claude() {
        for version in CLAUDE_VERSIONS {
            let (sandbox, model) = (Sandbox::new(), Model::start());
            let claude = ClaudeDriver::new(&sandbox, &model, version);
            let project = sandbox.project("app");
            let input = json!({"command": "echo hi", "description": "Say hi"});
            model.push(Reply::new().thinking("hm").call("Bash", input.clone()));
            claude.start(&project, ID, "first");
            let built = ClaudeSession::new(FORK)
                .cwd(&project)
                .version(version)
                .turn(|turn| turn.prompt("first").thinking("hm").tool("Bash", input, "hi").text("ok"))
                .write(&sandbox.claude_home());
            check(&claude.transcript(ID).expect("a transcript"), &built);
        }
    }

    #[test]
    fn of_codex() {
        for (version, dialect) in [("0.166.0", Dialect::Paginated), ("0.140.0", Dialect::Legacy)] {
            let (sandbox, model) = (Sandbox::new(), Model::start());
            let codex = CodexDriver::new(&sandbox, &model, version);
            let project = sandbox.project("app");
            let input = json!({"cmd": "echo hi"});
            model.push(Reply::new().thinking("hm").call("exec_command", input.clone()));
            let id = codex.start(&project, "first");
            let built = CodexSession::new(FORK)
                .cwd(&project)
                .dialect(dialect)
                .turn(|turn| turn.prompt("first").thinking("hm").tool("exec_command", input, "hi").text("ok"))
                .write(&sandbox.codex_home());
            check(&codex.rollout(&id).expect("a rollout"), &built);
        }
    }

    #[track_caller]
    fn check(recorded: &Path, built: &Path) {
        let known = of_file(recorded);
        let unknown: Vec<String> = of_file(built).into_iter().filter(|key| !known.contains(key)).collect();
        assert_eq!(unknown, Vec::<String>::new());
    }

    /// Every key of every line with the line's type before it, down to the third level.
    fn of_file(path: &Path) -> BTreeSet<String> {
        let content = fs::read_to_string(path).expect("a transcript");
        let mut keys = BTreeSet::new();
        for line in content.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let kind = line["payload"]["type"].as_str().or(line["attachment"]["type"].as_str()).unwrap_or_default();
            collect(&line, &format!("{} {kind} ", line["type"].as_str().unwrap_or_default()), 3, &mut keys);
        }
        keys
    }

    fn collect(value: &Value, prefix: &str, levels: usize, keys: &mut BTreeSet<String>) {
        for (key, inner) in value.as_object().into_iter().flatten() {
            // What tools are given and what they answer is the tools' own.
            if ["input", "toolUseResult"].contains(&key.as_str()) {
                continue;
            }
            let key = format!("{prefix}.{key}");
            if levels > 1 {
                collect(inner, &key, levels - 1, keys);
            }
            keys.insert(key);
        }
    }
}
