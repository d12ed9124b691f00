//! The real qmd over a collection that `tine export` made, without a network and without its models.

use serde_json::{Value, json};
use testkit::agents::installed_qmd;
use testkit::build::{ClaudeSession, CodexSession};
use testkit::sandbox::expect_success;
use testkit::{McpClient, Sandbox};

const VERSION: &str = "2.8.3";
const LOGIN: &str = "1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21";
const EXPORT: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";

#[test]
fn a_collection_of_exported_sessions_is_searched_as_far_as_qmd_can() {
    let mut sandbox = Sandbox::new();
    // Offline, `query` would try to fetch its models for minutes.
    sandbox.set("TINE_QMD_TIMEOUT", "6");
    let (qmd, node) = installed_qmd(VERSION);
    sandbox.link("qmd", &qmd);
    if let Some(node) = node {
        sandbox.link("node", &node);
    }
    let shop = sandbox.project("shop");
    let login = ClaudeSession::new(LOGIN).cwd(&shop).turn(|turn| turn.prompt("Where is the list?").text("In a file."));
    login
        .turn(|turn| {
            turn.prompt("Why do users land on a blank page after login?").text("The redirect loses its target.")
        })
        .write(&sandbox.claude_home());
    CodexSession::new(EXPORT)
        .cwd(&shop)
        .turn(|turn| turn.prompt("Orders need a CSV export.").text("Beside the list route."))
        .write(&sandbox.codex_home());
    let tine = |arguments: &[&str]| -> Value {
        let output = sandbox.command(env!("CARGO_BIN_EXE_tine")).current_dir(&shop).args(arguments).output().unwrap();
        serde_json::from_str(&expect_success(&output)).unwrap()
    };
    let folder = sandbox.work().join("exported");
    assert_eq!(tine(&["export", folder.to_str().unwrap(), "--json"])["written"], 2);
    let added = ["collection", "add", folder.to_str().unwrap(), "--name", "tine-sessions"];
    expect_success(&sandbox.command("qmd").args(added).output().unwrap());

    let answer = tine(&["search", "redirect target", "--engine", "qmd", "--collection", "tine-sessions", "--json"]);
    assert_eq!(answer["engine"], "qmd-search", "{answer}");
    let first = &answer["results"][0];
    assert_eq!((&first["session"]["id"], &first["turn"], &first["can_fork"]), (&LOGIN.into(), &2.into(), &true.into()));
    let failed: Vec<&str> =
        answer["errors"].as_array().unwrap().iter().map(|error| error["engine"].as_str().unwrap()).collect();
    assert_eq!(failed, ["qmd-query", "qmd-vsearch"], "{answer}");

    let forked = tine(&["smart-fork", "csv export", "--collection", "tine-sessions", "--auto", "--json"]);
    assert_eq!((&forked["engine"], &forked["fallback_used"]), (&"qmd-search".into(), &true.into()), "{forked}");
    assert_eq!(forked["fork"]["parent"]["id"], EXPORT);

    // The same for agents.
    let mut server = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    server.current_dir(&shop).arg("mcp");
    let client = McpClient::start(&sandbox, &server, false);
    let found = client.tool("smart_fork", json!({"intent": "redirect target", "collection": "tine-sessions"}));
    assert_eq!((&found["engine"], &found["fallback_used"]), (&json!("qmd-search"), &json!(true)), "{found:#}");
    assert_eq!(found["results"][0]["session_id"], LOGIN);
    assert!(found["results"][0]["source_path"].as_str().unwrap().ends_with(".md"), "{found:#}");
    assert!(found["results"][0]["jsonl_path"].as_str().unwrap().ends_with(".jsonl"), "{found:#}");
    let trouble = found["qmd_error"].as_str().unwrap();
    assert!(trouble.contains("qmd-query: ") && trouble.contains("qmd-vsearch: "), "{trouble}");
    // Where there is no such collection, the own index answers and says why.
    let found = client.tool("smart_fork", json!({"intent": "redirect target", "collection": "nowhere"}));
    assert_eq!((&found["engine"], &found["fallback_used"]), (&json!("hybrid"), &json!(true)), "{found:#}");
    assert!(found["qmd_error"].as_str().unwrap().contains("Collection not found: nowhere"), "{found:#}");
    assert_eq!(found["results"][0]["session_id"], LOGIN);
    client.close();

    let missing = tine(&["search", "redirect", "--engine", "qmd", "--collection", "nowhere", "--json"]);
    assert_eq!((&missing["engine"], &missing["results"][0]["recent"]), (&"recent".into(), &true.into()), "{missing}");
    assert!(missing["errors"][0]["message"].as_str().unwrap().contains("Collection not found: nowhere"), "{missing}");
}
