//! `tine info`: everything known of one session.

use std::io::Write;
use std::process::ExitCode;

use engine::{Info, Session};
use transcript::render::to_json_pretty;
use transcript::{SessionId, text};

use super::{Desk, place};
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Show everything tine knows about a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine info .
  tine info auth-fix --json | jq .tokens")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = desk.select_whole(&sessions, &args.session)?;
    desk.tine.remember_use(&session);
    let info = desk.tine.info(&session, &sessions)?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&info))?;
    } else {
        for (word, value) in facts(desk, &session, &info) {
            writeln!(out, "{}  {value}", Paint(desk.surface.color).dim(&format!("{word:>9}")))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn facts(desk: &Desk, session: &Session, info: &Info) -> Vec<(&'static str, String)> {
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
    add("pane", info.pane.as_ref().map(|pane| place::describe_pane(Some(pane))));
    let seed = info.seed.as_ref().filter(|_| view.unstarted);
    add("seed", seed.map(|seed| format!("{} turns, about {} tokens", seed.turn, seed.tokens)));
    for (outcome, line) in info.receipt.iter().flat_map(|receipt| receipt.lines()) {
        add(outcome.as_str(), Some(line));
    }
    add("turns", Some(view.turns.to_string()));
    add("prompt", info.last_prompt.as_deref().map(|last| text::clip(&text::one_line(last), 100)));
    add(
        "tokens",
        details.tokens.map(|tokens| {
            let used = tokens.context();
            let window = tokens.window.map(|window| format!(" of {window} ({}%)", used * 100 / window.max(1)));
            format!("{used}{} in the last exchange", window.unwrap_or_default())
        }),
    );
    let profile = &info.profile;
    let line = |words: &[String]| (!words.is_empty()).then(|| text::clean(&ui::plan::line(words)));
    add("options", line(&profile.args));
    let variables = profile
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={}", ui::plan::quoted(value)))
        .collect::<Vec<_>>();
    add("variables", (!variables.is_empty()).then(|| text::clean(&variables.join(" "))));
    add("profile", profile.name.as_deref().map(text::one_line));
    add("config", profile.commit.as_deref().map(text::one_line));
    let previous: Vec<&str> = info.previous_ids.iter().map(SessionId::as_str).collect();
    add("earlier", (!previous.is_empty()).then(|| previous.join(", ")));
    add("created", view.created.map(|time| ui::ago(time, now, &surface.zone)));
    add("updated", view.updated.map(|time| ui::ago(time, now, &surface.zone)));
    add(
        "parent",
        view.parent.as_ref().map(|parent| {
            let label = parent.name.as_ref().map_or_else(|| parent.id.to_string(), ToString::to_string);
            let turn = parent.turn.map(|turn| format!(" after turn {turn}")).unwrap_or_default();
            let how = match parent.source {
                transcript::ParentSource::Tine => "",
                transcript::ParentSource::Agent => " (reported by the agent)",
                transcript::ParentSource::Inferred => " (inferred from shared history)",
            };
            format!("{label}{turn}{how}")
        }),
    );
    for fork in &info.forks {
        let turn = fork.parent.as_ref().and_then(|parent| parent.turn);
        let turn = turn.map(|turn| format!("after turn {turn}: ")).unwrap_or_default();
        add("fork", Some(format!("{turn}{}  {}", ui::label(fork), text::clip(&ui::title(fork), 60))));
    }
    add("file", Some(format!("{} ({})", ui::path(surface, &view.path), ui::bytes(session.size))));
    let branches = (details.branches > 0)
        .then(|| format!("{} other; `tine show {} --branches` lists them", details.branches, ui::label(view)));
    add("branches", branches);
    for (kind, count) in details.defects.iter() {
        add("defect", Some(paint.note(&format!("{count} × {}", kind.describe()))));
    }
    facts
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
    if session.view.unstarted {
        return format!("not started; `tine resume {}` starts it", ui::label(&session.view));
    }
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
