//! `tine search --engine qmd`, with a script that behaves as qmd was seen to; `tests/real/qmd.rs` asks the real one.

use serde_json::Value;

use crate::world::{COOKIE, EXPORT, LOGIN, World, is_harmless};

/// Without models: `query` hangs or fails, `vsearch` finds nothing and says why, `search` answers what `documents` holds.
fn install(world: &World, query: &str, documents: &str) {
    world.sandbox.write("documents.json", documents);
    let documents = world.sandbox.work().join("documents.json");
    world.sandbox.script(
        "qmd",
        &format!(
            "#!/bin/sh\necho \"$*\" >> '{log}'\n\
             case \"$*\" in *\"-c nowhere \"*) echo 'Collection not found: nowhere' >&2; exit 1;; esac\n\
             case \"$1\" in\n\
             query) {query} ;;\n\
             vsearch) echo 'Warning: 1 documents (100%) need embeddings.' >&2; echo '[]' ;;\n\
             search) cat '{documents}' ;;\n\
             get) printf 'qmd://x\\n---\\n\\n1: ---\\n2: session: \"{COOKIE}\"\\n' ;;\n\
             esac\n",
            log = world.sandbox.work().join("asked").display(),
            documents = documents.display(),
        ),
    );
}

fn document(file: &str, snippet: &str) -> String {
    serde_json::json!({"docid": "#1", "score": 0.5, "file": file, "line": 3, "title": "x", "snippet": snippet})
        .to_string()
}

fn ask(world: &World, arguments: &[&str]) -> Value {
    world.json(["search", "--engine", "qmd", "--json"].iter().chain(arguments))
}

fn errors(answer: &Value) -> Vec<(&str, &str)> {
    let errors = answer["errors"].as_array().unwrap().iter();
    errors.map(|error| (error["engine"].as_str().unwrap(), error["message"].as_str().unwrap())).collect()
}

#[test]
fn without_qmd_the_way_to_it_is_told_and_recent_sessions_stand_in() {
    let world = World::new();
    insta::assert_snapshot!("not installed", world.run(["search", "redirect", "--engine", "qmd", "-n", "2"]).whole());
    let answer = ask(&world, &["redirect"]);
    assert_eq!(answer["engine"], "recent");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|result| result["recent"] == true && result["score"] == 0.0), "{answer}");
    assert!(errors(&answer)[0].1.contains("npm install -g @tobilu/qmd"), "{answer}");
}

#[test]
fn each_step_that_fails_is_told_and_the_last_one_answers() {
    let world = World::new();
    let snippet = "@@ -9,4 @@ (8 before, 3 after)\n\n## Turn 2\n\n> Fix it, please.\n\nDone, in a **hidden field**.";
    let documents = [
        document(&format!("qmd://mine/claude-{LOGIN}.md"), snippet),
        document(&format!("qmd://mine/deeper/codex-{EXPORT}-0a1b2c3d.md"), "nobody said that anywhere"),
        document("qmd://mine/notes-of-monday.md", "\u{1b}[2Jcookie\u{202e}"),
        document(&format!("qmd://mine/claude-{LOGIN}-again.md"), "x"),
    ];
    install(&world, "echo 'no model' >&2; exit 1", &format!("[{}]", documents.join(",")));
    let answer = ask(&world, &["--collection", "mine", "$(touch here) agent:claude", "-n", "9"]);
    assert_eq!(answer["engine"], "qmd-search");
    let results = answer["results"].as_array().unwrap();
    let found: Vec<_> =
        results.iter().map(|one| (one["session"]["id"].as_str().unwrap(), one["turn"].as_u64().unwrap())).collect();
    // By its file's name with the turn in which that was said; by the header; not one of another agent, nor one twice.
    assert_eq!(found, [(LOGIN, 2), (COOKIE, 3)]);
    assert!(is_harmless(&answer.to_string()), "{answer}");
    let output = errors(&answer);
    assert_eq!(output[0], ("qmd-query", "no model"));
    assert_eq!(output[1], ("qmd-vsearch", "Warning: 1 documents (100%) need embeddings."));
    let asked = std::fs::read_to_string(world.sandbox.work().join("asked")).unwrap();
    assert_eq!(asked.lines().next(), Some("query --json -n 27 -c mine -- $(touch here)"));
}

