//! How much the model of a fork can take, and how that is known.

use agents::Adapter;
use serde::Serialize;

/// How a context window is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WindowSource {
    /// The agent wrote it into the transcript, or into an answer that tine waited for.
    Reported,
    /// The session was longer than the model's window is known to be, so it's the next larger one.
    Observed,
    /// A table of the agent's models.
    Model,
}

/// A context window in tokens, and how it is known. Nothing where a session was longer than any window that is known.
pub(super) fn context_window(
    adapter: &dyn Adapter,
    model: Option<&str>,
    version: Option<&str>,
    reported: Option<u64>,
    observed: u64,
) -> Option<(u64, WindowSource)> {
    if let Some(reported) = reported {
        return Some((reported, WindowSource::Reported));
    }
    let usual = adapter.context_window(model, version);
    if observed <= usual {
        return Some((usual, WindowSource::Model));
    }
    let larger = adapter.context_windows().iter().copied().find(|size| *size >= observed);
    larger.map(|window| (window, WindowSource::Observed))
}

/// The model that a fork runs with: the chosen one, or else the one that the source ran with. That also has the full name of
/// one that was chosen by a part of it, such as `opus`.
pub(super) fn model_of_fork<'a>(chosen: Option<&'a str>, used: Option<&'a str>) -> Option<&'a str> {
    match (chosen, used) {
        (Some(chosen), Some(used)) if used.contains(chosen) => Some(used),
        (chosen, used) => chosen.or(used),
    }
}

/// The model that a command line chooses.
pub(super) fn chosen_model(options: &[String]) -> Option<&str> {
    let mut chosen = None;
    let mut words = options.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        match word {
            "--model" | "-m" => chosen = words.peek().copied().or(chosen),
            _ => chosen = word.strip_prefix("--model=").or(chosen),
        }
    }
    chosen
}

/// A command line with another model.
pub(super) fn with_model(options: Vec<String>, model: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = options.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--model" | "-m" => drop(words.next()),
            _ if word.starts_with("--model=") => {}
            _ => kept.push(word),
        }
    }
    kept.extend(["--model".to_owned(), model.to_owned()]);
    kept
}

#[cfg(test)]
mod tests {
    use super::{chosen_model, with_model};

    #[test]
    fn a_chosen_model_replaces_the_inherited_one() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let check = |before: &str, after: &str| {
            let options = with_model(words(before), "opus");
            assert_eq!(
                (options.as_slice(), chosen_model(&options)),
                (words(after).as_slice(), Some("opus")),
                "{before}"
            );
        };
        check("", "--model opus");
        check("--model sonnet --verbose", "--verbose --model opus");
        check("-m x --model=y --search", "--search --model opus");
    }
}
