//! Markdown as lines for a terminal: emphasis as looks, lists and quotes as indents, tables as columns.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::code::{Highlighter, code_lines};
use super::paint::{Line, Span, TextStyle};
use super::table::Table;
use super::wrap::at_words;
use crate::render::prose::events;
use crate::render::segments::Segment;
use crate::text::{one_line, width};

/// Lays out Markdown in lines of at most `columns`. Code and words that cannot be broken may be longer.
///
/// Without `color`, marks replace styles: backticks for code, `#` for headings, `~~` for struck-out text.
#[derive(Default)]
pub(super) struct Layout {
    columns: usize,
    color: bool,
    lines: Vec<Line>,
    /// Whether there were lines in an earlier segment.
    has_earlier_lines: bool,
    /// Whether the segment starts inside a block, so that no blank line belongs before it.
    continues: bool,
    /// The paragraph, heading or item that is being read.
    inline: Vec<Span>,
    looks: Vec<TextStyle>,
    containers: Vec<Container>,
    /// The next number of each list that is open; none in a list of bullets.
    lists: Vec<Option<u64>>,
    /// Targets of the links and pictures that are open, with the place where their text begins.
    targets: Vec<(String, usize)>,
    /// The block of code that is being read: its language and its text.
    code: Option<(String, String)>,
    highlight: Option<Highlighter>,
    table: Option<Table>,
}

/// A quote or an item of a list, by what it puts before its lines.
struct Container {
    /// Before the first line, until that is written.
    marker: Option<String>,
    /// Before the others.
    indent: String,
}

impl Layout {
    pub(super) fn new(columns: usize, color: bool) -> Self {
        Layout { columns, color, ..Layout::default() }
    }

    /// The same with colours for code.
    pub(super) fn highlighted(self, highlight: Option<Highlighter>) -> Self {
        Layout { highlight, ..self }
    }

    /// A layout of what follows other lines, or nothing.
    pub(super) fn after(columns: usize, color: bool, has_earlier_lines: bool) -> Self {
        Layout { has_earlier_lines, ..Layout::new(columns, color) }
    }

