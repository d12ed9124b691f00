//! `tine search`: find past conversations.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use diagnostics::OrLog;
use engine::{
    Answer, Choice, EMBEDDING, Found, IndexPart, IndexRequest, Limits, Missing, Now, Query, RECENT, SearchRequest,
    Snippet, query_time, without_line,
};
use transcript::render::to_json_pretty;
use transcript::{Agent, text};

use super::{Desk, list};
use crate::Outcome;
use crate::cli::{FILTERS, agent_parser};
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, IndexBar, Paint};

/// How long the index is worked on after the answer is out.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Search all sessions by keyword and by meaning
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prompts and answers rank above tool output. Identifiers match by their parts: `config` finds `parseConfig`. A query \
with quotes, `+` or `-` matches keywords only. Queries can contain these filters:
  agent:codex  file:src/auth.rs  tool:Bash  branch:main
  dir:.  since:2w  until:2026-11-01

Engines:
  auto    the best one available
  hybrid  keywords and meaning
  words   keywords only
  qmd     a qmd collection of exported sessions

Examples:
  tine search redirect after login
  tine search '\"connection reset\" since:2w -windows'
  tine search --file src/auth.rs            turns that touched a file
  tine search redirects --engine qmd        search a qmd collection
  tine search parse config --json | jq -r '.results[].session.id'")]
pub(crate) struct Args {
    /// Words, a question or a "quoted phrase"
    #[arg(value_name = "QUERY", add = complete::query())]
    pub query: Vec<String>,
    /// Maximum number of sessions
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub limit: usize,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", value_parser = agent_parser(), help_heading = FILTERS)]
    pub agent: Option<Agent>,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR", help_heading = FILTERS)]
    pub dir: Option<PathBuf>,
    /// Only turns since TIME, such as 3d, 2w or 2026-11-01
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub since: Option<String>,
    /// Only turns before TIME
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub until: Option<String>,
    /// Only sessions on this git branch
    #[arg(long, value_name = "BRANCH", help_heading = FILTERS)]
    pub branch: Option<String>,
    /// Only turns that read or wrote this file
    #[arg(long, value_name = "PATH", help_heading = FILTERS)]
    pub file: Option<String>,
    /// Only turns that used this tool
    #[arg(long, value_name = "TOOL", help_heading = FILTERS)]
    pub tool: Option<String>,
    /// Search engine: auto, hybrid, words or qmd
    #[arg(long, value_name = "ENGINE", default_value = "auto", hide_possible_values = true)]
    pub engine: Engine,
    /// qmd collection to search
    #[arg(long, value_name = "NAME", default_value = engine::DEFAULT_COLLECTION)]
    pub collection: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn at_least_one(word: &str) -> Result<usize, String> {
    word.parse().ok().filter(|count| *count > 0).ok_or_else(|| "use a number of 1 or more".to_owned())
}

/// What answers a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The best one available
    Auto,
    /// Keywords and meaning
    Hybrid,
    /// Keywords only
    Words,
    /// Meaning alone, for the evaluation
    #[value(hide = true)]
    Meaning,
    /// A qmd collection of exported sessions
    Qmd,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let now = Now { time: desk.tine.context().clock.now(), zone: desk.surface.zone.clone() };
    let given = limits(desk, args, &now)?;
    let mut query = Query::parse(&args.query.join(" "), &given, &now)?;
    query.engine = match args.engine {
        Engine::Auto | Engine::Qmd => engine::Engine::Auto,
        Engine::Hybrid => engine::Engine::Hybrid,
        Engine::Words => engine::Engine::Words,
        Engine::Meaning => engine::Engine::Meaning,
    };
    query.collection = (args.engine == Engine::Qmd).then(|| args.collection.clone());
    let (progress, indexing) = (&Bar::new(), &IndexBar::new());
    let (limits, limit, embedding) = (&given, args.limit, EMBEDDING);
    let mut answer = desk.tine.search(SearchRequest { query: &query, limits, limit, embedding, progress, indexing })?;
    let mut out = ui::out();
    if args.json {
        let check = |found: Found| {
            let can_fork = desk.tine.check_found(&found, None).map(drop).into();
            Choice { found, can_fork }
        };
        let choices = answer.results.drain(..).map(check).collect::<Vec<_>>();
        writeln!(out, "{}", to_json_pretty(&answer.view(&choices, 1)))?;
    } else {
        print_answer(desk, &answer, &mut out)?;
    }
    out.flush()?;
    drop(out);
    // The answer is printed; tool output is indexed for as long as the user can wait for the next prompt.
    if answer.missing != Missing::default() {
        let request = IndexRequest { part: IndexPart::Words, time: Some(AFTERWARDS), rebuild: false };
        desk.tine.update_index(request, &Bar::new(), &IndexBar::new()).or_log("complete the index");
    }
    std::mem::forget(answer);
    Ok(ExitCode::SUCCESS)
}

