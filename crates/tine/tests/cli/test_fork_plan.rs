//! What `tine fork --plan` says of tokens, losses and warnings.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Dialect};

use crate::world::{EXPORT, LOGIN, World};

const ID: &str = "5e5e5e5e-1111-4111-8111-111111111111";

const BASE: &str = "019a8000-0000-7000-8000-000000000009";

const CHILD: &str = "019a8000-0000-7000-8000-00000000000a";

fn plan(world: &World, words: &[&str]) -> Value {
    world.json(["fork"].iter().chain(words).copied().chain(["--plan", "--json"]))
}

fn says(plan: &Value, list: &str, part: &str) -> bool {
    plan[list].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(part))
}

/// Ten turns of 20,000 characters each.
fn long(world: &World) -> ClaudeSession {
    (1..=10).fold(ClaudeSession::new(ID).cwd(&world.shop), |session, number| {
        session.turn(|turn| turn.prompt(format!("{number} {}", "w ".repeat(10_000))).text("done"))
    })
}

/// Lets every answer report what `tokens` says of the characters so far.
fn report(path: &Path, tokens: impl Fn(usize) -> usize) {
    let mut characters = 0;
    let lines = fs::read_to_string(path).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        characters += record["message"]["content"].as_str().map_or(0, str::len);
        if record["type"] == "assistant" {
            let input = tokens(characters);
            record["message"]["usage"] = json!({"input_tokens": input, "output_tokens": input.min(10)});
        }
        format!("{record}\n")
    });
    fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn what_was_compacted_away_is_not_counted() {
    let world = World::new();
    let path = long(&world).compact(&"z ".repeat(1000)).write(&world.sandbox.claude_home());
    report(&path, |characters| characters / 4);
    world.sandbox.script("claude", "#!/bin/sh\n");
    let tokens = |words: &[&str]| plan(&world, words)["tokens"].as_u64().unwrap();
    // What is left of it is the summary.
    assert!((300..2_000).contains(&tokens(&[ID])), "{}", tokens(&[ID]));
    let output = tokens(&[ID, "--method", "seed"]);
    assert!((40_000..60_000).contains(&output), "{output}");
    // Before the compaction, everything counts.
    assert!((40_000..50_000).contains(&tokens(&[&format!("{ID}@9")])));
}

#[test]
fn a_compaction_that_comes_along_with_a_cut_is_told() {
    let world = World::new();
    long(&world)
        .compact("prompts and answers")
        .turn(|turn| turn.prompt("on").text("yes"))
        .write(&world.sandbox.claude_home());
    let follows = |point: &str| {
        says(&plan(&world, &[&format!("{ID}{point}")]), "warnings", "the fork includes the compaction after turn")
    };
    assert_eq!([follows("@9"), follows("@10"), follows("@11"), follows("")], [false, true, false, false]);
}

#[test]
fn tokens_that_nobody_counted_are_estimated() {
    let world = World::new();
    let path = long(&world).write(&world.sandbox.claude_home());
    report(&path, |_| 0);
    let tokens = plan(&world, &[ID])["tokens"].as_u64().unwrap();
    assert!((50_000..70_000).contains(&tokens), "{tokens}");
    // The last report that says something counts, and what was said since.
    report(&path, |characters| if characters < 190_000 { characters } else { 0 });
    let tokens = plan(&world, &[ID])["tokens"].as_u64().unwrap();
    assert!((190_000..210_000).contains(&tokens), "{tokens}");
}

/// Every Claude model counted as 200,000 tokens, so long sessions were said not to fit and seeds were cut.
#[test]
fn a_long_session_was_said_not_to_fit_into_a_window_that_is_larger() {
    let world = World::new();
    world.sandbox.script("claude", "#!/bin/sh\n");
    let check = |model: &str, session: ClaudeSession, tokens: usize, window: u64, source: &str, fits: bool| {
        let path = session.write(&world.sandbox.claude_home());
        report(&path, |characters| if characters > 100_000 { tokens } else { 10 });
        let lines = fs::read_to_string(&path).unwrap();
        let lines = lines.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            if record["type"] == "assistant" {
                record["message"]["model"] = json!(model);
            }
            format!("{record}\n")
        });
        fs::write(&path, lines.collect::<String>()).unwrap();
        let output = plan(&world, &[ID]);
        assert_eq!(
            (&output["context_window"], &output["context_window_source"]),
            (&json!(window), &json!(source)),
            "{model}"
        );
        assert_eq!(says(&output, "warnings", "does not fit"), !fits, "{model}: {output:#}");
    };
    check("claude-opus-5-5", long(&world), 400_000, 1_000_000, "model", true);
    check("claude-sonnet-4-5", long(&world), 150_000, 200_000, "model", true);
    check("claude-sonnet-4-5", long(&world), 200_000, 1_000_000, "observed", true);
    check("claude-opus-5-5", long(&world), 1_000_000 - 10, 1_000_000, "model", false);
    // What was sent before a compaction was sent in the same window.
    check("claude-sonnet-4-5", long(&world).compact("prompts and answers"), 400_000, 1_000_000, "observed", true);
    let codex = plan(&world, &[EXPORT]);
    assert_eq!((&codex["context_window"], &codex["context_window_source"]), (&json!(258_400), &json!("reported")));
    let text = world.run(["fork", EXPORT, "--plan"]).out;
    assert!(text.contains("of 258400 (reported by Codex)"), "{text}");
}