    /// The lines of the next segment of clean Markdown.
    pub(super) fn lines_of(&mut self, segment: &Segment<'_>) -> Vec<Line> {
        self.continues = segment.continues;
        for event in events(&segment.text) {
            self.take(event);
        }
        self.flush();
        self.has_earlier_lines |= !self.lines.is_empty();
        std::mem::take(&mut self.lines)
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, TextStyle::PLAIN),
            },
            Event::Code(code) if self.color => self.text(&code, TextStyle::CYAN),
            Event::Code(code) => self.text(&format!("`{code}`"), TextStyle::PLAIN),
            Event::HardBreak if self.table.is_some() => self.text(" ", TextStyle::PLAIN),
            Event::HardBreak => self.text("\n", TextStyle::PLAIN),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.room().min(20));
                self.line(vec![Span::new(rule, TextStyle::DIM)]);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, TextStyle::PLAIN),
            // What the parser gives only with extensions that are off, or as text already.
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let large = matches!(level, HeadingLevel::H1 | HeadingLevel::H2);
                self.looks.push(if large { TextStyle::BOLD.and(TextStyle::UNDERLINE) } else { TextStyle::BOLD });
                if !self.color {
                    self.text(&format!("{} ", "#".repeat(*level as usize)), TextStyle::PLAIN);
                }
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.containers.push(Container { marker: Some("> ".into()), indent: "> ".into() });
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => one_line(language),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(*first);
            }
            Tag::Item => {
                self.flush();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let indent = " ".repeat(width(&marker));
                self.containers.push(Container { marker: Some(marker), indent });
            }
            Tag::Table(_) => {
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.looks.push(TextStyle::ITALIC),
            Tag::Strong => self.looks.push(TextStyle::BOLD),
            Tag::Strikethrough => {
                self.looks.push(TextStyle::STRUCK);
                self.strike();
            }
            Tag::Link { dest_url, .. } => {
                self.looks.push(TextStyle::UNDERLINE);
                self.targets.push((one_line(dest_url), self.inline.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image: ", TextStyle::PLAIN);
                self.targets.push((one_line(dest_url), self.inline.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.looks.pop();
            }
            TagEnd::Item | TagEnd::BlockQuote(_) => {
                self.flush();
                // What has no text in it has its marker still.
                if self.containers.last().is_some_and(|container| container.marker.is_some()) {
                    self.line(Line::new());
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                if !code.is_empty() {
                    code_lines(&language, &code, self.highlight).into_iter().for_each(|line| self.line(line));
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let room = self.room();
                let table = self.table.take().unwrap_or_default();
                table.laid_out(room).into_iter().for_each(|line| self.line(line));
            }
            TagEnd::Emphasis | TagEnd::Strong => {
                self.looks.pop();
            }
            TagEnd::Strikethrough => {
                self.strike();
                self.looks.pop();
            }
            TagEnd::Link => {
                self.looks.pop();
                self.close_target();
            }
            TagEnd::Image => {
                self.text("]", TextStyle::PLAIN);
                self.close_target();
            }
            _ => {}
        }
    }

    fn strike(&mut self) {
        if !self.color {
            self.text("~~", TextStyle::PLAIN);
        }
    }

    /// Writes the target of a link, unless its text contains it.
    fn close_target(&mut self) {
        let Some((target, start)) = self.targets.pop() else { return };
        let text: String = self.inline.iter().skip(start).map(|span| span.text.as_str()).collect();
        if !target.is_empty() && !target.ends_with(text.trim()) || text.trim().is_empty() {
            self.inline.push(Span::new(format!(" ({target})"), TextStyle::DIM));
        }
    }

    fn text(&mut self, text: &str, look: TextStyle) {
        let look = self.looks.iter().fold(look, |sum, look| sum.and(*look));
        self.inline.push(Span::new(text, look));
    }

    /// Ends the paragraph, heading or item that is being read, and breaks it into lines.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        if inline.iter().all(|span| span.text.trim().is_empty()) {
            return;
        }
        for line in source_lines(&inline) {
            let room = self.room();
            at_words(&line, room).for_each(|line| self.line(line));
        }
    }

    /// A blank line between two blocks, but neither at the start nor after the marker of an item.
    fn gap(&mut self) {
        self.flush();
        let behind_marker = self.containers.last().is_some_and(|container| container.marker.is_some());
        let is_first = self.lines.is_empty() && !self.has_earlier_lines;
        let continues = std::mem::take(&mut self.continues);
        if !is_first && !continues && !behind_marker {
            self.line(Line::new());
        }
    }

    /// The columns that are left for text.
    fn room(&self) -> usize {
        let (_, used) = self.visible_containers();
        self.columns.saturating_sub(used)
    }

    /// The first container whose indent is shown, and the columns that they take together. Where they nest so deep
    /// that they would take more than half of the line, the outer ones are left out.
    fn visible_containers(&self) -> (usize, usize) {
        let mut used = 0;
        for (index, container) in self.containers.iter().enumerate().rev() {
            let more = width(&container.indent);
            if used + more > self.columns / 2 {
                return (index + 1, used);
            }
            used += more;
        }
        (0, used)
    }

    fn line(&mut self, mut content: Line) {
        let (first, _) = self.visible_containers();
        let mut indent = String::new();
        for (index, container) in self.containers.iter_mut().enumerate() {
            let marker = container.marker.take();
            if index >= first {
                indent.push_str(&marker.unwrap_or_else(|| container.indent.clone()));
            }
        }
        if !indent.is_empty() {
            content.insert(0, Span::plain(indent));
        }
        self.lines.push(content);
    }
}

/// Splits at the line breaks that the text itself has.
fn source_lines(spans: &[Span]) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    for span in spans {
        for (index, part) in span.text.split('\n').enumerate() {
            if index > 0 {
                lines.push(Line::new());
            }
            if let Some(line) = lines.last_mut()
                && !part.is_empty()
            {
                line.push(Span::new(part, span.look));
            }
        }
    }
    while lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::segments::tests::check_segments;

    #[test]
    fn long_answers_look_the_same_in_segments() {
        check_segments(|segments| {
            let mut layout = Layout::new(30, false);
            segments.flat_map(|segment| layout.lines_of(&segment)).collect::<Vec<Line>>()
        });
    }
}
