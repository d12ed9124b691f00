//! Translations between all agents, of generated conversations: what is written is read back, and what went to another
//! agent and came back is what it was.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use agents::{
    Adapter, AgentEnvironment, Messages, TranslationOptions, TranslationRequest, compare_translation, open,
    survey_translation, write_translation,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::translate::{
    Message, MessageKind, Neutral, NeutralOptions, Receipt, ReceiptItem, Step, is_legal_call_id, is_legal_tool,
};
use transcript::{Agent, Block, BlockKind, NoticeKind};

/// A home of its own for each agent, and sessions in them.
struct Homes {
    folder: tempfile::TempDir,
}

impl Homes {
    fn new() -> Self {
        Homes { folder: tempfile::tempdir().unwrap() }
    }

    fn adapter(&self, agent: Agent) -> Box<dyn Adapter> {
        open(agent, &AgentEnvironment { home: self.folder.path().join("home"), ..AgentEnvironment::default() })
    }

    fn request(&self, adapter: &dyn Adapter) -> (TranslationRequest, PathBuf) {
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        let cwd = self.folder.path().join("project");
        fs::create_dir_all(&cwd).unwrap();
        let id = adapter.new_id(now);
        // As it is prepared; a session may be rows of a database when it is in its place.
        let path = agents::beside(&adapter.path_for(&id, &cwd, now), &format!(".{id}.tine-new"));
        (TranslationRequest { id, title: "a title".into(), cwd, branch: None, now }, path)
    }

    /// Writes messages as a session of the agent.
    fn write(&self, agent: Agent, messages: &[Message]) -> PathBuf {
        let adapter = self.adapter(agent);
        let (request, path) = self.request(adapter.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut out = BufWriter::new(File::create(&path).unwrap());
        let mut receipt = Receipt::default();
        let mut messages = messages.iter().cloned().map(|mut message| {
            adapter.adapt(&mut message, &mut receipt);
            message
        });
        adapter.write_session(&request, &mut messages, &mut out).unwrap();
        drop(out);
        path
    }

    /// Translates a session, and compares it with what was read.
    fn translate(&self, from: Agent, path: &Path, to: Agent) -> PathBuf {
        let (source, target) = (self.adapter(from), self.adapter(to));
        let options = TranslationOptions::default();
        let survey = survey_translation(source.as_ref(), path, target.as_ref(), &options, None).unwrap();
        let (request, made) = self.request(target.as_ref());
        fs::create_dir_all(made.parent().unwrap()).unwrap();
        let mut out = BufWriter::new(File::create(&made).unwrap());
        let known = (survey.compactions, None);
        let written =
            write_translation(source.as_ref(), path, target.as_ref(), &options, known, &request, &mut out).unwrap();
        drop(out);
        assert_eq!(written.receipt, survey.receipt, "the plan tells what was done");
        if let Err(what) = compare_translation(target.as_ref(), &made, &written).unwrap() {
            let read = |adapter: &dyn Adapter, path: &Path| {
                Messages::open(adapter, path, None, &options, None).unwrap().collect::<Vec<_>>()
            };
            let source_messages = Messages::open(
                source.as_ref(),
                path,
                Some(target.as_ref()),
                &options,
                Some((survey.compactions, None)),
            );
            let expected: Vec<Message> = source_messages.unwrap().collect();
            let found = read(target.as_ref(), &made);
            let file = fs::read_to_string(&made).unwrap_or_default();
            panic!("{from} to {to}: {what}\nexpected {expected:#?}\nfound {found:#?}\n{file}");
        }
        made
    }

    fn read(&self, agent: Agent, path: &Path) -> Vec<Message> {
        let adapter = self.adapter(agent);
        Messages::open(adapter.as_ref(), path, None, &TranslationOptions::default(), None).unwrap().collect()
    }
}

/// What must survive going to another agent and back: prompts, answers, calls and results, in order.
fn essence(messages: &[Message]) -> Vec<Value> {
    let mut essence = Vec::new();
    for message in messages {
        match &message.kind {
            MessageKind::User { text, pictures } => {
                let pictures: Vec<&str> = pictures.iter().map(|picture| picture.data.as_str()).collect();
                // Where there is no record for a summary, it is a prompt.
                let text = text.trim_start_matches("[Summary of the conversation so far]\n\n");
                essence.push(json!({"prompt": text.trim_start_matches("User: "), "pictures": pictures}));
            }
            MessageKind::Summary(text) => {
                essence.push(json!({"prompt": text.trim_start_matches("User: "), "pictures": []}));
            },
            MessageKind::Assistant { steps, .. } => {
                // Some agents keep texts before the calls of the same answer.
                let texts = steps.iter().filter_map(|step| match step {
                    Step::Text(text) => Some(json!({"answer": text})),
                    Step::Call(_) => None,
                });
                essence.extend(texts);
                let calls = steps.iter().filter_map(|step| match step {
                    Step::Call(call) => Some(json!({"call": call.id, "tool": call.name, "input": call.input})),
                    Step::Text(_) => None,
                });
                essence.extend(calls);
            }
            MessageKind::Results(results) => essence.extend(results.iter().map(|result| {
                json!({"result": result.id, "text": result.text, "error": result.error, "code": result.exit_code})
            })),
        }
    }
    essence
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z ]{0,12}",
        2 => "\\PC{0,20}",
        1 => prop::sample::select(vec![
            "", " \n", "/help me", "? what", "# heading\n## My request for Codex:\nx", "<environment_context>x",
            "<command-name>/x</command-name>", "[Request interrupted by user]", "<system-reminder>x", "grüße 漢字 🦀",
            "Chunk ID: 1\nOutput:\nx", "Wall time: 1\nOutput:\nhi", "Wall time: 1\nOutput:", "Exit code: 3\nOutput:\nx",
            "Exit code 4\nx", "Exit code 4", "[tool error]\nx", "aborted by user", "{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}",
            "[{\"type\":\"text\",\"text\":\"pong\"}]", "<persisted-output>\n/x/tool-results/t1.txt", "\u{1b}[31mred\u{0}",
            "<session_context>x", "<hook_context>x", "unsupported call: x", "a\r\nb", "  indented\n", "\"quoted\"",
            "--- Content from referenced files ---", "</image>", "User: hello", "<local-command-stdout>x</local-command-stdout>",
        ]).prop_map(str::to_owned),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any_text().prop_map(|command| json!({"command": command, "cmd": 1})),
        4 => (any_text(), any::<i64>()).prop_map(|(text, number)| json!({"other": [text, number, null], "more": {"a": true}})),
        2 => any_text().prop_map(|input| json!({"input": input})),
        1 => any_text().prop_map(Value::String),
        1 => Just(Value::Null),
        1 => Just(json!([1, 2.5])),
    ]
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![6 => "c[0-9]{1,2}", 1 => "\\PC{0,8}", 1 => "[a-z]{65,80}"]
}

