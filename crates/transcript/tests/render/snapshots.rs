//! One rich conversation as each renderer writes it, in each of its modes.

use insta::assert_snapshot;
use transcript::render::{Tools, to_json_pretty};

use crate::sample::conversation;

#[test]
fn json() {
    let json: serde_json::Value = serde_json::from_str(&conversation().json()).unwrap();
    assert_snapshot!("json", to_json_pretty(&json));
}

#[test]
fn markdown_brief() {
    assert_snapshot!("markdown-brief", conversation().markdown(Tools::Brief));
}

#[test]
fn markdown_full() {
    assert_snapshot!("markdown-full", conversation().markdown(Tools::Full));
}

#[test]
fn html_brief() {
    assert_snapshot!("html-brief", without_style(&conversation().html(Tools::Brief)));
}

#[test]
fn html_full() {
    assert_snapshot!("html-full", without_style(&conversation().html(Tools::Full)));
}

#[test]
fn terminal_brief() {
    assert_snapshot!("terminal-brief", conversation().terminal(Tools::Brief, false, 80));
}

#[test]
fn terminal_full() {
    assert_snapshot!("terminal-full", conversation().terminal(Tools::Full, false, 80));
}

#[test]
fn terminal_full_narrow() {
    assert_snapshot!("terminal-full-narrow", conversation().terminal(Tools::Full, false, 36));
}

#[test]
fn terminal_brief_color() {
    let painted = conversation().terminal(Tools::Brief, true, 120);
    assert_snapshot!("terminal-brief-color", painted.replace('\u{1b}', "␛"));
}

/// The page but for its style sheet, which is looked at and not compared.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style>…</style>{after}")
}
