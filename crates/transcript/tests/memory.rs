//! Rendering takes memory in proportion to a message at most, whatever is in the message.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::tz::TimeZone;
use serde_json::json;
use transcript::render::{Html, Json, Markdown, Renderer, Style, Terminal, Tools};
use transcript::{Block, BlockKind};

/// Counts the bytes in use, and their peak.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "the trait is unsafe")]
// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(used, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZE: usize = 512 << 10;
/// A message beside which what parsing one segment takes is little.
const LARGE: usize = 8 << 20;
/// Copies of the message that a renderer may hold: cleaned, fenced, indented.
const COPIES: usize = 8;
/// The same of a large message, parsing included: what grows with the message shows.
const LARGE_COPIES: usize = 5;
/// What parsing one segment takes, whatever the size of the message.
const FIXED: usize = 48 << 20;

fn renderers() -> [(&'static str, Box<dyn Renderer>); 4] {
    let style = Style { color: true, width: 80, zone: TimeZone::UTC, highlight: None };
    [
        ("terminal", Box::new(Terminal::new(io::sink(), Tools::Full, style))),
        ("HTML", Box::new(Html::new(io::sink(), Tools::Full))),
        ("Markdown", Box::new(Markdown::new(io::sink(), Tools::Full))),
        ("JSON", Box::new(Json::new(io::sink()))),
    ]
}

fn check(kind: BlockKind, shape: &str) {
    check_within(kind, shape, COPIES * SIZE + FIXED);
}

fn check_within(kind: BlockKind, shape: &str, limit: usize) {
    let block = Block { turn: 1, depth: 0, at: None, message: None, kind };
    for (name, mut renderer) in renderers() {
        let before = USED.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        renderer.block(&block).expect("output");
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let kind = block.kind.as_str();
        assert!(peak < limit, "{} MB: {name}, {kind} of {shape:?}", peak >> 20);
    }
}

// The only test in this file: others would count as well.
#[test]
fn a_long_message_takes_a_few_times_its_size() {
    let long = |shape: &str| shape.repeat(SIZE / shape.len());
    let code = "`a` ";
    let text = code.repeat(LARGE / code.len());
    check_within(BlockKind::Answer { text, model: None }, code, LARGE_COPIES * LARGE);
    for shape in ["a ", "a\n", "*", "`a` ", "- a\n", "> ", "|a", "[", "<b>", "# a\n", "a\n\n", "漢", "http://a "] {
        check(BlockKind::Answer { text: long(shape), model: None }, shape);
    }
    // One block of code and one table, and what isn't Markdown.
    for lead in ["```\n", "| a | b |\n|---|---|\n"] {
        check(BlockKind::Answer { text: format!("{lead}{}", long("a\n")), model: None }, lead);
    }
    for shape in ["a ", "a\n", "\""] {
        check(BlockKind::Prompt { text: long(shape), steer: false }, shape);
        check(BlockKind::Thinking { text: long(shape) }, shape);
        let output = |text| BlockKind::Output { call: "1".into(), name: None, text, error: false, exit_code: None };
        check(output(long(shape)), shape);
        let call = |text| BlockKind::Call {
            id: "1".into(),
            name: "Write".into(),
            input: json!({"path": "a", "content": text}),
        };
        check(call(long(shape)), shape);
    }
}
