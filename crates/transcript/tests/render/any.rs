//! Any conversation at all, for the properties that hold of every one.

use proptest::prelude::*;
use serde_json::json;
use transcript::{Block, BlockKind, Defects, NoticeKind};

use crate::{Conversation, sample};

/// A conversation whose texts come from `text`. Depths follow the rule: one deeper only after a subagent.
pub(crate) fn conversation(
    text: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = Conversation> {
    let step = (any_kind(text.clone()), any::<prop::sample::Index>());
    (prop::collection::vec(step, 0..24), text).prop_map(|(steps, title)| {
        let mut session = sample::session();
        session.title = Some(title);
        Conversation { session, blocks: numbered(steps), defects: Defects::default() }
    })
}

/// Any text, rich in what means something to Markdown, to HTML and to terminals.
pub(crate) fn wild_text() -> impl Strategy<Value = String> + Clone {
    let pieces = prop_oneof![
        3 => prop::sample::select(vec![
            "\n", "\n\n", " ", "  ", "    ", "\t", "```", "````", "~~~", "`", "**", "_", "~~", "- ", "1. ", "> ", "# ", "|", "|-|",
            "<", "</", "<!--", "-->", "<pre>", "[", "](", ")", "![", "http://a.b", "&#27;", "&amp;", "\\", "---", "===",
            "\u{1b}[31m", "\u{1b}]0;", "\u{9b}", "\r", "\u{202e}", "\u{e0041}", "漢字", "。", "👩‍👩‍👧", "e\u{301}", "\u{a0}",
        ]).prop_map(str::to_owned),
        2 => "[a-z]{1,8}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(pieces, 0..16).prop_map(|pieces| pieces.concat()).boxed()
}

/// Words that can be broken everywhere a line of twenty columns may end.
pub(crate) fn plain_words() -> impl Strategy<Value = String> + Clone {
    let word = prop_oneof![8 => "[a-z]{1,6}", 1 => Just("\n".to_owned()), 1 => Just("漢字かな".to_owned()), 1 => Just("**b**".to_owned())];
    prop::collection::vec(word, 0..30).prop_map(|words| words.join(" ").replace(" \n ", "\n")).boxed()
}

fn any_kind(text: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = BlockKind> {
    let notice = prop::sample::select(vec![NoticeKind::Info, NoticeKind::Error, NoticeKind::Command]);
    prop_oneof![
        (text.clone(), any::<bool>()).prop_map(|(text, steer)| BlockKind::Prompt { text, steer }),
        text.clone().prop_map(|text| BlockKind::Answer { text, model: None }),
        text.clone().prop_map(|text| BlockKind::Thinking { text }),
        (text.clone(), text.clone(), 0..3u8).prop_map(|(name, value, id)| BlockKind::Call {
            id: id.to_string(),
            name,
            input: json!({"command": value, "n": [id]}),
        }),
        (text.clone(), any::<bool>(), any::<Option<i32>>(), 0..3u8).prop_map(|(text, error, exit_code, call)| {
            BlockKind::Output { call: call.to_string(), name: None, text, error, exit_code }
        }),
        (text.clone(), any::<Option<u64>>()).prop_map(|(media_type, bytes)| BlockKind::Media {
            media_type,
            bytes,
            data: None
        }),
        text.clone().prop_map(|summary| BlockKind::Compaction { summary }),
        (notice, text.clone()).prop_map(|(notice, text)| BlockKind::Notice { notice, text }),
        (text.clone(), prop::option::of(text)).prop_map(|(id, description)| BlockKind::Subagent {
            id,
            role: None,
            description
        }),
    ]
}

fn numbered(steps: Vec<(BlockKind, prop::sample::Index)>) -> Vec<Block> {
    let (mut turn, mut deepest) = (0, 0);
    let mut blocks = Vec::new();
    for (kind, index) in steps {
        let depth = u8::try_from(index.index(deepest + 1)).unwrap();
        if depth == 0 && matches!(kind, BlockKind::Prompt { steer: false, .. }) {
            turn += 1;
        }
        deepest = usize::from(depth) + usize::from(matches!(kind, BlockKind::Subagent { .. }));
        blocks.push(Block { turn, depth, at: None, message: None, kind });
    }
    blocks
}
