//! `docs/man`: a manual page for tine and one for each command.

use clap::Command;

use super::{GENERATED, description, epilogue, groups, root, signature, usage, visible};

#[test]
fn docs_man_is_up_to_date() {
    let root = root();
    let mut names = Vec::new();
    for command in std::iter::once(&root).chain(visible(&root)) {
        let name = command.get_bin_name().unwrap_or("tine").replace(' ', "-");
        testkit::golden::assert_file(&format!("docs/man/{name}.1"), &page(command, &name));
        names.push(format!("{name}.1"));
    }
    testkit::golden::assert_folder("docs/man", &names);
}

fn page(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = format!(".\\\" {GENERATED}\n.TH {name} 1 \"\" \"tine {}\"\n", env!("CARGO_PKG_VERSION"));
    page += &format!(".SH NAME\n{} \\- {}", name.replace('-', "\\-"), text(&about));
    page += &format!(".SH SYNOPSIS\n.B {}", text(&usage(command)));
    let (blocks, prose): (Vec<String>, Vec<String>) =
        epilogue(command).into_iter().partition(|paragraph| heading(paragraph).is_some());
    if !prose.is_empty() {
        let paragraphs: Vec<String> = prose.iter().map(|paragraph| text(paragraph)).collect();
        page += &format!(".SH DESCRIPTION\n{}", paragraphs.join(".PP\n"));
    }
    if name == "tine" {
        page += ".SH COMMANDS\n";
        for command in visible(command) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            page += &format!(".TP\n.BR tine\\-{} (1)\n{}", text(command.get_name()).trim_end(), text(&about));
        }
    }
    for (heading, arguments) in groups(command) {
        page += &format!(".SH {}\n", heading.to_uppercase());
        for argument in arguments {
            page += &format!(".TP\n.B {}{}", text(&signature(argument)), text(&description(argument)));
        }
    }
    for block in &blocks {
        let heading = heading(block).unwrap_or_default();
        page += &format!(".SH {}\n.nf\n{}.fi\n", heading.to_uppercase(), text(&block[heading.len() + 2..]));
    }
    if name != "tine" {
        page += ".SH SEE ALSO\n.BR tine (1)\n";
    }
    page
}

/// The heading of a block such as `Examples:`.
fn heading(paragraph: &str) -> Option<&str> {
    let first = paragraph.lines().next()?.strip_suffix(':')?;
    (!first.contains(' ')).then_some(first)
}

/// Text that roff prints as it is, line by line.
fn text(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
        let guard = if line.starts_with('.') { "\\&" } else { "" };
        format!("{guard}{line}\n")
    };
    text.lines().map(line).collect()
}
