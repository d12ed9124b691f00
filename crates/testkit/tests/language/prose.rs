//! Finds phrases that sound translated, in everything that a person reads. `style.md` explains what to write instead: start
//! over from what the reader wants to know, with an active verb.

use std::fs;
use std::path::PathBuf;

use crate::source::{self, CRATES};

/// Phrases, and what to write instead. A `*` stands for one word.
const PHRASES: &[(&str, &str)] = &[
    ("is told", "shows, reports, receives"),
    ("are told", "show, report, receive"),
    ("was told", "received"),
    ("is said", "the text, the message"),
    ("was said", "the transcript, the turns, the text"),
    ("were said", "the transcript, the turns, the text"),
    ("be told", "detect, distinguish, report"),
    ("be said", "report"),
    ("inside of", "inside, in"),
    ("outside of", "outside"),
    ("so many", "a number of, up to"),
    ("as far as", "if, where possible"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("going on", "continuing"),
    ("comes along", "is copied"),
    ("come along", "are copied"),
    ("came along", "was copied"),
    ("carried along", "copied"),
    ("is at work", "is busy"),
    ("are at work", "are busy"),
    ("at work on", "updating, busy with"),
    ("stands behind", "follows"),
    ("stand behind", "follow"),
    ("stands in", "is in"),
    ("stands before", "precedes"),
    ("stand before", "precede"),
    ("stands there", "is there"),
    ("lies in", "is in"),
    ("lie in", "are in"),
    ("lies beside", "is next to"),
    ("beside it", "next to it"),
    ("taken apart", "split, parsed"),
    ("takes apart", "splits, parses"),
    ("take apart", "split, parse"),
    ("told apart", "distinguished"),
    ("tell apart", "distinguish"),
    ("tells apart", "distinguishes"),
    ("is gone", "no longer exists"),
    ("are gone", "no longer exist"),
    ("made up for", "random, generated"),
    ("is called for", "is required"),
    ("what stands", "the text, the entry"),
    ("behind it", "after it"),
    ("behind that", "after that"),
    ("behind the @", "after the `@`"),
    ("there is no", "not found, or name what is missing"),
    ("there are no", "not found, or name what is missing"),
    ("is no time", "invalid time"),
    ("is none", "name what is missing"),
    ("nobody", "name the actor"),
    ("somebody", "the user, another process"),
    ("anybody", "anyone, another process"),
    ("whoever", "the caller, the user"),
    ("the person", "the user"),
    ("a person", "the user"),
    ("persons", "users"),
    ("made anew", "rebuilt"),
    ("built anew", "rebuilt"),
    ("anew", "again, rebuilt"),
    ("taken back", "undone"),
    ("takes back", "undoes"),
    ("take back", "undo"),
    ("taken for", "treated as"),
    ("cut off", "interrupted, incomplete"),
    ("looked for", "searched for"),
    ("looked at", "checked, read"),
    ("look into", "read"),
    ("looks into", "reads"),
    ("lead into", "point into"),
    ("leads into", "points into"),
    ("asked for it", "requested it"),
    ("where nothing is", "by default"),
    ("the beginning of an id", "an id prefix"),
    ("without a word", "silently"),
    ("at a glance", "quickly"),
    ("not any more", "no longer"),
    ("any more", "no longer"),
    ("by now", "now, meanwhile"),
    ("is to be", "must be, will be"),
    ("are to be", "must be, will be"),
    ("has to be", "must be"),
    ("have to be", "must be"),
    ("makes no sense", "is invalid"),
    ("means nothing", "is unknown"),
    ("knows nothing of", "knows nothing about"),
    ("hear of", "learn about"),
    ("heard of", "known"),
    ("talks of", "describes"),
    ("speaks of", "describes"),
    ("model double", "fake model"),
    ("of its own accord", "by itself"),
    ("a slip", "a typo"),
    ("far from", "much"),
];

/// Sentences that contain such a phrase and are right all the same, each with the reason.
const ALLOWED: &[(&str, &str)] =
    &[("there is no active session", "a message of Zellij"), ("the hidden field is gone", "an answer in the demo")];

/// How many phrases the comments of a crate may still contain. The numbers only fall: lower them when you rewrite comments.
const MOST_IN_COMMENTS: &[(&str, usize)] =
    &[("agents", 10), ("diagnostics", 0), ("engine", 30), ("meaning", 2), ("tine", 10), ("transcript", 2)];

#[test]
fn documents_and_messages_read_like_english() {
    let mut found = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        let name = path.strip_prefix(source::root()).expect("a path in the repository").display().to_string();
        // Its texts have a line each, and often no full stop.
        let text = if name.ends_with("notices.txt") { text.replace('\n', "\n\n") } else { text };
        found.extend(phrases(&without_code(&text)).into_iter().map(|found| format!("{name}: {found}")));
    }
    assert!(found.is_empty(), "{} phrases that sound translated:\n{}", found.len(), found.join("\n"));
}

