//! `tine smart-fork`.

use std::fs;

use serde_json::Value;
use testkit::build::ClaudeSession;

use crate::world::{EXPORT, LOGIN, World};

fn smart(world: &World, arguments: &[&str]) -> Value {
    world.json(["smart-fork", "--json"].iter().chain(arguments))
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// A list without its scores, and these. What a text means to the model differs a little between processors.
fn without_scores(list: &str) -> (String, Vec<f64>) {
    let mut scores = Vec::new();
    let lines: Vec<String> = list
        .lines()
        .map(|line| match line.rsplit_once(" · ").and_then(|(before, last)| Some((before, last.parse().ok()?))) {
            Some((before, score)) => {
                scores.push(score);
                format!("{before} · [SCORE]")
            }
            None => line.to_owned(),
        })
        .collect();
    (lines.join("\n"), scores)
}

#[test]
fn off_a_terminal_the_sessions_are_listed_with_the_command_that_forks_each() {
    let world = World::new();
    let before = world.agents_files();
    let (list, scores) = without_scores(&world.run(["smart-fork", "redirect", "after", "login"]).whole());
    insta::assert_snapshot!("list", list);
    assert!(scores.len() == 2 && (scores[0] - 0.945).abs() < 0.02 && (scores[1] - 0.215).abs() < 0.02, "{scores:?}");
    let output = smart(&world, &["redirect after login", "--at-hit", "-w", "--prompt=go on", "--in=tmux:window"]);
    assert_eq!(output["intent"], "redirect after login");
    assert_eq!((&output["fork"], &output["picked"]), (&Value::Null, &Value::Null));
    assert_eq!(output["fallback_used"], false);
    let first = &output["results"][0];
    assert_eq!((&first["rank"], &first["session"]["id"], &first["turn"]), (&1.into(), &LOGIN.into(), &1.into()));
    let point = format!("{LOGIN}@1");
    assert_eq!(words(&first["command"]), ["tine", "fork", &point, "--worktree", "--prompt=go on", "--in=tmux:window"]);
    assert_eq!(world.agents_files(), before);
    assert_eq!(world.json(["log", "--json"]), Value::Array(Vec::new()));
}

#[test]
fn the_command_of_a_result_does_what_pick_does() {
    let world = World::new();
    let output = smart(&world, &["redirect after login", "--at-hit", "--to", "../blog"]);
    let command = words(&output["results"][0]["command"]);
    let by_hand = world.json(command[1..].iter().copied().chain(["--json"]));
    let picked = smart(&world, &["redirect after login", "--at-hit", "--to", "../blog", "--pick", "1"]);
    for field in ["method", "workspace", "tokens", "losses"] {
        assert_eq!(picked["fork"][field], by_hand[field], "{field}");
    }
    assert_eq!(picked["fork"]["session"]["turns"], by_hand["session"]["turns"]);
}

#[test]
fn the_best_one_is_forked_whole_or_at_the_hit() {
    let world = World::new();
    let before = world.agents_files();
    let whole = smart(&world, &["users land on undefined", "--auto"]);
    assert_eq!((&whole["picked"], &whole["fork"]["parent"]["id"]), (&1.into(), &LOGIN.into()));
    assert_eq!(whole["fork"]["session"]["turns"], 3);
    let cut = smart(&world, &["users land on undefined", "--auto", "--at-hit", "--name", "at-the-hit"]);
    assert_eq!((&cut["fork"]["session"]["turns"], &cut["fork"]["session"]["name"]), (&1.into(), &"at-the-hit".into()));
    assert_eq!(world.json(["show", "at-the-hit", "--json"])["turns"].as_array().unwrap().len(), 1);
    let planned = smart(&world, &["users land on undefined", "--auto", "--plan"]);
    assert_eq!(planned["fork"]["operation"], Value::Null);
    for (path, content) in before {
        assert_eq!(fs::read(&path).unwrap(), content, "{}", path.display());
    }
    // For people, it ends as `tine fork` does.
    let output = world.run(["smart-fork", "users land on undefined", "--auto"]);
    assert!(output.err.contains("forked ") && output.out.starts_with("cd [ROOT]/work/shop && "), "{output:?}");
}

#[test]
fn a_title_does_not_cut_off_what_it_is_about() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .title("websocket reconnect")
        .turn(|turn| turn.prompt("Good morning.").text("Hello."))
        .turn(|turn| turn.prompt("The websocket dies; please let it reconnect by itself.").text("It tries again now."))
        .turn(|turn| turn.prompt("Thank you.").text("Any time."))
        .write(&world.sandbox.claude_home());
    let output = smart(&world, &["websocket reconnect", "--at-hit"]);
    assert_eq!(words(&output["results"][0]["command"]), ["tine", "fork", &format!("{LOGIN}@2")]);
}

