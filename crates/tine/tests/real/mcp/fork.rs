//! Forks: planned and then made, found by what is intended, with the history of their source.

use super::*;

#[test]
fn what_was_planned_is_made_once() {
    with_lab(|lab| {
        lab.uploads();
        let client = lab.client();
        let plan = client.tool("plan_fork", json!({"session": format!("{UPLOADS}@1"), "name": "other-way"}));
        assert_eq!((&plan["parent"]["id"], &plan["parent"]["turn"]), (&json!(UPLOADS), &json!(1)));
        assert_eq!(lab.sessions(&client).len(), 1, "a plan changes nothing");
        let token = plan["token"].as_str().expect("a token");
        let error = client.refused("fork_session", json!({"token": token, "use_worktree": true}));
        assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("token")), "{error:?}");
        let made = client.tool("fork_session", json!({"token": token}));
        assert!(made["session"]["id"].is_string() && made["operation"].is_number(), "{made:#}");
        for field in ["id", "name", "cwd", "path"] {
            assert_eq!(made["session"][field], plan["session"][field], "{field}");
        }
        assert_eq!(made["session"]["turns"], 1);
        let error = client.refused("fork_session", json!({"token": token}));
        assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("token")), "{error:?}");
        assert_eq!(lab.sessions(&client).len(), 2);

        let trees = client.tool("session_tree", json!({"session": UPLOADS}));
        let tree = &trees["trees"][0];
        assert_eq!(tree["id"], UPLOADS);
        let child = &tree["children"][0];
        assert_eq!((&child["name"], &child["forked_at_turn"]), (&json!("other-way"), &json!(1)));

        let sent = client.tool("send_message", json!({"sessions": ["other-way"], "message": "Go on", "wait": "all"}));
        assert_eq!(unquoted(&sent["results"][0]["answer"]), "ok 3", "{sent:#}");
        assert_eq!(lab.model.last_turn().prompts(), ["The upload times out behind the proxy", "Go on"]);
        assert_eq!(client.tool("get_session", json!({"session": UPLOADS}))["turns"], 2, "the source is what it was");
    });
}

/// A fork of a session of another project, to work here: what the plan allows, its token allows.
#[test]
fn what_may_be_planned_may_be_made() {
    with_lab(|lab| {
        lab.elsewhere();
        let client = lab.client();
        let error = client.tool_error("plan_fork", json!({"session": ELSEWHERE}));
        assert_eq!(error["kind"], "not_allowed");
        let plan = client.tool("plan_fork", json!({"session": ELSEWHERE, "project_path": "."}));
        let made = client.tool("fork_session", json!({"token": plan["token"]}));
        assert_eq!(made["session"]["cwd"], json!(path(&lab.project)));
    });
}

/// It went ahead, and the fork lacked what its source had just changed.
#[test]
fn a_fork_from_a_dirty_tree_needs_a_word_about_the_changes() {
    with_lab(|lab| {
        lab.uploads();
        lab.sandbox.write(lab.project.join("new.txt"), "new");
        let client = lab.client();
        let asked = json!({"session": UPLOADS, "use_worktree": true, "open": false});
        let error = client.tool_error("fork_session", asked.clone());
        assert_eq!(error["kind"], "not_confirmed", "{error:#}");
        let worker = json!({"resume_session_id": UPLOADS, "fork_session": true, "use_worktree": true});
        let error = client.tool_error("spawn_workers", json!({"workers": [worker]}));
        assert_eq!(error["kind"], "not_confirmed", "{error:#}");
        for carry in [true, false] {
            let mut said = asked.clone();
            said["carry"] = json!(carry);
            let made = client.tool("fork_session", said);
            let tree = Path::new(made["workspace"]["path"].as_str().expect("a path"));
            assert_eq!(tree.join("new.txt").exists(), carry, "{made:#}");
        }
        let plan = client.tool("plan_fork", asked);
        assert_eq!(plan["needs_confirmation"], true);
        client.tool("fork_session", json!({"token": plan["token"]}));
    });
}

#[test]
fn a_smart_fork_goes_on_from_where_it_was_solved() {
    with_lab(|lab| {
        lab.uploads();
        let export = lab.export();
        let client = lab.client();
        let intent = json!({"intent": "make uploads survive a slow proxy", "limit": 3});
        let found = client.tool("smart_fork", intent);
        let best = &found["results"][0];
        assert_eq!(best["session_id"], UPLOADS, "{found:#}");
        let fields = [
            "rank",
            "score",
            "session_id",
            "agent",
            "name",
            "title",
            "working_directory",
            "date",
            "turn",
            "snippet",
            "source_path",
            "jsonl_path",
            "can_fork",
            "warning",
        ];
        for field in fields {
            assert!(best.get(field).is_some(), "{field} is missing: {best:#}");
        }
        assert_eq!((&best["rank"], &best["can_fork"], &best["agent"]), (&json!(1), &json!(true), &json!("claude")));
        assert_eq!(best["jsonl_path"], json!(path(&lab.claude.transcript(UPLOADS).expect("a transcript"))));
        assert_eq!(best["working_directory"], json!(path(&lab.project)));
        assert!(best["score"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)));
        for field in ["intent", "engine", "fallback_used", "qmd_error", "errors", "fallback_sessions"] {
            assert!(found.get(field).is_some(), "{field} is missing: {found:#}");
        }
        assert_eq!(found["forked_session"], Value::Null);
        assert_eq!(lab.sessions(&client).len(), 2, "nothing is forked unless it is said");

        let auto = json!({"intent": "make uploads survive a slow proxy", "auto_fork": true, "include_snippets": false});
        let forked = client.tool("smart_fork", auto);
        assert_eq!(forked["results"][0]["snippet"], Value::Null);
        let made = &forked["forked_session"];
        assert_eq!(made["resume_session_id"], UPLOADS);
        assert!(made["session_name"].is_string() && made["command"].is_array() && made["operation"].is_number());
        let name = made["session_name"].as_str().expect("a name");
        let sent = client.tool("send_message", json!({"sessions": [name], "message": "Now do it", "wait": "all"}));
        assert_eq!(sent["results"][0]["id"], made["session_id"]);
        let history = ["The upload times out behind the proxy", "What else could be done about it?", "Now do it"];
        assert_eq!(lab.model.last_turn().prompts(), history);

        // The fork is among the results from now on, so it is asked for one that is not.
        let asked = json!({"intent": "CSV export of orders"});
        let rank = client.tool("smart_fork", asked)["results"]
            .as_array()
            .and_then(|all| all.iter().position(|one| one["session_id"] == export.as_str()))
            .expect("the session")
            + 1;
        let forked = client.tool("smart_fork", json!({"intent": "CSV export of orders", "fork_index": rank}));
        let made = &forked["forked_session"];
        assert_eq!((&made["resume_session_id"], &made["agent"]), (&json!(export), &json!("codex")));
        let id = made["session_id"].as_str().expect("an id");
        client.tool("send_message", json!({"sessions": [id], "message": "Write it", "wait": "all"}));
        assert_eq!(lab.model.last_turn().prompts(), ["Orders need a CSV export. Where would it go?", "Write it"]);

        let error = client.refused("smart_fork", json!({"intent": "x", "auto_fork": true, "fork_index": 1}));
        assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("fork_index")));
        let error = client.refused("smart_fork", json!({"intent": "uploads", "fork_index": 9}));
        assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("fork_index")));
    });
}
