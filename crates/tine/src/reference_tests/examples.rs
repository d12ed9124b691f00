//! The commands that help pages and documents show: all of them can be typed.

use clap::Parser;

use super::{epilogue, root, visible};
use crate::cli::Cli;

#[test]
fn every_example_in_the_help_can_be_typed() {
    let root = root();
    for command in std::iter::once(&root).chain(visible(&root)) {
        let examples = epilogue(command).pop().unwrap_or_default();
        // The explanation stands apart from the command.
        let lines = examples.lines().filter_map(|line| line.trim().split("  ").next());
        lines.filter(|line| line.contains("tine ")).for_each(check);
    }
}

#[test]
fn every_command_in_the_documents_can_be_typed() {
    for page in [include_str!("../../../../README.md"), include_str!("../../../../CONTRIBUTING.md")] {
        let mut is_shell = false;
        for line in page.lines() {
            match line.strip_prefix("```") {
                Some(language) => is_shell = matches!(language, "sh" | "console"),
                None if is_shell && line.trim_start_matches("$ ").starts_with("tine ") => {
                    check(line.trim_start_matches("$ "));
                }
                None => {}
            }
        }
    }
}

/// The words of a line up to a comment, a pipe or a redirection, parsed as a command line of tine.
fn check(line: &str) {
    let line = &line[line.find("tine ").unwrap_or_default()..];
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '#' | '|' | '>') => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("a word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    if let Err(error) = Cli::try_parse_from(&words) {
        panic!("`{line}` can't be typed: {error}");
    }
}
