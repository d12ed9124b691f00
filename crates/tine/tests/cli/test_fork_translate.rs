//! `tine fork --agent`: a session continues as a native one of another agent.

use serde_json::{Value, json};

use crate::world::{EXPORT, LOGIN, World};

/// The prompts, answers, calls and outputs of a session, as `tine show` prints them.
fn shown(world: &World, session: &str) -> Vec<Value> {
    let shown = world.json(["show", session, "--json"]);
    let turns = shown["turns"].as_array().expect("turns").iter();
    let blocks = turns.flat_map(|turn| {
        let prompt = json!({"kind": "prompt", "text": turn["prompt"]});
        std::iter::once(prompt).chain(turn["blocks"].as_array().cloned().unwrap_or_default())
    });
    blocks
        .filter(|block| block["kind"] != "thinking")
        .map(|mut block| {
            let fields = ["kind", "text", "name", "input", "error", "exit_code"];
            Value::Object(
                fields.iter().filter_map(|key| Some(((*key).to_owned(), block.get_mut(*key)?.take()))).collect(),
            )
        })
        .collect()
}

#[test]
fn a_session_of_another_agent_is_translated() {
    let world = World::new();
    let before = world.agents_files();
    // No program of the agent is needed, and nothing is sent.
    let made = world.json(["fork", LOGIN, "in-codex", "--agent", "codex", "--json"]);
    assert_eq!((&made["method"], &made["requests"]), (&json!("translate"), &json!([])), "{made:#}");
    assert_eq!(made["why"], "Codex gets the conversation in its own format");
    assert_eq!((&made["session"]["agent"], &made["session"]["turns"]), (&json!("codex"), &json!(3)));
    let receipt = &made["receipt"];
    let count = |outcome: &str, item: &str| {
        let lines = receipt[outcome].as_array().expect("lines").iter();
        lines.filter(|line| line["item"] == item).filter_map(|line| line["count"].as_u64()).sum::<u64>()
    };
    let carried = ["prompts", "answers", "calls", "results"].map(|item| count("carried", item));
    assert_eq!((carried, count("converted", "tools_mapped"), count("dropped", "thinking")), ([3, 3, 1, 1], 1, 1));
    let (source, fork) = (shown(&world, LOGIN), shown(&world, "in-codex"));
    let renamed: Vec<Value> = source
        .into_iter()
        .map(|mut block| {
            if block["kind"] == "call" {
                (block["name"], block["input"]) = ("exec_command".into(), json!({"cmd": "rg redirect src"}));
            } else if block["kind"] == "output" {
                block["name"] = "exec_command".into();
            }
            block
        })
        .collect();
    assert_eq!(fork, renamed);
    let info = world.json(["info", "in-codex", "--json"]);
    assert_eq!(info["receipt"], *receipt);
    assert_eq!(info["parent"]["id"], LOGIN);
    let text = world.run(["info", "in-codex"]).out;
    assert!(text.contains("carried  3 prompts, 3 answers, 1 tool call, 1 tool result\n"), "{text}");
    assert!(text.contains("dropped  1 thought (only the model that wrote it accepts it)\n"), "{text}");
    // The way back.
    let made = world.json(["fork", "in-codex", "back", "--agent", "claude", "--json"]);
    assert_eq!(made["method"], "translate", "{made:#}");
    let expected: Vec<Value> = shown(&world, LOGIN);
    assert_eq!(shown(&world, "back"), expected);
    for name in ["back", "in-codex"] {
        assert_eq!(world.run(["undo"]).code, 0, "{name}");
    }
    assert_eq!(world.agents_files(), before);
}

#[test]
fn a_plan_shows_the_receipt_and_makes_nothing() {
    let world = World::new();
    let before = world.agents_files();
    let text = world.run(["fork", LOGIN, "twig", "--agent", "codex", "--plan"]).out;
    for line in [
        "   method  translate: Codex gets the conversation in its own format\n",
        "  carried  3 prompts, 3 answers, 1 tool call, 1 tool result\n",
        "converted  1 tool call (the other agent has the same tool under another name)\n",
        "     lost  dropped: 1 thought (only the model that wrote it accepts it)\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert_eq!(world.agents_files(), before);
}

#[test]
fn a_translation_can_be_cut_and_work_elsewhere() {
    let world = World::new();
    let to = world.blog.to_string_lossy().into_owned();
    let words = ["fork", &format!("{LOGIN}@1"), "cut", "--agent", "codex", "--to", &to, "--keep-thinking", "--json"];
    let made = world.json(words);
    assert_eq!((&made["session"]["turns"], &made["session"]["cwd"]), (&json!(1), &json!(to)), "{made:#}");
    assert_eq!(made["parent"]["turn"], 1);
    let blocks = shown(&world, "cut");
    assert_eq!(blocks.iter().filter(|block| block["kind"] == "prompt").count(), 1, "{blocks:#?}");
    let thinking = "<thinking>\nThe redirect must lose its target.\n</thinking>";
    assert!(blocks.iter().any(|block| block["text"] == thinking), "{blocks:#?}");
    // A fork by reference, with its base.
    let made = world.json(["fork", EXPORT, "orders", "--agent", "claude", "--json"]);
    assert_eq!((&made["method"], &made["session"]["turns"]), (&json!("translate"), &json!(2)), "{made:#}");
    assert_eq!(world.json(["info", "orders", "--json"])["custom_title"], "orders");
}

#[test]
fn secrets_are_masked_unless_they_are_to_be_kept() {
    const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzA";
    let world = World::new();
    const ID: &str = "77777777-0000-4000-8000-000000000000";
    let session = testkit::build::ClaudeSession::new(ID).cwd(&world.shop);
    session
        .turn(|turn| {
            turn.prompt(format!("The token is {SECRET}."))
                .tool("Bash", json!({"command": format!("echo {SECRET}")}), SECRET)
                .text("Noted.")
        })
        .write(&world.sandbox.claude_home());
    let file = |name: &str, more: &[&str]| {
        let words = [&["fork", ID, name, "--agent", "codex", "--json"], more].concat();
        let made = world.json(words);
        let path = made["session"]["path"].as_str().expect("a path").to_owned();
        (std::fs::read_to_string(path).expect("the transcript"), made)
    };
    let (masked, made) = file("masked", &[]);
    assert!(!masked.contains(SECRET) && masked.contains("[secret]"), "{masked}");
    let converted = made["receipt"]["converted"].as_array().unwrap();
    assert!(converted.iter().any(|line| line["item"] == "secrets" && line["count"] == 3), "{made:#}");
    assert!(file("kept", &["--keep-secrets"]).0.contains(SECRET));
}

#[test]
fn translating_for_the_same_agent_is_refused() {
    let output = World::new().run(["fork", LOGIN, "--method", "translate"]);
    insta::assert_snapshot!(output.whole(), @"
    exit code: 1
    --- stdout
    --- stderr
    error: Claude Code already reads the session, so it can't be translated
    hint: `--method copy` forks it for the same agent
    ");
}
