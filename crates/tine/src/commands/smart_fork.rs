//! `tine smart-fork`: find the past session that suits what is to be built, and fork it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{Error, Found, Intent, Place, Selection, Suggestions};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{BlockKind, SessionName, secrets, text};

use super::Desk;
use super::fork::{self, Options, Shape};
use super::{search, smart_fork_dialog as dialog};
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::picker::{self, Item};
use crate::ui::{self, Bar, IndexBar, Paint, plan as show};

/// The most lines of a turn that are shown before it is chosen.
const PREVIEW: usize = 24;

/// Find the session that suits what you want to build, and fork it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Say in plain words what you want. On a terminal you choose from the sessions that suit it, can look into each first,
and see what would be done before it is; `--yes` forks at once. Elsewhere they are listed, and `--pick` or `--auto` forks one. A fork has the whole session unless `--at-hit`
cuts it behind the turn that was found. The session itself is never changed. `tine undo` takes a fork back.

Examples:
  tine smart-fork retry uploads that time out         choose, then go on in a fork
  tine smart-fork csv export for invoices --auto -w   the best one, in a new worktree
  tine smart-fork login by cookie --pick 2 --at-hit   the second one, as it was at that turn
  tine smart-fork rate limits --project . --min-score 0.4 --json
  tine smart-fork rate limits --collection sessions   found by qmd, in a collection made of `tine export`")]
pub(crate) struct Args {
    /// What you want to do
    #[arg(value_name = "INTENT", required = true)]
    pub intent: Vec<String>,
    /// At most this many sessions
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = search::at_least_one)]
    pub limit: usize,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Leave out sessions that fit less than this, from 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = score)]
    pub min_score: Option<f32>,
    /// Fork the session at this place of the list
    #[arg(long, value_name = "K", conflicts_with = "auto")]
    pub pick: Option<usize>,
    /// Fork the best session that can be forked
    #[arg(long)]
    pub auto: bool,
    /// Fork behind the turn that was found, instead of the end
    #[arg(long)]
    pub at_hit: bool,
    /// The fork's name; without one, the source's with `-fork-1` behind it
    #[arg(long, value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// Ask this collection of qmd first
    #[arg(long, value_name = "NAME")]
    pub collection: Option<String>,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub options: Options,
}

fn score(word: &str) -> Result<f32, String> {
    let score = word.parse::<f32>().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "a number from 0 to 1, for example `0.4`".to_owned())
}

/// A session that suits, and whether it can be forked as asked.
struct Choice<'a> {
    found: &'a Found,
    refusal: Option<Refusal>,
}

/// Why a session cannot be forked as asked.
enum Refusal {
    Broken(String),
    Engine(Error),
}

impl Refusal {
    fn message(&self) -> String {
        match self {
            Refusal::Broken(message) => message.clone(),
            Refusal::Engine(error) => error.to_string(),
        }
    }

    fn into_failure(self, label: &str) -> Failure {
        match self {
            Refusal::Engine(error) => error.into(),
            Refusal::Broken(message) => Failure::Other {
                kind: "cannot_fork",
                message: format!("{label} cannot be forked: {message}"),
                hint: Some("`--pick` another one".into()),
            },
        }
    }
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let intent = Intent {
        text: args.intent.join(" "),
        project: args.project.as_ref().map(|project| desk.tine.context().cwd.join(project)),
        limit: args.limit,
        min_score: args.min_score,
        collection: args.collection.clone(),
    };
    let suggestions = desk.tine.suggest(&intent, &Bar::new(), &IndexBar::new())?;
    let is_decided = args.auto || args.pick.is_some();
    let asks = !is_decided && desk.surface.is_interactive && !args.options.json;
    let place = match args.options.place.choice(desk, args.options.json) {
        Err(failure) if is_decided || asks => return Err(failure),
        // A list is worth having where nothing can run, too.
        place => place.unwrap_or(Place::None),
    };
    let mut choices: Vec<Choice> = Vec::new();
    for found in &suggestions.answer.results {
        choices.push(Choice { found, refusal: refusal(desk, args, place, found) });
    }
    if choices.is_empty() && is_decided {
        return Err(nothing(&suggestions));
    }
    if is_decided && !args.options.json {
        search::say_beside(&suggestions.answer);
    }
    let chosen = match args.pick {
        Some(number) => Some(picked(number, choices.len(), intent.limit)?),
        None if args.auto => Some(best(&choices)),
        None if asks && !choices.is_empty() => match ask(desk, &suggestions, &mut choices)? {
            Some(at) => Some(at),
            None => return left(),
        },
        None => None,
    };
    let told = as_json(args, &suggestions, &choices);
    let Some(at) = chosen else {
        return list(desk, args, &suggestions, &choices, &told);
    };
    let Choice { found, refusal, .. } = choices.swap_remove(at);
    let label = found.session.view.label().to_owned();
    if let Some(refusal) = refusal {
        return Err(refusal.into_failure(&label));
    }
    if let Err(error) = desk.tine.program(args.shape.agent.unwrap_or(found.session.view.agent)) {
        ui::warn(&format!("{error}: the fork is made, but nothing here can go on with it"));
    }
    let tell = |fork: Value| {
        let mut told = told.clone();
        told["picked"] = json!(at + 1);
        told["fork"] = fork;
        told
    };
    let wait = args.shape.wait(&args.options);
    let mut selection = selection(args, found);
    let request = |selection| args.shape.request(selection, args.name.as_ref());
    if !asks || args.options.yes || args.options.plan {
        return fork::fork_as(desk, selection, &args.options, wait, request, &tell);
    }
    selection.session = fork::when_idle(desk, selection.session, wait)?;
    let source = selection.session.clone();
    let mut request = request(selection);
    args.options.complete(desk, &mut request)?;
    match dialog::agree(desk, request, found.turn)? {
        Some(plan) => fork::make(desk, &source, &plan, &args.options, true, &tell),
        None => left(),
    }
}