#[test]
fn a_place_in_the_list_is_picked() {
    let world = World::new();
    let listed = smart(&world, &["the login, the export, a cookie, it streams"]);
    let results = listed["results"].as_array().unwrap();
    assert!(results.len() >= 3, "{listed}");
    let second = &results[1];
    let forked = smart(&world, &["the login, the export, a cookie, it streams", "--pick", "2"]);
    assert_eq!(forked["fork"]["parent"]["id"], second["session"]["id"]);
    assert_eq!(forked["results"].as_array().unwrap().len(), results.len());
    insta::assert_snapshot!("no such place", world.run(["smart-fork", "redirect", "--pick", "9"]).whole());
    assert_eq!(world.run(["smart-fork", "redirect", "--pick", "0"]).code, 1);
    assert_eq!(world.run(["smart-fork", "redirect", "--pick", "1", "--auto"]).code, 2);
}

#[test]
fn a_fork_may_work_in_a_worktree_of_its_own() {
    let world = World::new();
    let output = smart(&world, &["orders export", "--auto", "--worktree", "csv-two"]);
    let workspace = &output["fork"]["workspace"];
    assert_eq!((&workspace["kind"], &workspace["branch"]), (&"worktree".into(), &"csv-two".into()));
    assert!(std::path::Path::new(workspace["path"].as_str().unwrap()).join("README.md").is_file());
    assert_eq!(output["fork"]["parent"]["id"], EXPORT);
}

#[test]
fn only_a_project_is_looked_at() {
    let world = World::new();
    assert_eq!(smart(&world, &["redirect", "--project", "../blog"])["results"], Value::Array(Vec::new()));
    assert_eq!(smart(&world, &["redirect", "--dir", "."])["results"][0]["session"]["id"], LOGIN);
}

#[test]
fn what_fits_badly_is_left_out_and_said() {
    let world = World::new();
    let all = smart(&world, &["redirect elephants giraffes login"]);
    let best = all["results"][0]["score"].as_f64().unwrap();
    assert!(best < 0.99, "{all}");
    let none = smart(&world, &["redirect elephants giraffes login", "--min-score", "0.99"]);
    assert_eq!(none["results"], Value::Array(Vec::new()));
    assert_eq!(none["left_out"], all["results"].as_array().unwrap().len());
    assert_eq!(none["fallback_sessions"].as_array().unwrap().len(), 4);
    let output = world.run(["smart-fork", "redirect elephants giraffes login", "--min-score", "0.99"]);
    assert!(output.code == 0 && output.err.contains("no match reaches `--min-score`"), "{output:?}");
    let output = world.run(["smart-fork", "redirect elephants giraffes", "--min-score", "0.99", "--auto"]);
    assert!(output.code == 1 && output.err.contains("no match reaches `--min-score`"), "{output:?}");
    assert_eq!(world.run(["smart-fork", "redirect", "--min-score", "7"]).code, 2);
}

