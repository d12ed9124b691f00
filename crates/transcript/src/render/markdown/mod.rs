//! A session as a Markdown document, for reading, for export and as the context of another session.
//!
//! Answers are Markdown already and stay as they are. Everything else is quoted, fenced or escaped, so that the
//! structure of the document is always ours: a heading of the second level for each turn.

mod syntax;

use std::io::{self, Write};

use jiff::tz::TimeZone;

use self::syntax::{closed, code_span, escaped, fenced};
use super::turns::{Turns, is_turn_prompt};
use super::{Part, Renderer, Tools, call, words};
use crate::seed::is_seed;
use crate::text::clean;
use crate::{Block, BlockKind, Defects, NoticeKind, SessionView};

/// Writes Markdown; a subagent's work is quoted.
#[derive(Debug)]
pub struct Markdown<W> {
    writer: W,
    tools: Tools,
    turns: Turns,
    /// What was written last and how deep, which decides what separates it from the next.
    last: Option<(Piece, usize)>,
}

/// A piece of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// An item of a list: no blank line before the next item.
    Item,
    /// Anything else.
    Paragraph,
}

impl<W: Write> Markdown<W> {
    /// A renderer that writes to `writer`.
    pub fn new(writer: W, tools: Tools) -> Self {
        Markdown { writer, tools, turns: Turns::default(), last: None }
    }

    fn paragraph(&mut self, depth: usize, text: &str) -> io::Result<()> {
        self.piece(Piece::Paragraph, depth, text)
    }

    fn item(&mut self, depth: usize, text: &str) -> io::Result<()> {
        self.piece(Piece::Item, depth, &format!("- {text}"))
    }

    fn piece(&mut self, piece: Piece, depth: usize, text: &str) -> io::Result<()> {
        self.open(piece, depth)?;
        text.lines().try_for_each(|line| self.line(depth, line))
    }

    /// Begins a piece; its lines follow.
    fn open(&mut self, piece: Piece, depth: usize) -> io::Result<()> {
        if let Some((last, last_depth)) = self.last
            && (last, last_depth, piece) != (Piece::Item, depth, Piece::Item)
        {
            self.line(depth.min(last_depth), "")?;
        }
        self.last = Some((piece, depth));
        Ok(())
    }

    fn line(&mut self, depth: usize, line: &str) -> io::Result<()> {
        let quote = "> ".repeat(depth);
        // Two spaces at a line's end are a line break in Markdown: only what is ours is trimmed.
        if line.is_empty() {
            writeln!(self.writer, "{}", quote.trim_end())
        } else {
            writeln!(self.writer, "{quote}{line}")
        }
    }

    fn quote(&mut self, depth: usize, text: &str) -> io::Result<()> {
        self.open(Piece::Paragraph, depth)?;
        // A quote without text is a quote still.
        let text = clean(text);
        let text = words::trimmed(&text);
        let lines = if text.is_empty() { "\n" } else { text }.lines();
        lines
            .map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") })
            .try_for_each(|line| self.line(depth, &line))
    }

    fn answer(&mut self, depth: usize, text: &str) -> io::Result<()> {
        let text = clean(text);
        let text = words::trimmed(&text);
        if text.is_empty() {
            return Ok(());
        }
        let continues_list = text.starts_with([' ', '-', '*', '+']);
        if continues_list && self.last == Some((Piece::Item, depth)) {
            // Without something between them the answer would be read as a part of our list.
            self.paragraph(depth, "<!-- -->")?;
        }
        self.paragraph(depth, &closed(text))
    }

    fn turn(&mut self, block: &Block) -> io::Result<()> {
        if block.turn == 0 {
            return Ok(());
        }
        self.paragraph(0, &format!("## Turn {}", block.turn))?;
        match block.at {
            Some(at) => self.paragraph(0, &format!("*{}*", words::moment(at, &TimeZone::UTC))),
            None => Ok(()),
        }
    }

    fn call(&mut self, depth: usize, name: &str, input: &serde_json::Value) -> io::Result<()> {
        let mut line = format!("**{}**", escaped(&words::tool(Some(name))));
        let telling = call::main_argument(input);
        if !telling.is_empty() {
            line = format!("{line} {}", code_span(&telling));
        }
        match self.tools {
            Tools::Brief => self.item(depth, &line),
            Tools::Full => {
                self.paragraph(depth, &line)?;
                if call::telling_is_all(input) {
                    return Ok(());
                }
                self.paragraph(depth, &fenced("", &call::all_arguments(input)))
            }
        }
    }