#[test]
fn a_session_whose_transcript_is_gone_is_listed_with_a_warning() {
    const GONE: &str = "d4d4d4d4-0000-4000-8000-000000000004";
    let world = World::new();
    let documents = [
        document(&format!("qmd://mine/claude-{GONE}.md"), "A cookie was eaten."),
        document(&format!("qmd://mine/claude-{COOKIE}.md"), "A cookie it is."),
    ];
    install(&world, "exit 1", &format!("[{}]", documents.join(",")));
    let header = format!("1: ---\\n2: session: \"{GONE}\"\\n3: agent: claude\\n4: title: \"Eaten\"\\n");
    let script = std::fs::read_to_string(world.sandbox.bin().join("qmd")).unwrap();
    world.sandbox.script("qmd", &script.replace("1: ---\\n2: session: \"", &format!("{header}9: \"")));
    let answer = ask(&world, &["cookie", "--collection", "mine"]);
    let [gone, there] = [0, 1].map(|at| &answer["results"][at]);
    assert_eq!((&gone["session"]["id"], &gone["session"]["title"]), (&GONE.into(), &"Eaten".into()), "{answer:#}");
    assert_eq!((&gone["can_fork"], &there["can_fork"]), (&false.into(), &true.into()), "{answer:#}");
    assert!(gone["warning"].as_str().unwrap().contains("transcript no longer exists"), "{answer:#}");
    // The next one is forked, and one of another agent isn't gone but not asked for.
    let forked = world.json(["smart-fork", "cookie", "--collection", "mine", "--auto", "--json"]);
    assert_eq!(forked["fork"]["parent"]["id"], COOKIE, "{forked:#}");
    let codex = ask(&world, &["cookie", "--collection", "mine", "--agent", "codex"]);
    assert_eq!(codex["results"], Value::Array(Vec::new()), "{codex:#}");
}

#[test]
fn a_step_that_hangs_is_left() {
    let mut world = World::new();
    install(&world, "sleep 60", &format!("[{}]", document(&format!("qmd://c/claude-{LOGIN}.md"), "x")));
    world.sandbox.set("TINE_QMD_TIMEOUT", "1");
    let answer = ask(&world, &["redirect"]);
    assert_eq!(answer["engine"], "qmd-search");
    assert!(errors(&answer)[0].1.contains("did not answer within 1 seconds"), "{answer}");
}

#[test]
fn a_collection_that_is_not_there_is_told_once() {
    let world = World::new();
    install(&world, "exit 1", "[]");
    let answer = ask(&world, &["redirect", "--collection", "nowhere"]);
    assert_eq!((&answer["engine"], errors(&answer).len()), (&"recent".into(), 1));
    assert!(errors(&answer)[0].1.contains("qmd collection add DIR --name nowhere"), "{answer}");
}

#[test]
fn what_is_no_list_is_no_crash() {
    let world = World::new();
    for printed in ["", "[]", "{", "[1,2]", "[{\"file\":\"\"}]", "[{\"file\":\"ü\",\"score\":1e99}]"] {
        install(&world, "echo surprise", printed);
        let answer = ask(&world, &["redirect"]);
        assert!(!errors(&answer).is_empty(), "{printed}: {answer}");
    }
}

#[test]
fn smart_fork_asks_the_collection_first_and_its_own_index_then() {
    let world = World::new();
    let smart = |arguments: &[&str]| world.json(["smart-fork", "redirect", "--json"].iter().chain(arguments));
    let own = smart(&["--collection", "mine"]);
    assert_eq!((&own["fallback_used"], &own["results"][0]["session"]["id"]), (&true.into(), &LOGIN.into()));
    assert!(errors(&own)[0].1.contains("not installed"), "{own}");
    assert_ne!(own["engine"], "recent");
    install(&world, "exit 1", &format!("[{}]", document(&format!("qmd://c/claude-{COOKIE}.md"), "A cookie it is.")));
    let asked = smart(&["--collection", "mine", "--auto"]);
    assert_eq!((&asked["engine"], &asked["fork"]["parent"]["id"]), (&"qmd-search".into(), &COOKIE.into()));
}
