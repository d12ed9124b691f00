//! How well sessions are found: questions with known answers, by words, by meaning and by both.
//!
//! The conversations and questions are data (`bench/data`), by two authors. Each question has one right session, among
//! all of the others and a few hundred synthetic ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Corpus, Turn};

use crate::Bench;

const DATA: [&str; 2] = [include_str!("../data/sessions.txt"), include_str!("../data/more.txt")];
/// How questions are marked in the data, and what they are called.
const CLASSES: [(&str, &str); 9] = [
    ("?w", "other words"),
    ("?j", "jargon"),
    ("?i", "identifiers"),
    ("?e", "errors"),
    ("?c", "commands"),
    ("?f", "files"),
    ("?s", "slips"),
    ("?m", "mixed"),
    ("?l", "languages"),
];
const ENGINES: [&str; 3] = ["words", "meaning", "hybrid"];
/// What is said around the conversations, so that each has several turns.
const BEFORE: [(&str, &str); 4] = [
    ("Look around in this repository first.", "It has a source folder, tests and a short readme."),
    ("Run the tests, please.", "All of them pass."),
    ("What changed since yesterday?", "Two commits, both about formatting."),
    ("Good morning! Let us go on.", "Good morning, ready when you are."),
];
const AFTER: [(&str, &str); 3] = [
    ("Thanks. Commit that.", "Committed."),
    ("Add a test for it.", "There is one now, and it fails without the change."),
    ("Is anything left to do?", "No, that was all."),
];

#[derive(Default)]
struct Conversation<'d> {
    project: &'d str,
    turns: Vec<Said<'d>>,
}

/// One turn.
#[derive(Default)]
struct Said<'d> {
    prompt: &'d str,
    answers: Vec<&'d str>,
    /// What tools gave back, line by line.
    output: Vec<&'d str>,
    files: Vec<&'d str>,
}

#[derive(Default, Clone, Copy)]
struct Score {
    questions: u32,
    gain: f64,
    recall: f64,
}

pub(crate) fn run(bench: &Bench) {
    let home = bench.folder.join("evaluate");
    let _ = fs::remove_dir_all(&home);
    let (conversations, questions) = read();
    write(&conversations, &home);
    let tine = |arguments: &[&str]| {
        let mut command = Command::new(&bench.tine);
        command.env_clear().env("HOME", &home).args(arguments).current_dir(&home);
        let output = command.output().expect("tine");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let status = tine(&["index", "--json"]);
    println!(
        "\n{} questions, {} sessions, {} vectors",
        questions.len(),
        status["sessions"],
        status["vectors"]["vectors"]
    );
    let verbose = std::env::args().any(|word| word == "--verbose");
    let mut scores: BTreeMap<(&str, &str), Score> = BTreeMap::new();
    for (class, question, right) in &questions {
        for engine in ENGINES {
            let answer = tine(&["search", "--json", "--limit", "10", "--engine", engine, "--", question]);
            let results = answer["results"].as_array().expect("results");
            let rank = results.iter().position(|result| result["session"]["id"] == id(*right));
            for class in [class, "all"] {
                let score = scores.entry((class, engine)).or_default();
                score.questions += 1;
                score.gain += rank.map_or(0.0, |rank| 1.0 / (rank as f64 + 2.0).log2());
                score.recall += f64::from(u8::from(rank.is_some_and(|rank| rank < 5)));
            }
            if verbose && rank != Some(0) {
                let rank = rank.map_or("-".to_owned(), |rank| (rank + 1).to_string());
                println!("{engine:<8} {rank:>2}  {class}: {question}");
            }
        }
    }
    println!("{:<16} {:>9}  {:>13}  {:>13}  {:>13}", "nDCG@10/recall@5", "questions", "words", "meaning", "both");
    for class in CLASSES.into_iter().map(|(_, class)| class).chain(["all"]) {
        let of = |engine: &str| scores.get(&(class, engine)).copied().unwrap_or_default();
        let shown = ENGINES.map(|engine| {
            let Score { questions, gain, recall } = of(engine);
            let count = f64::from(questions.max(1));
            format!("{:>6.3}/{:<6.3}", gain / count, recall / count)
        });
        let best = of("hybrid").gain >= of("words").gain.max(of("meaning").gain) - 1e-9;
        let verdict = if best { "both is best" } else { "both is NOT best" };
        println!("{class:<16} {:>9}  {}  {verdict}", of("hybrid").questions, shown.join("  "));
    }
}

type Question<'d> = (&'static str, &'d str, usize);

fn read<'d>() -> (Vec<Conversation<'d>>, Vec<Question<'d>>) {
    let (mut conversations, mut questions): (Vec<Conversation<'_>>, Vec<Question<'_>>) = (Vec::new(), Vec::new());
    for line in DATA.into_iter().flat_map(str::lines) {
        let Some((kind, text)) = line.split_once(' ') else { continue };
        if kind == "#" {
            continue;
        }
        if kind == "=" {
            conversations.push(Conversation { project: text, turns: Vec::new() });
            continue;
        }
        let right = conversations.len().saturating_sub(1);
        let Some(conversation) = conversations.last_mut() else { continue };
        if kind == "p" {
            conversation.turns.push(Said { prompt: text, ..Said::default() });
            continue;
        }
        if let Some((_, class)) = CLASSES.into_iter().find(|(mark, _)| *mark == kind) {
            questions.push((class, text, right));
            continue;
        }
        let said = conversation.turns.last_mut().expect("a prompt before anything else");
        match kind {
            "a" => said.answers.push(text),
            "t" => said.output.push(text),
            "f" => said.files.push(text),
            other => panic!("what is `{other}`?"),
        }
    }
    (conversations, questions)
}

