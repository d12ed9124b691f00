//! `tine blame`: which session and turn wrote a line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{BlamedLine, LineAuthor};
use transcript::render::to_json_pretty;
use transcript::text::{clean, one_line};

use super::Desk;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, Bar, Paint};

/// Show which session and turn wrote each line of a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lines that no session of the project recorded have no session.

Examples:
  tine blame src/auth.rs
  tine blame src/auth.rs:12          one line, with its prompt
  tine blame src/auth.rs:12 --json")]
pub(crate) struct Args {
    /// File, and a line of it
    #[arg(value_name = "FILE[:LINE]")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let (file, line) = split(&desk.tine.context().cwd, &args.file);
    let blame = desk.tine.blame(&file, line, &Bar::new())?;
    if let Some(line) = line.filter(|_| blame.lines.is_empty()) {
        return Err(Failure::Other {
            kind: "no_line",
            message: format!("`{}` has no line {line}", one_line(&file.to_string_lossy())),
            hint: None,
        });
    }
    let mut out = ui::out();
    let paint = Paint(desk.surface.color);
    match (args.json, line) {
        (true, _) => writeln!(out, "{}", to_json_pretty(&blame))?,
        (false, Some(_)) => blame.lines.iter().try_for_each(|line| one(&mut out, paint, line))?,
        (false, None) => all(&mut out, paint, &blame.lines)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The file and the line, unless there is a file of that whole name.
fn split(directory: &std::path::Path, word: &std::path::Path) -> (PathBuf, Option<usize>) {
    let text = word.to_string_lossy();
    let parsed = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<usize>().ok()?)));
    match parsed.filter(|_| !directory.join(word).exists()) {
        Some((file, line)) => (file.into(), Some(line)),
        None => (word.to_owned(), None),
    }
}

fn one(out: &mut impl Write, paint: Paint, line: &BlamedLine) -> std::io::Result<()> {
    writeln!(out, "{}", clean(&line.text))?;
    let Some(author) = &line.author else {
        return writeln!(out, "{}", paint.dim("no session recorded this line"));
    };
    let mut fact = |word: &str, value: &str| writeln!(out, "{}  {value}", paint.dim(&format!("{word:>9}")));
    fact("session", &format!("{}, turn {}", paint.name(author.label()), author.turn))?;
    fact("agent", author.agent.product_name())?;
    if let Some(at) = author.at {
        fact("written", &at.to_string())?;
    }
    fact("prompt", &one_line(&author.prompt))?;
    fact("fork", &author.fork.join(" "))
}

fn all(out: &mut impl Write, paint: Paint, lines: &[BlamedLine]) -> std::io::Result<()> {
    let label = |author: &LineAuthor| {
        let name = transcript::text::prefix(author.label(), 24).to_owned();
        format!("{name}@{}", author.turn)
    };
    let labels: Vec<String> = lines.iter().map(|line| line.author.as_ref().map(label).unwrap_or_default()).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    let digits = lines.len().to_string().len();
    for (line, label) in lines.iter().zip(&labels) {
        let label = paint.name(&format!("{label:<width$}"));
        writeln!(out, "{label}  {}  {}", paint.dim(&format!("{:>digits$}", line.line)), clean(&line.text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_line_follows_the_last_colon() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("odd:7"), "").unwrap();
        let check = |word: &str, file: &str, line: Option<usize>| {
            assert_eq!(split(folder.path(), Path::new(word)), (file.into(), line), "{word}");
        };
        check("a.rs", "a.rs", None);
        check("src/a.rs:12", "src/a.rs", Some(12));
        check("a:b:3", "a:b", Some(3));
        check("a:b", "a:b", None);
        check("odd:7", "odd:7", None);
    }
}
