//! The MCP tools that find sessions and fork them; `tests/real/mcp` asks with the official client, and runs agents.

use serde_json::{Value, json};
use testkit::build::ClaudeSession;

use crate::test_mcp::answers;
use crate::world::{COOKIE, LOGIN, World};

const GONE: &str = "a1a1a1a1-0000-4000-8000-000000000001";
const HERE: &str = "b2b2b2b2-0000-4000-8000-000000000002";
const ELSEWHERE: &str = "c3c3c3c3-0000-4000-8000-000000000003";

/// What a tool answers in the shop's directory.
pub(crate) fn call(world: &World, tool: &str, arguments: &Value) -> Value {
    let call = json!({"name": tool, "arguments": arguments});
    let answers = answers(world, &[json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})]);
    let answer = answers.iter().find(|answer| answer["id"] == 1).expect("an answer");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().expect("a text")).unwrap()
}

/// Three sessions about the same thing. The two that fit best can't be forked: the directory of one is gone, and the other
/// one belongs to another project.
fn preserves() -> World {
    let world = World::empty();
    let sessions = [
        (GONE, world.shop.join("gone"), "marmalade marmalade marmalade"),
        (ELSEWHERE, world.blog.clone(), "marmalade marmalade"),
        (HERE, world.shop.clone(), "marmalade, and some plain talk"),
    ];
    for (number, (id, cwd, prompt)) in (1..).zip(sessions) {
        ClaudeSession::new(id)
            .cwd(cwd)
            .seed(number)
            .turn(|turn| turn.prompt(prompt).text("Less sugar."))
            .write(&world.sandbox.claude_home());
    }
    world
}

fn result<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let mut results = answer["results"].as_array().unwrap().iter();
    results.find(|one| one["session_id"] == id || one["session"]["id"] == id).unwrap_or_else(|| panic!("{answer:#}"))
}

#[test]
fn a_session_that_the_caller_cannot_fork_says_so_before_it_tries() {
    let world = preserves();
    for (tool, arguments) in
        [("smart_fork", json!({"intent": "marmalade"})), ("search_sessions", json!({"query": "marmalade"}))]
    {
        let answer = call(&world, tool, &arguments);
        let output =
            |id| (&result(&answer, id)["can_fork"], result(&answer, id)["warning"].as_str().unwrap_or_default());
        let (can_fork, warning) = output(GONE);
        assert!(*can_fork == json!(false) && warning.contains("no longer exists"), "{tool}: {answer:#}");
        let (can_fork, warning) = output(ELSEWHERE);
        assert!(*can_fork == json!(false) && warning.contains("outside this project"), "{tool}: {answer:#}");
        assert_eq!(output(HERE), (&json!(true), ""), "{tool}: {answer:#}");
        assert_eq!(answer["query"], "marmalade");
    }
}

#[test]
fn auto_fork_takes_the_next_result_when_the_best_cannot_be_forked() {
    let world = preserves();
    let answer = call(&world, "smart_fork", &json!({"intent": "marmalade", "auto_fork": true}));
    assert_ne!(answer["results"][0]["session_id"], HERE, "{answer:#}");
    assert_eq!(answer["forked_session"]["resume_session_id"], HERE, "{answer:#}");
    // The command line follows the same rule, without limits on projects.
    let forked = world.json(["smart-fork", "marmalade", "--auto", "--json"]);
    assert_eq!(forked["fork"]["parent"]["id"], ELSEWHERE, "{forked:#}");
}

#[test]
fn an_error_keeps_the_results() {
    let world = preserves();
    let listed = call(&world, "smart_fork", &json!({"intent": "marmalade"}));
    let rank = result(&listed, ELSEWHERE)["rank"].clone();
    let answer = call(&world, "smart_fork", &json!({"intent": "marmalade", "fork_index": rank}));
    assert_eq!(answer["error"]["kind"], "not_allowed", "{answer:#}");
    assert!(answer["error"]["hint"].as_str().unwrap().contains("mcp.elsewhere"), "{answer:#}");
    assert_eq!(answer["results"], listed["results"]);
    assert_eq!(answer["forked_session"], Value::Null);
}

#[test]
fn fallback_sessions_say_where_and_when() {
    let world = World::new();
    let answer = call(&world, "smart_fork", &json!({"intent": "quantum elephants"}));
    assert_eq!((&answer["results"], &answer["query"]), (&json!([]), &json!("quantum elephants")), "{answer:#}");
    let recent = answer["fallback_sessions"].as_array().unwrap();
    assert!(!recent.is_empty(), "{answer:#}");
    for one in recent {
        assert_eq!(one["project_path"], json!(world.shop.to_str()), "{one:#}");
        assert_eq!((&one["project_path"], &one["last_modified"]), (&one["working_directory"], &one["date"]));
        assert!(one["last_modified"].is_string(), "{one:#}");
    }
}

#[test]
fn a_home_in_a_query_is_the_persons() {
    let world = World::empty();
    let inside = world.sandbox.home().join("notes");
    std::fs::create_dir_all(&inside).unwrap();
    for (id, cwd) in [(LOGIN, &inside), (COOKIE, &world.shop)] {
        ClaudeSession::new(id)
            .cwd(cwd)
            .turn(|turn| turn.prompt("a pomelo").text("yes"))
            .write(&world.sandbox.claude_home());
    }
    let answer = call(&world, "search_sessions", &json!({"query": "pomelo dir:~/notes"}));
    let ids: Vec<&Value> = answer["results"].as_array().unwrap().iter().map(|one| &one["session"]["id"]).collect();
    assert_eq!(ids, [LOGIN], "{answer:#}");
}
