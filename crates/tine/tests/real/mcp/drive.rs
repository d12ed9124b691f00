//! Speaking to sessions, waiting for them, reading and ending them.

use super::*;

testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [a_session_in_a_pane_is_driven]);

fn a_session_in_a_pane_is_driven(version: &str) {
    with_versions(version, CODEX_VERSIONS[0], |lab| {
        let setup = lab.sandbox.command(env!("CARGO_BIN_EXE_tine")).args(["setup", "claude", "--yes"]).output();
        testkit::sandbox::expect_success(&setup.expect("tine"));
        let tmux = Tmux::new(lab.sandbox);
        let client = lab.client_in(&tmux, &lab.project);
        let started = client.tool("spawn_workers", json!({"workers": [{"name": "worker", "prompt": "Hello"}]}));
        let worker = &started["workers"][0];
        assert_eq!((&started["started"], &worker["name"]), (&json!(1), &json!("worker")));
        assert!(worker["terminal_id"].as_str().is_some_and(|id| id.starts_with("tmux:%")), "{worker:#}");
        let waited = client.tool("wait_sessions", json!({"sessions": ["worker"]}));
        assert_eq!(unquoted(&waited["results"][0]["answer"]), "ok 1", "{waited:#}");
        assert_eq!(waited["timed_out"], false);
        let status = client.tool("session_status", json!({}));
        assert_eq!(
            (&status["sessions"][0]["name"], &status["sessions"][0]["state"]),
            (&json!("worker"), &json!("idle"))
        );

        let output = json!({"sessions": ["worker"], "message": "Please take your time", "wait": "none"});
        let sent = client.tool("send_message", output);
        assert_eq!((&sent["results"][0]["state"], &sent["results"][0]["answer"]), (&json!("busy"), &Value::Null));
        let waited = client.tool("wait_sessions", json!({"sessions": ["worker"], "timeout": 0.2}));
        assert_eq!((&waited["timed_out"], &waited["results"][0]["state"]), (&json!(true), &json!("busy")));
        let answer = client.tool("read_answer", json!({"session": "worker"}));
        assert_eq!(answer["is_done"], false, "{answer:#}");
        lab.gate.open();
        let waited = client.tool("wait_sessions", json!({"sessions": ["worker"], "wait_for": "any"}));
        assert_eq!(unquoted(&waited["results"][0]["answer"]), "at last: Please take your time");
        let answer = client.tool("read_answer", json!({"session": "worker"}));
        assert_eq!(unquoted(&answer["answer"]), "at last: Please take your time");
        let events = client.tool("session_events", json!({"session": "worker"}));
        let kinds: Vec<&str> =
            events["events"].as_array().expect("events").iter().filter_map(|event| event["event"].as_str()).collect();
        assert_eq!(kinds.first(), Some(&"session_started"), "{events:#}");
        assert!(kinds.contains(&"busy") && kinds.contains(&"answered"), "{events:#}");
        let later = client.tool("session_events", json!({"after": events["last"]}));
        assert_eq!((&later["events"], &later["last"]), (&json!([]), &events["last"]));

        assert_eq!(lab.agents().len(), 1);
        let stopped = client.tool("stop_sessions", json!({"sessions": ["worker"]}));
        assert_eq!(stopped["results"][0]["state"], "stopped", "{stopped:#}");
        lab.no_agent_is_left();
        let status = client.tool("session_status", json!({"sessions": ["worker"]}));
        assert_eq!(status["sessions"][0]["state"], "stopped");
        // The conversation is there, and goes on without a terminal.
        let output = json!({"sessions": ["worker"], "message": "Still there?", "wait": "all"});
        assert_eq!(unquoted(&client.tool("send_message", output)["results"][0]["answer"]), "ok 2");
        assert_eq!(lab.model.last_turn().prompts(), ["Hello", "Please take your time", "Still there?"]);
    });
}

/// A call that waits for an agent keeps nobody else from being answered.
#[test]
fn a_slow_call_holds_up_nobody() {
    with_lab(|lab| {
        lab.uploads();
        let client = lab.client();
        let output = json!({"sessions": [UPLOADS], "message": "take your time", "wait": "all"});
        let slow = client.begin("send_message", output);
        lab.model.wait_for_prompt("take your time", PATIENCE);
        let waits = client.begin("wait_sessions", json!({"sessions": [UPLOADS]}));
        assert_eq!(client.tool("get_session", json!({"session": UPLOADS}))["id"], UPLOADS);
        assert!(!client.is_finished(slow) && !client.is_finished(waits));
        lab.gate.open();
        for call in [slow, waits] {
            let output = testkit::mcp::tool_result(&client.finish(call).expect("an answer"));
            assert_eq!(unquoted(&output["results"][0]["answer"]), "at last: take your time");
        }
    });
}

/// What a cancelled call began ends with it; what it only waited for goes on.
#[test]
fn a_cancelled_call_stops_its_work() {
    with_lab(|lab| {
        lab.uploads();
        let client = lab.client();
        let cancel = |call, prompt: &str| {
            lab.model.wait_for_prompt(prompt, PATIENCE);
            wait_until("an agent", PATIENCE, || !lab.agents().is_empty());
            client.cancel(call);
            client.finish(call).expect_err("cancelled");
        };
        for wait in ["all", "any"] {
            let message = format!("take your time, {wait} of it");
            let output = json!({"sessions": [UPLOADS], "message": message, "wait": wait});
            cancel(client.begin("send_message", output), &message);
            lab.no_agent_is_left();
        }
        let output = json!({"session": UPLOADS, "name": "never", "prompt": "fork, and take your time"});
        cancel(client.begin("fork_session", output), "fork, and take your time");
        lab.no_agent_is_left();

        // Those that wait for the first to begin are not started any more.
        let worker = |name: &str| json!({"name": name, "prompt": format!("{name}, take your time")});
        let output = json!({"layout": "headless", "workers": [worker("one"), worker("two"), worker("three")]});
        cancel(client.begin("spawn_workers", output), "one, take your time");
        lab.no_agent_is_left();
        wait_until("the others to be given up", PATIENCE, || {
            lab.agents().is_empty() && client.tool("session_status", json!({}))["sessions"] == json!([])
        });

        let output = json!({"sessions": [UPLOADS], "message": "take your time and stay", "wait": "none"});
        client.tool("send_message", output);
        let waits = client.begin("wait_sessions", json!({"sessions": [UPLOADS]}));
        cancel(waits, "take your time and stay");
        assert_eq!(lab.agents().len(), 1, "it was not begun by the call that waited for it");
        lab.gate.open();
        let waited = client.tool("wait_sessions", json!({"sessions": [UPLOADS]}));
        assert_eq!(unquoted(&waited["results"][0]["answer"]), "at last: take your time and stay");
    });
}