#[test]
fn nothing_found_is_said_plainly_with_the_closest_words() {
    let world = World::new();
    insta::assert_snapshot!("nothing", world.run(["smart-fork", "quantum", "elephants"]).whole());
    insta::assert_snapshot!(
        "nothing, as JSON",
        world.run(["smart-fork", "quantum elephants", "--auto", "--json"]).whole()
    );
    let slip = smart(&world, &["redirct"]);
    assert_eq!(slip["results"][0]["session"]["id"], LOGIN);
    assert!(slip["errors"][0]["message"].as_str().unwrap().contains("searched for `redirect` instead"), "{slip}");
    // Nothing in plain words is a filter, a quote or a sign.
    let odd = smart(&world, &["\"redirect -login agent:nobody"]);
    assert_eq!(odd["results"][0]["session"]["id"], LOGIN);
    assert_eq!(world.run(["smart-fork", "   "]).code, 1);
    assert_eq!(world.run(["smart-fork"]).code, 2);
    assert_eq!(world.run(["smart-fork", &"many words ".repeat(1000)]).code, 0);
    for nothing in ["", "the of"] {
        let output = world.run(["smart-fork", nothing]);
        assert!(output.code == 1 && output.err.contains("what you want to build"), "{output:?}");
    }
}

#[test]
fn an_agent_that_is_missing_is_told_before_anything_is_asked_or_made() {
    let world = World::new();
    let before = world.agents_files();
    // Codex would have to be told what was said, and is not there.
    let output = smart(&world, &["redirect after login", "--method", "seed", "--agent", "codex"]);
    assert_eq!(output["results"][0]["can_fork"], false);
    assert!(output["results"][0]["warning"].as_str().unwrap().contains("codex"), "{output}");
    let failed = world.run(["smart-fork", "redirect after login", "--method", "seed", "--agent", "codex", "--auto"]);
    insta::assert_snapshot!("no such agent", failed.whole());
    assert_eq!(world.agents_files(), before);
    // Nor does it help to know that the directory of the best one is gone.
    ClaudeSession::new("a1a1a1a1-0000-4000-8000-000000000000")
        .cwd(world.shop.join("gone"))
        .seed(9)
        .turn(|turn| turn.prompt("The marmalade is too sweet.").text("Less sugar."))
        .write(&world.sandbox.claude_home());
    let failed = world.run(["smart-fork", "marmalade", "--method", "seed", "--agent", "codex", "--auto"]);
    assert!(failed.code == 1 && failed.err.contains("codex") && !failed.err.contains("no directory"), "{failed:?}");
    // On a terminal the agent would run, and nobody is asked.
    let tmux = testkit::Tmux::new(&world.sandbox);
    let mut command = world.sandbox.command("sh");
    command.args(["-c", "\"$1\" smart-fork redirect after login; echo code $?; read end", "sh", tine()]);
    let pane = tmux.run(command.current_dir(&world.shop));
    pane.wait_for(|screen| screen.contains("code 1") && !screen.contains("Which one?"));
}

#[test]
fn a_transcript_that_is_incomplete_is_not_forked() {
    let world = World::new();
    let stream = world.json(["search", "--json", "streams"]);
    assert_eq!(stream["results"][0]["can_fork"], true);
    let source = world.json(["info", EXPORT, "--json"])["path"].as_str().unwrap().to_owned();
    fs::remove_file(source).unwrap();
    let output = smart(&world, &["make it stream"]);
    assert_eq!(output["results"][0]["can_fork"], false, "{output}");
    let failed = world.run(["smart-fork", "make it stream", "--pick", "1"]);
    assert!(failed.code == 1 && failed.err.contains("cannot be forked"), "{failed:?}");
}

#[test]
fn the_next_session_is_forked_when_the_best_cannot_be() {
    let world = World::empty();
    let (gone, here) = ("a1a1a1a1-0000-4000-8000-000000000001", "b2b2b2b2-0000-4000-8000-000000000002");
    for (id, cwd, prompt) in
        [(gone, world.shop.join("gone"), "marmalade marmalade"), (here, world.shop.clone(), "marmalade and more")]
    {
        let session = ClaudeSession::new(id).cwd(cwd).turn(|turn| turn.prompt(prompt).text("Less sugar."));
        session.write(&world.sandbox.claude_home());
    }
    let output = smart(&world, &["marmalade", "--auto"]);
    let [first, second] = [0, 1].map(|at| &output["results"][at]);
    assert_eq!((&first["session"]["id"], &first["can_fork"]), (&gone.into(), &false.into()), "{output:#}");
    assert!(first["warning"].as_str().unwrap().contains("no longer exists"), "{output:#}");
    assert_eq!((&second["session"]["id"], &output["fork"]["parent"]["id"]), (&here.into(), &here.into()), "{output:#}");
    // Programs get the list with the reason why nothing was forked.
    let failed = world.run(["smart-fork", "marmalade", "--pick", "1", "--json"]);
    let error: Value = serde_json::from_str(&failed.raw).unwrap();
    assert_eq!((failed.code, &error["error"]["kind"]), (1, &"directory_gone".into()), "{failed:?}");
    assert!(error["results"].as_array().unwrap().len() >= 2 && error["query"] == "marmalade", "{failed:?}");
    // In another directory, it can be forked.
    assert_eq!(smart(&world, &["marmalade", "--to", "."])["results"][0]["can_fork"], true);
}

