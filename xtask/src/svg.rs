//! A terminal's screen with its escape sequences, as an SVG picture without fonts of its own.

use std::fmt::Write;

const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 12.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d4d7dd";
/// The sixteen colours of the theme.
#[rustfmt::skip]
const THEME: [&str; 16] = [
    "#2b2f38", "#e06c75", "#98c379", "#d8b56b", "#6aa7e8", "#c184d8", "#56b6c2", "#c5c9d1",
    "#6b7280", "#f0868e", "#b1d695", "#e8cd8f", "#8bbdf2", "#d4a3e6", "#7fcdd6", "#ffffff",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    color: Option<String>,
    background: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    reversed: bool,
}

/// Draws a screen of so many columns.
pub(crate) fn draw(screen: &str, columns: usize, title: &str) -> String {
    let rows = screen.lines().count();
    let (width, height) = (columns as f64 * CELL.0 + 2.0 * MARGIN, rows as f64 * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n",
        escaped(title)
    );
    let mut look = Look::default();
    for (row, line) in screen.lines().enumerate() {
        let mut column = 0;
        for (look, text) in runs(line, &mut look) {
            let count = text.chars().count();
            draw_run(&mut svg, &look, &text, (row, column, count));
            column += count;
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn draw_run(svg: &mut String, look: &Look, text: &str, (row, column, count): (usize, usize, usize)) {
    let (mut color, mut background) = (look.color.clone(), look.background.clone());
    if look.reversed {
        (color, background) =
            (Some(background.unwrap_or_else(|| BACKGROUND.into())), Some(color.unwrap_or_else(|| FOREGROUND.into())));
    }
    let (x, y) = (MARGIN + column as f64 * CELL.0, MARGIN + row as f64 * CELL.1);
    let width = count as f64 * CELL.0;
    if let Some(background) = background {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{background}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let color = color.unwrap_or_else(|| FOREGROUND.into());
    let mut style = String::new();
    let styles = [
        (look.bold, " font-weight=\"bold\""),
        (look.dim, " opacity=\"0.6\""),
        (look.italic, " font-style=\"italic\""),
        (look.underlined, " text-decoration=\"underline\""),
    ];
    styles.iter().filter(|(has, _)| *has).for_each(|(_, attribute)| style.push_str(attribute));
    let baseline = y + CELL.1 * 0.74;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         fill=\"{color}\"{style}>{}</text>",
        escaped(text).replace(' ', "\u{a0}")
    );
}

/// The parts of a line that look the same.
fn runs(line: &str, look: &mut Look) -> Vec<(Look, String)> {
    let mut runs: Vec<(Look, String)> = Vec::new();
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' {
            let sequence: String = rest.by_ref().skip(1).take_while(|it| !it.is_ascii_alphabetic()).collect();
            change(look, &sequence);
            continue;
        }
        match runs.last_mut() {
            Some((last, text)) if last == look => text.push(character),
            _ => runs.push((look.clone(), character.to_string())),
        }
    }
    runs
}

/// Carries out a sequence that changes the look.
fn change(look: &mut Look, sequence: &str) {
    let mut codes = sequence.split([';', ':']).map(|code| code.parse::<usize>().unwrap_or(0));
    while let Some(code) = codes.next() {
        match code {
            0 => *look = Look::default(),
            1 => look.bold = true,
            2 => look.dim = true,
            3 => look.italic = true,
            4 => look.underlined = true,
            7 => look.reversed = true,
            22 => (look.bold, look.dim) = (false, false),
            23 => look.italic = false,
            24 => look.underlined = false,
            27 => look.reversed = false,
            30..=37 => look.color = Some(THEME[code - 30].into()),
            90..=97 => look.color = Some(THEME[code - 82].into()),
            39 => look.color = None,
            40..=47 => look.background = Some(THEME[code - 40].into()),
            100..=107 => look.background = Some(THEME[code - 92].into()),
            49 => look.background = None,
            38 => look.color = extended(&mut codes),
            48 => look.background = extended(&mut codes),
            _ => {}
        }
    }
}

/// A colour by its number or its parts.
fn extended(codes: &mut impl Iterator<Item = usize>) -> Option<String> {
    match codes.next()? {
        5 => THEME.get(codes.next()?).map(|color| (*color).to_owned()),
        2 => Some(format!("#{:02x}{:02x}{:02x}", codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_attributes_and_text_stays_text() {
        let svg = draw("a \u{1b}[1;31mred & <bold>\u{1b}[0m\n\u{1b}[7mback\u{1b}[27m", 20, "A screen");
        assert!(svg.contains("fill=\"#e06c75\" font-weight=\"bold\">red\u{a0}&amp;\u{a0}&lt;bold&gt;</text>"), "{svg}");
        assert!(svg.contains("<rect x=\"12.0\" y=\"30.0\""), "{svg}");
        assert!(!svg.contains('\u{1b}'));
    }
}
