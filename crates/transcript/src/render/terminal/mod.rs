//! A session as lines for a terminal or a pager.
//!
//! Invariant: everything from the transcript goes through `text::clean` or one of its kin on its way here, and
//! again after Markdown is parsed; the only escape sequences in the output are our own.

mod code;
mod growing;
mod paint;
mod prose;
mod table;
mod wrap;

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use self::code::{CodePart, Highlighter};
pub use self::growing::StreamingText;
use self::paint::{Line, Span, TextStyle, painted};
use self::prose::Layout;
use self::wrap::{at_columns, at_words};
use super::diff::{self, ChangedLine, FileChange};
use super::segments::segments;
use super::turns::Turns;
use super::{Part, Renderer, Tools, call, words};
use crate::seed::is_seed;
use crate::text::{clean, clip, one_line, width};
use crate::{Block, BlockKind, Defects, NoticeKind, SessionView};

/// What the terminal can show.
#[derive(Debug, Clone)]
pub struct Style {
    /// Whether styles and colours are written. The text carries the same meaning without them.
    pub color: bool,
    /// The columns of the terminal.
    pub width: usize,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// Finds the parts of code that have colours. Without it, all code has the same.
    pub highlight: Option<Highlighter>,
}

/// How much of a block is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    Hidden,
    /// A call as one line, without its output; everything else as in [`Tools::Brief`].
    Folded,
    /// All of it.
    Open,
}

/// Writes plain lines that a pager can show.
#[derive(Debug)]
pub struct Terminal<W> {
    writer: W,
    tools: Tools,
    /// Whether calls can be folded by the user: they have a mark for that, and turns have no heading.
    folds: bool,
    style: Style,
    turns: Turns,
    /// What was written last, which decides whether a blank line follows.
    last: Option<(Piece, usize)>,
    /// The call that was written just now; its output follows without being named.
    last_call: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// A heading for the next piece: no blank line after it.
    Rule,
    /// A call, an output or a notice: they are not separated by blank lines.
    Step,
    /// Anything else: a blank line on both sides.
    Paragraph,
}

/// Prose is not wider than this: longer lines are hard to read.
const PROSE_COLUMNS: usize = 100;

/// Narrower than this nothing can be laid out.
const LEAST_COLUMNS: usize = 20;

/// The line at the left of what a subagent did.
const NESTED: &str = "┊ ";

impl<W: Write> Terminal<W> {
    /// A renderer that writes to `writer`.
    pub fn new(writer: W, tools: Tools, style: Style) -> Self {
        Terminal { writer, tools, folds: false, style, turns: Turns::default(), last: None, last_call: None }
    }

    /// A renderer for a screen on which blocks can be folded. Each is shown by [`Terminal::show`].
    pub fn folding(writer: W, style: Style) -> Self {
        Terminal { folds: true, ..Terminal::new(writer, Tools::Brief, style) }
    }

    /// Writes one block, as much of it as `detail` says.
    pub fn show(&mut self, block: &Block, detail: Detail) -> io::Result<()> {
        let position = self.turns.next(block);
        let depth = position.depth;
        if position.opens_turn && !self.folds {
            self.turn(block)?;
        }
        if detail == Detail::Hidden {
            return Ok(());
        }
        let open = detail == Detail::Open;
        let before = self.last_call.take();
        match &block.kind {
            BlockKind::Prompt { text, steer } => self.prompt(depth, text, *steer),
            BlockKind::Answer { text, .. } => self.prose(depth, text),
            BlockKind::Thinking { text } if open && !text.trim().is_empty() => self.thinking(depth, text),
            BlockKind::Thinking { .. } => Ok(()),
            BlockKind::Call { id, name, input } => self.call(depth, id, (name, input), open),
            BlockKind::Output { call, name, text, error, exit_code } => {
                let tool = words::tool(name.as_deref());
                let outcome = words::outcome(*error, *exit_code);
                match (open, outcome) {
                    (true, outcome) => {
                        self.output(depth, &tool, text, outcome.as_deref(), before.as_ref() == Some(call))
                    }
                    (false, Some(outcome)) if *error => {
                        let line = format!("    ✗ {tool} {outcome}: {}", words::first_line(text));
                        self.step(depth, line.trim_end().trim_end_matches(':'), TextStyle::RED)
                    }
                    (false, _) => Ok(()),
                }
            }
            BlockKind::Media { media_type, bytes, .. } => {
                self.step(depth, &format!("  · {}", words::media(media_type, *bytes)), TextStyle::DIM)
            }
            BlockKind::Compaction { summary } => {
                let rule = self.rule(depth, "history compacted");
                self.piece(Piece::Rule, depth, [rule])?;
                if open { self.prose(depth, summary) } else { Ok(()) }
            }
            BlockKind::Notice { notice, text } => self.notice(depth, *notice, text, open),
            BlockKind::Subagent { id, role, description } => {
                let label = words::subagent(id, role.as_deref(), description.as_deref());
                let mark = self.mark(open);
                self.step(depth, &format!("  {mark} subagent  {label}"), TextStyle::DIM)
            }
        }
    }