fn id(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000001")
}

fn write(conversations: &[Conversation<'_>], home: &Path) {
    let (claude, codex) = (home.join(".claude"), home.join(".codex"));
    Corpus::new(7).bytes(20_000_000).projects(10).write(&claude, &codex, &home.join("work"));
    for (number, conversation) in conversations.iter().enumerate() {
        let cwd = home.join("work").join(conversation.project);
        let (before, after) = (BEFORE[number % BEFORE.len()], AFTER[number % AFTER.len()]);
        let is_codex = number % 3 == 2;
        let say = |said: &Said<'_>, turn: Turn| {
            let output = said.files.iter().chain(&said.output).copied().collect::<Vec<_>>().join("\n");
            let file = said.files.first().copied().unwrap_or_default();
            let (tool, input) = match (is_codex, file.is_empty()) {
                (true, _) => ("exec_command", json!({ "cmd": format!("cat {}", said.files.join(" ")) })),
                (false, true) => ("Bash", json!({ "command": "make" })),
                (false, false) => ("Read", json!({ "file_path": file })),
            };
            let turn = turn.prompt(said.prompt);
            let turn = if output.is_empty() { turn } else { turn.tool(tool, input, &output) };
            said.answers.iter().fold(turn, |turn, answer| turn.text(*answer))
        };
        if is_codex {
            let mut session =
                CodexSession::new(&id(number)).cwd(&cwd).turn(|turn| turn.prompt(before.0).text(before.1));
            for said in &conversation.turns {
                session = session.turn(|turn| say(said, turn));
            }
            session.turn(|turn| turn.prompt(after.0).text(after.1)).write(&codex);
        } else {
            let mut session = ClaudeSession::new(&id(number)).cwd(&cwd).seed(1000 + number as u64);
            session = session.turn(|turn| turn.prompt(before.0).text(before.1));
            for said in &conversation.turns {
                session = session.turn(|turn| say(said, turn));
            }
            session.turn(|turn| turn.prompt(after.0).text(after.1)).write(&claude);
        }
    }
}
