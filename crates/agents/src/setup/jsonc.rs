//! Edits a JSON text in place. Everything else stays as it was, byte for byte, comments and odd formatting included.
//! `remove` is the inverse of `insert`.

use std::ops::Range;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::Value as Json;

use super::Problem;

/// A step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// A member of an object.
    Name(&'a str),
    /// An element of an array.
    Index(usize),
}

/// The value in a text; `None` if it is empty. Comments and trailing commas are allowed here, because users write them;
/// whether the agent accepts them is another question: [`first_json_extension`].
pub(crate) fn parse(text: &str) -> Result<Option<Value<'_>>, Problem> {
    parse_with(text, true)
}

/// The first place that is not plain JSON: a comment, or a comma before a closing bracket.
pub(crate) fn first_json_extension(text: &str) -> Option<usize> {
    parse_with(text, false).err().map(|problem| problem.line)
}

fn parse_with(text: &str, liberties: bool) -> Result<Option<Value<'_>>, Problem> {
    let options = ParseOptions {
        allow_comments: liberties,
        allow_trailing_commas: liberties,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => {
            let message = error.kind().to_string();
            Err(Problem { line: error.line_display(), message: message.trim_end_matches('.').to_owned() })
        }
    }
}

/// The line of a position, from 1.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

/// Where a value begins.
pub(crate) fn start_of(value: &Value<'_>) -> usize {
    range(value).start
}

/// The value of a member. Of two with the same name the last one counts, as it does to the agents.
pub(crate) fn member<'v, 't>(value: &'v Value<'t>, name: &str) -> Option<&'v Value<'t>> {
    let object = value.as_object()?;
    object.properties.iter().rev().find(|member| spelled(&member.name) == name).map(|member| &member.value)
}

/// The names and values of an object's members.
pub(crate) fn members<'v, 't>(value: &'v Value<'t>) -> impl Iterator<Item = (&'v str, &'v Value<'t>)> {
    let members = value.as_object().into_iter().flat_map(|object| &object.properties);
    members.map(|member| (spelled(&member.name), &member.value))
}

/// The elements of an array.
pub(crate) fn elements<'v, 't>(value: &'v Value<'t>) -> &'v [Value<'t>] {
    value.as_array().map_or(&[], |array| &array.elements)
}

/// Whether it is an object or an array without anything in it.
pub(crate) fn is_empty(value: &Value<'_>) -> bool {
    Container::of(value).is_some_and(|container| container.items.is_empty())
}

