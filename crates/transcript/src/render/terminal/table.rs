//! Tables: in columns where they fit, else a small paragraph for each row.

use super::paint::{Line, Span, TextStyle};
use super::wrap::at_words;
use crate::text::width;

/// What is known of a table; the first row is its head.
#[derive(Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Vec<Line>>,
}

const BETWEEN: &str = " │ ";

impl Table {
    /// The lines of it, in at most `room` columns.
    pub(super) fn laid_out(&self, room: usize) -> Vec<Line> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|c| columns_of(c)).max();
        let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
        let total = widths.iter().sum::<usize>() + width(BETWEEN) * columns.saturating_sub(1);
        if total <= room { self.in_columns(&widths) } else { self.in_paragraphs(room) }
    }

    fn in_columns(&self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = Line::new();
            for (column, columns) in widths.iter().enumerate() {
                let empty = Line::new();
                let cell = row.get(column).unwrap_or(&empty);
                if column > 0 {
                    line.push(Span::new(BETWEEN, TextStyle::DIM));
                }
                line.extend(cell.iter().map(|span| emphasised(span, index == 0)));
                if column + 1 < widths.len() {
                    line.push(Span::plain(" ".repeat(columns - columns_of(cell))));
                }
            }
            lines.push(line);
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|columns| "─".repeat(*columns)).collect();
                lines.push(vec![Span::new(rules.join("─┼─"), TextStyle::DIM)]);
            }
        }
        lines
    }

    /// Each row as lines of `head: cell`, with a blank line between rows.
    fn in_paragraphs(&self, room: usize) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::new());
            }
            for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let mut line: Line =
                    head.get(column).into_iter().flatten().map(|span| emphasised(span, true)).collect();
                if !line.is_empty() {
                    line.push(Span::plain(": "));
                }
                line.extend(cell.iter().cloned());
                lines.extend(hanging(&line, room));
            }
        }
        lines
    }
}

fn columns_of(cell: &[Span]) -> usize {
    cell.iter().map(|span| width(&span.text)).sum()
}

fn emphasised(span: &Span, head: bool) -> Span {
    if head { Span::new(span.text.clone(), span.look.and(TextStyle::BOLD)) } else { span.clone() }
}

/// The text in lines of which all but the first are indented.
fn hanging(text: &[Span], room: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = at_words(text, room.saturating_sub(2)).collect();
    for line in lines.iter_mut().skip(1) {
        line.insert(0, Span::plain("  "));
    }
    lines
}