    /// The text in front of a step.
    fn mark(&self, open: bool) -> &'static str {
        match (self.folds, open) {
            (false, _) => "⏺",
            (true, false) => "▸",
            (true, true) => "▾",
        }
    }

    /// Writes lines of one piece, with a blank line before it unless it belongs to the one before.
    fn piece(&mut self, piece: Piece, depth: usize, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        self.open(piece, depth)?;
        lines.into_iter().try_for_each(|line| self.line(depth, line))
    }

    /// Begins a piece; its lines follow.
    fn open(&mut self, piece: Piece, depth: usize) -> io::Result<()> {
        if let Some((last, last_depth)) = self.last {
            match (last, piece) {
                (Piece::Step, Piece::Step) | (Piece::Rule, Piece::Step | Piece::Paragraph) => {}
                _ => self.line(depth.min(last_depth), Line::new())?,
            }
        }
        self.last = Some((piece, depth));
        Ok(())
    }

    fn line(&mut self, depth: usize, mut line: Line) -> io::Result<()> {
        let levels = self.levels(depth);
        if levels > 0 {
            line.insert(0, Span::new(NESTED.repeat(levels), TextStyle::DIM));
        }
        writeln!(self.writer, "{}", painted(&line, self.style.color))
    }

    /// How many levels are shown by indents: no more than leave half of the line to the text.
    fn levels(&self, depth: usize) -> usize {
        depth.min(self.columns() / 2 / width(NESTED))
    }

    fn columns(&self) -> usize {
        self.style.width.max(LEAST_COLUMNS)
    }

    /// The columns for calls and outputs, which use the whole terminal.
    fn room(&self, depth: usize) -> usize {
        self.columns() - width(NESTED) * self.levels(depth)
    }

    /// The columns for prose.
    fn prose_room(&self, depth: usize) -> usize {
        self.columns().min(PROSE_COLUMNS).saturating_sub(width(NESTED) * self.levels(depth)).max(LEAST_COLUMNS / 2)
    }

    fn rule(&self, depth: usize, label: &str) -> Line {
        let room = self.prose_room(depth);
        let label = clip(&format!("── {label} "), room);
        let rest = "─".repeat(room - width(&label));
        vec![Span::new(format!("{label}{rest}"), TextStyle::DIM)]
    }

    fn time(&self, at: Timestamp) -> String {
        at.to_zoned(self.style.zone.clone()).strftime("%H:%M · %Y-%m-%d").to_string()
    }

    fn turn(&mut self, block: &Block) -> io::Result<()> {
        if block.turn == 0 {
            return Ok(());
        }
        let time = block.at.map(|at| format!(" · {}", self.time(at))).unwrap_or_default();
        let rule = self.rule(0, &format!("turn {}{time}", block.turn));
        self.piece(Piece::Rule, 0, [rule])
    }

    fn prompt(&mut self, depth: usize, text: &str, steer: bool) -> io::Result<()> {
        let text = clean(text);
        let note = match steer {
            true => "(sent while the agent was busy) ".to_owned(),
            false if is_seed(&text) => format!("({}) ", words::SEED.to_lowercase()),
            false => String::new(),
        };
        let lead = [Span::new("❯ ", TextStyle::CYAN.and(TextStyle::BOLD)), Span::new(note, TextStyle::DIM)];
        self.plain(depth, &lead, words::trimmed(&text), TextStyle::BOLD)
    }

    fn thinking(&mut self, depth: usize, text: &str) -> io::Result<()> {
        let look = TextStyle::DIM.and(TextStyle::ITALIC);
        let text = clean(text);
        let lead = [Span::new("∴ ", look), Span::new("thinking: ", look)];
        self.plain(depth, &lead, words::trimmed(&text), look)
    }

    /// Text that is not Markdown, wrapped at words; its own line breaks and indentation are kept. Nothing is written
    /// below the mark on the left, and the note precedes the text.
    fn plain(&mut self, depth: usize, [mark, note]: &[Span; 2], text: &str, look: TextStyle) -> io::Result<()> {
        self.open(Piece::Paragraph, depth)?;
        let indent_of_mark = width(&mark.text);
        let room = self.prose_room(depth).saturating_sub(indent_of_mark);
        let mut is_first = true;
        for (index, source) in text.split('\n').enumerate() {
            let indent = (source.len() - source.trim_start_matches(' ').len()).min(room / 2);
            let mut spans = vec![Span::new(source, look)];
            if index == 0 {
                spans.insert(0, note.clone());
            }
            for mut line in at_words(&spans, room - indent) {
                let is_first = std::mem::take(&mut is_first);
                let left = if is_first { mark.clone() } else { Span::plain(" ".repeat(indent_of_mark)) };
                line.splice(0..0, [left, Span::plain(" ".repeat(indent))]);
                self.line(depth, line)?;
            }
        }
        Ok(())
    }

    fn prose(&mut self, depth: usize, text: &str) -> io::Result<()> {
        let text = clean(text);
        let mut layout = Layout::new(self.prose_room(depth), self.style.color).highlighted(self.style.highlight);
        let mut is_open = false;
        for segment in segments(&text) {
            for line in layout.lines_of(&segment) {
                if !std::mem::replace(&mut is_open, true) {
                    self.open(Piece::Paragraph, depth)?;
                }
                self.line(depth, line)?;
            }
        }
        Ok(())
    }

    /// A step on one line, cut to the width.
    fn step(&mut self, depth: usize, text: &str, look: TextStyle) -> io::Result<()> {
        let line = vec![Span::new(clip(text, self.room(depth)), look)];
        self.piece(Piece::Step, depth, [line])
    }

    /// Lines of foreign text below a step, broken at the width.
    fn write_below(&mut self, depth: usize, left: &str, text: &str) -> io::Result<()> {
        let text = clean(text);
        let room = self.room(depth).saturating_sub(width(left)).max(2);
        let pieces = text.trim_end().split('\n').flat_map(|line| at_columns(line.trim_end(), room));
        self.piece(Piece::Step, depth, pieces.map(|piece| vec![Span::new(format!("{left}{piece}"), TextStyle::DIM)]))
    }

    fn call(
        &mut self,
        depth: usize,
        id: &str,
        (name, input): (&str, &serde_json::Value),
        open: bool,
    ) -> io::Result<()> {
        let changes = if self.folds { diff::changes(name, input) } else { None };
        let told = call::main_argument(input);
        let files = changes.iter().flatten().map(|change| change.file.as_str()).collect::<Vec<_>>().join(", ");
        let told = if files.is_empty() { told } else { words::short_line(&files) };
        let counts = changes.as_deref().map(diff::counts);
        let counts = counts.map(|(added, removed)| format!("  +{added} −{removed}")).unwrap_or_default();
        let line = format!("  {} {}  {told}", self.mark(open), words::tool(Some(name)));
        let room = self.room(depth).saturating_sub(width(&counts));
        self.step(depth, &format!("{}{counts}", clip(line.trim_end(), room)), TextStyle::DIM)?;
        self.last_call = Some(id.to_owned());
        match changes {
            Some(changes) if open => self.changes(depth, &changes),
            _ if open && !(call::telling_is_all(input) && width(&line) <= self.room(depth)) => {
                self.write_below(depth, "      ", &call::all_arguments(input))
            }
            _ => Ok(()),
        }
    }

    /// The lines that a call adds and removes. Their marks carry the meaning without colours.
    fn changes(&mut self, depth: usize, changes: &[FileChange]) -> io::Result<()> {
        let room = self.room(depth).saturating_sub(8).max(2);
        for change in changes {
            if changes.len() > 1 {
                self.step(depth, &format!("      {}", change.file), TextStyle::BOLD)?;
            }
            for line in &change.lines {
                let (mark, text, look) = match line {
                    ChangedLine::Gap => ("⋮", "", TextStyle::DIM),
                    ChangedLine::Same(text) => (" ", text.as_str(), TextStyle::DIM),
                    ChangedLine::Added(text) => ("+", text.as_str(), TextStyle::GREEN),
                    ChangedLine::Removed(text) => ("-", text.as_str(), TextStyle::RED),
                };
                let pieces = at_columns(text.trim_end(), room);
                let lines = pieces.map(|piece| vec![Span::new(format!("      {mark} {piece}"), look)]);
                self.piece(Piece::Step, depth, lines)?;
            }
        }
        Ok(())
    }

    fn output(
        &mut self,
        depth: usize,
        tool: &str,
        text: &str,
        outcome: Option<&str>,
        follows_call: bool,
    ) -> io::Result<()> {
        match outcome {
            Some(outcome) => self.step(depth, &format!("    ✗ {tool} {outcome}"), TextStyle::RED)?,
            None if !follows_call => self.step(depth, &format!("  ⏺ {tool}  (output)"), TextStyle::DIM)?,
            None => {}
        }
        self.write_below(depth, "    │ ", if text.trim().is_empty() { "(no output)" } else { text })
    }

    fn notice(&mut self, depth: usize, kind: NoticeKind, text: &str, open: bool) -> io::Result<()> {
        let text = clean(text);
        let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
        let told = if open { first } else { text.as_str() };
        let line = format!("  · {}: {}", words::notice(kind), words::short_line(told));
        self.step(depth, line.trim_end().trim_end_matches(':'), TextStyle::DIM)?;
        let more = open && !rest.trim().is_empty();
        if more { self.write_below(depth, "    │ ", rest) } else { Ok(()) }
    }
}