fn any_kind() -> impl Strategy<Value = BlockKind> {
    let png = || Some("iVBORw0KGgo=".to_owned());
    let media = move |media_type: &str, data| BlockKind::Media { media_type: media_type.into(), bytes: Some(8), data };
    let name =
        prop::sample::select(vec!["Bash", "exec_command", "mcp__srv__tool", "my tool", "", "own_tool", "apply_patch"]);
    prop_oneof![
        4 => (any_text(), prop::bool::weighted(0.2)).prop_map(|(text, steer)| BlockKind::Prompt { text, steer }),
        4 => any_text().prop_map(|text| BlockKind::Answer { text, model: None }),
        1 => any_text().prop_map(|text| BlockKind::Thinking { text }),
        5 => (any_id(), name, any_json())
            .prop_map(|(id, name, input)| BlockKind::Call { id, name: name.to_owned(), input }),
        5 => (any_id(), any_text(), any::<bool>(), prop::option::weighted(0.3, -1..200i32))
            .prop_map(|(call, text, error, exit_code)| BlockKind::Output { call, name: None, text, error, exit_code }),
        1 => Just(media("image/png", png())),
        1 => Just(media("application/pdf", png())),
        1 => Just(media("image/png", None)),
        1 => any_text().prop_map(|summary| BlockKind::Compaction { summary }),
        1 => any_text().prop_map(|text| BlockKind::Notice { notice: NoticeKind::Info, text }),
    ]
}

fn any_blocks() -> impl Strategy<Value = Vec<Block>> {
    let block = (any_kind(), prop::option::weighted(0.5, "m[0-9]"), prop::bool::weighted(0.05));
    prop::collection::vec(block, 0..30).prop_map(|blocks| {
        let mut turn = 0;
        let block = |(kind, message, nested): (BlockKind, Option<String>, bool)| {
            turn += u32::from(matches!(kind, BlockKind::Prompt { steer: false, .. }));
            Block { turn, depth: u8::from(nested), at: None, message, kind }
        };
        blocks.into_iter().map(block).collect()
    })
}