#[test]
fn a_person_looks_into_a_session_and_chooses_it() {
    let world = World::new();
    world.sandbox.script("claude", "#!/bin/sh\necho \"claude: $*\"\n");
    world.sandbox.script("codex", "#!/bin/sh\necho \"codex: $*\"\n");
    let tmux = testkit::Tmux::new(&world.sandbox);
    let mut command = world.sandbox.command("sh");
    command.args(["-c", "\"$1\" smart-fork redirect after login --in none; read end", "sh", tine()]);
    let pane = tmux.run(command.current_dir(&world.shop));
    pane.wait_for_text("Which one? [1-");
    pane.send_keys(["1?", "Enter"]);
    pane.wait_for_text("> Why do users land on /undefined after login?");
    pane.wait_for(|screen| {
        screen.lines().any(|line| line.starts_with("  1 ") && line.ends_with(|c: char| c.is_ascii_digit()))
    });
    pane.send_keys(["1", "Enter"]);
    pane.wait_for_text("[q] cancel:");
    pane.send_keys(["Enter"]);
    pane.wait_for_text("forked ");
    assert_eq!(world.json(["log", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_person_changes_the_plan_before_the_fork_is_made() {
    let world = World::new();
    world.sandbox.script("claude", "#!/bin/sh\necho \"claude: $*\"\n");
    world.sandbox.script("codex", "#!/bin/sh\necho \"codex: $*\"\n");
    let tmux = testkit::Tmux::new(&world.sandbox);
    let run = |options: &str| {
        let mut command = world.sandbox.command("sh");
        let line = format!("\"$1\" smart-fork redirect after login --in none {options}; echo code $?; read end");
        command.args(["-c", &line, "sh", tine()]);
        let pane = tmux.run(command.current_dir(&world.shop));
        pane.wait_for_text("Which one? [1-");
        pane.send_keys(["1", "Enter"]);
        pane
    };
    let pane = run("");
    for (keys, shown) in [
        (&["t", "Enter"][..], "1 of 3 turns"),
        (&["w", "Enter"], "a new worktree, "),
        (&["n", "Enter", "csv_bad", "Enter"], "a name"),
        (&["n", "Enter", "by-hand", "Enter"], "on by-hand"),
    ] {
        pane.wait_for(|screen| screen.trim_end().ends_with("[q] cancel:"));
        pane.send_keys(keys.iter().copied());
        pane.wait_for_text(shown);
    }
    pane.wait_for(|screen| screen.trim_end().ends_with("[q] cancel:"));
    assert_eq!(world.json(["log", "--json"]), Value::Array(Vec::new()));
    pane.send_keys(["Enter"]);
    pane.wait_for_text("code 0");
    let made = world.json(["info", "by-hand", "--json"]);
    assert_eq!((&made["turns"], &made["branch"]), (&1.into(), &"by-hand".into()), "{made}");
    // Leaving does nothing, and who said so before is not asked.
    let pane = run("");
    pane.wait_for_text("[q] cancel:");
    pane.send_keys(["q", "Enter"]);
    pane.wait_for_text("cancelled");
    run("--yes").wait_for_text("forked ");
    assert_eq!(world.json(["log", "--json"]).as_array().unwrap().len(), 2);
}

fn tine() -> &'static str {
    env!("CARGO_BIN_EXE_tine")
}