/// What Claude Code reported was dropped, and older versions were given the windows of newer ones.
#[test]
fn a_window_that_the_agent_reported_in_an_answer_was_not_used() {
    let world = World::new();
    let result = json!({ "type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": ID,
        "modelUsage": { "claude-opus-5-5": { "contextWindow": 500_000 }, "claude-haiku-5-5": { "contextWindow": 9 } } });
    world.sandbox.script("claude", &format!("#!/bin/sh\necho '{result}'\n"));
    let path = long(&world).write(&world.sandbox.claude_home());
    let window = || {
        let plan = plan(&world, &[ID]);
        (plan["context_window"].as_u64().unwrap(), plan["context_window_source"].as_str().unwrap().to_owned())
    };
    assert_eq!(window(), (1_000_000, "model".into()));
    assert_eq!(world.run(["send", ID, "hello", "--wait"]).code, 0);
    assert_eq!(window(), (500_000, "reported".into()));
    // The session was longer than that once, even before a rewind or in a part that no longer counts.
    report(&path, |characters| if (50_000..100_000).contains(&characters) { 600_000 } else { 10_000 });
    assert_eq!(window(), (1_000_000, "model".into()));

    long(&world).version("2.1.197").write(&world.sandbox.claude_home());
    assert_eq!(plan(&world, &[ID])["model"], "claude-opus-4-8");
    assert_eq!(window(), (200_000, "model".into()));
    report(&path, |characters| if (50_000..100_000).contains(&characters) { 300_000 } else { 10_000 });
    assert_eq!(window(), (1_000_000, "observed".into()));
}

/// Makes a session look busy: this process has it open and works on it.
pub(crate) fn keep_busy(world: &World) -> PathBuf {
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let start = own.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let pid = std::process::id();
    let live = json!({"pid": pid, "sessionId": LOGIN, "cwd": world.shop, "status": "busy", "procStart": start,
        "version": "2.1.325", "kind": "interactive", "entrypoint": "cli"});
    let folder = world.sandbox.claude_home().join("sessions");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{pid}.json"));
    fs::write(&file, live.to_string()).unwrap();
    file
}

#[test]
fn a_plan_waits_for_nobody() {
    let world = World::new();
    keep_busy(&world);
    for words in [&["clone", LOGIN][..], &["fork", LOGIN, "--wait"], &["fork", LOGIN, "--copy-to", "../there"]] {
        let output = world.json(words.iter().copied().chain(["--plan", "--json"]));
        assert!(says(&output, "warnings", "tine forks it when it is idle"), "{output:#}");
    }
    // Nobody said that it may wait.
    assert_eq!(world.run(["fork", LOGIN, "--plan"]).code, 1);
}

#[test]
fn what_is_gone_with_a_base_is_a_loss() {
    let world = World::new();
    let base = CodexSession::new(BASE).cwd(&world.shop).dialect(Dialect::Paginated);
    let base = base.turn(|turn| turn.prompt("one").text("1")).turn(|turn| turn.prompt("two").text("2"));
    let path: PathBuf = base.write(&world.sandbox.codex_home());
    base.fork(CHILD).turn(|turn| turn.prompt("three").text("3")).write(&world.sandbox.codex_home());
    assert!(!says(&plan(&world, &[CHILD]), "losses", "no longer exists"));
    fs::remove_file(path).unwrap();
    let output = plan(&world, &[CHILD]);
    assert!(says(&output, "losses", "the session that the source was forked from no longer exists"), "{output:#}");
    assert!(!says(&output, "warnings", "damaged"), "{output:#}");
}

#[test]
fn lines_that_are_long_are_not_damaged() {
    let world = World::new();
    let session = ClaudeSession::new(ID).cwd(&world.shop);
    let output = "w".repeat(17 << 20);
    session
        .turn(|turn| turn.prompt("one").tool("Bash", json!({}), output).text("done"))
        .write(&world.sandbox.claude_home());
    let printed = plan(&world, &[ID]);
    assert!(!says(&printed, "warnings", "damaged"), "{printed:#}");
}

