//! The page around the turns: its head with the style, the facts of the session, the foot.

use std::fmt;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::render::{Part, words};
use crate::{Defects, SessionView};

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and nothing is run, even if something got past the escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes everything up to the first turn.
pub(super) fn head<W: Write>(writer: &mut W, session: &SessionView, part: Part) -> io::Result<()> {
    let title = escaped(&words::title(session));
    write!(
        writer,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"tine\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
         <dl class=\"facts\">\n"
    )?;
    for fact in words::facts(session, part) {
        let value = escaped(&fact.value);
        let value = if fact.verbatim { format!("<code>{value}</code>") } else { value };
        writeln!(writer, "<dt>{}</dt><dd>{value}</dd>", fact.name)?;
    }
    writeln!(writer, "</dl>\n</header>")
}

/// Writes everything after the last turn.
pub(super) fn foot<W: Write>(writer: &mut W, defects: &Defects) -> io::Result<()> {
    writeln!(writer, "<footer>")?;
    if !defects.is_empty() {
        writeln!(writer, "<p>Some records could not be read:</p>\n<ul>")?;
        for line in words::defects(defects) {
            writeln!(writer, "<li>{}</li>", escaped(&line))?;
        }
        writeln!(writer, "</ul>")?;
    }
    writeln!(writer, "<p>Written by tine.</p>\n</footer>\n</main>\n</body>\n</html>")
}

/// A moment for people and for programs.
pub(super) fn time(at: Timestamp) -> String {
    format!("<time datetime=\"{at}\">{}</time>", words::moment(at, &TimeZone::UTC))
}

/// `text` as the content of an element or of an attribute in quotes.
pub(super) fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

/// A long text as the content of an element, without a copy of it.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['&', '<', '>', '"', '\'']) {
            let (plain, escape) = match part.as_bytes().last() {
                Some(b'&') => (&part[..part.len() - 1], "&amp;"),
                Some(b'<') => (&part[..part.len() - 1], "&lt;"),
                Some(b'>') => (&part[..part.len() - 1], "&gt;"),
                Some(b'"') => (&part[..part.len() - 1], "&quot;"),
                Some(b'\'') => (&part[..part.len() - 1], "&#39;"),
                _ => (part, ""),
            };
            formatter.write_str(plain)?;
            formatter.write_str(escape)?;
        }
        Ok(())
    }
}
