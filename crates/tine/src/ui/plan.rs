//! How a plan for a fork looks to people and to programs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use engine::{Forked, Place, Plan};
use serde_json::{Value, json};
use transcript::text;

use super::Paint;
use crate::environment::Surface;

/// The plan for people.
pub(crate) fn show(out: &mut impl Write, surface: &Surface, plan: &Plan) -> io::Result<()> {
    let paint = Paint(surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("fork", &cut(plan))?;
    let id = if plan.id_is_chosen { format!(" ({})", plan.id) } else { String::new() };
    fact("as", &format!("{}{id}", paint.name(plan.name.as_str())))?;
    if plan.agent != plan.source.agent {
        fact("agent", plan.agent.product_name())?;
    }
    fact("method", &format!("{}: {}", plan.method.as_str(), plan.why))?;
    fact("works in", &works_in(surface, plan))?;
    if let Some(tokens) = plan.tokens {
        let window = plan.context_window.map(|window| format!(" of {window}")).unwrap_or_default();
        fact("tokens", &format!("about {tokens}{window}"))?;
    }
    if plan.id_is_chosen {
        fact("file", &super::path(surface, &plan.target))?;
        fact("resume", &call(&variables_of(plan), &plan.command))?;
    }
    for loss in &plan.losses {
        fact("lost", loss)?;
    }
    for warning in &plan.warnings {
        fact("warning", &paint.note(warning))?;
    }
    Ok(())
}

/// The plan in short, as it is shown before it is changed or carried out.
pub(crate) fn brief(out: &mut impl Write, surface: &Surface, plan: &Plan) -> io::Result<()> {
    let paint = Paint(surface.color);
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("fork", &cut(plan))?;
    fact("as", &paint.name(plan.name.as_str()))?;
    if plan.agent != plan.source.agent {
        fact("agent", plan.agent.product_name())?;
    }
    fact("method", &format!("{}: {}", plan.method.as_str(), plan.why))?;
    fact("works in", &works_in(surface, plan))?;
    fact(
        "runs",
        &match plan.place {
            Place::Here => "in this terminal".to_owned(),
            Place::In(_) => format!("in {}", plan.place),
            Place::Headless => "without a terminal".to_owned(),
            Place::None => "when it is resumed".to_owned(),
        },
    )?;
    for loss in &plan.losses {
        fact("lost", loss)?;
    }
    for warning in &plan.warnings {
        fact("warning", &paint.note(warning))?;
    }
    Ok(())
}

/// What is forked, and how much of it.
fn cut(plan: &Plan) -> String {
    let part = if plan.whole { "all".to_owned() } else { format!("{} of {}", plan.turns, plan.source.turns) };
    format!("{}, {part} turns", plan.source.label())
}

fn works_in(surface: &Surface, plan: &Plan) -> String {
    let branch = plan.workspace.branch.as_deref().map(|branch| format!(" on {}", text::one_line(branch)));
    let kind = match plan.workspace.kind {
        "worktree" => "a new worktree, ",
        "copy" => "a copy of the directory, ",
        _ => "",
    };
    let path = super::path(surface, &plan.workspace.path);
    format!("{kind}{path}{}", branch.unwrap_or_default())
}

/// The contract for programs; the same with and without a fork on disk. `command` is the one that resumes the fork.
pub(crate) fn as_json(plan: &Plan, forked: Option<&Forked>, command: Option<&[String]>) -> Value {
    let id = plan.id_is_chosen.then_some(&plan.id);
    let path = plan.id_is_chosen.then(|| plan.target.to_string_lossy());
    let planned = json!({
        "agent": plan.agent, "id": id, "name": plan.name, "title": plan.name,
        "cwd": plan.workspace.path.to_string_lossy(), "branch": plan.workspace.branch,
        "path": path, "created": null, "updated": null, "turns": plan.turns,
        "state": "stopped",
        "parent": {"agent": plan.source.agent, "id": plan.source.id, "name": plan.source.name, "turn": plan.turns},
    });
    let session = forked.and_then(|forked| serde_json::to_value(&forked.session).ok());
    let planned_command = plan.id_is_chosen.then_some(plan.command.as_slice());
    let mut parent = serde_json::to_value(&plan.source).unwrap_or_default();
    parent["turn"] = json!(plan.turns);
    json!({
        "session": session.unwrap_or(planned),
        "parent": parent,
        "method": plan.method,
        "why": plan.why,
        "workspace": {
            "kind": plan.workspace.kind, "path": plan.workspace.path.to_string_lossy(), "branch": plan.workspace.branch,
        },
        "place": { "kind": plan.place.as_str() },
        "profile": plan.profile.shown(),
        "prompt": plan.prompt,
        "command": command.or(planned_command),
        "environment": shown(&variables_of(plan)),
        "tokens": plan.tokens,
        "context_window": plan.context_window,
        "losses": plan.losses,
        "warnings": plan.warnings,
        "operation": forked.map(|forked| forked.operation),
    })
}

/// The variables with which a fork is opened.
pub(crate) fn variables_of(plan: &Plan) -> BTreeMap<String, String> {
    plan.profile.variables(Some(&plan.name))
}

/// Variables for programs. Those that hold a password are left out; an agent that tine starts has them.
pub(crate) fn shown(variables: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let has_none = |(name, value): &(&String, &String)| engine::masked(name, value).is_none();
    variables.iter().filter(has_none).map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// A command with its variables and in its directory, as it is typed into a shell.
pub(crate) fn in_directory(directory: &Path, variables: &BTreeMap<String, String>, command: &[String]) -> String {
    let shown = shown(variables);
    let hidden: Vec<&str> = variables.keys().map(String::as_str).filter(|name| !shown.contains_key(name)).collect();
    if !hidden.is_empty() {
        super::warn(&format!("a password is not printed; set it where you run this: {}", hidden.join(", ")));
    }
    format!("cd {} && {}", quoted(&directory.to_string_lossy()), call(variables, command))
}

fn call(variables: &BTreeMap<String, String>, command: &[String]) -> String {
    let shown = shown(variables);
    // A shell takes an assignment only of a name that it knows for one; `env` takes any.
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let env = if shown.keys().all(is_plain) { "" } else { "env " };
    let assigned: String = shown.iter().map(|(name, value)| format!("{}={} ", quoted(name), quoted(value))).collect();
    format!("{env}{assigned}{}", line(command))
}

/// A command as it is typed into a POSIX shell.
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
