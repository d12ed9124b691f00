//! `tine show`: the transcript, for people and programs.

use std::io::Write;
use std::process::ExitCode;

use engine::SeedText;
use transcript::render::{Html, Json, Markdown, Part, Renderer, Style, Terminal, Tools, to_json_pretty};
use transcript::{secrets, text};

use super::Desk;
use crate::Outcome;
use crate::cli::POINT;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Show a session's transcript
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Markdown and HTML are for sharing: keys, tokens and passwords that tine recognizes are redacted. The terminal and JSON \
show the text as it is.

Examples:
  tine show .                      the newest session in this directory
  tine show 1f3a@4                 turns 1 to 4
  tine show auth-fix --turn 7      only turn 7
  tine show auth-fix --branches    list branches abandoned by rewinds
  tine show auth-fix@1f3a5c60      show one of those branches
  tine show auth-fix --tools | less -R
  tine show auth-fix --html > auth-fix.html")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION[@TURN]", help = POINT, add = complete::points())]
    pub session: String,
    /// Show only turn N
    #[arg(long, value_name = "N")]
    pub turn: Option<u32>,
    /// List the other branches of the session, such as those abandoned by a rewind
    #[arg(long, conflicts_with_all = ["turn", "tools", "seed", "keep_secrets", "markdown", "html"])]
    pub branches: bool,
    /// Include tool calls and results, thinking and subagents
    #[arg(long, short)]
    pub tools: bool,
    /// Show the full transcript that a seeded fork was given
    #[arg(long)]
    pub seed: bool,
    /// Don't redact secrets in Markdown and HTML
    #[arg(long)]
    pub keep_secrets: bool,
    /// Print JSON
    #[arg(long, group = "format")]
    pub json: bool,
    /// Print Markdown
    #[arg(long, group = "format")]
    pub markdown: bool,
    /// Print a self-contained HTML page
    #[arg(long, group = "format")]
    pub html: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    if args.branches {
        return branches(desk, args);
    }
    let selection = desk.select(&args.session)?;
    let session = selection.session;
    let part = part(&session, selection.turns, args.turn)?;
    let until = args.turn.or(selection.turns);
    // JSON has everything that the file has.
    let seed = if args.seed || args.json { SeedText::Full } else { SeedText::Folded };
    let mut blocks = desk.tine.read(&session, until, seed)?;
    desk.tine.remember_use(&session);

    let masks = (args.markdown || args.html) && !args.keep_secrets;
    let mut masked = 0;
    let mut renderer = renderer(desk, args);
    renderer.begin(&session.view, part)?;
    while let Some(mut block) = blocks.next_block() {
        if args.turn.is_some_and(|turn| turn != block.turn) {
            continue;
        }
        if masks {
            masked += secrets::mask_block(&mut block.kind);
        }
        renderer.block(&block)?;
    }
    renderer.end(blocks.defects())?;
    drop(renderer);
    std::io::stdout().lock().flush()?;
    if session.view.unstarted {
        let label = session.view.label();
        ui::print_message(&format!("{label} has not started; `tine resume {label}` sends it this transcript"));
    }
    if masked > 0 {
        ui::print_message(&format!(
            "redacted {}; pass `--keep-secrets` to keep them",
            ui::count(masked as u64, "secret")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn branches(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = desk.select_whole(&sessions, &args.session)?;
    let branches = desk.tine.branches(&session)?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&branches))?;
    } else if branches.is_empty() {
        ui::print_message("no other branches");
    }
    for branch in branches.iter().filter(|_| !args.json) {
        let paint = Paint(desk.surface.color);
        let spec = format!("{}@{}", ui::label(&session.view), branch.handle);
        let prompt = text::clip(branch.prompt.as_deref().unwrap_or_default(), 60);
        let turns = ui::count(branch.turns.into(), "turn");
        writeln!(out, "{}  {turns}, {} shared  {prompt}", paint.name(&spec), branch.shared)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The requested turns. A single one must not be after the given point.
fn part(session: &engine::Session, until: Option<u32>, only: Option<u32>) -> Result<Part, engine::Error> {
    let Some(turn) = only else {
        return Ok(until.map_or(Part::Whole, Part::Until));
    };
    let label = session.view.label();
    let label = until.map_or_else(|| label.to_owned(), |until| format!("{label}@{until}"));
    let found = transcript::At::Turn(turn).resolve(until.unwrap_or(session.view.turns));
    found.map(Part::Only).map_err(|source| engine::SessionsError::NoTurn { session: label, source }.into())
}

fn renderer(desk: &Desk, args: &Args) -> Box<dyn Renderer> {
    let tools = if args.tools { Tools::Full } else { Tools::Brief };
    let out = ui::out();
    if args.json {
        Box::new(Json::new(out))
    } else if args.markdown {
        Box::new(Markdown::new(out, tools))
    } else if args.html {
        Box::new(Html::new(out, tools))
    } else {
        let surface = &desk.surface;
        let (color, width) = (surface.color, surface.width.unwrap_or(100));
        let style = Style { color, width, zone: surface.zone.clone(), highlight: None };
        Box::new(Terminal::new(out, tools, style))
    }
}
