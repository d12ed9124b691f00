//! `tine smart-fork`: find the past session that fits an intent, and fork it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{CanFork, Choice, ForkView, Found, Intent, Place, Request, Selection, Suggestions};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{BlockKind, SessionName, State, secrets, text};

use super::Desk;
use super::fork::{self, Options, Shape};
use super::{search, smart_fork_dialog as dialog};
use crate::Outcome;
use crate::cli::MATCHES;
use crate::failure::Failure;
use crate::ui::picker::{self, Item};
use crate::ui::{self, Bar, IndexBar, Paint, plan as show};

/// The most lines of a turn that are shown before it is chosen.
const PREVIEW: usize = 24;

/// Find a past session that fits your task and fork it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal, you choose from the matching sessions and confirm the plan. Otherwise the matches are listed; --pick or \
--auto forks one. `tine fork --help` explains the fork options.

Examples:
  tine smart-fork retry uploads that time out
  tine smart-fork csv export for invoices --auto -w  best match, new worktree
  tine smart-fork login by cookie --pick 2 --at-hit  second match, at its turn
  tine smart-fork rate limits --dir . --min-score 0.4 --json
  tine smart-fork rate limits --collection sessions  search with qmd first")]
pub(crate) struct Args {
    /// What you want to do, in plain words
    #[arg(value_name = "INTENT", required = true)]
    pub intent: Vec<String>,
    /// Maximum number of matches
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = search::at_least_one)]
    #[arg(help_heading = MATCHES)]
    pub limit: usize,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR", alias = "project", help_heading = MATCHES)]
    pub dir: Option<PathBuf>,
    /// Hide matches that score below SCORE, from 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = score, help_heading = MATCHES)]
    pub min_score: Option<f32>,
    /// Fork match number K
    #[arg(long, value_name = "K", conflicts_with = "auto", help_heading = MATCHES)]
    pub pick: Option<usize>,
    /// Fork the best match that can be forked
    #[arg(long, help_heading = MATCHES)]
    pub auto: bool,
    /// Fork after the matching turn instead of at the end
    #[arg(long, help_heading = MATCHES)]
    pub at_hit: bool,
    /// Search this qmd collection first
    #[arg(long, value_name = "NAME", help_heading = MATCHES)]
    pub collection: Option<String>,
    /// Name of the fork [default: SOURCE-fork-N]
    #[arg(long, value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub options: Options,
}

fn score(word: &str) -> Result<f32, String> {
    let score = word.parse::<f32>().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "use a number from 0 to 1, such as `0.4`".to_owned())
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let intent = Intent {
        text: args.intent.join(" "),
        project: args.dir.as_ref().map(|dir| desk.tine.context().cwd.join(dir)),
        limit: args.limit,
        min_score: args.min_score,
        collection: args.collection.clone(),
    };
    let mut suggestions = desk.tine.suggest(&intent, &Bar::new(), &IndexBar::new())?;
    let is_decided = args.auto || args.pick.is_some();
    let asks = !is_decided && desk.surface.is_interactive && !args.options.json;
    let place = match args.options.place.choice(desk, args.options.json) {
        Err(failure) if is_decided || asks => return Err(failure),
        // A list is useful even if no agent can run.
        place => place.unwrap_or(Place::None),
    };
    let results = std::mem::take(&mut suggestions.answer.results);
    let request = |found: &Found| wanted(args, place, found);
    let check = |found: Found| {
        let can_fork = desk.tine.check_found(&found, Some(&request(&found))).map(drop).into();
        Choice { found, can_fork }
    };
    let mut choices: Vec<Choice> = results.into_iter().map(check).collect();
    if is_decided && !args.options.json && !choices.is_empty() {
        search::print_notices(&suggestions.answer);
    }
    let chosen = match args.pick {
        _ if choices.is_empty() && is_decided => Err(nothing(&suggestions)),
        Some(number) => picked(number, choices.len(), intent.limit).map(Some),
        None if args.auto => Ok(Some(automatic(desk, &mut choices, request))),
        None if asks && !choices.is_empty() => match ask(desk, &suggestions, &choices)? {
            Some(at) => Ok(Some(at)),
            None => return left(),
        },
        None => Ok(None),
    };
    let view = suggestions.view(&choices, |choice| command(args, &choice.found, choice.found.session.view.id.as_str()));
    let output = json!(view);
    // From here on, programs get the results with an error, so that they can choose another one.
    let Some(at) = chosen.map_err(|failure| failure.with_output(&output))? else {
        return list(desk, args, &suggestions, &choices, &output);
    };
    let Choice { found, can_fork } = choices.swap_remove(at);
    if let CanFork::No(refusal) = can_fork {
        return Err(Failure::from(refusal).with_output(&output));
    }
    let to_json = |fork: ForkView| json!(view.with_fork(at + 1, fork));
    make(desk, args, &found, asks, &to_json).map_err(|failure| failure.with_output(&output))
}

