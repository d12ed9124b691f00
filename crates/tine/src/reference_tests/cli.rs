//! `docs/cli.md`: one section per command.

use std::fmt::Write as _;

use clap::Command;

use super::{GENERATED, description, epilogue, groups, root, signature, usage, visible};
use crate::cli::GLOBAL;

const INTRODUCTION: &str = "\
Every command prints this help with `--help`. Commands that read have `--json`.

Exit codes: 0 success, 1 an error that you can fix, 2 a usage error, 70 an internal error.";

#[test]
fn docs_cli_md_is_up_to_date() {
    let root = root();
    let mut page = format!("<!-- {GENERATED} -->\n\n# Command line\n\n{INTRODUCTION}\n\n| command | |\n|---|---|\n");
    for command in visible(&root) {
        let name = command.get_bin_name().unwrap_or_default();
        let _ = writeln!(page, "| [`{name}`](#{}) | {} |", name.replace(' ', "-"), about(command));
    }
    for paragraph in epilogue(&root) {
        write_paragraph(&mut page, &paragraph);
    }
    let (_, global) = groups(&root).pop().expect("global options");
    let _ = write!(page, "\n**{GLOBAL}**\n\n{}", table(&global));
    for command in visible(&root) {
        write_command(&mut page, command);
    }
    testkit::golden::assert_file("docs/cli.md", &page);
}

fn write_command(page: &mut String, command: &Command) {
    let _ = write!(page, "\n## {}\n\n{}\n", command.get_bin_name().unwrap_or_default(), about(command));
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`tine {alias}`")).collect();
    if !aliases.is_empty() {
        let _ = write!(page, "\nAlso: {}\n", aliases.join(", "));
    }
    let _ = write!(page, "\n```text\n{}\n```\n", usage(command));
    for (heading, arguments) in groups(command).iter().filter(|(heading, _)| *heading != GLOBAL) {
        let _ = write!(page, "\n**{heading}**\n\n{}", table(arguments));
    }
    for paragraph in epilogue(command) {
        write_paragraph(page, &paragraph);
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn table(arguments: &[&clap::Arg]) -> String {
    let row = |argument: &&clap::Arg| {
        format!("| `{}` | {} |\n", signature(argument), description(argument).replace('|', "\\|"))
    };
    format!("| | |\n|---|---|\n{}", arguments.iter().map(row).collect::<String>())
}

/// Indented lines become a code block; what stands before them is prose or the block's heading.
fn write_paragraph(page: &mut String, paragraph: &str) {
    let is_indented = |line: &&str| line.starts_with(' ');
    let prose: Vec<&str> = paragraph.lines().take_while(|line| !is_indented(line)).collect();
    let lines: Vec<&str> = paragraph.lines().skip(prose.len()).map(|line| line.trim_start_matches("  ")).collect();
    let prose = prose.join(" ");
    match prose.strip_suffix(':').filter(|heading| !heading.contains(' ')) {
        Some(heading) => drop(write!(page, "\n**{heading}**\n")),
        None => drop(write!(page, "\n{prose}\n")),
    }
    if !lines.is_empty() {
        let _ = write!(page, "\n```text\n{}\n```\n", lines.join("\n"));
    }
}