    fn output(&mut self, depth: usize, name: Option<&str>, text: &str, outcome: Option<&str>) -> io::Result<()> {
        let tool = escaped(&words::tool(name));
        let label = match outcome {
            Some(outcome) => format!("**{tool}** {outcome}:"),
            None => format!("Output of **{tool}**:"),
        };
        let text = clean(text);
        if text.trim().is_empty() {
            return self.paragraph(depth, &format!("{label} nothing"));
        }
        self.paragraph(depth, &label)?;
        self.paragraph(depth, &fenced("", &text))
    }

    fn failure(&mut self, depth: usize, name: Option<&str>, text: &str, outcome: &str) -> io::Result<()> {
        let line = words::first_line(text);
        let told = if line.is_empty() { String::new() } else { format!(": {}", code_span(&line)) };
        self.item(depth, &format!("**{}** {outcome}{told}", escaped(&words::tool(name))))
    }

    fn notice(&mut self, depth: usize, kind: NoticeKind, text: &str) -> io::Result<()> {
        let label = words::notice(kind);
        let text = clean(text);
        if self.tools == Tools::Full && text.trim().contains('\n') {
            self.paragraph(depth, &format!("*{label}:*"))?;
            return self.paragraph(depth, &fenced("", &text));
        }
        let line = words::short_line(&text);
        let told = if line.is_empty() { format!("*{label}*") } else { format!("*{label}:* {}", escaped(&line)) };
        self.paragraph(depth, &told)
    }
}

impl<W: Write> Renderer for Markdown<W> {
    fn begin(&mut self, session: &SessionView, part: Part) -> io::Result<()> {
        self.paragraph(0, &format!("# {}", escaped(&words::title(session))))?;
        for fact in words::facts(session, part) {
            let value = if fact.verbatim { code_span(&fact.value) } else { escaped(&fact.value) };
            self.item(0, &format!("{}: {value}", fact.name))?;
        }
        Ok(())
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        let position = self.turns.next(block);
        let depth = position.depth;
        if position.opens_turn {
            self.turn(block)?;
        }
        if !words::shows_depth(self.tools, depth) {
            return Ok(());
        }
        let full = self.tools == Tools::Full;
        match &block.kind {
            BlockKind::Prompt { text, steer } => {
                if *steer {
                    self.paragraph(depth, "*Sent while the agent was busy:*")?;
                } else if !is_turn_prompt(block) {
                    self.paragraph(depth, "*Prompt:*")?;
                } else if is_seed(text) {
                    self.paragraph(depth, &format!("*{}:*", words::SEED))?;
                }
                self.quote(depth, text)
            }
            BlockKind::Answer { text, .. } => self.answer(depth, text),
            BlockKind::Thinking { text } if full && !text.trim().is_empty() => {
                self.paragraph(depth, "*Thinking:*")?;
                self.quote(depth, text)
            }
            BlockKind::Thinking { .. } => Ok(()),
            BlockKind::Call { name, input, .. } => self.call(depth, name, input),
            BlockKind::Output { name, text, error, exit_code, .. } => {
                let outcome = words::outcome(*error, *exit_code);
                match (full, outcome) {
                    (true, outcome) => self.output(depth, name.as_deref(), text, outcome.as_deref()),
                    (false, Some(outcome)) if *error => self.failure(depth, name.as_deref(), text, &outcome),
                    (false, _) => Ok(()),
                }
            }
            BlockKind::Media { media_type, bytes, .. } => {
                self.paragraph(depth, &format!("*[{}]*", escaped(&words::media(media_type, *bytes))))
            }
            BlockKind::Compaction { summary } => {
                self.paragraph(depth, "*— history compacted —*")?;
                if full && !summary.trim().is_empty() { self.quote(depth, summary) } else { Ok(()) }
            }
            BlockKind::Notice { notice, text } => self.notice(depth, *notice, text),
            BlockKind::Subagent { id, role, description } => {
                let label = escaped(&words::subagent(id, role.as_deref(), description.as_deref()));
                let line = format!("**Subagent** {label}");
                if full { self.paragraph(depth, &line) } else { self.item(depth, &line) }
            }
        }
    }

    fn end(&mut self, defects: &Defects) -> io::Result<()> {
        if !defects.is_empty() {
            self.paragraph(0, "*Some records could not be read:*")?;
            for line in words::defects(defects) {
                self.item(0, &line)?;
            }
        }
        self.writer.flush()
    }
}
