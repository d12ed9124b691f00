//! What a listing shows of a thread.

use std::path::Path;

use transcript::{ParentSource, TokenUse};

use super::{File, Lab, id, look};
use crate::Transcripts;

#[test]
fn the_facts_of_a_thread_are_found() {
    let count = |input: u64| {
        format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":99999,"output_tokens":9}},"last_token_usage":{{"input_tokens":{input},"cached_input_tokens":0,"output_tokens":12}},"model_context_window":258400}},"rate_limits":null}}"#
        )
    };
    for mut file in [File::paginated(1, ""), File::legacy(1, r#","git":{"branch":"main"}"#)] {
        file.add(
            "turn_context",
            r#"{"turn_id":"01a1e0f5-73f4-7960-8a48-5463f3d62da2","cwd":"/home/u/a","model":"old-model"}"#,
        );
        file.turn(r"  first\n\tprompt \u001b[31m").event(&count(5)).turn("second");
        file.add(
            "turn_context",
            r#"{"turn_id":"01a1e0f5-77c0-7571-b1db-54467bb0283a","cwd":"/home/u/b","model":"new-model"}"#,
        );
        file.event(&count(9870)).event(r#"{"type":"token_count","info":null,"rate_limits":{}}"#);
        let (summary, _) = look(file.text());
        assert_eq!(summary.id.as_str(), id(1));
        assert_eq!(summary.first_prompt.as_deref(), Some("first prompt"));
        assert_eq!(summary.cwd.as_deref(), Some(Path::new("/home/u/b")));
        assert_eq!(summary.branch.as_deref(), Some("main"));
        assert_eq!(summary.model.as_deref(), Some("new-model"));
        assert!(summary.version.as_deref().is_some_and(|version| version.starts_with("0.1")));
        assert_eq!(summary.tokens, Some(TokenUse { input: 9870, output: 12, window: Some(258_400) }));
        assert!(summary.created.unwrap() < summary.updated.unwrap());
        assert_eq!(
            summary.updated.unwrap().to_string(),
            format!("2026-11-15T20:45:50.{:03}Z", file.lines.len() - 1).replace("0Z", "Z")
        );
        assert!(!summary.is_subagent && !summary.mid_turn && summary.parent.is_none());
        assert!(summary.defects.is_empty());
    }
}

#[test]
fn a_long_prompt_is_shortened_for_the_title() {
    let mut file = File::paginated(1, "");
    file.turn(&"漢字 ".repeat(4000));
    let (summary, _) = look(file.text());
    let title = summary.first_prompt.unwrap();
    assert!((150..=200).contains(&title.len()) && title.starts_with("漢字 漢字"), "{title}");
}

#[test]
fn helpers_are_marked_and_name_their_parent() {
    let more = format!(
        r#","parent_thread_id":"{0}","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{0}","depth":1}}}}}},"thread_source":"subagent""#,
        id(7)
    );
    let (summary, _) = look(File::paginated(1, &more).turn("do it").text());
    let parent = summary.parent.unwrap();
    assert!(summary.is_subagent);
    assert_eq!((parent.id.as_str(), parent.source), (id(7).as_str(), ParentSource::Agent));
}

#[test]
fn a_store_finds_its_threads_and_their_helpers() {
    let lab = Lab::new();
    let parent = lab.write(1, File::paginated(1, "").turn("one").text());
    let helper =
        File::legacy(2, &format!(r#","parent_thread_id":"{}","thread_source":"subagent""#, id(1))).turn("x").text();
    let helper = lab.write(2, helper);
    lab.write(3, File::legacy(3, &format!(r#","forked_from_id":"{}""#, id(1))).turn("x").text());
    let (first, second) = (transcript::SessionId::new(id(1)).unwrap(), transcript::SessionId::new(id(2)).unwrap());
    assert_eq!(lab.codex.subagents_of(&first), [(second.clone(), helper.clone())]);
    assert_eq!(lab.codex.subagents_of(&second), []);
    assert_eq!(lab.codex.find_transcript(&first, Path::new("")), Some(parent));
    assert_eq!(lab.codex.discover().files.len(), 3);
    // A thread that came after the last look through the folders, and one that went.
    let new = lab.write(4, File::legacy(4, "").text());
    assert_eq!(lab.codex.find_transcript(&transcript::SessionId::new(id(4)).unwrap(), Path::new("")), Some(new));
    std::fs::remove_file(&helper).unwrap();
    assert_eq!(lab.codex.find_transcript(&second, Path::new("")), None);
}