fn neutral(blocks: &[Block]) -> (Vec<Message>, Receipt) {
    let mut neutral = Neutral::new(NeutralOptions::default());
    let mut messages = Vec::new();
    for block in blocks {
        if neutral.block(block.clone()) {
            messages.clear();
        }
        messages.extend(std::iter::from_fn(|| neutral.next_message()));
    }
    neutral.finish();
    messages.extend(std::iter::from_fn(|| neutral.next_message()));
    (messages, neutral.receipt().clone())
}

/// The rules that every agent's format and every model needs.
fn assert_legal(messages: &[Message]) {
    let mut ids = std::collections::HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        assert!(
            open.is_empty() || matches!(message.kind, MessageKind::Results(_)),
            "calls without results before {index}"
        );
        match &message.kind {
            MessageKind::User { text, pictures } => {
                assert!(!text.trim().is_empty() || text.is_empty() && !pictures.is_empty(), "{message:?}");
            }
            MessageKind::Summary(text) => assert!(index == 0 && !text.trim().is_empty(), "{message:?}"),
            MessageKind::Assistant { steps, .. } => {
                assert!(index > 0 && !steps.is_empty(), "{message:?}");
                let before = &messages[index - 1].kind;
                assert!(!matches!(before, MessageKind::Assistant { .. }), "two answers in a row: {messages:#?}");
                for step in steps {
                    match step {
                        Step::Text(text) => assert!(!text.trim().is_empty(), "{message:?}"),
                        Step::Call(call) => {
                            assert!(is_legal_call_id(&call.id) && ids.insert(call.id.clone()), "{call:?}");
                            assert!(is_legal_tool(&call.name) && call.input.is_object(), "{call:?}");
                            open.push(call.id.clone());
                        }
                    }
                }
            }
            MessageKind::Results(results) => {
                let answered: Vec<String> = results.iter().map(|result| result.id.clone()).collect();
                assert_eq!(answered, open, "each call has its result, in order");
                assert!(results.iter().all(|result| result.exit_code.is_none_or(|code| code != 0 && result.error)));
                open.clear();
            }
        }
    }
    assert!(open.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn messages_follow_the_rules_whatever_the_blocks_are(blocks in any_blocks()) {
        let (messages, receipt) = neutral(&blocks);
        assert_legal(&messages);
        let prompts = messages.iter().filter(|message| matches!(message.kind, MessageKind::User { .. })).count() as u64;
        prop_assert_eq!(receipt.count(ReceiptItem::Prompts) + receipt.count(ReceiptItem::BeginningAdded), prompts);
        prop_assert_eq!(receipt.count(ReceiptItem::Calls), receipt.count(ReceiptItem::Results));
    }

    #[test]
    fn every_agent_reads_back_what_is_written_and_a_return_changes_nothing(blocks in any_blocks()) {
        let (messages, _) = neutral(&blocks);
        prop_assume!(!messages.is_empty());
        for from in Agent::ALL {
            let homes = Homes::new();
            let source = homes.write(from, &messages);
            let read = homes.read(from, &source);
            assert_legal(&read);
            for to in Agent::ALL.into_iter().filter(|to| *to != from) {
                let there = homes.translate(from, &source, to);
                let back = homes.translate(to, &there, from);
                let returned = homes.read(from, &back);
                let is_foreign = |message: &Message| match &message.kind {
                    // A tool of the other agent's, in a session of this one, becomes this one's.
                    MessageKind::Assistant { steps, .. } => steps.iter().any(|step| match step {
                        Step::Call(call) => is_own_tool(&homes, to, &call.name) && !is_own_tool(&homes, from, &call.name),
                        Step::Text(_) => false,
                    }),
                    _ => false,
                };
                if !read.iter().any(is_foreign) {
                    prop_assert_eq!(essence(&returned), essence(&read), "{} to {} and back", from, to);
                }
            }
        }
    }
}

fn is_own_tool(homes: &Homes, agent: Agent, name: &str) -> bool {
    homes.adapter(agent).shared_tools().iter().any(|words| words.name == name)
}
