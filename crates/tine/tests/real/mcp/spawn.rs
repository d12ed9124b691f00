//! Workers: new ones, forks, resumed ones; and what is refused before anything starts.

use super::*;

#[test]
fn workers_are_started_and_collected() {
    with_lab(|lab| {
        lab.uploads();
        let client = lab.client();
        let workers = json!({"layout": "headless", "workers": [
            {"name": "fresh", "prompt": "Say hello"},
            {"name": "of-codex", "agent_type": "codex", "prompt": "Say hello, too"},
            {"name": "try-1", "resume_session_id": UPLOADS, "fork_session": true, "use_worktree": true,
             "prompt": "Try it with a queue"},
            {"name": "begins", "use_worktree": true, "worktree": {"branch": "topic"}, "prompt": "Begin there"},
        ]});
        let started = client.tool("spawn_workers", workers);
        assert_eq!((&started["started"], &started["failed"]), (&json!(4), &json!(0)), "{started:#}");
        let of = |at: usize| &started["workers"][at];
        let names: Vec<&Value> = (0..4).map(|at| &of(at)["name"]).collect();
        assert_eq!(names, ["fresh", "of-codex", "try-1", "begins"]);
        assert_eq!(
            (&of(0)["agent"], &of(1)["agent"], &of(2)["agent"]),
            (&json!("claude"), &json!("codex"), &json!("claude"))
        );
        assert_eq!((&of(2)["forked_from"], &of(2)["branch"]), (&json!(UPLOADS), &json!("try-1")));
        let worktrees =
            [&of(2)["working_directory"], &of(3)["working_directory"]].map(|path| path.as_str().expect("a path"));
        for (worktree, branch) in worktrees.into_iter().zip(["try-1", "topic"]) {
            assert_ne!(Path::new(worktree), lab.project);
            assert_eq!(lab.sandbox.git(worktree, ["branch", "--show-current"]), branch);
        }
        let all = ["fresh", "of-codex", "try-1", "begins"];
        let waited = client.tool("wait_sessions", json!({"sessions": all, "wait_for": "all"}));
        let results = waited["results"].as_array().expect("results");
        assert!(results.iter().all(|one| one["answer"].is_string()), "{waited:#}");
        let prompts: Vec<Vec<String>> = lab.model.turn_requests().iter().map(|turn| turn.prompts()).collect();
        let forked =
            ["The upload times out behind the proxy", "What else could be done about it?", "Try it with a queue"];
        assert!(prompts.iter().any(|said| said.iter().eq(&forked)), "{prompts:?}");
        for fresh in ["Say hello", "Say hello, too", "Begin there"] {
            assert!(prompts.iter().any(|said| said.iter().eq([fresh])), "{fresh}: {prompts:?}");
        }

        let again = json!({"layout": "headless", "workers": [{"resume_session_id": "fresh", "prompt": "And again"}]});
        let resumed = client.tool("spawn_workers", again);
        assert_eq!(resumed["workers"][0]["id"], of(0)["id"]);
        client.tool("wait_sessions", json!({"sessions": ["fresh"]}));
        assert_eq!(lab.model.last_turn().prompts(), ["Say hello", "And again"]);
    });
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    with_lab(|lab| {
        lab.uploads();
        let elsewhere = lab.elsewhere();
        let client = lab.client();
        client.tool("adopt_session", json!({"session": UPLOADS, "name": "taken"}));
        let before = (lab.sessions(&client), lab.model.turn_requests().len());
        let good = json!({"name": "good-one", "prompt": "Hello"});
        let check = |worker: Value, field: &str| {
            let error = client.refused("spawn_workers", json!({"layout": "headless", "workers": [good, worker]}));
            assert_eq!(error.code, Some(-32602), "{error:?}");
            assert_eq!(error.data["field"], format!("workers[1].{field}"), "{error:?}");
        };
        let cases = [
            (json!({"fork_session": true, "prompt": "x"}), "fork_session"),
            (json!({"resume_session_id": UPLOADS, "continue_session": true, "prompt": "x"}), "continue_session"),
            (json!({"name": "good-one", "prompt": "x"}), "name"),
            (json!({"name": "Not a Name", "prompt": "x"}), "name"),
            (json!({"name": "silent"}), "prompt"),
            (json!({"name": "blank", "prompt": " \n"}), "prompt"),
            (json!({"agent_type": "cursor", "prompt": "x"}), "agent_type"),
            (json!({"colour": "red", "prompt": "x"}), "colour"),
            (json!({"project_path": "no/such/place", "prompt": "x"}), "project_path"),
            (json!({"model": "--dangerously-skip-permissions", "prompt": "x"}), "model"),
            (json!({"use_worktree": true, "prompt": "x"}), "worktree.branch"),
            (
                json!({"resume_session_id": UPLOADS, "fork_session": true, "project_path": ".", "use_worktree": true}),
                "project_path",
            ),
            (json!({"resume_session_id": UPLOADS, "name": "other-name", "prompt": "x"}), "name"),
            (json!({"resume_session_id": UPLOADS, "model": "opus", "prompt": "x"}), "model"),
            // Without a terminal a session goes on where it worked and as it was started.
            (json!({"resume_session_id": ELSEWHERE, "project_path": ".", "prompt": "x"}), "project_path"),
        ];
        for (worker, field) in cases {
            check(worker, field);
        }
        for workers in [json!([]), Value::Array(vec![good.clone(); 9])] {
            let error = client.refused("spawn_workers", json!({"workers": workers}));
            assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("workers")), "{error:?}");
        }
        let refused = [
            (json!({"name": "taken", "prompt": "x"}), "name_taken"),
            (json!({"resume_session_id": "nobody", "prompt": "x"}), "unknown_session"),
            (json!({"project_path": path(&elsewhere), "prompt": "x"}), "not_allowed"),
            (json!({"project_path": "../another app", "prompt": "x"}), "not_allowed"),
            (json!({"resume_session_id": ELSEWHERE, "prompt": "x"}), "not_allowed"),
            (json!({"skip_permissions": true, "prompt": "x"}), "not_allowed"),
        ];
        for (worker, kind) in refused {
            let output = json!({"layout": "headless", "workers": [good, worker]});
            let error = client.tool_error("spawn_workers", output);
            assert_eq!(error["kind"], kind, "{error:#}");
        }
        let error = client.refused("spawn_workers", json!({"layout": "panes", "workers": [good]}));
        assert_eq!((error.code, &error.data["field"]), (Some(-32602), &json!("layout")), "no terminal is around");
        assert_eq!((lab.sessions(&client), lab.model.turn_requests().len()), before);
        lab.no_agent_is_left();
    });
}
