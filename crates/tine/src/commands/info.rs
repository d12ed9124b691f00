//! `tine info`: everything known of one session.

use std::io::Write;
use std::process::ExitCode;

use engine::{Session, Tine};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{SessionView, text};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, Paint};

/// Show everything known of a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine info .
  tine info auth-fix --json | jq .tokens")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(value_name = "SESSION", add = complete::sessions())]
    pub session: String,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = desk.select_whole(&sessions, &args.session)?;
    desk.tine.remember_use(&session);
    let forks: Vec<&SessionView> =
        sessions.iter().map(|other| &other.view).filter(|view| is_fork_of(view, &session)).collect();
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&as_json(&desk.tine, &session, &forks)?))?;
    } else {
        for (word, value) in facts(desk, &session, &forks)? {
            writeln!(out, "{}  {value}", Paint(desk.surface.color).dim(&format!("{word:>9}")))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn is_fork_of(view: &SessionView, session: &Session) -> bool {
    let parent = view.parent.as_ref();
    parent.is_some_and(|parent| parent.agent == session.view.agent && parent.id == session.view.id)
}

/// All of it for programs.
pub(crate) fn as_json(tine: &Tine, session: &Session, forks: &[&SessionView]) -> Result<Value, Failure> {
    let (agent, id) = (session.view.agent, &session.view.id);
    let previous = tine.registry().previous_ids(&session.key())?;
    let details = &session.details;
    let mut value = serde_json::to_value(&session.view).unwrap_or_default();
    let more = json!({
        "custom_title": details.custom_title,
        "agent_title": details.agent_title,
        "first_prompt": details.first_prompt,
        "model": details.model,
        "agent_version": details.version,
        "size": session.size,
        "tokens": details.tokens,
        "pid": session.live.as_ref().and_then(|live| live.pid),
        "waiting_for": session.live.as_ref().and_then(|live| live.waiting_for.clone()),
        "mid_turn": details.mid_turn,
        "profile": tine.profile_of(agent, id)?.shown(),
        "previous_ids": previous.iter().map(|(id, _, _)| id).collect::<Vec<_>>(),
        "seed": tine.registry().seed(agent, id)?,
        "defects": details.defects,
        "forks": forks.iter().map(|fork| json!({
            "agent": fork.agent, "id": fork.id, "name": fork.name,
            "turn": fork.parent.as_ref().and_then(|parent| parent.turn),
        })).collect::<Vec<_>>(),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}

fn facts(desk: &Desk, session: &Session, forks: &[&SessionView]) -> Result<Vec<(&'static str, String)>, Failure> {
    let (view, details) = (&session.view, &session.details);
    let (surface, paint) = (&desk.surface, Paint(desk.surface.color));
    let now = desk.tine.context().clock.now();
    let mut facts = vec![("title", paint.bold(&ui::title(view)))];
    let mut add = |word: &'static str, value: Option<String>| facts.extend(value.map(|value| (word, value)));
    add("name", view.name.as_ref().map(|name| paint.name(name.as_str())));
    add("agent", Some(agent_line(session)));
    add("id", Some(view.id.to_string()));
    add("directory", view.cwd.as_deref().map(|cwd| ui::path(surface, cwd)));
    add("branch", view.branch.as_deref().map(text::one_line));
    add("state", Some(state_line(session, paint)));
    add("turns", Some(view.turns.to_string()));
    add(
        "tokens",
        details.tokens.map(|tokens| {
            let used = tokens.input + tokens.output;
            let window = tokens.window.map(|window| format!(" of {window} ({} %)", used * 100 / window.max(1)));
            format!("{used}{} in the last request and answer", window.unwrap_or_default())
        }),
    );
    let profile = desk.tine.profile_of(view.agent, &view.id)?;
    let line = |words: &[String]| (!words.is_empty()).then(|| text::clean(&ui::plan::line(words)));
    add("launched", line(&profile.args));
    let shown = profile.shown().environment;
    let variables = shown.iter().map(|(name, value)| format!("{name}={}", ui::plan::quoted(value))).collect::<Vec<_>>();
    add("variables", (!variables.is_empty()).then(|| text::clean(&variables.join(" "))));
    add("profile", profile.name.as_deref().map(text::one_line));
    add("config", profile.commit.as_deref().map(text::one_line));
    let previous = desk.tine.registry().previous_ids(&session.key())?;
    let previous: Vec<&str> = previous.iter().map(|(id, _, _)| id.as_str()).collect();
    add("before", (!previous.is_empty()).then(|| previous.join(", ")));
    add("created", view.created.map(|time| ui::ago(time, now, &surface.zone)));
    add("updated", view.updated.map(|time| ui::ago(time, now, &surface.zone)));
    add(
        "parent",
        view.parent.as_ref().map(|parent| {
            let label = parent.name.as_ref().map_or_else(|| parent.id.to_string(), ToString::to_string);
            let turn = parent.turn.map(|turn| format!(" after turn {turn}")).unwrap_or_default();
            let how = match parent.source {
                transcript::ParentSource::Tine => "",
                transcript::ParentSource::Agent => " (the agent says so)",
                transcript::ParentSource::Inferred => " (inferred from the shared history)",
            };
            format!("{label}{turn}{how}")
        }),
    );
    for fork in forks {
        let turn = fork.parent.as_ref().and_then(|parent| parent.turn);
        let turn = turn.map(|turn| format!("after turn {turn}: ")).unwrap_or_default();
        add("fork", Some(format!("{turn}{}  {}", ui::label(fork), text::clip(&ui::title(fork), 60))));
    }
    add("file", Some(format!("{} ({})", ui::path(surface, &view.path), ui::bytes(session.size))));
    for (kind, count) in details.defects.iter() {
        add("defect", Some(paint.note(&format!("{count} × {}", kind.describe()))));
    }
    Ok(facts)
}

fn agent_line(session: &Session) -> String {
    let mut line = session.view.agent.product_name().to_owned();
    if let Some(version) = &session.details.version {
        line.push_str(&format!(" {}", text::one_line(version)));
    }
    if let Some(model) = &session.details.model {
        line.push_str(&format!(", {}", text::one_line(model)));
    }
    line
}

fn state_line(session: &Session, paint: Paint) -> String {
    let state = session.view.state;
    let mut line = paint.state(state, state.as_str());
    if let Some(live) = &session.live {
        if let Some(reason) = &live.waiting_for {
            line.push_str(&format!(" for {}", text::one_line(reason)));
        }
        if let Some(pid) = live.pid {
            line.push_str(&format!(" (process {pid})"));
        }
    } else if session.details.mid_turn {
        line.push_str(" in the middle of a turn");
    }
    line
}