#[test]
fn another_branch_than_the_sessions_is_told() {
    let world = World::new();
    let session = ClaudeSession::new(ID).cwd(&world.shop).git_branch("feature");
    session.turn(|turn| turn.prompt("one").text("done")).write(&world.sandbox.claude_home());
    let output = plan(&world, &[ID, "--worktree"]);
    assert!(
        says(&output, "warnings", "the session worked on branch feature, but the worktree starts from main"),
        "{output:#}"
    );
    assert!(!says(&plan(&world, &[ID]), "warnings", "branch"));
}

#[test]
fn a_name_that_nobody_chose_leaves_branches_and_folders_alone() {
    let world = World::new();
    let planned = |world: &World| plan(world, &[LOGIN, "--worktree"])["session"]["name"].as_str().unwrap().to_owned();
    let first = planned(&world);
    assert!(first.ends_with("-fork-1"), "{first}");
    world.sandbox.git(&world.shop, ["branch", &first]);
    let second = planned(&world);
    assert!(second.ends_with("-fork-2"), "{second}");
    fs::create_dir_all(world.shop.with_file_name("shop.worktrees").join(&second)).unwrap();
    assert!(planned(&world).ends_with("-fork-3"));
    assert_eq!(world.run(["fork", LOGIN, &first, "--worktree"]).code, 1, "who chooses a name is told");
}

/// The plan named neither agent, model nor id, and told of losses that there weren't.
#[test]
fn the_plan_says_whose_session_it_is_and_what_is_really_lost() {
    let world = World::new();
    let text = world.run(["fork", LOGIN, "--plan"]).out;
    assert!(text.contains(&format!("fork  {LOGIN}, all 3 turns\n")), "{text}");
    assert!(text.contains("agent  Claude Code, claude-opus-5-5\n"), "{text}");
    assert_eq!(plan(&world, &[LOGIN])["model"], "claude-opus-5-5");
    assert_eq!(plan(&world, &[EXPORT])["losses"], json!([]));
    assert_eq!(world.run(["adopt", EXPORT, "orders"]).code, 0);
    let text = world.run(["fork", "orders", "--plan"]).out;
    assert!(text.contains(&format!("fork  orders ({EXPORT}), all 2 turns\n")), "{text}");
    // A thread that started a helper leaves it behind.
    let with_helper = CodexSession::new(CHILD).cwd(&world.shop).turn(|turn| {
        turn.prompt("Ask a helper.").tool("spawn_agent", json!({"message": "look"}), "{\"agent_id\": \"x\"}").text("ok")
    });
    with_helper.write(&world.sandbox.codex_home());
    assert!(says(&plan(&world, &[CHILD]), "losses", "subagents' transcripts are not copied"));
}

#[test]
fn carrying_at_an_earlier_turn_did_not_say_that_it_carries_todays_files() {
    let world = World::new();
    fs::write(world.shop.join("README.md"), "changed\n").unwrap();
    let carries = |point: &str| {
        let output = plan(&world, &[&format!("{LOGIN}{point}"), "--worktree", "--carry"]);
        says(&output, "warnings", "as they are now, not as they were after turn 2")
    };
    assert_eq!([carries("@2"), carries("")], [true, false]);
}

/// A seed is sent at once, and nothing said so.
#[test]
fn model_requests_are_announced() {
    let world = World::new();
    for agent in ["claude", "codex"] {
        world.sandbox.script(agent, "#!/bin/sh\n");
    }
    let requests = |words: &[&str]| plan(&world, words)["requests"].clone();
    assert_eq!(requests(&[LOGIN]), json!([]));
    let sent = requests(&[LOGIN, "--agent", "codex", "--method", "seed"]);
    assert!(sent[0].as_str().unwrap().starts_with("sends the transcript to Codex now: about "), "{sent}");
    let sent = requests(&[LOGIN, "--in", "headless", "--prompt", "go on"]);
    assert_eq!(sent, json!(["sends the prompt to Claude Code now"]));
    let text = world.run(["fork", LOGIN, "--method", "seed", "--agent", "codex", "--plan"]).out;
    assert!(text.contains("request  sends the transcript to Codex now: about "), "{text}");
}

/// It was sent without a word, also where nobody asked for a plan.
#[test]
fn a_seed_is_announced_before_it_is_sent() {
    let world = World::new();
    world.sandbox.script("codex", "#!/bin/sh\nexit 1\n");
    let before = world.agents_files();
    let seeded = ["fork", LOGIN, "--agent", "codex", "--method", "seed"];
    for words in [&seeded[..], &[&seeded[..], &["--times", "2"]].concat()] {
        let output = world.run(words);
        assert_eq!(output.code, 1, "{output:?}");
        let announced = output.err.find("sends the transcript to Codex now: about ").expect("an announcement");
        assert!(announced < output.err.find("error:").expect("an error"), "{}", output.err);
    }
    assert_eq!(world.agents_files(), before);
    let help = world.run(["fork", "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("Seeding sends a model request right away"), "{help}");
}