/// Inserts a value at the end of the object or array at `path`; into an object, under a name. `None` if it does not
/// exist.
pub(crate) fn insert(text: &str, path: &[Key<'_>], name: Option<&str>, value: &Json) -> Option<String> {
    let root = parse(text).ok()??;
    let container = Container::of(at(&root, path)?)?;
    let style = Style::of(text, &root);
    let first = container.items.first();
    let mut on_lines = first.map_or(!style.is_one_line, |first| text[container.open + 1..first.start].contains('\n'));
    let outer = indent_at(text, container.open);
    let indent = match first {
        Some(first) if on_lines => indent_at(text, first.start).to_owned(),
        _ => format!("{outer}{}", style.unit),
    };
    let (mut comma, mut trailing, mut place) = (None, false, container.open + 1);
    if let Some(last) = container.items.last() {
        place = last.end;
        match gap(text, last.end..container.close).find(|piece| matches!(piece, Separator::Comma(_))) {
            Some(Separator::Comma(position)) => (trailing, place) = (true, position + 1),
            _ => comma = Some(last.end),
        }
    }
    // A comment after the last item belongs to it if it is on the same line. In an empty container, new entries follow
    // the comments.
    for piece in gap(text, place..container.close) {
        let Separator::Comment { range, ends_line } = piece else { continue };
        if first.is_some() && text[place..range.end].contains('\n') {
            break;
        }
        place = range.end;
        on_lines |= ends_line;
    }
    let mut new = String::new();
    match on_lines {
        true => new.extend([style.newline, &indent]),
        false if style.is_spaced && first.is_some() => new.push(' '),
        false => {}
    }
    if let Some(name) = name {
        new.extend([&*Json::from(name).to_string(), if on_lines || style.is_spaced { ": " } else { ":" }]);
    }
    new.push_str(&if on_lines { pretty(value, &style, &indent) } else { value.to_string() });
    if trailing {
        new.push(',');
    }
    let inside = &text[container.open + 1..container.close];
    if on_lines && first.is_none() && inside.trim().is_empty() && !inside.contains('\n') {
        new.extend([style.newline, outer]);
    }
    let mut edited = String::with_capacity(text.len() + new.len() + 1);
    match comma {
        Some(comma) => edited.extend([&text[..comma], ",", &text[comma..place]]),
        None => edited.push_str(&text[..place]),
    }
    edited.extend([new.as_str(), &text[place..]]);
    Some(edited)
}

/// Removes a member or an element, with its comma. `None` if it does not exist.
pub(crate) fn remove(text: &str, path: &[Key<'_>]) -> Option<String> {
    let root = parse(text).ok()??;
    let (last, above) = path.split_last()?;
    let parent = at(&root, above)?;
    let container = Container::of(parent)?;
    let index = match last {
        Key::Index(index) => *index,
        Key::Name(name) => parent.as_object()?.properties.iter().rposition(|member| spelled(&member.name) == *name)?,
    };
    let item = container.items.get(index)?.clone();
    let next = container.items.get(index + 1).map(|next| next.start);
    let before = if index == 0 { container.open + 1 } else { container.items[index - 1].end };
    let comma_in = |range: Range<usize>| {
        gap(text, range).find_map(|piece| if let Separator::Comma(position) = piece { Some(position) } else { None })
    };
    let comma = comma_in(item.end..next.unwrap_or(container.close)).or_else(|| comma_in(before..item.start));
    let blank = text[..item.start].trim_end().len().max(before);
    // An entry alone on its container's only line leaves no space.
    let end = match next {
        Some(next) if index == 0 && text[item.end..next].trim() == "," && !text[item.end..next].contains('\n') => next,
        _ => item.end,
    };
    let mut edited = String::with_capacity(text.len());
    let is_cut = |position: usize| (blank..end).contains(&position) || Some(position) == comma;
    edited.extend(text.char_indices().filter(|(position, _)| !is_cut(*position)).map(|(_, c)| c));
    // The end of the line that ended a comment must not go with the item.
    let behind_comment =
        matches!(gap(text, before..item.start).last(), Some(Separator::Comment { ends_line: true, .. }));
    let kept = text[..blank].len() - usize::from(comma.is_some_and(|comma| comma < blank));
    if behind_comment && !edited[kept..].trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) {
        edited.insert(kept, '\n');
    }
    let root = parse(&edited).ok()??;
    let left = Container::of(at(&root, above)?)?;
    if left.items.is_empty() && edited[left.open + 1..left.close].trim().is_empty() {
        edited.replace_range(left.open + 1..left.close, "");
    }
    Some(edited)
}

/// Puts another value in a value's place.
pub(crate) fn replace(text: &str, path: &[Key<'_>], value: &Json) -> Option<String> {
    let root = parse(text).ok()??;
    let range = range(at(&root, path)?);
    Some(format!("{}{value}{}", &text[..range.start], &text[range.end..]))
}

/// The value at the end of a path.
pub(crate) fn at<'v, 't>(root: &'v Value<'t>, path: &[Key<'_>]) -> Option<&'v Value<'t>> {
    path.iter().try_fold(root, |value, key| match key {
        Key::Name(name) => member(value, name),
        Key::Index(index) => elements(value).get(*index),
    })
}

/// An object or an array, and the positions of its members or elements.
struct Container {
    open: usize,
    close: usize,
    items: Vec<Range<usize>>,
}

impl Container {
    fn of(value: &Value<'_>) -> Option<Self> {
        let items = match value {
            Value::Object(object) => {
                object.properties.iter().map(|member| member.range.start..member.range.end).collect()
            }
            Value::Array(array) => array.elements.iter().map(range).collect(),
            _ => return None,
        };
        let range = range(value);
        Some(Container { open: range.start, close: range.end - 1, items })
    }
}

fn range(value: &Value<'_>) -> Range<usize> {
    let range = match value {
        Value::StringLit(literal) => literal.range,
        Value::NumberLit(literal) => literal.range,
        Value::BooleanLit(literal) => literal.range,
        Value::Object(object) => object.range,
        Value::Array(array) => array.range,
        Value::NullKeyword(keyword) => keyword.range,
    };
    range.start..range.end
}

fn spelled<'v>(name: &'v ObjectPropName<'_>) -> &'v str {
    match name {
        ObjectPropName::String(literal) => &literal.value,
        ObjectPropName::Word(word) => word.value,
    }
}

/// How a text is written.
struct Style<'t> {
    newline: &'static str,
    unit: &'t str,
    is_one_line: bool,
    is_spaced: bool,
}

impl<'t> Style<'t> {
    fn of(text: &'t str, root: &Value<'_>) -> Self {
        let whole = range(root);
        let first = Container::of(root).and_then(|container| container.items.first().cloned());
        let unit = first.map(|first| indent_at(text, first.start)).filter(|indent| !indent.is_empty()).unwrap_or("  ");
        let is_one_line = !is_empty(root) && !text[whole].contains('\n');
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Style { newline, unit, is_one_line, is_spaced: !is_one_line || text.contains("\": ") }
    }
}

/// The indentation of the line at a position.
fn indent_at(text: &str, position: usize) -> &str {
    let line = text[..position].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[line..].find(|c| c != ' ' && c != '\t').map_or(text.len(), |length| line + length);
    &text[line..end.min(position)]
}

fn pretty(value: &Json, style: &Style<'_>, indent: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(style.unit.as_bytes());
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter));
    debug_assert!(written.is_ok(), "a value is written to memory");
    let lines = String::from_utf8_lossy(&bytes);
    lines.replace('\n', &format!("{}{indent}", style.newline))
}

