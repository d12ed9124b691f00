//! What holds of every conversation, however odd.

use proptest::prelude::*;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde_json::Value;
use transcript::render::Tools;
use transcript::{Block, BlockKind};
use unicode_width::UnicodeWidthStr;

use crate::any::{conversation, plain_words, wild_text};

proptest! {
    #[test]
    fn json_holds_every_block_in_order(conversation in conversation(wild_text())) {
        let json = conversation.json();
        prop_assert_eq!(json.find('\n'), Some(json.len() - 1));
        let document: Value = serde_json::from_str(&json).unwrap();
        let mut found = Vec::new();
        for turn in document["turns"].as_array().unwrap() {
            if !turn["prompt"].is_null() {
                found.push((0, "prompt".to_owned(), turn["prompt"].as_str().unwrap().to_owned()));
            }
            collect(turn, 0, &mut found);
        }
        let expected: Vec<_> = conversation.blocks.iter().map(told).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn json_is_valid_whatever_the_depths_are(mut conversation in conversation(plain_words()), depths in any::<[u8; 24]>()) {
        for (block, depth) in conversation.blocks.iter_mut().zip(depths) {
            block.depth = depth % 4;
        }
        let document: Value = serde_json::from_str(&conversation.json()).unwrap();
        let mut found = Vec::new();
        let turns = document["turns"].as_array().unwrap();
        turns.iter().for_each(|turn| collect(turn, 0, &mut found));
        let prompts = turns.iter().filter(|turn| !turn["prompt"].is_null()).count();
        prop_assert_eq!(found.len() + prompts, conversation.blocks.len());
    }

    #[test]
    fn terminals_get_no_control_characters(conversation in conversation(wild_text()), width in 0usize..130) {
        for tools in [Tools::Brief, Tools::Full] {
            let plain = conversation.terminal(tools, false, width);
            prop_assert!(plain.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{plain:?}");
        }
    }

    #[test]
    fn lines_fit_the_terminal(conversation in conversation(plain_words()), width in 20usize..130) {
        for tools in [Tools::Brief, Tools::Full] {
            let plain = conversation.terminal(tools, false, width);
            // The header has an id, which is one long word.
            let body = plain.split_once("── ").map_or("", |(_, body)| body);
            for line in body.lines() {
                prop_assert!(line.width() <= width, "{} > {width}: {line:?}", line.width());
            }
        }
    }

    #[test]
    fn what_is_open_in_markdown_is_closed(conversation in conversation(wild_text())) {
        let turns = conversation.blocks.iter().filter(|block| block.depth == 0);
        let prompts = turns.filter(|block| matches!(block.kind, BlockKind::Prompt { steer: false, .. })).count();
        let expected: Vec<String> = (1..=prompts).map(|number| format!("Turn {number}")).collect();
        for tools in [Tools::Brief, Tools::Full] {
            let markdown = conversation.markdown(tools);
            prop_assert_eq!(&turn_headings(&markdown), &expected, "{}", markdown);
        }
    }

    #[test]
    fn pages_close_every_tag(conversation in conversation(wild_text())) {
        for tools in [Tools::Brief, Tools::Full] {
            let page = conversation.html(tools);
            for tag in ["details", "section", "div", "pre", "p", "a", "span", "code", "table", "ul"] {
                let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
                prop_assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{}", tag);
            }
        }
    }
}

/// The headings of turns, as a reader of Markdown sees them.
pub(crate) fn turn_headings(markdown: &str) -> Vec<String> {
    let mut headings = Vec::new();
    let mut depth = 0;
    let mut heading: Option<String> = None;
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) if depth == 0 => heading = Some(String::new()),
            Event::Start(_) => depth += 1,
            Event::End(TagEnd::Heading(HeadingLevel::H2)) if heading.is_some() => headings.extend(heading.take()),
            Event::End(_) => depth -= 1,
            Event::Text(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    headings.retain(|heading| heading.starts_with("Turn "));
    headings
}

/// A block by its depth, its kind and its words.
fn told(block: &Block) -> (u8, String, String) {
    let words = match &block.kind {
        BlockKind::Prompt { text, .. }
        | BlockKind::Answer { text, .. }
        | BlockKind::Thinking { text }
        | BlockKind::Output { text, .. }
        | BlockKind::Notice { text, .. } => text,
        BlockKind::Call { name, .. } => name,
        BlockKind::Media { media_type, .. } => media_type,
        BlockKind::Compaction { summary } => summary,
        BlockKind::Subagent { id, .. } => id,
    };
    (block.depth, block.kind.as_str().to_owned(), words.clone())
}

fn collect(parent: &Value, depth: u8, found: &mut Vec<(u8, String, String)>) {
    for block in parent["blocks"].as_array().unwrap() {
        let kind = block["kind"].as_str().unwrap();
        let field = match kind {
            "call" => "name",
            "media" => "media_type",
            "compaction" => "summary",
            "subagent" => "id",
            _ => "text",
        };
        found.push((depth, kind.to_owned(), block[field].as_str().unwrap().to_owned()));
        if kind == "subagent" {
            collect(block, depth + 1, found);
        }
    }
}