/// Forks the session that was chosen.
fn make(desk: &Desk, args: &Args, found: &Found, asks: bool, tell: &dyn Fn(ForkView) -> Value) -> Outcome {
    if let Err(error) = desk.tine.check_start(args.shape.agent.unwrap_or(found.session.view.agent), None) {
        ui::warn(&format!("{error}; the fork will be created but not opened"));
    }
    let wait = args.shape.wait(&args.options);
    let mut selection = selection(args, found);
    let request = |selection| args.shape.request(selection, args.name.as_ref());
    if !asks || args.options.yes || args.options.plan {
        return fork::fork_as(desk, selection, &args.options, wait, request, tell);
    }
    selection.session = fork::when_idle(desk, selection.session, wait)?;
    let source = selection.session.clone();
    let mut request = request(selection);
    args.options.complete(desk, &mut request)?;
    match dialog::agree(desk, request, found.turn)? {
        Some(plan) => fork::make(desk, &source, &plan, &args.options, true, tell),
        None => left(),
    }
}

/// The user cancelled.
fn left() -> Outcome {
    ui::print_message("cancelled");
    Ok(ExitCode::FAILURE)
}

/// The point of a session that is forked.
fn selection(args: &Args, found: &Found) -> Selection {
    let session = found.session.clone();
    let turns = args.at_hit.then_some(found.turn).filter(|turn| *turn < session.view.turns);
    Selection { session, turns }
}

/// The requested fork of this session, checked as far as possible in advance.
fn wanted(args: &Args, place: Place, found: &Found) -> Request {
    let mut request = args.shape.request(selection(args, found), args.name.as_ref());
    let is_at_work = matches!(found.session.view.state, State::Busy | State::Waiting);
    request.now = args.options.now;
    request.waits = is_at_work && args.shape.wait(&args.options).is_some();
    request.place = place;
    request
}

/// The command that forks this session as asked; people read its name, programs its id.
fn command(args: &Args, found: &Found, session: &str) -> Vec<String> {
    let point = selection(args, found).turns.map(|turns| format!("@{turns}")).unwrap_or_default();
    let branch = found.session.details.branch.as_ref().map(|branch| format!("@{branch}")).unwrap_or_default();
    let mut words = vec!["tine".to_owned(), "fork".to_owned(), format!("{session}{branch}{point}")];
    words.extend(args.name.iter().map(|name| name.as_str().to_owned()));
    words.extend(args.shape.words());
    words.extend(args.options.words());
    words
}

fn picked(number: usize, count: usize, limit: usize) -> Result<usize, Failure> {
    number.checked_sub(1).filter(|at| *at < count).ok_or_else(|| Failure::Other {
        kind: "no_such_result",
        message: format!("match {number} not found"),
        hint: Some(match count {
            1 => "there is only one match: `--pick 1`".to_owned(),
            _ if count < limit => format!("there are {count}"),
            _ => format!("there are {count} matches; `--limit` shows more"),
        }),
    })
}

