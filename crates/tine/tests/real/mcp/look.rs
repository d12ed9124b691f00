//! What is there to see: tools, sessions, what was said in them, resources and the prompt.

use super::*;

const TOOLS: [&str; 17] = [
    "adopt_session",
    "blame_line",
    "fork_session",
    "get_session",
    "list_sessions",
    "plan_fork",
    "read_answer",
    "read_session",
    "search_sessions",
    "send_message",
    "session_events",
    "session_status",
    "session_tree",
    "smart_fork",
    "spawn_workers",
    "stop_sessions",
    "wait_sessions",
];
/// Those that say of themselves that they change nothing.
const READING: [&str; 10] = [
    "blame_line",
    "get_session",
    "list_sessions",
    "plan_fork",
    "read_answer",
    "read_session",
    "search_sessions",
    "session_events",
    "session_status",
    "session_tree",
];

#[test]
fn every_tool_says_what_it_is() {
    with_lab(|lab| {
        let client = lab.client();
        assert_eq!(client.server["server"]["name"], "tine");
        assert!(client.server["instructions"].as_str().is_some_and(|output| output.contains("smart_fork")));
        let mut tools = client.tools();
        tools.sort_by_key(|tool| tool["name"].as_str().map(str::to_owned));
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, TOOLS);
        for tool in &tools {
            let name = tool["name"].as_str().expect("a name");
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert!(!schema.to_string().contains("$ref"), "{name}: {schema}");
            for (field, property) in schema["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{name}.{field}: {property}");
            }
            let description = tool["description"].as_str().unwrap_or_default();
            let (_, example) = description.split_once("Example: ").unwrap_or_else(|| panic!("{name}: {description}"));
            let example: Value = serde_json::from_str(example).unwrap_or_else(|error| panic!("{name}: {error}"));
            for field in example.as_object().expect("arguments").keys() {
                assert!(schema["properties"].get(field).is_some(), "{name} has no {field}");
            }
            let hints = &tool["annotations"];
            let reads = READING.contains(&name) || name == "wait_sessions";
            assert_eq!(hints["readOnlyHint"], reads, "{name}");
            assert_eq!(hints["destructiveHint"], name == "stop_sessions", "{name}");
        }
    });
}

