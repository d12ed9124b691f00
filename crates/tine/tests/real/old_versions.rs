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
        for (turns, copy) in copies {
            if turns == session.turns.len() {
                assert_eq!(copy, source, "{what}");
            }
            assert_eq!(words(&copy, &session), kept(&words(&source, &session), &session, turns), "{what} @{turns}");
        }
    }
}

/// The prompts and answers of the session's turns that the model saw, in their order.
fn words(talk: &Conversation, session: &OldSession) -> Vec<&'static str> {
    let sides = session.turns.iter().map(|turn| turn.0).chain(session.turns.iter().map(|turn| turn.1));
    let saw = |words: &&str| talk.prompts.iter().chain(&talk.answers).any(|seen| seen.trim_end().ends_with(*words));
    sides.filter(|words| !words.is_empty()).filter(saw).collect()
}

/// Those of them that belong to the first turns.
fn kept(words: &[&'static str], session: &OldSession, turns: usize) -> Vec<&'static str> {
    let first = &session.turns[..turns];
    words.iter().copied().filter(|words| first.iter().any(|turn| turn.0 == *words || turn.1 == *words)).collect()
}
