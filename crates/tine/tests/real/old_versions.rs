//! Copies of what older versions wrote, resumed by the real client with the whole history.

use testkit::Sandbox;
use testkit::agents::CodexDriver;
use testkit::build::versions::{OldSession, every};
use testkit::model::Model;

use crate::conversation::{Conversation, tine_json};

testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [codex_resumes_copies_of_every_dialect]);

fn codex_resumes_copies_of_every_dialect(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let dialects = every().into_iter().filter(|session| session.agent == "codex" && session.can_be_copied());
    // An older client doesn't know references to other files.
    let dialects = dialects.filter(|session| version != "0.140.0" || session.versions != "0.150 and later");
    for session in dialects {
        let what = format!("{}: {}", session.versions, session.quirk);
        session.write(&sandbox.codex_home());
        let resumed = |id: &str| {
            codex.resume(&project, id, "and then");
            Conversation::from_request(&model.last_turn())
        };
        let copies: Vec<(usize, Conversation)> = (1..=session.turns.len())
            .map(|turns| {
                let spec = format!("{}@{turns}", session.id);
                let arguments = ["fork", &spec, "--to", project.to_str().unwrap(), "--yes", "--json"];
                let id = tine_json(&sandbox, &project, &arguments)["session"]["id"].as_str().unwrap().to_owned();
                (turns, resumed(&id))
            })
            .collect();
        let source = resumed(&session.id);
        // What was said before a compaction stays in the file; the model gets the summary.
        let is_compacted = session.lines.iter().any(|line| line["type"] == "compacted");
        for (turns, copy) in copies {
            if turns == session.turns.len() {
                assert_eq!(copy, source, "{what}");
            }
            match is_compacted {
                true => assert_eq!(seen(&copy, &session, turns), seen(&source, &session, turns), "{what} @{turns}"),
                false => assert_eq!(seen(&copy, &session, turns), said(&session, turns), "{what} @{turns}"),
            }
        }
    }
}

/// The prompts, and then the answers, of a session's first turns. A review's prompt is not among them: it goes to a thread of
/// its own, and the session has only an event of it.
fn said(session: &OldSession, turns: usize) -> Vec<&'static str> {
    let first = &session.turns[..turns];
    let sides = first.iter().map(|turn| turn.0).chain(first.iter().map(|turn| turn.1));
    let holds = |kind: &str, words: &str| {
        let quoted = serde_json::Value::from(words).to_string();
        let escaped = quoted.trim_matches('"');
        session.lines.iter().any(|line| line["type"] == kind && line.to_string().contains(escaped))
    };
    let is_sent = |words: &&str| holds("response_item", words) || !holds("event_msg", words);
    sides.filter(|words| !words.is_empty()).filter(is_sent).collect()
}

/// Those of them that the model saw, as often as it did.
fn seen(talk: &Conversation, session: &OldSession, turns: usize) -> Vec<&'static str> {
    let said = said(session, turns);
    let seen = |text: &String| said.iter().copied().find(|words| text.trim_end().ends_with(words));
    talk.prompts.iter().chain(&talk.answers).filter_map(seen).collect()
}
