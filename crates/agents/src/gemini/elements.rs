//! Finds the elements of a JSON array of any size by streaming over it.
//!
//! The client writes all messages of a session into one line whenever it resumes it, and older versions wrote one
//! object for the whole session. Neither is ever held.

use std::io::{self, BufRead, BufReader, Read};

/// The start and end of each element of the array that `source` begins with, relative to its beginning.
pub(super) fn elements(source: impl Read) -> io::Result<Vec<(u64, u64)>> {
    let mut reader = BufReader::with_capacity(256 << 10, source);
    let mut walk = Walk::default();
    loop {
        let bytes = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let count = bytes.len();
        if count == 0 || !bytes.iter().all(|byte| walk.byte(*byte)) {
            return Ok(walk.found);
        }
        reader.consume(count);
    }
}

#[derive(Default)]
struct Walk {
    at: u64,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Where the current element begins, and where the last byte of it that is not blank ends.
    element: Option<(u64, u64)>,
    found: Vec<(u64, u64)>,
}

impl Walk {
    /// OptionValue the next byte; false at the end of the array.
    fn byte(&mut self, byte: u8) -> bool {
        let at = self.at;
        self.at += 1;
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.extend(at);
            return true;
        }
        match byte {
            _ if byte.is_ascii_whitespace() => return true,
            b'[' if self.depth == 0 => {
                self.depth = 1;
                return true;
            }
            _ if self.depth == 0 => return false,
            b',' | b']' if self.depth == 1 => {
                self.found.extend(self.element.take());
                return byte == b',';
            }
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth -= 1,
            b'"' => self.in_string = true,
            _ => {}
        }
        self.extend(at);
        true
    }

    fn extend(&mut self, at: u64) {
        let element = self.element.get_or_insert((at, at));
        element.1 = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_whatever_is_in_them() {
        let check = |text: &str, expected: &[&str]| {
            let found = elements(text.as_bytes()).unwrap();
            let found: Vec<&str> = found.iter().map(|(start, end)| &text[*start as usize..*end as usize]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("[]", &[]);
        check(" [ {\"a\":[1,2]} , 3,\n\"x]\\\",\" ] , 4", &["{\"a\":[1,2]}", "3", "\"x]\\\",\""]);
        check("[{\"a\":1},{\"cut", &["{\"a\":1}"]);
        check("{\"a\":[1]}", &[]);
        check("", &[]);
    }
}