impl<W: Write> Renderer for Terminal<W> {
    fn begin(&mut self, session: &SessionView, part: Part) -> io::Result<()> {
        let room = self.prose_room(0);
        let mut lines: Vec<Line> = at_words(&[Span::new(words::title(session), TextStyle::BOLD)], room).collect();
        let time = |at: Option<Timestamp>| at.map(|at| words::moment(at, &self.style.zone));
        let name = session.name.as_ref().map(ToString::to_string);
        let identity = [name, Some(session.agent.product_name().into()), Some(session.id.to_string())];
        let place = [
            session.cwd.as_ref().map(|path| one_line(&path.to_string_lossy())),
            session.branch.as_deref().map(one_line),
            Some(words::turns(session, part)),
            time(session.updated.or(session.created)),
            session.parent.as_ref().map(|parent| format!("forked from {}", words::parent(parent))),
        ];
        for facts in [identity.as_slice(), place.as_slice()] {
            lines.extend(joined(facts.iter().flatten(), room));
        }
        self.piece(Piece::Paragraph, 0, lines)
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        let is_shown = words::shows_depth(self.tools, self.turns.depth_of(block));
        let detail = match (is_shown, self.tools) {
            (false, _) => Detail::Hidden,
            (true, Tools::Brief) => Detail::Folded,
            (true, Tools::Full) => Detail::Open,
        };
        self.show(block, detail)
    }

    fn end(&mut self, defects: &Defects) -> io::Result<()> {
        let room = self.prose_room(0);
        let lines = words::defects(defects)
            .into_iter()
            .flat_map(|line| at_words(&[Span::new(format!("! {line}"), TextStyle::RED)], room).collect::<Vec<Line>>())
            .collect::<Vec<Line>>();
        if !lines.is_empty() {
            self.piece(Piece::Paragraph, 0, lines)?;
        }
        self.writer.flush()
    }
}

/// Facts side by side, in as many lines as they need; none of them is broken.
fn joined<'a>(facts: impl Iterator<Item = &'a String>, room: usize) -> Vec<Line> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts.filter(|fact| !fact.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + width(" · ") + width(fact) <= room => {
                line.push_str(" · ");
                line.push_str(fact);
            }
            _ => lines.push(fact.clone()),
        }
    }
    lines.into_iter().map(|line| vec![Span::new(line, TextStyle::DIM)]).collect()
}
