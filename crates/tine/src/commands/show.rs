//! `tine show`: the transcript, for people and programs.

use std::io::Write;
use std::process::ExitCode;

use transcript::render::{Html, Json, Markdown, Renderer, Style, Terminal, Tools};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::ui;

/// Show the transcript of a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine show .                      the newest session of this directory
  tine show 1f3a@4                 up to turn 4, as a fork at turn 4 would see it
  tine show auth-fix --turn 7      turn 7 alone
  tine show auth-fix --tools | less -R
  tine show auth-fix --html > auth-fix.html")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`; with @TURN up to that turn
    #[arg(value_name = "SESSION[@TURN]", add = complete::sessions())]
    pub session: String,
    /// Show only this turn
    #[arg(long, value_name = "N")]
    pub turn: Option<u32>,
    /// Show what tools were given and gave back, thinking, and subagents
    #[arg(long, short)]
    pub tools: bool,
    /// Print JSON: the session and its turns with all blocks
    #[arg(long, group = "format")]
    pub json: bool,
    /// Print Markdown
    #[arg(long, group = "format")]
    pub markdown: bool,
    /// Print one HTML page that needs nothing else
    #[arg(long, group = "format")]
    pub html: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let selection = desk.select(&args.session)?;
    let session = &selection.session;
    if let Some(turn) = args.turn {
        let exists = transcript::At::Turn(turn).resolve(session.view.turns);
        exists.map_err(|source| engine::Error::NoTurn { session: session.view.label().to_owned(), source })?;
    }
    let until = args.turn.or(selection.turns);
    let mut blocks = desk.tine.read(session, until)?;

    let tools = if args.tools { Tools::Full } else { Tools::Brief };
    let out = ui::out();
    let mut renderer: Box<dyn Renderer> = if args.json {
        Box::new(Json::new(out))
    } else if args.markdown {
        Box::new(Markdown::new(out, tools))
    } else if args.html {
        Box::new(Html::new(out, tools))
    } else {
        let surface = &desk.surface;
        let style = Style { color: surface.color, width: surface.width.unwrap_or(100), zone: surface.zone.clone() };
        Box::new(Terminal::new(out, tools, style))
    };
    renderer.begin(&session.view)?;
    while let Some(block) = blocks.next_block() {
        if args.turn.is_none_or(|turn| turn == block.turn) {
            renderer.block(&block)?;
        }
    }
    renderer.end(blocks.defects())?;
    drop(renderer);
    desk.tine.remember_use(session);
    std::io::stdout().lock().flush()?;
    Ok(ExitCode::SUCCESS)
}
