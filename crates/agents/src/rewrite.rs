//! Changing some values of a JSON line and leaving every other byte as it is.
//!
//! A copy of a session carries records that tine does not know. They are never parsed and written again: only the
//! values that must change are cut out and replaced.

use crate::fields::{Fields, Raw};

/// Pieces of a line that are to be replaced, in any order; they must not overlap.
#[derive(Debug, Default)]
pub(crate) struct Rewrite {
    pieces: Vec<(usize, usize, Vec<u8>)>,
}

impl Rewrite {
    /// Replaces `value`, which must be a part of `line`.
    pub(crate) fn replace(&mut self, line: &[u8], value: Raw<'_>, new: impl Into<Vec<u8>>) {
        let start = value.0.as_ptr().addr() - line.as_ptr().addr();
        debug_assert!(start + value.0.len() <= line.len());
        self.pieces.push((start, start + value.0.len(), new.into()));
    }

    /// Adds a field behind the last one of the object that `line` is.
    pub(crate) fn add_field(&mut self, line: &[u8], key: &str, value: &[u8]) {
        let Some(brace) = line.iter().rposition(|byte| *byte == b'}') else {
            return;
        };
        let first = Fields::of(line).next().is_none();
        let mut field = Vec::with_capacity(key.len() + value.len() + 4);
        field.extend_from_slice(if first { b"\"" } else { b",\"" });
        field.extend_from_slice(key.as_bytes());
        field.extend_from_slice(b"\":");
        field.extend_from_slice(value);
        self.pieces.push((brace, brace, field));
    }

    /// Writes the line with the pieces replaced.
    pub(crate) fn apply(mut self, line: &[u8], out: &mut Vec<u8>) {
        self.pieces.sort_by_key(|(start, _, _)| *start);
        let mut at = 0;
        for (start, end, new) in &self.pieces {
            out.extend_from_slice(&line[at..*start]);
            out.extend_from_slice(new);
            at = *end;
        }
        out.extend_from_slice(&line[at..]);
    }
}

/// A JSON string.
pub(crate) fn string(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_values_change() {
        let line = br#"{ "a": {"sessionId":"old"}, "sessionId" :"old","n":1.50 }"#;
        let mut rewrite = Rewrite::default();
        rewrite.replace(line, Raw(line).get(b"sessionId").unwrap(), string("new \"id\""));
        rewrite.add_field(line, "from", b"{}");
        let mut out = Vec::new();
        rewrite.apply(line, &mut out);
        let expected = r#"{ "a": {"sessionId":"old"}, "sessionId" :"new \"id\"","n":1.50 ,"from":{}}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        let mut rewrite = Rewrite::default();
        rewrite.add_field(b"{}", "a", b"1");
        rewrite.apply(b"{}", &mut out);
        assert_eq!(out, br#"{"a":1}"#);
    }
}