#[test]
fn comments_read_more_and_more_like_english() {
    let files = source::files();
    let mut wrong = Vec::new();
    for (krate, most) in MOST_IN_COMMENTS {
        assert!(CRATES.contains(krate), "{krate}");
        let mut found = Vec::new();
        for file in files.iter().filter(|file| file.krate == *krate) {
            let comments = file.comments.iter().flat_map(|comment| phrases(&without_code(comment)));
            found.extend(comments.map(|found| format!("{}: {found}", file.path)));
        }
        if found.len() > *most || std::env::var_os("TINE_SHOW_PROSE").is_some() {
            wrong.push(format!("{krate} has {}, allowed are {most}:\n{}", found.len(), found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "phrases in comments that sound translated\n{}", wrong.join("\n\n"));
}

/// Everything that is written for readers: Markdown outside of the crates, and the messages.
fn documents() -> Vec<PathBuf> {
    let root = source::root();
    let mut files: Vec<PathBuf> = fs::read_dir(&root)
        .expect("the repository")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    source::collect(&root.join("docs"), "md", &mut files);
    source::collect(&root.join("docs/messages"), "txt", &mut files);
    files.extend(["bench/README.md", "bench/RESULTS.md"].map(|path| root.join(path)));
    files.sort();
    assert!(files.len() > 20, "too few documents to be true");
    files
}

/// The phrases of a text, each with the words around it.
fn phrases(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Phrases end with a sentence, and with an entry of a list or a table.
    for sentence in text.split(['.', ';', ':', '|', '!', '?', '(', ')', ',']) {
        let words: Vec<String> = sentence
            .split_whitespace()
            .map(|word| word.trim_matches(|sign: char| !sign.is_alphanumeric() && sign != '@').to_lowercase())
            .collect();
        let plain = words.join(" ");
        if ALLOWED.iter().any(|(allowed, _)| plain.contains(allowed)) {
            continue;
        }
        for (phrase, instead) in PHRASES {
            let phrase_words: Vec<&str> = phrase.split(' ').collect();
            if words.windows(phrase_words.len()).any(|window| window == phrase_words) {
                found.push(format!(
                    "`{phrase}` (instead: {instead}) in: {}",
                    sentence.split_whitespace().collect::<Vec<_>>().join(" ")
                ));
            }
        }
    }
    found
}

/// A text without fenced and inline code, which quotes programs.
fn without_code(text: &str) -> String {
    let mut is_code = false;
    let prose: Vec<&str> = text
        .lines()
        .filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
        .collect();
    let blank = |(at, part): (usize, &str)| if at % 2 == 0 { part.to_owned() } else { "`".to_owned() };
    // Inline code doesn't span paragraphs, so that a single backtick hides nothing else.
    let paragraph = |text: &str| text.split('`').enumerate().map(blank).collect::<Vec<_>>().concat();
    prose.join("\n").split("\n\n").map(paragraph).collect::<Vec<_>>().join(" . ")
}

#[test]
fn phrases_are_found_across_lines_and_not_in_code() {
    let text = "The file is\ntold, so `nobody` reads it.\n\n```\nnobody\n```\n";
    let found = phrases(&without_code(text));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("`is told`"), "{found:?}");
}
