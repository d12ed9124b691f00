//! Looking at the top level of a JSON line without parsing the rest.
//!
//! A listing reads every transcript once, and of each line it needs a dozen short fields; the bulk is tool output
//! inside strings. Full parsing runs at 650 MB/s and core; skipping over strings with `memchr` runs several times
//! faster, which is what keeps a cold `tine list` near the speed of `cat`. See docs/decisions/0003-field-scanner.md.
//!
//! The scanner does not validate skipped values. Callers parse the values that they need with `serde_json`.

use std::borrow::Cow;

use memchr::memchr;

/// A raw JSON value: the bytes between a key's colon and the next comma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a [u8]);

impl<'a> Raw<'a> {
    /// The value, if it is a string. Borrowed if nothing is escaped.
    pub fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if memchr(b'\\', inner).is_none() {
            return Some(String::from_utf8_lossy(inner));
        }
        match serde_json::from_slice::<String>(self.0) {
            Ok(text) => Some(Cow::Owned(text)),
            Err(_) => serde_json::from_str::<String>(&String::from_utf8_lossy(self.0)).ok().map(Cow::Owned),
        }
    }

    /// The bytes of a string that holds no escapes, such as an id or a date.
    pub fn plain(self) -> Option<&'a [u8]> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        memchr(b'\\', inner).is_none().then_some(inner)
    }

    /// Whether it is the literal `true`.
    pub fn is_true(self) -> bool {
        self.0 == b"true"
    }

    /// The value, if it is a non-negative whole number.
    pub fn number(self) -> Option<u64> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// The fields, if it is an object.
    pub fn fields(self) -> Fields<'a> {
        Fields::of(self.0)
    }

    /// The raw value of one field of an object.
    pub fn get(self, key: &[u8]) -> Option<Raw<'a>> {
        self.fields().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The input from the value of one field onwards, for values whose beginning is enough: the end of a long one is
    /// not searched.
    pub(crate) fn beginning(self, key: &[u8]) -> Option<Raw<'a>> {
        let mut fields = self.fields();
        while let Some(name) = fields.key() {
            if name == key {
                return Some(Raw(fields.rest));
            }
            fields.rest = &fields.rest[value_end(fields.rest)?..];
            fields.state = Progress::Between;
        }
        None
    }

    /// The elements, if it is an array.
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: self.0.strip_prefix(b"[").unwrap_or(b"]") }
    }

    /// Parses the value in full.
    pub fn parse<T: serde::de::DeserializeOwned>(self) -> Option<T> {
        match serde_json::from_slice(self.0) {
            Ok(value) => Some(value),
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(self.0)).ok(),
        }
    }
}

/// The top-level fields of an object, in order. Ends at the object's end or at invalid input; [`Fields::is_complete`]
/// distinguishes them.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    state: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Start,
    Between,
    Complete,
    Broken,
}

impl<'a> Fields<'a> {
    /// The fields of the object that `bytes` holds.
    pub fn of(bytes: &'a [u8]) -> Self {
        match trim_start(bytes).strip_prefix(b"{") {
            Some(rest) => Fields { rest, state: Progress::Start },
            None => Fields { rest: bytes, state: Progress::Broken },
        }
    }

    /// Whether the object was read to its closing brace, with nothing after it.
    pub fn is_complete(&self) -> bool {
        self.state == Progress::Complete && trim_start(self.rest).is_empty()
    }

    /// Reads on to the end, to find out whether the object is complete.
    pub fn finish(mut self) -> bool {
        while self.next().is_some() {}
        self.is_complete()
    }

    /// Reads the next key; what follows is its value.
    fn key(&mut self) -> Option<&'a [u8]> {
        let mut rest = trim_start(self.rest);
        match (self.state, rest.first()?) {
            (Progress::Start | Progress::Between, b'}') => {
                self.rest = &rest[1..];
                self.state = Progress::Complete;
                return None;
            }
            (Progress::Between, b',') => rest = trim_start(&rest[1..]),
            (Progress::Start, _) => {}
            _ => return None,
        }
        let key_end = string_end(rest)?;
        self.rest = trim_start(trim_start(&rest[key_end..]).strip_prefix(b":")?);
        Some(&rest[1..key_end - 1])
    }

    fn advance(&mut self) -> Option<(&'a [u8], Raw<'a>)> {
        let key = self.key()?;
        let (value, rest) = self.rest.split_at(value_end(self.rest)?);
        self.rest = rest;
        self.state = Progress::Between;
        Some((key, Raw(value)))
    }
}

/// Passes the fields of an object to a function and, in place of the field `into`, the fields of that object, in one
/// pass. The first argument distinguishes them. Returns false for an incomplete line.
pub(crate) fn walk<'a>(line: &'a [u8], into: &[u8], mut see: impl FnMut(bool, &'a [u8], Raw<'a>)) -> bool {
    let mut outer = Fields::of(line);
    while !matches!(outer.state, Progress::Complete | Progress::Broken) {
        let Some(key) = outer.key() else {
            break;
        };
        if key == into && outer.rest.starts_with(b"{") {
            let mut inner = Fields::of(outer.rest);
            for (key, value) in inner.by_ref() {
                see(true, key, value);
            }
            if inner.state != Progress::Complete {
                return false;
            }
            outer.rest = inner.rest;
        } else {
            let Some(end) = value_end(outer.rest) else {
                return false;
            };
            let (value, rest) = outer.rest.split_at(end);
            see(false, key, Raw(value));
            outer.rest = rest;
        }
        outer.state = Progress::Between;
    }
    outer.is_complete()
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, Progress::Complete | Progress::Broken) {
            return None;
        }
        let field = self.advance();
        if field.is_none() && self.state != Progress::Complete {
            self.state = Progress::Broken;
        }
        field
    }
}

