//! Puts clap's errors about the command line into tine's words: one message that names the argument, and one hint.

use std::error::Error as _;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use transcript::NameError;

use crate::failure::Failure;

/// The error with its hint.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    if let Some(source) = error.source().and_then(|source| source.downcast_ref::<NameError>()) {
        return engine::Error::from(source.clone()).into();
    }
    let rendered = error.render().to_string();
    let command = command_of(&rendered);
    let message = message(error).unwrap_or_else(|| first_paragraph(&rendered));
    let hint = hint(error, &command).unwrap_or_else(|| format!("see `{command} --help`"));
    Failure::Other { kind: "usage", message, hint: Some(hint) }
}

fn message(error: &clap::Error) -> Option<String> {
    let argument = strings(error, ContextKind::InvalidArg);
    let first = argument.first().map(|argument| name_of(argument));
    let value = strings(error, ContextKind::InvalidValue).into_iter().next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let what = if first.as_ref()?.starts_with('-') { "unknown option" } else { "unexpected argument" };
            Some(format!("{what} `{}`", first?))
        }
        ErrorKind::InvalidSubcommand => {
            let command = strings(error, ContextKind::InvalidSubcommand).into_iter().next()?;
            Some(format!("unknown command `{command}`"))
        }
        ErrorKind::InvalidValue if value.is_empty() => Some(format!("`{}` needs a value", first?)),
        ErrorKind::InvalidValue => Some(format!("invalid value `{value}` for `{}`", first?)),
        ErrorKind::ValueValidation => {
            let why = why(error).filter(|why| !is_advice(why)).map(|why| format!(": {why}")).unwrap_or_default();
            Some(format!("invalid value `{value}` for `{}`{why}", first?))
        }
        ErrorKind::MissingRequiredArgument => {
            let names: Vec<String> = argument.iter().map(|argument| format!("`{}`", name_of(argument))).collect();
            (!names.is_empty()).then(|| format!("missing {}", names.join(" and ")))
        }
        ErrorKind::ArgumentConflict => {
            let others = strings(error, ContextKind::PriorArg);
            match others.iter().map(|other| name_of(other)).collect::<Vec<_>>().as_slice() {
                [] => None,
                [other] if Some(other) == first.as_ref() => Some(format!("`{other}` can be used only once")),
                others => Some(format!("`{}` cannot be combined with `{}`", first?, others.join("` or `"))),
            }
        }
        _ => None,
    }
}

fn hint(error: &clap::Error, command: &str) -> Option<String> {
    let searches = ["tine search", "tine smart-fork"].contains(&command);
    if error.kind() == ErrorKind::UnknownArgument && searches {
        return Some(format!(
            "quote words that begin with `-`, or put the whole query after `--`: `{command} -- cache -stampede`"
        ));
    }
    if let Some(why) = why(error).filter(|why| is_advice(why)) {
        return Some(why);
    }
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let similar: Vec<String> =
        similar.into_iter().flat_map(|kind| strings(error, kind)).map(|word| name_of(&word)).collect();
    if !similar.is_empty() {
        return Some(format!("did you mean `{}`? See `{command} --help`", similar.join("` or `")));
    }
    let allowed = strings(error, ContextKind::ValidValue);
    (!allowed.is_empty()).then(|| format!("use {}", any_of(&allowed)))
}

/// Why a value is invalid, or what to use instead.
fn why(error: &clap::Error) -> Option<String> {
    let source = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    match source.downcast_ref::<ParseIntError>() {
        Some(_) => Some("use a whole number".to_owned()),
        None => Some(source.to_string()),
    }
}

fn is_advice(why: &str) -> bool {
    why.starts_with("use ")
}

/// The words of one kind of an error's context.
fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    }
}

/// An option without its value, a positional argument without its brackets.
fn name_of(argument: &str) -> String {
    if argument.starts_with('-') {
        return argument.split([' ', '=', '[']).next().unwrap_or(argument).to_owned();
    }
    let plain = argument.strip_prefix(['<', '[']).unwrap_or(argument);
    let plain = plain.strip_suffix("...").unwrap_or(plain);
    plain.strip_suffix(['>', ']']).filter(|_| plain.len() < argument.len()).unwrap_or(plain).to_owned()
}

/// `a`, `b` or `c`.
fn any_of(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => quoted.concat(),
    }
}

/// The command whose usage clap prints, as in `tine list`.
fn command_of(rendered: &str) -> String {
    let usage = rendered.split_once("Usage: ").map_or("", |(_, usage)| usage);
    let is_command = |word: &&str| word.chars().all(|character| character.is_ascii_lowercase() || character == '-');
    let words: Vec<&str> =
        usage.split_whitespace().take_while(|word| !word.starts_with('-')).take_while(is_command).collect();
    if words.is_empty() { "tine".to_owned() } else { words.join(" ") }
}

/// clap's message, without its usage.
fn first_paragraph(rendered: &str) -> String {
    let message = rendered.strip_prefix("error: ").unwrap_or(rendered).trim();
    let lines: Vec<&str> = message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}
