//! `tine events`: what happened in the agents, as their hooks told it.

use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use engine::HeardEvent;

use super::Desk;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, Paint};

/// List what happened in the agents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Agents tell of events by their hooks; `tine setup` installs them.

Examples:
  tine events                        the last ones
  tine events --follow --json        one JSON object a line, as they happen")]
pub(crate) struct Args {
    /// Go on with those that happen from now on
    #[arg(long, short)]
    pub follow: bool,
    /// How many of the past ones
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub last: u32,
    /// Print a JSON object a line
    #[arg(long)]
    pub json: bool,
}

const PAUSE: Duration = Duration::from_millis(100);
/// When to look again for what no hook tells.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut out = ui::out();
    desk.tine.note_unheard()?;
    let mut events = desk.tine.registry().last_events(args.last)?;
    let mut after = match events.last() {
        Some(event) => event.number,
        None => desk.tine.registry().newest_event()?,
    };
    if after == 0 && !args.follow {
        ui::say("nothing was told yet; `tine setup` installs the hooks");
    }
    let mut look = Look { at: Instant::now(), pause: LOOK_AGAIN };
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
        look.take(desk)?;
        events = desk.tine.registry().events_after(after)?;
        after = events.last().map_or(after, |event| event.number);
    }
}

/// When somebody looks next for what no hook tells.
struct Look {
    at: Instant,
    pause: Duration,
}

impl Look {
    /// Looks, where it is time to. The more a look costs, the rarer it is.
    fn take(&mut self, desk: &Desk) -> Result<(), Failure> {
        if self.at.elapsed() < self.pause {
            return Ok(());
        }
        let begun = Instant::now();
        desk.tine.note_unheard()?;
        *self = Look { at: Instant::now(), pause: LOOK_AGAIN.max(begun.elapsed() * 20) };
        Ok(())
    }
}

fn line(desk: &Desk, event: &HeardEvent) -> String {
    let paint = Paint(desk.surface.color);
    let at = event.at.to_zoned(desk.surface.zone.clone()).strftime("%H:%M:%S");
    let who = event.name.as_ref().map_or_else(|| event.id.short().to_owned(), ToString::to_string);
    format!("{}  {:<16} {}  {}", paint.dim(&at.to_string()), event.event, paint.name(&who), event.agent)
}
