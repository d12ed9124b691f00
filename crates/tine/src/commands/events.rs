//! `tine events`: events that the agents' hooks reported.

use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use engine::{EventCursor, SessionEvent};
use transcript::{SessionId, SessionName};

use super::Desk;
use crate::Outcome;
use crate::ui::{self, Paint};

/// Show events that the agents reported
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Agents report events through hooks; `tine setup` installs them.

Examples:
  tine events                        the most recent events
  tine events --follow --json        new events, one JSON object per line")]
pub(crate) struct Args {
    /// Keep running and print new events
    #[arg(long, short)]
    pub follow: bool,
    /// Number of past events to show
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub last: u32,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// How often to check for new events.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut out = ui::out();
    let mut cursor = EventCursor::newest(args.last);
    let mut events = desk.tine.events(&mut cursor)?;
    if cursor.number() == 0 && !args.follow {
        ui::print_message("no events yet; `tine setup` installs the hooks that report them");
    }
    loop {
        for event in &events {
            match args.json {
                true => writeln!(out, "{}", serde_json::to_string(event).unwrap_or_default())?,
                false => writeln!(out, "{}", line(desk, event))?,
            }
        }
        out.flush()?;
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(PAUSE);
        events = desk.tine.events(&mut cursor)?;
    }
}

fn line(desk: &Desk, event: &SessionEvent) -> String {
    let paint = Paint(desk.surface.color);
    let at = event.at.to_zoned(desk.surface.zone.clone()).strftime("%H:%M:%S");
    let label = |name: Option<&SessionName>, id: &SessionId| name.map_or(id.short(), SessionName::as_str).to_owned();
    let who = label(event.name.as_ref(), &event.id);
    let parent = event.parent.as_ref().map(|parent| label(parent.name.as_ref(), &parent.id));
    let origin = parent.map(|parent| format!("  from {}", paint.name(&parent))).unwrap_or_default();
    format!("{}  {:<16} {}  {}{origin}", paint.dim(&at.to_string()), event.event, paint.name(&who), event.agent)
}
