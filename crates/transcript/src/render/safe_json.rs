//! JSON that cannot control the terminal it is printed on, and that parses back to exactly the same values.

use std::io::{self, Write};

use serde::{Serialize, Serializer as _};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::text::is_harmful;

/// Writes JSON with harmful characters as `\u` escapes.
///
/// serde_json escapes the control characters below U+0020 only. Those from U+007F to U+009F control terminals just
/// as well, and the characters that [`crate::text::clean`] drops make text read as something else than it is.
#[derive(Debug, Clone, Default)]
pub struct SafeFormatter<F = CompactFormatter> {
    layout: F,
}

impl SafeFormatter {
    /// All on one line.
    pub fn compact() -> Self {
        SafeFormatter { layout: CompactFormatter }
    }
}

impl SafeFormatter<PrettyFormatter<'static>> {
    /// A value per line, indented by two spaces.
    pub fn pretty() -> Self {
        SafeFormatter { layout: PrettyFormatter::with_indent(b"  ") }
    }
}

/// The value over several lines, indented by two spaces, without a line break at the end.
///
/// # Panics
/// On a value that has no JSON, such as a map whose keys are not strings or a path that is not UTF-8.
pub fn to_json_pretty(value: &impl Serialize) -> String {
    to_json(value, SafeFormatter::pretty())
}

/// The value on one line, without a line break at the end.
///
/// # Panics
/// On a value that has no JSON, such as a map whose keys are not strings or a path that is not UTF-8.
pub fn to_json_line(value: &impl Serialize) -> String {
    to_json(value, SafeFormatter::compact())
}

/// Writes values as an indented array, one by one, so that printing ten thousand of them needs memory for one. No line
/// break at the end.
pub fn write_json_array(out: &mut impl Write, values: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
    (&mut Serializer::with_formatter(out, SafeFormatter::pretty())).collect_seq(values).map_err(io::Error::from)
}

fn to_json(value: &impl Serialize, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, formatter)).expect("the value has a JSON form");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Writes `text`, which is JSON or a part of a JSON string, with every harmful character escaped.
///
/// Control characters below U+007F are kept: inside strings, serde_json has escaped them; elsewhere, they are white
/// space.
fn write_escaped<W: ?Sized + Write>(writer: &mut W, text: &str) -> io::Result<()> {
    // Most texts are plain, which is quick to check for all bytes together.
    if text.bytes().all(|byte| byte < 0x7f) {
        return writer.write_all(text.as_bytes());
    }
    let mut written = 0;
    for (start, c) in text.char_indices().filter(|(_, c)| *c >= '\u{7f}' && is_harmful(*c)) {
        writer.write_all(&text.as_bytes()[written..start])?;
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(writer, "\\u{unit:04x}")?;
        }
        written = start + c.len_utf8();
    }
    writer.write_all(&text.as_bytes()[written..])
}

/// Methods that only the layout decides.
macro_rules! as_laid_out {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $method<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.layout.$method(writer $(, $argument)*)
        }
    )*};
}

impl<F: Formatter> Formatter for SafeFormatter<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(writer, fragment)
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(writer, fragment)
    }

    as_laid_out! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn harmful_characters_are_escaped_wherever_they_stand() {
        let check = |value: Value, expected: &str| assert_eq!(to_json_line(&value), expected);
        check(json!("\u{1b}[2J\n"), r#""\u001b[2J\n""#);
        check(json!("a\u{7f}\u{9b}31m"), r#""a\u007f\u009b31m""#);
        check(json!("user\u{202e}gnp.exe"), r#""user\u202egnp.exe""#);
        check(json!("\u{e0041}"), r#""\udb40\udc41""#);
        check(json!({"\u{9d}key": ["漢字 é 👩‍👩‍👧"]}), r#"{"\u009dkey":["漢字 é 👩‍👩‍👧"]}"#);
        assert_eq!(
            to_json_pretty(&json!({"a": [1, {}], "b": {}})),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {}\n}"
        );
    }

    #[test]
    fn an_array_written_value_by_value_is_the_same_array() {
        for count in 0..3 {
            let values: Vec<Value> = (0..count).map(|number| json!({"a": number, "b\u{9b}": [1, "é"]})).collect();
            let mut written = Vec::new();
            // Nobody knows how many there are before the last.
            write_json_array(&mut written, values.iter().filter(|_| true)).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), to_json_pretty(&values));
        }
    }

    #[test]
    fn raw_json_is_escaped_too() {
        let raw = serde_json::value::RawValue::from_string("[ \"\u{9b}2J\" ]".into()).unwrap();
        assert_eq!(to_json_line(&raw), r#"[ "\u009b2J" ]"#);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        // Eighths, because serde_json reads back only some of the longer fractions to the last bit.
        let eighth = any::<i32>().prop_map(|number| json!(f64::from(number) / 8.0));
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            eighth,
            any_text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any_text(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Any text, rich in the characters that matter here.
    fn any_text() -> impl Strategy<Value = String> {
        let harmful = prop_oneof![
            proptest::char::range('\0', '\u{9f}'),
            proptest::char::range('\u{200b}', '\u{206f}'),
            proptest::char::range('\u{fff0}', '\u{ffff}'),
            proptest::char::range('\u{e0000}', '\u{e0100}'),
        ];
        let c = prop_oneof![harmful, any::<char>()];
        prop::collection::vec(c, 0..16).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn values_parse_back_identically(value in any_value()) {
            for json in [to_json_line(&value), to_json_pretty(&value)] {
                prop_assert!(json.chars().all(|c| c == '\n' || !is_harmful(c)), "{json:?}");
                prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &value);
            }
        }
    }
}
