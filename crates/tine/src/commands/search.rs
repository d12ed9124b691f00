//! `tine search`: find past conversations.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use engine::{Answer, Asking, Found, Grounds, Limits, Missing, Now, Query, RECENT, Snippet, query_time, without_line};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{Agent, text};

use super::{Desk, list};
use crate::Outcome;
use crate::cli::agent_parser;
use crate::failure::Failure;
use crate::ui::{self, Bar, IndexBar, Paint};

/// How long the index is worked on after the answer is out.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Find past conversations by what was said and done in them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All sessions are searched, whatever the directory, by words and by meaning: a question finds what was said in other words.
What people and agents said ranks before what tools did. Identifiers are found by their parts: `config` finds
`parseConfig` and `parse_config`. Signs such as \"quotes\", + and - ask for words alone.

In the query: \"an exact phrase\", -without, +required, and filters as below:
agent:codex  file:src/auth.rs  tool:Bash  branch:main  dir:.  since:2w  until:2026-11-01

Examples:
  tine search redirect after login
  tine search '\"connection reset\" since:2w -windows'
  tine search --file src/auth.rs            sessions that touched a file
  tine search redirects --engine qmd        in a qmd collection that was made of `tine export`
  tine search parse config --json | jq -r '.results[].session.id'")]
pub(crate) struct Args {
    /// What to look for
    #[arg(value_name = "QUERY")]
    pub query: Vec<String>,
    /// At most this many sessions
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub limit: usize,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
    pub agent: Option<Agent>,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only what was said since: `3d`, `2w`, `2026-11-01`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only what was said before
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only sessions that were on this git branch
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Only where this file was read or written
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
    /// Only where this tool was used
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// What answers
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: Engine,
    /// The collection of qmd that is asked
    #[arg(long, value_name = "NAME", default_value = engine::DEFAULT_COLLECTION)]
    pub collection: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn at_least_one(word: &str) -> Result<usize, String> {
    word.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a number from 1".to_owned())
}

/// What answers a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The best there is
    Auto,
    /// Words and meaning together
    Hybrid,
    /// Words alone
    Words,
    /// Meaning alone, for the evaluation
    #[value(hide = true)]
    Meaning,
    /// An existing qmd collection
    Qmd,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let now = Now { time: desk.tine.context().clock.now(), zone: desk.surface.zone.clone() };
    let given = limits(desk, args, &now)?;
    let mut query = Query::parse(&args.query.join(" "), &given, &now)?;
    // A directory inside of the query is where the person stands, too.
    let context = desk.tine.context();
    query.limits.directory = query.limits.directory.map(|directory| match directory.strip_prefix("~") {
        Ok(inside) => context.surroundings.home.join(inside),
        Err(_) => context.cwd.join(directory),
    });
    let mut search = |engine| {
        query.engine = engine;
        let (progress, indexing) = (&Bar::new(), &IndexBar::new());
        desk.tine.search(Asking { query: &query, limits: &given, limit: args.limit, progress, indexing })
    };
    let answer = match args.engine {
        Engine::Auto => search(engine::Engine::Auto)?,
        Engine::Hybrid => search(engine::Engine::Hybrid)?,
        Engine::Words => search(engine::Engine::Words)?,
        Engine::Meaning => search(engine::Engine::Meaning)?,
        Engine::Qmd => desk.tine.search_qmd(&query, &given, &args.collection, args.limit, &Bar::new())?,
    };
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&as_json(&answer)))?;
    } else {
        tell(desk, &answer, &mut out)?;
    }
    out.flush()?;
    drop(out);
    // The answer is out; what tools did is read, and what was said is understood, as far as a person may wait for the
    // next prompt.
    if answer.grounds.missing > 0 {
        let _ = desk.tine.update_vectors(Some(AFTERWARDS), false, &Bar::new(), &IndexBar::new());
    } else if answer.missing != Missing::default() {
        let _ = desk.tine.update_index(Some(AFTERWARDS), false, &Bar::new(), &IndexBar::new());
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

fn as_json(answer: &Answer) -> Value {
    let one = |(at, found): (usize, &Found)| {
        let mut told = result(at + 1, found);
        // Not found, but there.
        if answer.engine == RECENT {
            told["recent"] = true.into();
        }
        told
    };
    json!({
        "query": answer.query,
        "engine": answer.engine,
        "results": answer.results.iter().enumerate().map(one).collect::<Vec<_>>(),
        "errors": errors(answer),
    })
}

/// One result for programs.
pub(crate) fn result(rank: usize, found: &Found) -> Value {
    let gone = found.session.view.cwd.as_deref().filter(|cwd| !cwd.is_dir());
    let gone = gone.map(|cwd| format!("the session's directory {} is gone", text::one_line(&cwd.to_string_lossy())));
    json!({
        "rank": rank,
        "score": rounded(found.score),
        "session": found.session.view,
        "turn": found.turn,
        "snippet": found.snippet.text,
        "can_fork": found.can_fork && gone.is_none(),
        "warning": found.warning.as_ref().or(gone.as_ref()),
        "forks": found.forks,
    })
}

/// Everything that stands beside the results, for programs.
pub(crate) fn errors(answer: &Answer) -> Vec<Value> {
    let notice = |message| json!({ "engine": answer.engine, "message": message });
    // People are told of folders by every command alike.
    let notices = notices(answer).into_iter().chain(answer.unlisted.iter().cloned());
    answer.errors.iter().map(|error| json!(error)).chain(notices.map(notice)).collect()
}

/// Three digits say all there is to say.
pub(crate) fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1000.0).round() / 1000.0
}

