//! `tine fork --times N`: several forks of one session, as one operation.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use engine::{Error, ForkView, Forked, Method, Opened, Part, Place, Plan};
use transcript::render::to_json_pretty;
use transcript::{SessionName, State, text};

use super::Desk;
use super::fork::{self, Answer};
use super::place;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, ForksBar, Paint, plan as show};

/// How many forks one command makes at most.
pub(super) const MOST: usize = 64;

pub(crate) fn run(desk: &Desk, args: &fork::Args) -> Outcome {
    let options = &args.options;
    let parts = parts(args)?;
    let mut selection = desk.select(&args.session)?;
    let is_busy = matches!(selection.session.view.state, State::Busy | State::Waiting);
    if !options.plan {
        selection.session = fork::when_idle(desk, selection.session, options.wait)?;
    }
    let source = selection.session.clone();
    let mut request = args.request(selection);
    request.waits = options.plan && options.wait.is_some() && is_busy;
    request.now = options.now;
    request.place = if request.no_start { Place::None } else { options.place.choice(desk, true)? };
    if request.place == Place::Here {
        return Err(Failure::Other {
            kind: "one_terminal",
            message: "only one agent can run in this terminal".into(),
            hint: Some("pass `--in tmux:window`, `--in headless` or `--in none`".into()),
        });
    }
    let mut plans = desk.tine.plan_forks(&request, &parts)?;
    let mut out = ui::out();
    if options.plan {
        match options.json {
            true => {
                let views: Vec<ForkView> = plans.iter().map(Plan::view).collect();
                writeln!(out, "{}", to_json_pretty(&views))?;
            }
            false => show::show_all(&mut out, &desk.surface, &plans)?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let asks = plans[0].needs_confirmation() && !options.yes;
    if asks {
        match fork::ask_about_changes(desk, options.json, &plans)? {
            Answer::Leave => {}
            Answer::Code(code) => {
                request.code = code;
                plans = desk.tine.plan_forks(&request, &parts)?;
            }
            Answer::Cancel => {
                ui::print_message("cancelled");
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    if plans[0].method == Method::Seed && !asks && !options.json {
        plans[0].requests.iter().for_each(|request| ui::print_message(&format!("for each fork: {request}")));
    }
    let bar = ForksBar::new();
    let forks = desk.tine.apply_forks(&plans, &|done| bar.made(done, plans.len()))?;
    drop(bar);
    desk.tine.remember_use(&source);
    if !options.json && !asks {
        warn(&forks);
    }
    let mut views: Vec<ForkView> = Vec::new();
    for fork in &forks {
        let opened = desk.tine.open_fork(fork, desk.surface.is_interactive, options.place.ready_within())?;
        match options.json {
            true => views.push(fork.view(&opened)),
            false => print(&mut out, desk, fork, &opened)?,
        }
    }
    if options.json {
        writeln!(out, "{}", to_json_pretty(&views))?;
    }
    out.flush()?;
    if !options.json {
        summarize(&forks);
    }
    Ok(ExitCode::SUCCESS)
}

/// What each fork has for itself.
fn parts(args: &fork::Args) -> Result<Vec<Part>, Failure> {
    let prompts = args.prompts.as_deref().map(prompts).transpose()?;
    let count = prompts.as_ref().map(Vec::len);
    let times = args.times.map(|times| times as usize).or(count).unwrap_or(0);
    if count.is_some_and(|count| count != times || !(1..=MOST).contains(&count)) {
        let count = count.unwrap_or(0);
        let message = match args.times {
            Some(times) => format!(
                "expected one prompt per fork: {}, {}",
                ui::count(count as u64, "prompt"),
                ui::count(times.into(), "fork")
            ),
            None if count == 0 => "the `--prompts` file has no prompts".into(),
            None => format!("{count} prompts: the limit is {MOST} forks per command"),
        };
        let hint = Some("each non-empty line of the file is one prompt".into());
        return Err(Failure::Other { kind: "wrong_number", message, hint });
    }
    let same = args.options.prompt.as_deref().map(fork::prompt).transpose()?;
    let branch = args.shape.worktree.as_deref().filter(|branch| !branch.is_empty());
    (1..=times)
        .map(|number| {
            let name = args.name.as_ref().map(|name| SessionName::new(format!("{name}-{number}")));
            Ok(Part {
                name: name.transpose().map_err(Error::from)?,
                branch: branch.map(|branch| format!("{branch}-{number}")),
                prompt: prompts.as_ref().and_then(|prompts| prompts.get(number - 1)).or(same.as_ref()).cloned(),
            })
        })
        .collect()
}

fn prompts(file: &Path) -> Result<Vec<String>, Failure> {
    let content = fs::read_to_string(file).map_err(|error| Failure::Other {
        kind: "unreadable",
        message: format!("cannot read prompts from {}: {error}", file.display()),
        hint: Some("`--prompts` takes a text file with one prompt per line".into()),
    })?;
    Ok(content.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Each warning once, however many forks it is about.
fn warn(forks: &[Forked]) {
    let mut shown: Vec<&String> = Vec::new();
    for warning in forks.iter().flat_map(|fork| &fork.plan.warnings) {
        if !shown.contains(&warning) {
            ui::warn(warning);
            shown.push(warning);
        }
    }
}

fn print(out: &mut impl Write, desk: &Desk, fork: &Forked, opened: &Opened) -> std::io::Result<()> {
    let plan: &Plan = &fork.plan;
    if plan.keeps_seed {
        writeln!(out, "{}", show::line(&opened.command))?;
        return out.flush();
    }
    if plan.place == Place::None {
        let variables = plan.variables();
        let command = show::resume_words(&plan.profile, &opened.command, fork.session.label());
        writeln!(out, "{}", show::in_directory(&plan.workspace.path, &variables, &command))?;
        return out.flush();
    }
    let name = Paint(desk.surface.color).name(fork.session.label());
    let place = match &opened.pane {
        Some(pane) => place::describe_pane(Some(pane)),
        None => plan.place.as_str().to_owned(),
    };
    let prompt = plan.prompt.as_deref().map(text::one_line).unwrap_or_default();
    let directory = ui::path(&desk.surface, &plan.workspace.path);
    writeln!(out, "{name}  {place}  {directory}  {}", text::clip(&prompt, 60))?;
    if let Some(answer) = &opened.answer {
        writeln!(out, "{}", text::clean(answer))?;
    }
    out.flush()
}

/// What was made, and what to do with it.
fn summarize(forks: &[Forked]) {
    let Some(first) = forks.first() else { return };
    let names: Vec<&str> = forks.iter().map(|fork| fork.plan.name.as_str()).collect();
    let (source, turns) = (first.plan.source.label(), first.plan.turns);
    ui::print_message(&format!("forked {source} after turn {turns} as {}", names.join(", ")));
    if matches!(first.plan.place, Place::In(_)) {
        ui::print_message(&format!("`tine wait {}` waits for all of them", names.join(" ")));
    }
    ui::print_message(&format!("`tine undo {}` undoes all of them", first.operation));
}
