//! Colours for code. The grammars take a moment to load, so they are loaded when the first code is shown, on a thread of
//! their own; until then, code has one colour.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};
use transcript::render::CodePart;

use diagnostics::OrLog;

use super::event::Event;

/// Beyond these, code has one colour: colouring it would take longer than reading it.
const MOST_BYTES: usize = 512 << 10;
const MOST_LINES: usize = 10_000;
const LONGEST_LINE: usize = 4 << 10;

static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
static IS_WANTED: AtomicBool = AtomicBool::new(false);
static IS_LOADING: AtomicBool = AtomicBool::new(false);

/// The parts of some code. Without grammars, it asks for them.
pub(crate) fn highlight(language: &str, code: &str) -> Option<Vec<Vec<(CodePart, String)>>> {
    let is_small = code.len() <= MOST_BYTES
        && code.lines().count() <= MOST_LINES
        && code.lines().all(|line| line.len() <= LONGEST_LINE);
    let is_named = language.chars().any(char::is_alphanumeric);
    if !(is_small && is_named) {
        return None;
    }
    let Some(grammars) = GRAMMARS.get() else {
        IS_WANTED.store(true, Ordering::Relaxed);
        return None;
    };
    parts(grammars, grammar(grammars, language)?, code)
}

/// Loads the grammars once, if code was shown without them, and reports when they can be used.
pub(crate) fn load_if_wanted(events: &Sender<Event>) {
    if !IS_WANTED.load(Ordering::Relaxed) || IS_LOADING.swap(true, Ordering::Relaxed) {
        return;
    }
    let events = events.clone();
    thread::spawn(move || {
        GRAMMARS.get_or_init(two_face::syntax::extra_newlines);
        events.send(Event::Highlighted).or_log("report the grammars");
    });
}

/// The grammar of a fence such as `rust,ignore` or `{.python}`.
fn grammar<'a>(grammars: &'a SyntaxSet, language: &str) -> Option<&'a SyntaxReference> {
    let is_part = |c: char| c.is_alphanumeric() || "+#-_".contains(c);
    let name = language.split(|c| !is_part(c)).find(|name| !name.is_empty())?.to_lowercase();
    grammars.find_syntax_by_token(&name)
}

fn parts(grammars: &SyntaxSet, grammar: &SyntaxReference, code: &str) -> Option<Vec<Vec<(CodePart, String)>>> {
    let kinds = Kinds::new()?;
    let mut state = ParseState::new(grammar);
    let mut stack = ScopeStack::new();
    let mut lines = Vec::new();
    for line in code.split('\n') {
        // The grammars expect lines with their ends.
        let ended = format!("{line}\n");
        let changes = state.parse_line(&ended, grammars).ok()?;
        let mut parts: Vec<(CodePart, String)> = Vec::new();
        let mut at = 0;
        for (place, change) in changes.iter().map(|(place, change)| (*place, Some(change))).chain([(line.len(), None)])
        {
            let place = place.min(line.len());
            if place > at {
                let (part, text) = (kinds.part(&stack), &line[at..place]);
                match parts.last_mut() {
                    Some((last, before)) if *last == part => before.push_str(text),
                    _ => parts.push((part, text.to_owned())),
                }
                at = place;
            }
            if let Some(change) = change {
                stack.apply(change).ok()?;
            }
        }
        lines.push(parts);
    }
    Some(lines)
}

/// The scopes that have a colour, the most specific ones first.
struct Kinds(Vec<(Scope, CodePart)>);

impl Kinds {
    fn new() -> Option<Self> {
        let kinds = [
            ("comment", CodePart::Comment),
            ("string", CodePart::Text),
            ("constant", CodePart::Value),
            ("keyword.operator", CodePart::Plain),
            ("keyword", CodePart::Keyword),
            ("storage", CodePart::Keyword),
            ("support.type.property-name", CodePart::Keyword),
            ("entity.name.tag", CodePart::Keyword),
            ("markup.inserted", CodePart::Text),
            ("markup.deleted", CodePart::Keyword),
        ];
        kinds.into_iter().map(|(name, part)| Some((Scope::new(name).ok()?, part))).collect::<Option<_>>().map(Kinds)
    }

    fn part(&self, stack: &ScopeStack) -> CodePart {
        let of = |scope: &Scope| self.0.iter().find(|(kind, _)| kind.is_prefix_of(*scope)).map(|(_, part)| *part);
        stack.as_slice().iter().rev().find_map(of).unwrap_or(CodePart::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_parts_and_keeps_its_text() {
        let grammars = two_face::syntax::extra_newlines();
        let check = |language: &str, code: &str, expected: &[(CodePart, &str)]| {
            let lines = parts(&grammars, grammar(&grammars, language).expect(language), code).expect("parts");
            let text: Vec<String> =
                lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect();
            assert_eq!(text.join("\n"), code);
            for (part, word) in expected {
                let is_it = |(own, text): &(CodePart, String)| own == part && text.contains(word);
                assert!(lines.iter().flatten().any(is_it), "{word} in {lines:?}");
            }
        };
        use CodePart::{Comment, Keyword, Text, Value};
        let rust = "// why\nfn main() {\n    let a = \"é\"; /* two\nlines */ 42\n}";
        check(
            "rust,ignore",
            rust,
            &[(Comment, "why"), (Keyword, "fn"), (Text, "é"), (Comment, "lines"), (Value, "42")],
        );
        check("TypeScript", "const a: string = 'b'; // c", &[(Keyword, "const"), (Text, "b"), (Comment, "c")]);
        check("{.python}", "def f():\n    return None", &[(Keyword, "return"), (Value, "None")]);
        check("sh", "# hello\nls \"$HOME\"", &[(Comment, "hello"), (Text, "\"")]);
        check("toml", "a = 1", &[(Value, "1")]);
        assert!(grammar(&grammars, "no such language").is_none() && grammar(&grammars, "{}").is_none());
    }

    #[test]
    fn enormous_code_is_left_alone() {
        assert!(highlight("rust", &"x".repeat(LONGEST_LINE + 1)).is_none());
        assert!(highlight("rust", &"x\n".repeat(MOST_LINES + 1)).is_none());
        assert!(highlight("", "fn a() {}").is_none());
    }
}