/// The person left.
fn left() -> Outcome {
    ui::say("nothing was done");
    Ok(ExitCode::FAILURE)
}

/// The point of a session that is forked.
fn selection(args: &Args, found: &Found) -> Selection {
    let session = found.session.clone();
    let turns = args.at_hit.then_some(found.turn).filter(|turn| *turn < session.view.turns);
    Selection { session, turns }
}

/// What keeps a session from being forked as asked. The agent is looked for here, before anybody is asked anything.
fn refusal(desk: &Desk, args: &Args, place: Place, found: &Found) -> Option<Refusal> {
    // Where another agent is to go on and is not there, whatever else is wrong with a session is of no use to know.
    let other = args.shape.agent.filter(|agent| *agent != found.session.view.agent);
    if let Some(Err(error)) = other.map(|agent| desk.tine.program(agent)) {
        return Some(Refusal::Engine(error));
    }
    if !found.can_fork {
        let why = found.warning.clone().unwrap_or_else(|| "there is no turn in it".to_owned());
        return Some(Refusal::Broken(why));
    }
    let mut request = args.shape.request(selection(args, found), args.name.as_ref());
    request.now = args.options.now;
    request.place = place;
    match desk.tine.check_fork(&request) {
        Ok(()) => None,
        // It is waited for.
        Err(Error::AtWork { .. }) if args.shape.wait(&args.options).is_some() => None,
        Err(error) => Some(Refusal::Engine(error)),
    }
}

/// The command that forks this session as asked; people read its name, programs its id.
fn command(args: &Args, found: &Found, session: &str) -> Vec<String> {
    let point = selection(args, found).turns.map(|turns| format!("@{turns}")).unwrap_or_default();
    let mut words = vec!["tine".to_owned(), "fork".to_owned(), format!("{session}{point}")];
    words.extend(args.name.iter().map(|name| name.as_str().to_owned()));
    words.extend(args.shape.words());
    words.extend(args.options.words());
    words
}

fn picked(number: usize, count: usize, limit: usize) -> Result<usize, Failure> {
    number.checked_sub(1).filter(|at| *at < count).ok_or_else(|| Failure::Other {
        kind: "no_such_result",
        message: format!("there is no result {number}"),
        hint: Some(match count {
            1 => "there is one, `--pick 1`".to_owned(),
            _ if count < limit => format!("there are {count}"),
            _ => format!("there are {count}; `--limit` asks for more"),
        }),
    })
}

/// What fits less well than this part of the best is another thing.
const AS_GOOD: f32 = 0.5;

/// The best session that can be forked, else the best of all, whose trouble is then told.
fn best(choices: &[Choice]) -> usize {
    let least = choices.first().map_or(0.0, |choice| choice.found.score * AS_GOOD);
    let fits = |choice: &Choice| choice.refusal.is_none() && choice.found.score >= least;
    let Some(at) = choices.iter().position(fits) else { return 0 };
    for choice in &choices[..at] {
        let why = choice.refusal.as_ref().map(Refusal::message).unwrap_or_default();
        ui::say(&format!("{} fits better, but: {why}", choice.found.session.view.label()));
    }
    let Found { session, turn, score, .. } = choices[at].found;
    ui::say(&format!("{} fits best: turn {turn} of {}, {score:.2}", session.view.label(), session.view.turns));
    at
}

/// Lets a person choose. Where none can be forked, there is nothing to be asked.
fn ask(desk: &Desk, suggestions: &Suggestions, choices: &mut [Choice]) -> Result<Option<usize>, Failure> {
    if choices.iter().all(|choice| choice.refusal.is_some())
        && let Some(refusal) = choices[0].refusal.take()
    {
        return Err(refusal.into_failure(choices[0].found.session.view.label()));
    }
    search::say_beside(&suggestions.answer);
    let items: Vec<Item> = choices.iter().map(|choice| item(desk, choice, picker::BEFORE)).collect();
    picker::choose_among(&desk.surface, &items, &|at| preview(desk, choices[at].found))
}