#[test]
fn what_was_said_is_found_listed_and_read() {
    with_lab(|lab| {
        lab.uploads();
        let export = lab.export();
        let client = lab.client();

        let found = client.tool("search_sessions", json!({"query": "upload times out", "limit": 5}));
        let best = &found["results"][0];
        assert_eq!((&best["session"]["id"], &best["turn"], &best["rank"]), (&json!(UPLOADS), &json!(1), &json!(1)));
        assert!(best["snippet"].as_str().is_some_and(|snippet| snippet.contains("proxy")), "{best:#}");
        assert!(found["note"].as_str().is_some_and(|note| note.contains("not as instructions")));
        let found = client.tool("search_sessions", json!({"query": "CSV orders", "agent": "codex"}));
        assert_eq!(found["results"][0]["session"]["id"], json!(export));
        let first = client.tool("search_sessions", json!({"query": "upload OR orders", "limit": 1}));
        let next = first["next_cursor"].as_str().expect("more").to_owned();
        let second = client.tool("search_sessions", json!({"query": "upload OR orders", "limit": 1, "cursor": next}));
        assert_ne!(first["results"][0]["session"]["id"], second["results"][0]["session"]["id"]);
        assert_eq!((&second["results"][0]["rank"], &second["next_cursor"]), (&json!(2), &Value::Null));

        let newest = client.tool("list_sessions", json!({"limit": 1}));
        assert_eq!(ids(&newest["sessions"]), [export.as_str()]);
        let oldest = client.tool("list_sessions", json!({"limit": 1, "cursor": newest["next_cursor"]}));
        assert_eq!((ids(&oldest["sessions"]), &oldest["next_cursor"]), (vec![UPLOADS.to_owned()], &Value::Null));
        let of_claude = client.tool("list_sessions", json!({"agent": "claude"}));
        assert_eq!(ids(&of_claude["sessions"]), [UPLOADS]);

        let one = client.tool("get_session", json!({"session": &UPLOADS[..8]}));
        assert_eq!((&one["id"], &one["turns"]), (&json!(UPLOADS), &json!(2)));
        let asked: Vec<&str> =
            one["outline"].as_array().expect("turns").iter().filter_map(|turn| turn["asked"].as_str()).collect();
        assert_eq!(asked, ["The upload times out behind the proxy", "What else could be done about it?"]);

        let first = client.tool("read_session", json!({"session": UPLOADS, "from_turn": 1, "turns": 1}));
        assert_eq!((&first["first_turn"], &first["next_turn"]), (&json!(1), &json!(2)));
        let said = unquoted(&first["text"]);
        assert!(said.contains("[user] The upload times out behind the proxy"), "{said}");
        assert!(said.contains("[assistant] Raise the read timeout of the proxy."), "{said}");
        assert!(!said.contains("backoff"), "{said}");
        let second =
            client.tool("read_session", json!({"session": UPLOADS, "from_turn": first["next_turn"], "turns": 1}));
        assert!(unquoted(&second["text"]).contains("A retry with backoff helps as well."));
        assert_eq!((&second["last_turn"], &second["next_turn"]), (&json!(2), &Value::Null));
        let of_codex = client.tool("read_session", json!({"session": export}));
        assert!(unquoted(&of_codex["text"]).contains("as a stream of rows"), "{of_codex:#}");

        let status = client.tool("session_status", json!({"sessions": [UPLOADS, export]}));
        assert!(status["sessions"].as_array().is_some_and(|all| all.iter().all(|one| one["state"] == "stopped")));
        let answer = client.tool("read_answer", json!({"session": UPLOADS}));
        assert_eq!(unquoted(&answer["answer"]), "A retry with backoff helps as well.");
        assert_eq!(answer["is_done"], true);

        let adopted = client.tool("adopt_session", json!({"session": UPLOADS, "name": "uploads"}));
        assert_eq!((&adopted["id"], &adopted["name"]), (&json!(UPLOADS), &json!("uploads")));
        assert_eq!(client.tool("get_session", json!({"session": "uploads"}))["id"], UPLOADS);

        resources_and_prompts(&client, &export);
    });
}

fn resources_and_prompts(client: &McpClient, export: &str) {
    assert_eq!(client.resources()[0]["uri"], "tine://sessions");
    assert_eq!(client.resource_templates()[0]["uriTemplate"], "tine://session/{id}");
    let read = |uri: &str| -> Value {
        let read = client.read_resource(uri).unwrap_or_else(|error| panic!("{uri}: {error:?}"));
        assert_eq!(
            (&read["contents"][0]["uri"], &read["contents"][0]["mimeType"]),
            (&json!(uri), &json!("application/json"))
        );
        serde_json::from_str(read["contents"][0]["text"].as_str().expect("text")).expect("JSON")
    };
    let listed = read("tine://sessions");
    assert_eq!(ids(&listed["sessions"]), [export, UPLOADS]);
    assert!(listed["note"].as_str().is_some_and(|note| note.contains("not as instructions")));
    assert_eq!(read("tine://session/uploads")["outline"][0]["asked"], "The upload times out behind the proxy");
    assert_eq!(read(&format!("tine://session/{export}"))["id"], export);
    let error = client.read_resource("tine://session/nobody").expect_err("no such session");
    assert_eq!(error.code, Some(-32002), "{error:?}");
    let error = client.read_resource("file:///etc/passwd").expect_err("no such resource");
    assert_eq!(error.code, Some(-32602), "{error:?}");
    assert_eq!(error.data["field"], "uri");

    let prompts = client.prompts();
    assert_eq!((&prompts[0]["name"], prompts.len()), (&json!("fork_from_before"), 1));
    assert_eq!(prompts[0]["arguments"][0]["required"], true);
    let filled = client.prompt("fork_from_before", json!({"intent": "retry uploads"})).expect("a prompt");
    let words = filled["messages"][0]["content"]["text"].as_str().expect("text");
    assert!(words.contains("retry uploads") && words.contains("smart_fork"), "{words}");
    let error = client.prompt("fork_from_before", json!({})).expect_err("no intent");
    assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("intent")));
}
