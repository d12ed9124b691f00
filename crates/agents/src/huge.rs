//! Lines that are too long to be held: their fields are found, and they are copied, by streaming over them.

use std::io::{self, BufRead, BufReader, Read};

/// Values up to this length are kept; ids, times, kinds and paths are far shorter.
const KEPT: usize = 4096;

/// A field of a long line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LongField {
    pub key: Vec<u8>,
    /// Whether it is a field of the requested inner object, not of the line itself.
    pub inner: bool,
    /// The position of the comma before it, or of the key if it is the first.
    pub begins: u64,
    /// Where the value begins and ends.
    pub start: u64,
    pub end: u64,
    /// The value, if it is short.
    pub value: Option<Vec<u8>>,
}

/// The fields of a line with one JSON object, and the position of its closing brace. With `into`, also the fields of
/// that inner object. `None` if the line is damaged.
pub(crate) fn fields_of(line: impl Read, into: Option<&[u8]>) -> io::Result<Option<(Vec<LongField>, u64)>> {
    let mut walk = Walk { into, ..Walk::default() };
    let mut reader = BufReader::with_capacity(256 << 10, line);
    loop {
        let bytes = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            break;
        }
        if !bytes.iter().all(|byte| walk.byte(*byte)) {
            return Ok(None);
        }
        let count = bytes.len();
        reader.consume(count);
    }
    Ok(walk.closed.map(|brace| (walk.fields, brace)))
}

/// What is expected next in an object whose fields are scanned.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Key,
    Colon,
    Value,
    /// Inside or after a value, up to a comma or a brace.
    End,
}

#[derive(Debug, Default)]
struct Walk<'a> {
    into: Option<&'a [u8]>,
    at: u64,
    depth: usize,
    /// The depth at which fields are scanned: 1 for the line, 2 inside `into`.
    level: usize,
    in_string: bool,
    escaped: bool,
    next: Next,
    comma: Option<u64>,
    key: Vec<u8>,
    begins: u64,
    start: u64,
    /// The position after the last non-blank byte of the value.
    end: u64,
    value: Vec<u8>,
    outer: Option<(Vec<u8>, u64, u64)>,
    fields: Vec<LongField>,
    closed: Option<u64>,
}

impl Walk<'_> {
    /// Takes the next byte; false if the line is invalid.
    fn byte(&mut self, byte: u8) -> bool {
        let at = self.at;
        self.at += 1;
        let blank = byte.is_ascii_whitespace();
        if self.closed.is_some() {
            return blank;
        }
        if self.in_string {
            self.inside(byte, at);
            return true;
        }
        if blank {
            self.keep(byte, at, true);
            return true;
        }
        if self.depth == 0 {
            (self.depth, self.level) = (1, 1);
            return byte == b'{';
        }
        if self.depth > self.level {
            self.nested(byte, at);
            return true;
        }
        match (self.next, byte) {
            (Next::Key, b'"') => {
                self.key.clear();
                self.begins = self.comma.take().unwrap_or(at);
                self.in_string = true;
            }
            (Next::Colon, b':') => self.next = Next::Value,
            (Next::Value, _) if !matches!(byte, b',' | b'}' | b']' | b':') => {
                self.next = Next::End;
                (self.start, self.end) = (at, at + 1);
                self.value.clear();
                self.value.push(byte);
                self.in_string = byte == b'"';
                if byte == b'{' && self.level == 1 && self.into == Some(&self.key) {
                    self.outer = Some((std::mem::take(&mut self.key), self.begins, self.start));
                    (self.depth, self.level, self.next) = (2, 2, Next::Key);
                } else if matches!(byte, b'{' | b'[') {
                    self.depth += 1;
                }
            }
            (Next::End, b',') => {
                self.field();
                (self.next, self.comma) = (Next::Key, Some(at));
            }
            (Next::End | Next::Key, b'}') => {
                if self.next == Next::End {
                    self.field();
                }
                self.close(at);
            }
            (Next::End, _) => self.keep(byte, at, false),
            _ => return false,
        }
        true
    }

    fn inside(&mut self, byte: u8, at: u64) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        self.in_string = !ends;
        match self.next {
            Next::Key if ends => self.next = Next::Colon,
            Next::Key if self.key.len() < KEPT => self.key.push(byte),
            _ => self.keep(byte, at, false),
        }
    }

    fn nested(&mut self, byte: u8, at: u64) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        self.keep(byte, at, false);
    }

    /// Notes a byte of the value.
    fn keep(&mut self, byte: u8, at: u64, blank: bool) {
        if self.next == Next::End && self.value.len() <= KEPT {
            self.value.push(byte);
        }
        if self.next == Next::End && !blank {
            self.end = at + 1;
        }
    }

    fn field(&mut self) {
        let length = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        self.fields.push(LongField {
            key: std::mem::take(&mut self.key),
            inner: self.level == 2,
            begins: self.begins,
            start: self.start,
            end: self.end,
            // The inner object itself is not kept.
            value: self.value.get(..length).filter(|_| length <= KEPT).map(<[u8]>::to_vec),
        });
    }

    fn close(&mut self, at: u64) {
        match self.outer.take() {
            Some((key, begins, start)) => {
                (self.depth, self.level, self.next) = (1, 1, Next::End);
                (self.key, self.begins, self.start, self.end) = (key, begins, start, at + 1);
                self.value.clear();
            }
            None => self.closed = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, into: Option<&str>) -> Option<Vec<(String, bool, String, String)>> {
        let (fields, brace) = fields_of(line.as_bytes(), into.map(str::as_bytes)).unwrap()?;
        assert_eq!(line.as_bytes()[brace as usize], b'}');
        let piece = |from: u64, to: u64| line[from as usize..to as usize].to_owned();
        let told = fields.into_iter().map(|field| {
            let text = piece(field.start, field.end);
            if let Some(value) = &field.value {
                assert_eq!(String::from_utf8_lossy(value), text);
            }
            (String::from_utf8(field.key).unwrap(), field.inner, text, piece(field.begins, field.start))
        });
        Some(told.collect())
    }

    #[test]
    fn fields_are_found_with_their_places() {
        let line = r#" { "a" : "x\"}," , "payload":{"id":"1","n":[{"id":2}]} ,"t":true , "long":"LONG" } "#;
        let line = line.replace("LONG", &"y".repeat(5000));
        let found = fields(&line, Some("payload")).unwrap();
        let names: Vec<(&str, bool)> = found.iter().map(|(key, inner, _, _)| (key.as_str(), *inner)).collect();
        assert_eq!(names, [("a", false), ("id", true), ("n", true), ("payload", false), ("t", false), ("long", false)]);
        assert_eq!((found[0].2.as_str(), found[0].3.as_str()), (r#""x\"},""#, r#""a" : "#));
        assert_eq!((found[1].2.as_str(), found[2].2.as_str()), (r#""1""#, r#"[{"id":2}]"#));
        assert_eq!((found[4].2.as_str(), found[4].3.as_str()), ("true", r#","t":"#));
        assert_eq!(found[3].2, r#"{"id":"1","n":[{"id":2}]}"#);
        assert_eq!(fields(&line, None).unwrap().len(), 4);
    }

    #[test]
    fn damage_is_told() {
        for line in ["", "{", r#"{"a":"#, r#"{"a":1"#, r#"{"a":"x"#, r#"{"a":1}}"#, "[1]", r#"{"a" 1}"#, r#"{"a":{}"#] {
            assert_eq!(fields(line, Some("a")), None, "{line}");
        }
        assert_eq!(fields("{}", None), Some(Vec::new()));
    }
}
