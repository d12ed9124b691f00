//! How well sessions are found: questions with known answers, by words, by meaning and by both.
//!
//! The conversations and questions are data (`bench/data/sessions.txt`). Each question has one right session, among all
//! of the others and a few hundred synthetic ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Corpus};

use crate::Bench;

const DATA: &str = include_str!("../data/sessions.txt");
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
    prompt: &'d str,
    answer: &'d str,
    output: &'d str,
    file: &'d str,
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
    for class in ["other words", "identifiers", "errors", "files", "languages", "all"] {
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
    for line in DATA.lines() {
        let Some((kind, text)) = line.split_once(' ') else { continue };
        if kind == "=" {
            conversations.push(Conversation { project: text, ..Conversation::default() });
            continue;
        }
        let right = conversations.len().saturating_sub(1);
        let Some(conversation) = conversations.last_mut() else { continue };
        let class = match kind {
            "p" => {
                conversation.prompt = text;
                continue;
            }
            "a" => {
                conversation.answer = text;
                continue;
            }
            "t" => {
                conversation.output = text;
                continue;
            }
            "f" => {
                conversation.file = text;
                continue;
            }
            "?w" => "other words",
            "?i" => "identifiers",
            "?e" => "errors",
            "?f" => "files",
            "?l" => "languages",
            other => panic!("what is `{other}`?"),
        };
        questions.push((class, text, right));
    }
    (conversations, questions)
}

fn id(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000001")
}

fn write(conversations: &[Conversation<'_>], home: &Path) {
    let (claude, codex) = (home.join(".claude"), home.join(".codex"));
    Corpus::new(7).bytes(20_000_000).projects(10).write(&claude, &codex, &home.join("work"));
    for (number, said) in conversations.iter().enumerate() {
        let cwd = home.join("work").join(said.project);
        let (before, after) = (BEFORE[number % BEFORE.len()], AFTER[number % AFTER.len()]);
        let listing = format!("{}\n{}", said.file, said.output);
        if number % 3 == 2 {
            CodexSession::new(&id(number))
                .cwd(&cwd)
                .turn(|turn| turn.prompt(before.0).text(before.1))
                .turn(|turn| {
                    let input = json!({"cmd": format!("cat {}", said.file)});
                    turn.prompt(said.prompt).tool("exec_command", input, &listing).text(said.answer)
                })
                .turn(|turn| turn.prompt(after.0).text(after.1))
                .write(&codex);
        } else {
            ClaudeSession::new(&id(number))
                .cwd(&cwd)
                .seed(1000 + number as u64)
                .turn(|turn| turn.prompt(before.0).text(before.1))
                .turn(|turn| {
                    turn.prompt(said.prompt).tool("Read", json!({"file_path": said.file}), &listing).text(said.answer)
                })
                .turn(|turn| turn.prompt(after.0).text(after.1))
                .write(&claude);
        }
    }
}
