//! `tine status`: which sessions are open now, and whether they are busy.

use std::io::{self, Write};
use std::process::ExitCode;

use engine::{Status, StatusSession};
use transcript::render::to_json_pretty;
use transcript::text;

use super::{Desk, list, place};
use crate::Outcome;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Show open sessions and their state
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine status                    all open sessions
  tine status auth-fix           idle, busy, waiting or stopped
  tine status --json | jq -r '.[] | select(.state == \"waiting\") | .id'")]
pub(crate) struct Args {
    /// Show only the state of this session
    #[arg(value_name = "SESSION", add = complete::sessions())]
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut out = ui::out();
    if let Some(spec) = &args.session {
        let sessions = desk.tine.all_sessions(&Bar::new())?;
        let status = desk.tine.status(&desk.target(&sessions, spec)?)?;
        match (&status.session, args.json) {
            (_, true) => writeln!(out, "{}", to_json_pretty(&status))?,
            (StatusSession::Session(view), false) if view.unstarted => writeln!(out, "not started")?,
            (_, false) => writeln!(out, "{}", status.state().as_str())?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let open = desk.tine.open_sessions(&Bar::new())?;
    if args.json {
        writeln!(out, "{}", to_json_pretty(&open))?;
    } else if open.is_empty() {
        ui::print_message("no open sessions");
    } else {
        let label = open.iter().map(|status| status.label().len()).max().unwrap_or(0);
        let table = list::Table::new(&desk.surface, desk.tine.context().clock.now(), true, label, true);
        for status in &open {
            print(&mut out, desk, &table, status)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print(out: &mut impl Write, desk: &Desk, table: &list::Table<'_>, status: &Status) -> io::Result<()> {
    let paint = Paint(desk.surface.color);
    match &status.session {
        StatusSession::Started(started) => {
            let asks = status.waiting_for.as_ref().map(|what| format!(" for {what}")).unwrap_or_default();
            let state = paint.state(started.state, started.state.as_str());
            writeln!(out, "{}  {}  no messages yet  {state}{asks}", started.name, started.agent)
        }
        StatusSession::Session(view) => {
            let mut row = String::new();
            table.row(&mut row, view);
            writeln!(out, "{row}")?;
            let pane = status.pane.as_ref().map(|pane| place::describe_pane(Some(pane)));
            let asked = status.last_prompt.as_ref().map(|last| text::clip(&text::one_line(last), 60));
            let more: Vec<String> =
                pane.into_iter().chain(asked.map(|asked| format!("last prompt: {asked}"))).collect();
            if !more.is_empty() {
                writeln!(out, "    {}", paint.dim(&more.join(", ")))?;
            }
            Ok(())
        }
    }
}
