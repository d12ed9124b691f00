//! The real agents call tine's server themselves: they find what was done before, fork it, and hand work to the fork.

use std::path::Path;

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply, Request};
use testkit::sandbox::{expect_success, text};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const OUTER: &str = "22222222-2222-4222-8222-222222222222";
const PAST: &str = "The checkout loses the voucher of the customer";
const ASKED: &str = "find the voucher session and ask it";
const MESSAGE: &str = "what was it?";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [a_fork_is_found_told_and_waited_for_by_claude]);
    use super::*;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [a_fork_is_found_told_and_waited_for_by_codex]);
    use super::*;
}

fn tine(sandbox: &Sandbox, environment: Vec<(&'static str, String)>, directory: &Path, arguments: &[&str]) -> String {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    let output = command.envs(environment).current_dir(directory).args(arguments).output().expect("tine");
    expect_success(&output);
    text(&output.stdout)
}

/// Makes the model call the tools one after the other, each with what the last one told.
fn script(model: &Model, call: impl Fn(&str, Value) -> Reply + Send + Sync + 'static) {
    model.on(move |request: &Request| {
        let prompt = request.prompt()?;
        if prompt == MESSAGE {
            return Some(Reply::text("it was the cookie"));
        }
        if prompt != ASKED {
            return None;
        }
        let results = request.tool_results();
        let fork = || tool_result(&results[0].1)["forked_session"]["session_id"].clone();
        Some(match results.len() {
            0 => call("smart_fork", json!({"intent": "voucher lost in the checkout", "auto_fork": true})),
            1 => call("send_message", json!({"sessions": [fork()], "message": MESSAGE})),
            2 => call("wait_sessions", json!({"sessions": [fork()], "timeout": 60})),
            _ => Reply::text("done"),
        })
    });
}

/// The result of a tool, in whatever text an agent wraps it.
fn tool_result(result: &str) -> Value {
    let start = result.find('{').unwrap_or_else(|| panic!("no object in {result}"));
    let mut values = serde_json::Deserializer::from_str(&result[start..]).into_iter::<Value>();
    values.next().and_then(Result::ok).unwrap_or_else(|| panic!("no JSON in {result}"))
}

/// What came of it: the fork has the history, was told, and its answer came back.
fn check(sandbox: &Sandbox, model: &Model, environment: Vec<(&'static str, String)>, project: &Path, past: &str) {
    let turns = model.turn_requests();
    let last =
        turns.iter().rev().find(|request| request.prompt().as_deref() == Some(ASKED)).expect("the outer session");
    let results = last.tool_results();
    assert_eq!(results.len(), 3, "{}", model.overview());
    let found = tool_result(&results[0].1);
    assert_eq!(found["results"][0]["session_id"], past, "{found:#}");
    // The session that asks is not among what it finds, though it says the same words.
    assert_eq!(found["results"].as_array().map(Vec::len), Some(1), "{found:#}");
    let forked = &found["forked_session"];
    assert_eq!(forked["resume_session_id"], past);
    let asked: Vec<_> = turns.iter().filter(|request| request.prompt().as_deref() == Some(MESSAGE)).collect();
    assert_eq!(asked.len(), 1, "{}", model.overview());
    assert_eq!(asked[0].prompts(), [PAST, MESSAGE]);
    let waited = tool_result(&results[2].1);
    assert_eq!(waited["timed_out"], false, "{waited:#}");
    let answer = waited["results"][0]["answer"].as_str().unwrap_or_default();
    assert!(answer.contains("it was the cookie") && answer.starts_with("<quoted-"), "{waited:#}");
    let name = forked["session_name"].as_str().expect("a name");
    let info: Value =
        serde_json::from_str(&tine(sandbox, environment, project, &["info", name, "--json"])).expect("JSON");
    assert_eq!((&info["id"], &info["parent"]["id"], &info["turns"]), (&forked["session_id"], &json!(past), &json!(2)));
}

fn a_fork_is_found_told_and_waited_for_by_claude(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("my app");
    claude.start(&project, ID, PAST);
    tine(&sandbox, claude.environment(), &project, &["setup", "claude", "--yes"]);
    script(&model, |tool, input| Reply::tool(format!("mcp__tine__{tool}"), input));
    let allowed = "mcp__tine__smart_fork,mcp__tine__send_message,mcp__tine__wait_sessions";
    let output = claude.run(&project, &["--session-id", OUTER, "--allowedTools", allowed], ASKED);
    expect_success(&output);
    check(&sandbox, &model, claude.environment(), &project, ID);
}

fn a_fork_is_found_told_and_waited_for_by_codex(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("my app");
    codex.trust(&project);
    let past = codex.start(&project, PAST);
    tine(&sandbox, codex.environment(), &project, &["setup", "codex", "--yes"]);
    script(&model, |tool, input| Reply::new().call_in("mcp__tine", tool, input));
    expect_success(&codex.run(&project, &[], ASKED));
    check(&sandbox, &model, codex.environment(), &project, &past);
}