/// That nothing was found, or that there was nothing to search.
pub(crate) fn nothing_found(answer: &Answer) -> &'static str {
    if answer.no_sessions { list::NO_SESSIONS } else { "nothing was found" }
}

/// What stands beside the results: nothing of it is a failure.
pub(crate) fn notices(answer: &Answer) -> Vec<String> {
    let mut notices = answer.notices.clone();
    let missing = answer.missing;
    let nothing = if missing == Missing::default() { "nothing says" } else { "nothing that was searched says" };
    for correction in &answer.corrections {
        notices.push(format!("{nothing} `{}`; looked for `{}` instead", correction.asked, correction.taken));
    }
    if !answer.unknown.is_empty() && !answer.no_sessions {
        notices.push(format!("{nothing} `{}`", answer.unknown.join("` or `")));
        if answer.left_out > 0 {
            let lines = ui::count(answer.left_out, "line");
            notices.push(format!("{lines} of transcripts cannot be searched: too long"));
        }
    }
    if missing.sessions > 0 {
        let sessions = ui::count(missing.sessions as u64, "session");
        notices.push(format!("{sessions} could not be searched yet; `tine index` reads all"));
    } else if missing.tools > 0 {
        let sessions = ui::count(missing.tools as u64, "session");
        notices.push(format!("only what was said was searched in {sessions}; `tine index` reads what tools did, too"));
    }
    let Grounds { missing, reranked, unknown_language } = answer.grounds;
    if unknown_language {
        notices.push("the question is in a language whose meaning is not known; words alone decided".into());
    } else if missing > 0 {
        let sessions = ui::count(missing as u64, "session");
        let compared = match reranked {
            0 => String::new(),
            1 => ": there, the best turn by words was compared".to_owned(),
            turns => format!(": there, the best {turns} turns by words were compared"),
        };
        notices.push(format!("the meaning of {sessions} is not known yet{compared}; `tine index` makes all vectors"));
    }
    notices
}

fn tell(desk: &Desk, answer: &Answer, out: &mut impl Write) -> std::io::Result<()> {
    for line in answer.results.iter().flat_map(|found| lines(desk, found, 0)) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    say_beside(answer);
    if answer.engine == RECENT {
        ui::say(
            "qmd did not answer; these are the most recent sessions, and `tine search` without `--engine` searches by itself",
        );
    }
    if answer.results.is_empty() {
        ui::say(nothing_found(answer));
    }
    Ok(())
}

/// Everything that stands beside the results, for people.
pub(crate) fn say_beside(answer: &Answer) {
    for error in &answer.errors {
        ui::say(&format!("{}: {}", error.engine, error.message));
    }
    for notice in notices(answer) {
        ui::say(&text::one_line(&notice));
    }
}

/// A result for people: what it is, why it was found, and what else there is to say. So many columns stand before it.
pub(crate) fn lines(desk: &Desk, found: &Found, before: usize) -> Vec<String> {
    let width = desk.surface.width.map(|width| width.saturating_sub(before));
    let paint = Paint(desk.surface.color);
    let now = desk.tine.context().clock.now();
    let view = &found.session.view;
    let folder = view.cwd.as_deref().map(|cwd| ui::path(&desk.surface, cwd));
    let mut ends: Vec<String> =
        view.updated.map(|time| ui::short_age(time, now, &desk.surface.zone)).into_iter().collect();
    ends.push(format!("turn {} of {}", found.turn, view.turns));
    ends.push(format!("{:.2}", found.score));
    let mut middle = vec![view.agent.as_str().to_owned()];
    if view.name.is_none() {
        middle.insert(0, ui::label(view).to_owned());
    }
    // What is long gives way to what is short and says how well it fits.
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

/// The snippet with its words marked: by colour, or by stars where there is none.
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