fn limits(desk: &Desk, args: &Args, now: &Now) -> Result<Limits, Failure> {
    let time = |value: &Option<String>, option: &str| {
        let read = value.as_deref().map(|value| query_time(value, now)).transpose();
        read.map_err(|message| Failure::Other {
            kind: "bad_time",
            message: format!("{option}: {}", text::one_line(&message)),
            hint: None,
        })
    };
    Ok(Limits {
        agent: args.agent,
        directory: args.dir.as_ref().map(|dir| desk.tine.context().cwd.join(dir)),
        since: time(&args.since, "--since")?,
        until: time(&args.until, "--until")?,
        branch: args.branch.clone(),
        file: args.file.as_deref().map(|file| without_line(file).to_owned()),
        tool: args.tool.clone(),
    })
}

/// Says that nothing was found, and whether that is final.
pub(crate) fn nothing_found(answer: &Answer) -> &'static str {
    let is_incomplete = answer.missing.sessions > 0 || answer.grounds.missing > 0;
    match (answer.no_sessions, is_incomplete) {
        (true, _) => list::NO_SESSIONS,
        (false, true) => "no matches so far",
        (false, false) => "no matches",
    }
}

fn print_answer(desk: &Desk, answer: &Answer, out: &mut impl Write) -> std::io::Result<()> {
    for line in answer.results.iter().flat_map(|found| lines(desk, found, 0)) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    print_notices(answer);
    if answer.engine == RECENT {
        ui::print_message(
            "qmd didn't answer; showing the most recent sessions. Leave out `--engine qmd` to use tine's own search",
        );
    }
    if answer.results.is_empty() {
        ui::print_message(nothing_found(answer));
    }
    Ok(())
}

/// The notices next to the results.
pub(crate) fn print_notices(answer: &Answer) {
    for error in &answer.errors {
        ui::print_message(&format!("{}: {}", error.engine, error.message));
    }
    for notice in answer.notices() {
        ui::print_message(&text::one_line(&notice));
    }
}

/// A result as text: what it is, why it matched, and notes. This many columns precede it.
pub(crate) fn lines(desk: &Desk, found: &Found, before: usize) -> Vec<String> {
    let width = desk.surface.width.map(|width| width.saturating_sub(before));
    let paint = Paint(desk.surface.color);
    let now = desk.tine.context().clock.now();
    let view = &found.session.view;
    let folder = view.cwd.as_deref().map(|cwd| ui::path(&desk.surface, cwd));
    let mut ends: Vec<String> =
        view.updated.map(|time| ui::short_age(time, now, &desk.surface.zone)).into_iter().collect();
    let branch = found.session.details.branch.as_ref();
    let branch = branch.map(|branch| format!(" on another branch, @{branch}")).unwrap_or_default();
    ends.push(format!("turn {} of {}{branch}", found.turn, view.turns));
    ends.push(format!("{:.2}", found.score));
    let mut middle = vec![view.agent.as_str().to_owned()];
    if view.name.is_none() {
        middle.insert(0, ui::label(view).to_owned());
    }
    // Long parts are shortened in favour of short ones and the score.
    let short: usize = middle.iter().chain(&ends).map(|fact| text::width(fact) + 3).sum();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(short + 3));
    let title = match &view.name {
        Some(name) => name.as_str().to_owned(),
        None => text::clip(&ui::title(view), 50.min(room.saturating_sub(8).max(16))),
    };
    let folder = folder.map(|folder| text::clip(&folder, room.saturating_sub(text::width(&title)).max(8)));
    let title = if view.name.is_some() { paint.name(&title) } else { paint.bold(&title) };
    let facts: Vec<String> = std::iter::once(title).chain(middle).chain(folder).chain(ends).collect();
    let line = facts.join(&paint.dim(" · "));
    let mut lines = vec![match width {
        Some(width) => ui::clip_painted(&line, width),
        None => line,
    }];
    if !found.snippet.text.is_empty() {
        lines.push(format!("    {}", marked(&found.snippet, paint)));
    }
    if !found.forks.is_empty() {
        let forks = text::one_line(&found.forks.join(", "));
        let count = ui::count(found.forks.len() as u64, "fork");
        lines.push(format!("    {}", paint.dim(&format!("also in {count}: {forks}"))));
    }
    if let Some(warning) = &found.warning {
        lines.push(format!("    {}", paint.note(&text::one_line(warning))));
    }
    lines
}

/// The snippet with its words marked: by colour, or by asterisks without colour.
fn marked(snippet: &Snippet, paint: Paint) -> String {
    let mut line = String::new();
    let mut at = 0;
    for mark in &snippet.marks {
        line.push_str(&snippet.text[at..mark.start]);
        let word = &snippet.text[mark.clone()];
        line.push_str(&if paint.0 { paint.note(word) } else { format!("*{word}*") });
        at = mark.end;
    }
    line.push_str(&snippet.text[at..]);
    line
}
