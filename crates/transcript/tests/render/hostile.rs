//! Content that tries to get out of the place it is put in.

use serde_json::json;
use transcript::render::Tools;
use transcript::{Block, BlockKind, Defects, NoticeKind};

use crate::{Conversation, sample};

const HOSTILE: [&str; 9] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x='",
    "[click](javascript:alert(1)) <javascript:alert(1)> ![x](data:text/html,<script>)",
    "</pre></code></details></section></main><iframe src=//evil>",
    "<!-- <style>*{display:none}</style>",
    "&#27;]0;owned&#7; \u{1b}]0;owned\u{7} \u{9b}2J \u{202e}txt.exe",
    "```\n````\n~~~\n<pre>",
    "&lt;script&gt; &#60;svg/onload=1&#62;",
];

/// The hostile text in every place where a text can be.
fn conversation(text: &str) -> Conversation {
    let mut session = sample::session();
    session.title = Some(text.into());
    session.branch = Some(text.into());
    session.cwd = Some(text.into());
    let some = || Some(text.to_owned());
    let output =
        |error| BlockKind::Output { call: text.into(), name: some(), text: text.into(), error, exit_code: None };
    let kinds = [
        BlockKind::Prompt { text: text.into(), steer: false },
        BlockKind::Prompt { text: text.into(), steer: true },
        BlockKind::Answer { text: text.into(), model: some() },
        BlockKind::Thinking { text: text.into() },
        BlockKind::Call {
            id: text.into(),
            name: text.into(),
            input: json!({text: text, "command": text, "list": [text]}),
        },
        output(false),
        BlockKind::Call { id: "other".into(), name: text.into(), input: json!(text) },
        output(true),
        BlockKind::Media { media_type: text.into(), bytes: None, data: None },
        BlockKind::Compaction { summary: text.into() },
        BlockKind::Notice { notice: NoticeKind::Command, text: format!("{text}\n{text}") },
        BlockKind::Subagent { id: text.into(), role: some(), description: some() },
    ];
    let block = |kind| Block { turn: 1, depth: 0, at: None, message: some(), kind };
    Conversation { session, blocks: kinds.into_iter().map(block).collect(), defects: Defects::default() }
}

#[test]
fn a_page_has_no_tags_but_its_own() {
    for (text, tools) in HOSTILE.iter().flat_map(|text| [(text, Tools::Brief), (text, Tools::Full)]) {
        let page = conversation(text).html(tools);
        let (_, body) = page.split_once("</style>").unwrap();
        let mut open = Vec::new();
        for tag in tags(body) {
            let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
            assert!(ALLOWED.contains(&name), "<{tag}> from {text:?}");
            for attribute in attributes(tag) {
                let allowed = ["class", "id", "href", "rel", "title", "role", "aria-label", "datetime"];
                assert!(allowed.contains(&attribute.as_str()), "{attribute} in <{tag}> from {text:?}");
            }
            if name == "a" && !tag.starts_with('/') {
                assert!(tag.contains("href=\"http") || tag.contains("href=\"#turn-"), "<{tag}> from {text:?}");
            }
            if ["hr", "br"].contains(&name) {
                continue;
            }
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "from {text:?}");
            } else {
                open.push(name);
            }
        }
        // The html element was opened before the style sheet.
        assert!(open.is_empty(), "{open:?} from {text:?}");
    }
}

const ALLOWED: [&str; 29] = [
    "a",
    "b",
    "blockquote",
    "body",
    "br",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "footer",
    "h1",
    "h2",
    "header",
    "li",
    "main",
    "p",
    "pre",
    "section",
    "span",
    "summary",
    "time",
    "ul",
    "html",
    "head",
    "em",
    "strong",
    "del",
];

/// Everything between `<` and `>`, up to the element that encloses the body.
fn tags(body: &str) -> impl Iterator<Item = &str> {
    let body = body.trim_start_matches("\n</head>").trim_end().trim_end_matches("</html>");
    body.split('<').skip(1).map(|rest| rest.split_once('>').expect("a tag ends").0)
}

fn attributes(tag: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut outside = String::new();
    for (index, part) in tag.split('"').enumerate() {
        if index % 2 == 0 {
            outside.push_str(part);
        }
    }
    for word in outside.split_whitespace().skip(1) {
        names.push(word.trim_end_matches('=').to_owned());
    }
    names.iter().flat_map(|name| name.split('=')).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_page_loads_and_runs_nothing() {
    for text in HOSTILE {
        let page = conversation(text).html(Tools::Full);
        assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; "));
        for forbidden in
            ["<script", "<img", "<iframe", "<svg", "<link", "<object", "src=\"", "href=\"javascript", "href=\"data"]
        {
            assert!(!page.to_lowercase().contains(forbidden), "{forbidden} from {text:?}");
        }
    }
}

#[test]
fn a_terminal_is_never_controlled() {
    for (text, tools) in HOSTILE.iter().flat_map(|text| [(text, Tools::Brief), (text, Tools::Full)]) {
        let plain = conversation(text).terminal(tools, false, 80);
        assert!(!plain.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}'), "{text:?}");
        let painted = conversation(text).terminal(tools, true, 80);
        for sequence in painted.split('\u{1b}').skip(1) {
            let (codes, _) = sequence.split_once('m').expect("only looks are set");
            assert!(codes.starts_with('[') && codes[1..].chars().all(|c| c.is_ascii_digit() || c == ';'), "{codes:?}");
        }
    }
}

#[test]
fn an_answer_behind_a_list_of_calls_is_not_a_part_of_it() {
    let mut conversation = conversation("cargo test");
    let answer = BlockKind::Answer { text: "  ```\ncode\n  ```".into(), model: None };
    let block = |turn, kind| Block { turn, depth: 0, at: None, message: None, kind };
    let call = conversation.blocks[4].kind.clone();
    let prompt = conversation.blocks[0].kind.clone();
    conversation.blocks = vec![block(1, prompt.clone()), block(1, call), block(1, answer), block(2, prompt)];
    let markdown = conversation.markdown(Tools::Brief);
    assert_eq!(crate::properties::turn_headings(&markdown), ["Turn 1", "Turn 2"], "{markdown}");
}

#[test]
fn markdown_keeps_its_structure() {
    for (text, tools) in HOSTILE.iter().flat_map(|text| [(text, Tools::Brief), (text, Tools::Full)]) {
        let mut conversation = conversation(text);
        let mut next = conversation.blocks[0].clone();
        next.turn = 2;
        conversation.blocks.push(next);
        let headings = crate::properties::turn_headings(&conversation.markdown(tools));
        assert_eq!(headings, ["Turn 1", "Turn 2"], "{text:?}");
    }
}