/// What may be between two items.
enum Separator {
    Comma(usize),
    Comment { range: Range<usize>, ends_line: bool },
}

/// The commas and comments in a part of a text that holds nothing else.
fn gap(text: &str, part: Range<usize>) -> impl Iterator<Item = Separator> {
    let mut place = part.start;
    std::iter::from_fn(move || {
        while place < part.end {
            let rest = &text[place..part.end];
            let begin = place;
            let block = rest.starts_with("/*");
            if block || rest.starts_with("//") {
                let length = if block { rest.find("*/").map(|end| end + 2) } else { rest.find(['\n', '\r']) };
                place += length.unwrap_or(rest.len());
                return Some(Separator::Comment { range: begin..place, ends_line: !block });
            }
            place += rest.chars().next().map_or(1, char::len_utf8);
            if rest.starts_with(',') {
                return Some(Separator::Comma(begin));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Texts as people and programs leave them.
    const TEXTS: [&str; 17] = [
        "{\n  \"a\": 1\n}\n",
        "{\n  \"a\": 1 // note\n}\n",
        "{\n\t\"a\": 1, // note\n\t// dangling\n}\n",
        "{\n  \"a\": 1, /* one */ // two\n}",
        "{\n  \"a\": 1 /* over\n two lines */\n}",
        "// top\n{\n    // only a comment\n}\n",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "{\"a\":1}",
        "{\"a\":1,}",
        "{\"a\": 1, \"b\": [2, 3]}",
        "{ \"a\": 1 }",
        "{\"a\": 1 // note\n}",
        "{\n  \"a\": {\n    \"b\": []\n  }   \n\n\n}\n\n",
        "{}",
        "{ // nothing\n}",
        "  {\n      \"ü\\n\": \"// no comment, \\\" /* nor this\"\n  }",
        "{\n  \"a\": 1,\n\n  // about b\n  \"b\": 2\n  // the end\n}",
    ];

    #[test]
    fn what_was_put_in_comes_out_again() {
        let value = json!({"Stop": [{"hooks": [{"type": "command", "command": "x \"y\""}]}]});
        for text in TEXTS {
            let edited = insert(text, &[], Some("new"), &value).unwrap();
            let root = parse(&edited).unwrap_or_else(|error| panic!("{error:?} in {edited}")).unwrap();
            assert!(member(&root, "new").is_some(), "{edited}");
            let (mut left, mut kept) = (edited.as_str(), text.chars());
            // Everything that was there is there, in its order.
            assert!(kept.all(|c| left.find(c).map(|at| left = &left[at + c.len_utf8()..]).is_some()), "{edited}");
            assert_eq!(remove(&edited, &[Key::Name("new")]).unwrap(), text, "from {edited}");
            // The same from the middle, when something came behind.
            let grown = insert(&edited, &[], Some("later"), &json!(true)).unwrap();
            let back = remove(&grown, &[Key::Name("new")]).unwrap();
            assert_eq!(remove(&back, &[Key::Name("later")]).unwrap(), text, "from {back}");
        }
    }

    fn trivia() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["", "", " ", "\n", "\n  ", "\r\n\t", " // a comment, \"\n", "/* b\n} */", "/* c */ "])
    }

    fn texts() -> impl Strategy<Value = String> {
        let value = prop::sample::select(vec!["1", "\"// x\"", "[]", "[1, {}]", "{\n}", "{\"k\": null // n\n}"]);
        let item = (trivia(), trivia(), value, trivia());
        let items = prop::collection::vec(item, 0..4);
        (trivia(), items, any::<bool>(), trivia(), trivia()).prop_map(|(before, items, last_comma, inside, behind)| {
            let count = items.len();
            let items = items.into_iter().enumerate().map(|(index, (a, b, value, c))| {
                let comma = if index + 1 < count || last_comma { "," } else { "" };
                format!("{a}\"m{index}\"{b}:{b}{value}{c}{comma}")
            });
            format!("{before}{{{}{inside}}}{behind}", items.collect::<String>())
        })
    }

    proptest! {
        #[test]
        fn nothing_else_changes_whatever_the_text(text in texts()) {
            let edited = insert(&text, &[], Some("new"), &json!({"a": [1]})).unwrap();
            let root = parse(&edited).map_err(|error| TestCaseError::fail(format!("{error:?} in {edited}")))?;
            prop_assert!(root.as_ref().and_then(|root| member(root, "new")).is_some(), "{}", edited);
            let removed = remove(&edited, &[Key::Name("new")]).unwrap();
            let root = parse(&text).unwrap().unwrap();
            let container = Container::of(&root).unwrap();
            // An empty object is written in one way.
            let is_bare = text[container.open + 1..container.close].trim().is_empty();
            let expected = if is_bare { format!("{}{}", &text[..=container.open], &text[container.close..]) } else { text.clone() };
            prop_assert_eq!(removed, expected, "from {}", edited);
            for (index, _) in container.items.iter().enumerate() {
                let name = format!("m{index}");
                let without = remove(&text, &[Key::Name(&name)]).unwrap();
                let root = parse(&without).map_err(|error| TestCaseError::fail(format!("{error:?} in {without}")))?;
                prop_assert!(member(&root.unwrap(), &name).is_none());
            }
        }
    }

    #[test]
    fn edits_look_as_if_a_person_had_made_them() {
        let check = |text: &str, path: &[Key<'_>], name: Option<&str>, value: Json, expected: &str| {
            assert_eq!(insert(text, path, name, &value).unwrap(), expected);
        };
        check(
            "{\n  \"a\": 1 // note\n}\n",
            &[],
            Some("b"),
            json!([1]),
            "{\n  \"a\": 1, // note\n  \"b\": [\n    1\n  ]\n}\n",
        );
        check("{\n\t\"a\": 1,\n}", &[], Some("b"), json!(2), "{\n\t\"a\": 1,\n\t\"b\": 2,\n}");
        check("{\"a\":1}", &[], Some("b"), json!([2]), "{\"a\":1,\"b\":[2]}");
        check("{\"a\": 1}", &[], Some("b"), json!(2), "{\"a\": 1, \"b\": 2}");
        check("{}", &[], Some("b"), json!([]), "{\n  \"b\": []\n}");
        check("{\n  \"a\": []\n}", &[Key::Name("a")], None, json!(1), "{\n  \"a\": [\n    1\n  ]\n}");
        check("{\n  \"a\": [1]\n}", &[Key::Name("a")], None, json!(2), "{\n  \"a\": [1, 2]\n}");
        check("{\"a\":{}}", &[Key::Name("a")], Some("b"), json!(2), "{\"a\":{\"b\":2}}");
        check("{\"a\":1,\"a\":{}}", &[Key::Name("a")], Some("b"), json!(2), "{\"a\":1,\"a\":{\"b\":2}}");
    }

    #[test]
    fn removing_keeps_the_rest_readable() {
        let check = |text: &str, path: &[Key<'_>], expected: &str| assert_eq!(remove(text, path).unwrap(), expected);
        check("{\n  \"a\": 1,\n  \"b\": 2\n}", &[Key::Name("a")], "{\n  \"b\": 2\n}");
        check("[1, 2, 3]", &[Key::Index(0)], "[2, 3]");
        check("[1, 2, 3]", &[Key::Index(1)], "[1, 3]");
        check("[1, 2, 3]", &[Key::Index(2)], "[1, 2]");
        check("{\"a\": 1, // one\n \"b\": 2}", &[Key::Name("b")], "{\"a\": 1 // one\n}");
        check("{\n  // mine\n  \"a\": 1\n}", &[Key::Name("a")], "{\n  // mine\n}");
        check("{\n  \"a\": 1\n}", &[Key::Name("a")], "{}");
        assert_eq!(remove("{}", &[Key::Name("a")]), None);
    }

    #[test]
    fn problems_have_a_line() {
        for (text, line) in [("{\n  \"a\": \n}", 3), ("{\n'a': 1}", 2), ("[1,\n2", 1), ("{\"a\" 1}", 1), ("{} {}", 1)] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}: {:?}", parse(text).unwrap_err());
        }
        assert!(parse("").unwrap().is_none());
        assert_eq!(first_json_extension("{\n // x\n}"), Some(2));
        assert_eq!(first_json_extension("{\n \"a\": 1,\n}"), Some(2));
        assert_eq!(first_json_extension("{\"a\": \"// x\"}"), None);
    }
}