/// The best session that can be forked; better ones that can't be are reported. If none can, the error is that of the
/// best one.
fn automatic(desk: &Desk, choices: &mut [Choice], request: impl Fn(&Found) -> Request) -> usize {
    let Some(at) = desk.tine.choose(choices, request) else { return 0 };
    for choice in &choices[..at] {
        let why = choice.warning().unwrap_or_default();
        ui::print_message(&format!("skipped {}: {why}", choice.found.session.view.label()));
    }
    let Found { session, turn, score, .. } = &choices[at].found;
    ui::print_message(&format!(
        "best match: {}, turn {turn} of {}, score {score:.2}",
        session.view.label(),
        session.view.turns
    ));
    at
}

/// Lets the user choose. If none can be forked, it does not ask, and the error is that of the best one.
fn ask(desk: &Desk, suggestions: &Suggestions, choices: &[Choice]) -> Result<Option<usize>, Failure> {
    if choices.iter().all(|choice| !choice.can_fork()) {
        return Ok(Some(0));
    }
    search::print_notices(&suggestions.answer);
    let items: Vec<Item> = choices.iter().map(|choice| item(desk, choice, picker::BEFORE)).collect();
    picker::choose_among(&desk.surface, &items, &|at| preview(desk, &choices[at].found))
}

fn item(desk: &Desk, choice: &Choice, before: usize) -> Item {
    let mut lines = search::lines(desk, &choice.found, before);
    let refusal = choice.refusal().map(|refusal| refusal.message.clone());
    // A warning about the transcript is among the lines already.
    if let Some(refusal) = refusal.as_ref().filter(|_| choice.found.warning.is_none()) {
        lines.push(format!("    {}", Paint(desk.surface.color).note(&text::one_line(refusal))));
    }
    Item { lines, refusal }
}

/// The turn that was found: what was asked in it and answered.
fn preview(desk: &Desk, found: &Found) -> Result<Vec<String>, Failure> {
    let paint = Paint(desk.surface.color);
    let mut lines = vec![paint.bold(&format!("{}, turn {}", ui::title(&found.session.view), found.turn))];
    let mut blocks = desk.tine.read(&found.session, Some(found.turn), engine::SeedText::Folded)?;
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
            let whole = format!("… `tine show {}@{}` shows the rest", found.session.view.label(), found.turn);
            lines.push(paint.dim(&whole));
            break;
        }
    }
    Ok(lines)
}

/// Lists what was found, and how one of it is forked.
fn list(desk: &Desk, args: &Args, suggestions: &Suggestions, choices: &[Choice], output: &Value) -> Outcome {
    let mut out = ui::out();
    if args.options.json {
        writeln!(out, "{}", to_json_pretty(output))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, choice) in choices.iter().enumerate() {
        for (row, line) in item(desk, choice, 3).lines.iter().enumerate() {
            let mark = if row == 0 { format!("{:>2} ", number + 1) } else { "   ".to_owned() };
            writeln!(out, "{mark}{line}")?;
        }
        if choice.can_fork() {
            let command = command(args, &choice.found, choice.found.session.view.label());
            writeln!(out, "       {}", show::line(&command))?;
        }
    }
    out.flush()?;
    search::print_notices(&suggestions.answer);
    match choices.is_empty() {
        true => {
            ui::print_message(&nothing_said(suggestions));
            if let Some(newest) = suggestions.recent.first() {
                let (label, title) = (newest.view.label(), ui::title(&newest.view));
                ui::print_message(&format!(
                    "the most recent session is {label}, {title}; `tine list --all` lists all of them"
                ));
            }
        }
        false if choices.iter().any(Choice::can_fork) => {
            ui::print_message("pass `--pick K` to fork one of them, or `--auto` for the best");
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
            format!("no match reaches `--min-score`; it hid {count}, the best with {best:.2}")
        }
    }
}

fn nothing(suggestions: &Suggestions) -> Failure {
    let notices = suggestions.answer.notices();
    let hint = match notices.is_empty() {
        true => "try other words, or see `tine list --all`".to_owned(),
        false => notices.join("; "),
    };
    Failure::Other { kind: "nothing_found", message: nothing_said(suggestions), hint: Some(hint) }
}
