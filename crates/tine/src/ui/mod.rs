//! How things look to people: colour, times, sizes, tables, progress. Text from transcripts is cleaned on its way here.

pub(crate) mod code;
pub(crate) mod confirm;
pub(crate) mod pager;
pub(crate) mod picker;
pub(crate) mod plan;
mod progress;
mod time;

use std::io::{self, Write};
use std::path::Path;

use diagnostics::OrLog;
pub(crate) use progress::{Bar, Busy, CopyBar, ForksBar, IndexBar, Waiting};
pub(crate) use time::{ago, short_age};
pub(crate) use transcript::text::count;
use transcript::{SessionView, State, text};

use crate::environment::Streams;

/// Colours by meaning, or nothing at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub bool);

impl Paint {
    fn wrap(self, code: &str, line: &str) -> String {
        if self.0 && !line.is_empty() { format!("\u{1b}[{code}m{line}\u{1b}[0m") } else { line.to_owned() }
    }

    pub(crate) fn bold(self, line: &str) -> String {
        self.wrap("1", line)
    }

    pub(crate) fn dim(self, line: &str) -> String {
        self.wrap("2", line)
    }

    pub(crate) fn name(self, line: &str) -> String {
        self.wrap("1;36", line)
    }

    pub(crate) fn good(self, line: &str) -> String {
        self.wrap("32", line)
    }

    pub(crate) fn bad(self, line: &str) -> String {
        self.wrap("1;31", line)
    }

    pub(crate) fn note(self, line: &str) -> String {
        self.wrap("33", line)
    }

    /// A state's word in its colour.
    pub(crate) fn state(self, state: State, line: &str) -> String {
        match state {
            State::Idle => self.good(line),
            State::Busy => self.note(line),
            State::Waiting => self.bad(line),
            State::Stopped => self.dim(line),
        }
    }
}

/// What a session is called in a listing: its name, else the beginning of its id.
pub(crate) fn label(session: &SessionView) -> &str {
    session.label()
}

/// A session's title on one line, safe to print.
pub(crate) fn title(session: &SessionView) -> String {
    session
        .title
        .as_deref()
        .map(text::one_line)
        .filter(|title| !title.is_empty())
        .unwrap_or_else(|| "(untitled)".into())
}

/// How many turns a session has, or that it has not started.
pub(crate) fn turns(session: &SessionView) -> String {
    match session.unstarted {
        true => "not started".to_owned(),
        false => count(u64::from(session.turns), "turn"),
    }
}

/// A path with the home directory as `~`, safe to print.
pub(crate) fn path(surface: &Streams, path: &Path) -> String {
    let shown = path.to_string_lossy();
    let home = surface.home.to_string_lossy();
    // Compared as text, because a listing does it ten thousand times and components are slow to compare.
    match shown.strip_prefix(&*home) {
        Some("") if !home.is_empty() => "~".to_owned(),
        Some(rest) if rest.starts_with('/') && !home.is_empty() => text::one_line(&format!("~{rest}")),
        _ => text::one_line(&shown),
    }
}

/// A number of bytes in the unit that suits it.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1000.0 {
            let digits = usize::from(unit != "B" && value < 10.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// Cuts a line that may hold our own colours, which take no columns.
pub(crate) fn clip_painted(line: &str, width: usize) -> String {
    let plain = text::clean(line);
    if text::width(&plain) <= width {
        return line.to_owned();
    }
    let cut = text::clip(&plain, width);
    // Keep the colours of the visible text.
    let mut out = String::new();
    let mut visible = cut.trim_end_matches('…').chars().peekable();
    let mut chars = line.chars();
    while visible.peek().is_some() {
        let Some(c) = chars.next() else { break };
        out.push(c);
        if c == '\u{1b}' {
            for c in chars.by_ref() {
                out.push(c);
                if c == 'm' {
                    break;
                }
            }
        } else {
            visible.next();
        }
    }
    out.push('…');
    if line.contains('\u{1b}') {
        out.push_str("\u{1b}[0m");
    }
    out
}

/// Standard output, buffered.
pub(crate) fn out() -> io::BufWriter<io::StdoutLock<'static>> {
    io::BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Prints a JSON value for programs.
pub(crate) fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = out();
    writeln!(out, "{}", transcript::render::to_json_pretty(value))?;
    out.flush()
}

/// Prints a message to standard error.
pub(crate) fn print_message(line: &str) {
    writeln!(io::stderr().lock(), "{}", text::clean(line)).or_log("write to standard error");
}

/// Warns of something that was no reason to stop.
pub(crate) fn warn(line: &str) {
    writeln!(io::stderr().lock(), "warning: {}", text::clean(line)).or_log("write to standard error");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        let check = |count: u64, expected: &str| assert_eq!(bytes(count), expected);
        check(0, "0 B");
        check(999, "999 B");
        check(1500, "1.5 KB");
        check(48_200, "48 KB");
        check(1_073_741_824, "1.1 GB");
        check(5_000_000_000_000, "5.0 TB");
    }
}