/// The elements of an array, in order; ends at the array's end or at invalid input.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = trim_start(self.rest);
        if let Some(after) = rest.strip_prefix(b",") {
            rest = trim_start(after);
        }
        if matches!(rest.first(), None | Some(b']')) {
            self.rest = b"";
            return None;
        }
        let Some(end) = value_end(rest) else {
            self.rest = b"";
            return None;
        };
        self.rest = &rest[end..];
        Some(Raw(&rest[..end]))
    }
}

#[inline]
fn trim_start(bytes: &[u8]) -> &[u8] {
    // Agents write no blanks between fields.
    if bytes.first().is_some_and(|byte| *byte > b' ') {
        return bytes;
    }
    let blank = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    &bytes[blank..]
}

/// The index after the closing quote of the string that `bytes` starts with.
///
/// Keys and most values are short and have no escapes. For those, a call of `memchr` costs more than the search, so the
/// first bytes are checked here, eight at a time.
#[inline]
pub(crate) fn string_end(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const QUOTES: u64 = ONES * b'"' as u64;
    let (b'"', inside) = bytes.split_first()? else {
        return None;
    };
    let (words, _) = inside.as_chunks::<8>();
    for (index, word) in words.iter().take(5).enumerate() {
        let differing = u64::from_le_bytes(*word) ^ QUOTES;
        // The lowest high bit that is set is in the first byte that is zero.
        let found = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        if found != 0 {
            let quote = 1 + index * 8 + found.trailing_zeros() as usize / 8;
            return if bytes[quote - 1] == b'\\' { long_string_end(bytes, quote) } else { Some(quote + 1) };
        }
    }
    long_string_end(bytes, 1 + 8 * words.len().min(5))
}

/// The same, if no quote before `from` ends the string.
#[inline(never)]
fn long_string_end(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let quote = from + memchr(b'"', &bytes[from..])?;
        let backslashes = bytes[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Some(quote + 1);
        }
        from = quote + 1;
    }
}

/// The index after the value that `bytes` starts with.
fn value_end(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string_end(bytes),
        b'{' | b'[' => nested_end(bytes),
        _ => {
            let end = bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
            Some(end.unwrap_or(bytes.len())).filter(|end| *end > 0)
        }
    }
}

fn nested_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += string_end(&bytes[at..])?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn names(line: &str) -> Vec<String> {
        Fields::of(line.as_bytes()).map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
    }

    #[test]
    fn fields_are_found_at_the_top_only() {
        let line = r#"{"a":{"type":"inner"},"b":"x\"},\\","type":"user","n":[1,{"q":"]"}],"t":true}"#;
        assert_eq!(names(line), ["a", "b", "type", "n", "t"]);
        let kind = Raw(line.as_bytes()).get(b"type").and_then(Raw::string);
        assert_eq!(kind.as_deref(), Some("user"));
    }

    #[test]
    fn broken_lines_are_told_from_complete_ones() {
        let check = |line: &str, complete: bool| assert_eq!(Fields::of(line.as_bytes()).finish(), complete, "{line}");
        check("{}", true);
        check(" { \"a\" : 1 } \r", true);
        for broken in ["", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":\"x", "{\"a\":1", "{\"a\":1}}", "{a:1}", "{\"a\":{]"]
        {
            check(broken, false);
        }
    }

    #[test]
    fn one_pass_shows_the_fields_of_an_object_inside() {
        let line = br#"{"a":{"x":1},"payload":{"id":"1","n":{"id":2}},"z":[]}"#;
        let mut seen = Vec::new();
        let whole = walk(line, b"payload", |inner, key, value| seen.push((inner, key, value.0)));
        let expected: [(bool, &[u8], &[u8]); 4] =
            [(false, b"a", br#"{"x":1}"#), (true, b"id", b"\"1\""), (true, b"n", br#"{"id":2}"#), (false, b"z", b"[]")];
        assert!(whole);
        assert_eq!(seen, expected);
        for end in 0..line.len() {
            assert!(!walk(&line[..end], b"payload", |_, _, _| {}), "cut at {end}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\\\\"{}\\[\\],:]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_full_parser(map in prop::collection::btree_map("[a-z]{1,5}", json(), 0..6)) {
            let value = Value::Object(map.into_iter().collect());
            for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
                let mut fields = Fields::of(text.as_bytes());
                let mut seen = serde_json::Map::new();
                for (key, raw) in fields.by_ref() {
                    seen.insert(String::from_utf8(key.to_vec()).unwrap(), serde_json::from_slice(raw.0).unwrap());
                }
                prop_assert!(fields.is_complete());
                prop_assert_eq!(Value::Object(seen), value.clone());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Fields::of(&bytes).finish();
            Raw(&bytes).elements().count();
        }

        #[test]
        fn no_cut_line_is_taken_for_complete(map in prop::collection::btree_map("[a-z]{1,5}", json(), 1..4), cut in any::<prop::sample::Index>()) {
            let text = serde_json::to_string(&Value::Object(map.into_iter().collect())).unwrap();
            let cut = cut.index(text.len());
            prop_assert!(!Fields::of(&text.as_bytes()[..cut]).finish());
        }
    }
}