fn item(desk: &Desk, choice: &Choice, before: usize) -> Item {
    let mut lines = search::lines(desk, choice.found, before);
    let refusal = choice.refusal.as_ref().map(Refusal::message);
    // What is wrong with the transcript stands there already.
    if let Some(Refusal::Engine(error)) = &choice.refusal {
        lines.push(format!("    {}", Paint(desk.surface.color).note(&text::one_line(&error.to_string()))));
    }
    Item { lines, refusal }
}

/// The turn that was found: what was asked in it and answered.
fn preview(desk: &Desk, found: &Found) -> Result<Vec<String>, Failure> {
    let paint = Paint(desk.surface.color);
    let mut lines = vec![paint.bold(&format!("{}, turn {}", ui::title(&found.session.view), found.turn))];
    let mut blocks = desk.tine.read(&found.session, Some(found.turn))?;
    while let Some(block) = blocks.next_block() {
        let (said, mark) = match &block.kind {
            BlockKind::Prompt { text, .. } => (text, "> "),
            BlockKind::Answer { text, .. } => (text, ""),
            _ => continue,
        };
        if block.turn != found.turn || block.depth > 0 {
            continue;
        }
        let room = (PREVIEW + 1).saturating_sub(lines.len());
        let said = secrets::mask(said).0;
        lines.extend(said.lines().take(room).map(|line| format!("{mark}{}", text::one_line(line))));
        if lines.len() > PREVIEW {
            lines.truncate(PREVIEW);
            let whole = format!("… `tine show {}@{}` has all of it", found.session.view.label(), found.turn);
            lines.push(paint.dim(&whole));
            break;
        }
    }
    Ok(lines)
}

/// Lists what was found, and how one of it is forked.
fn list(desk: &Desk, args: &Args, suggestions: &Suggestions, choices: &[Choice], told: &Value) -> Outcome {
    let mut out = ui::out();
    if args.options.json {
        writeln!(out, "{}", to_json_pretty(told))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, choice) in choices.iter().enumerate() {
        for (row, line) in item(desk, choice, 3).lines.iter().enumerate() {
            let mark = if row == 0 { format!("{:>2} ", number + 1) } else { "   ".to_owned() };
            writeln!(out, "{mark}{line}")?;
        }
        if choice.refusal.is_none() {
            let command = command(args, choice.found, choice.found.session.view.label());
            writeln!(out, "       {}", show::line(&command))?;
        }
    }
    out.flush()?;
    search::say_beside(&suggestions.answer);
    match choices.is_empty() {
        true => {
            ui::say(&nothing_said(suggestions));
            if let Some(newest) = suggestions.recent.first() {
                let (label, title) = (newest.view.label(), ui::title(&newest.view));
                ui::say(&format!("the most recent session is {label}, {title}; `tine list --all` shows all"));
            }
        }
        false if choices.iter().any(|choice| choice.refusal.is_none()) => {
            ui::say("`--pick K` forks one of them, `--auto` the best");
        }
        false => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// That nothing was found, and why.
fn nothing_said(suggestions: &Suggestions) -> String {
    match suggestions.weak.as_slice() {
        [] => search::nothing_found(&suggestions.answer).to_owned(),
        [best, ..] => {
            let count = ui::count(suggestions.weak.len() as u64, "session");
            format!("nothing fits well enough; `--min-score` leaves out {count}, the best of them at {best:.2}")
        }
    }
}

fn nothing(suggestions: &Suggestions) -> Failure {
    let notices = search::notices(&suggestions.answer);
    let hint = match notices.is_empty() {
        true => "say it in other words, or look through `tine list --all`".to_owned(),
        false => notices.join("; "),
    };
    Failure::Other { kind: "nothing_found", message: nothing_said(suggestions), hint: Some(hint) }
}

fn as_json(args: &Args, suggestions: &Suggestions, choices: &[Choice]) -> Value {
    let answer = &suggestions.answer;
    let result = |(at, choice): (usize, &Choice)| {
        let mut told = search::result(at + 1, choice.found);
        told["can_fork"] = json!(choice.refusal.is_none());
        let refusal = choice.refusal.as_ref().map(Refusal::message);
        told["warning"] = json!(choice.found.warning.clone().or(refusal));
        told["command"] = json!(command(args, choice.found, choice.found.session.view.id.as_str()));
        told
    };
    json!({
        "intent": answer.query,
        "engine": answer.engine,
        "fallback_used": suggestions.fallback_used(),
        "results": choices.iter().enumerate().map(result).collect::<Vec<_>>(),
        "errors": search::errors(answer),
        "left_out": suggestions.weak.len(),
        "fallback_sessions": suggestions.recent.iter().map(|session| &session.view).collect::<Vec<_>>(),
        "picked": null,
        "fork": null,
    })
}
