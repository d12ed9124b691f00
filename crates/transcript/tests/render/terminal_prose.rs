//! Markdown as a terminal shows it, a construct at a time.

use transcript::render::Tools;
use transcript::{Block, BlockKind, Defects};

use crate::{Conversation, sample};

/// An answer at 30 columns, without colour.
fn check(markdown: &str, expected: &str) {
    let kind = BlockKind::Answer { text: markdown.into(), model: None };
    let block = Block { turn: 0, depth: 0, at: None, message: None, kind };
    let conversation = Conversation { session: sample::session(), blocks: vec![block], defects: Defects::default() };
    let text = conversation.terminal(Tools::Brief, false, 30);
    let (_, answer) = text.split_once("\n\n").unwrap_or((&text, ""));
    assert_eq!(answer.trim_end_matches('\n'), expected, "{markdown:?}");
}

#[test]
fn paragraphs_and_line_breaks() {
    check("one two three four five six seven eight", "one two three four five six\nseven eight");
    check("first\nsecond\n\n\n\nthird", "first\nsecond\n\nthird");
    check("**bold** _it_ `code` ~~gone~~", "bold it `code` ~~gone~~");
    check("### Heading\ntext", "### Heading\n\ntext");
    check("a\n\n---\n\nb", "a\n\n────────────────────\n\nb");
    check("", "");
}

#[test]
fn lists_and_quotes() {
    check("- a\n- b\n  - c\n\n    d\n- [x] e", "• a\n• b\n  • c\n\n    d\n• [x] e");
    check("9. nine\n10. ten is a longer item than nine", "9. nine\n10. ten is a longer item than\n    nine");
    check("- \n- b", "•\n• b");
    check("> a\n>\n> - b\n\nc", "> a\n>\n> • b\n\nc");
    check("- a\n\n  ```\n  x\n  ```\n- b", "• a\n\n      x\n• b");
}

#[test]
fn lists_that_nest_too_deep_lose_their_outer_indents() {
    let nested: Vec<String> = (0..12).map(|level| format!("{}- x", "  ".repeat(level))).collect();
    let expected: Vec<String> = (0..12).map(|level| format!("{}• x", "  ".repeat(level.min(6)))).collect();
    check(&nested.join("\n"), &expected.join("\n"));
}

#[test]
fn code_keeps_its_lines() {
    check("```rust\nfn a() {\n\n    b(\"a line that is longer than the terminal\");\n}\n```", {
        "    fn a() {\n\n        b(\"a line that is longer than the terminal\");\n    }"
    });
    check("text\n\n    indented", "text\n\n    indented");
    check("```\nnever closed", "    never closed");
}

#[test]
fn tables_that_fit_and_tables_that_do_not() {
    check("|a|b|\n|-|-|\n|one|`x`|\n|漢字||", "a    │ b\n─────┼────\none  │ `x`\n漢字 │");
    check(
        "|name|meaning|\n|-|-|\n|turn|one prompt and everything up to the next|\n|fork||",
        "name: turn\nmeaning: one prompt and\n  everything up to the next\n\nname: fork",
    );
}

#[test]
fn links_pictures_and_raw_html() {
    check("[text](src/a.rs)", "text (src/a.rs)");
    check("<https://a.b>", "https://a.b");
    check("[me](mailto:a@b)", "me (mailto:a@b)");
    check("![a picture](x.png)", "[image: a picture] (x.png)");
    check("a <b>c</b>", "a <b>c</b>");
    check("<div>\nraw\n</div>", "<div>\nraw\n</div>");
}
