//! `tine status`: which sessions are open now, and whether they are at work.

use std::io::Write;
use std::process::ExitCode;

use engine::{Error, Session, Unbegun};
use serde_json::{Value, json};
use transcript::State;
use transcript::render::to_json_pretty;

use super::{Desk, list};
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, Paint};

/// Show which sessions are open now, and whether they are at work
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine status                    every session that a process has open
  tine status auth-fix           idle, busy, waiting or stopped
  tine status --json | jq -r '.[] | select(.state == \"waiting\") | .id'")]
pub(crate) struct Args {
    /// Only this session
    #[arg(value_name = "SESSION", add = complete::sessions())]
    pub session: Option<String>,
    /// Print JSON: an array, or one object where a session is named
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let mut out = ui::out();
    if let Some(spec) = &args.session {
        let session = match desk.select_whole(&sessions, spec) {
            Err(Failure::Engine(Error::Unbegun(name))) => {
                let state = desk.tine.state_unbegun(&name)?;
                match args.json {
                    true => writeln!(out, "{}", to_json_pretty(&json!({"name": name, "state": state, "turns": 0})))?,
                    false => writeln!(out, "{}", state.as_str())?,
                }
                out.flush()?;
                return Ok(ExitCode::SUCCESS);
            }
            session => session?,
        };
        let mut session = session;
        if desk.tine.asks_in_pane(&session).is_some() {
            session.view.state = State::Waiting;
        }
        match args.json {
            true => writeln!(out, "{}", to_json_pretty(&as_json(&session)))?,
            false => writeln!(out, "{}", session.view.state.as_str())?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let open: Vec<Session> = sessions.into_iter().filter(|session| session.view.state != State::Stopped).collect();
    let unbegun = desk.tine.unbegun()?;
    if args.json {
        let values: Vec<Value> = unbegun.iter().map(unbegun_as_json).chain(open.iter().map(as_json)).collect();
        writeln!(out, "{}", to_json_pretty(&values))?;
    } else if open.is_empty() && unbegun.is_empty() {
        ui::say("no session is open");
    } else {
        for one in &unbegun {
            let asks = one.asks.map(|what| format!(" for {what}")).unwrap_or_default();
            let state = Paint(desk.surface.color).state(one.state, one.state.as_str());
            writeln!(out, "{}  {}  nothing was said yet  {state}{asks}", one.name, one.agent)?;
        }
        let label = open.iter().map(|session| session.view.label().len()).max().unwrap_or(0);
        let table = list::Table::new(&desk.surface, desk.tine.context().clock.now(), true, label, true);
        for session in &open {
            let mut row = String::new();
            table.row(&mut row, session);
            writeln!(out, "{row}")?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// One in which nothing was said yet, in the shape of a session. Its id may be the agent's to choose.
fn unbegun_as_json(one: &Unbegun) -> Value {
    json!({
        "agent": one.agent, "id": null, "name": one.name, "title": null, "cwd": one.cwd, "branch": null, "path": null,
        "created": null, "updated": null, "turns": 0, "state": one.state, "parent": null,
        "pid": null, "waiting_for": one.asks,
    })
}

/// A session that runs, for programs.
pub(crate) fn as_json(session: &Session) -> Value {
    let mut value = serde_json::to_value(&session.view).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        let live = session.live.as_ref();
        fields.insert("pid".into(), json!(live.and_then(|live| live.pid)));
        fields.insert("waiting_for".into(), json!(live.and_then(|live| live.waiting_for.as_deref())));
    }
    value
}
