//! How a plan for a fork looks to people.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use engine::{Place, Plan, Profile, WindowSource, WorkspaceKind};
use transcript::text;
use transcript::translate::Outcome;

use super::Paint;
use crate::environment::Streams;

/// The plan for people.
pub(crate) fn show(out: &mut impl Write, surface: &Streams, plan: &Plan) -> io::Result<()> {
    let paint = Paint(surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("fork", &cut(plan))?;
    fact("as", &shown_name(paint, plan))?;
    fact("agent", &agent(plan))?;
    fact("method", &format!("{}: {}", plan.method.as_str(), plan.why))?;
    fact("works in", &works_in(surface, plan))?;
    if let Some(code) = &plan.code {
        fact("code", &text::one_line(&code.summary()))?;
    }
    if let Some(tokens) = plan.tokens {
        fact("tokens", &format!("about {tokens}{}", window(plan)))?;
    }
    if plan.keeps_seed {
        fact("start", &line(&plan.command))?;
    } else if plan.id_is_chosen {
        fact("file", &super::path(surface, &plan.target))?;
        fact("resume", &call(&plan.variables(), &plan.profile.shown_words(&plan.command)))?;
    }
    for request in &plan.requests {
        fact("request", request)?;
    }
    for request in &plan.later_requests {
        fact("later", request)?;
    }
    for (outcome, line) in kept(plan) {
        fact(outcome.as_str(), &line)?;
    }
    for loss in &plan.losses {
        fact("lost", loss)?;
    }
    for warning in &plan.warnings {
        fact("warning", &paint.note(warning))?;
    }
    Ok(())
}

/// The plan of several forks for people: what they share once, then what each has for itself.
pub(crate) fn show_all(out: &mut impl Write, surface: &Streams, plans: &[Plan]) -> io::Result<()> {
    let [first, others @ ..] = plans else { return Ok(()) };
    show(out, surface, first)?;
    let paint = Paint(surface.color);
    for plan in others {
        let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
        fact("and as", &shown_name(paint, plan))?;
        fact("works in", &works_in(surface, plan))?;
        if plan.keeps_seed {
            fact("start", &line(&plan.command))?;
        } else if plan.id_is_chosen {
            fact("resume", &call(&plan.variables(), &plan.profile.shown_words(&plan.command)))?;
        }
    }
    Ok(())
}

/// A fork's name, with its id where tine chooses that.
fn shown_name(paint: Paint, plan: &Plan) -> String {
    let id = if plan.id_is_chosen { format!(" ({})", plan.id) } else { String::new() };
    format!("{}{id}", paint.name(plan.name.as_str()))
}

/// The plan in short, shown before it is changed or carried out.
pub(crate) fn brief(out: &mut impl Write, surface: &Streams, plan: &Plan) -> io::Result<()> {
    let paint = Paint(surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("fork", &cut(plan))?;
    fact("as", &paint.name(plan.name.as_str()))?;
    fact("agent", &agent(plan))?;
    fact("method", &format!("{}: {}", plan.method.as_str(), plan.why))?;
    fact("works in", &works_in(surface, plan))?;
    if let Some(code) = &plan.code {
        fact("code", &text::one_line(&code.summary()))?;
    }
    fact(
        "runs",
        &match plan.place {
            Place::Here => "in this terminal".to_owned(),
            Place::In(_) => format!("in {}", plan.place),
            Place::Headless => "headless".to_owned(),
            Place::None => "when you resume it".to_owned(),
        },
    )?;
    for request in &plan.requests {
        fact("request", request)?;
    }
    for request in &plan.later_requests {
        fact("later", request)?;
    }
    for (outcome, line) in kept(plan) {
        fact(outcome.as_str(), &line)?;
    }
    for loss in &plan.losses {
        fact("lost", loss)?;
    }
    for warning in &plan.warnings {
        fact("warning", &paint.note(warning))?;
    }
    Ok(())
}

/// What a translation carries and converts; what it loses is among the losses.
fn kept(plan: &Plan) -> impl Iterator<Item = (Outcome, String)> {
    let lines = plan.translation.iter().flat_map(|translation| translation.receipt.lines());
    lines.filter(|(outcome, _)| matches!(outcome, Outcome::Carried | Outcome::Converted))
}

/// The context window of a fork's model, and how it is known.
fn window(plan: &Plan) -> String {
    let Some((window, source)) = plan.context_window.zip(plan.window_source) else { return String::new() };
    let agent = plan.agent.product_name();
    let how = match source {
        WindowSource::Reported => format!("reported by {agent}"),
        WindowSource::Observed => "the session already exceeded the usual window".to_owned(),
        WindowSource::Model => format!("usual for {agent}'s model"),
    };
    format!(" of {window} ({how})")
}

/// The agent of the fork, and its model.
fn agent(plan: &Plan) -> String {
    let model = plan.model.as_deref().map(|model| format!(", {}", text::one_line(model)));
    format!("{}{}", plan.agent.product_name(), model.unwrap_or_default())
}

/// What is forked, and how much of it.
fn cut(plan: &Plan) -> String {
    let source = match &plan.source.name {
        Some(name) => format!("{name} ({})", plan.source.id),
        None => plan.source.id.to_string(),
    };
    match plan.whole {
        true => format!("{source}, all {}", super::count(u64::from(plan.turns), "turn")),
        false => format!("{source}, {} of {} turns", plan.turns, plan.source.turns),
    }
}

fn works_in(surface: &Streams, plan: &Plan) -> String {
    let branch = plan.workspace.branch.as_deref().map(|branch| format!(" on {}", text::one_line(branch)));
    let kind = match plan.workspace.kind {
        WorkspaceKind::Worktree => "a new worktree, ",
        WorkspaceKind::Copy => "a copy of the directory, ",
        WorkspaceKind::Same | WorkspaceKind::Existing => "",
    };
    let path = super::path(surface, &plan.workspace.path);
    format!("{kind}{path}{}", branch.unwrap_or_default())
}

/// The command that resumes a session, for people: without the secrets in its options.
pub(crate) fn resume_words(profile: &Profile, command: &[String], label: &str) -> Vec<String> {
    let shown = profile.shown_words(command);
    if shown != command {
        super::warn(&format!("an option with a secret is not printed; `tine resume {label}` still passes it"));
    }
    shown
}

/// A command with its variables and directory, as typed into a shell.
pub(crate) fn in_directory(directory: &Path, variables: &BTreeMap<String, String>, command: &[String]) -> String {
    let shown = engine::shown_variables(variables);
    let hidden: Vec<&str> = variables.keys().map(String::as_str).filter(|name| !shown.contains_key(*name)).collect();
    if !hidden.is_empty() {
        super::warn(&format!("passwords are not printed; set these variables yourself: {}", hidden.join(", ")));
    }
    format!("cd {} && {}", quoted(&directory.to_string_lossy()), call(variables, command))
}

fn call(variables: &BTreeMap<String, String>, command: &[String]) -> String {
    let shown = engine::shown_variables(variables);
    // A shell takes an assignment only of a name that it knows for one; `env` takes any.
    let is_plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let env = if shown.keys().all(is_plain) { "" } else { "env " };
    let assigned: String = shown.iter().map(|(name, value)| format!("{}={} ", quoted(name), quoted(value))).collect();
    format!("{env}{assigned}{}", line(command))
}

/// A command as typed into a POSIX shell.
pub(crate) fn line(command: &[String]) -> String {
    command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word for a shell. What could control a terminal is written in escapes, which bash, zsh and others understand.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte));
    if plain {
        return word.to_owned();
    }
    let is_harmful = |c: char| c != '\n' && text::clean(&c.to_string()) != c.to_string();
    if !word.chars().any(is_harmful) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut escaped = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => escaped.extend(['\\', c]),
            c if is_harmful(c) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = std::fmt::Write::write_fmt(&mut escaped, format_args!("\\x{byte:02x}"));
            }),
            c => escaped.push(c),
        }
    }
    escaped + "'"
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_safe_for_shell_and_terminal() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("/a/b-c.d", "/a/b-c.d");
        check("", "''");
        check("a b $x", "'a b $x'");
        check("it's", r"'it'\''s'");
        check("a\nb", "'a\nb'");
        check("red\u{1b}[31m's", r"$'red\x1b[31m\'s'");
        check("\u{202e}x", r"$'\xe2\x80\xaex'");
    }
}
