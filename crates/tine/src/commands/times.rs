//! `tine fork --times N`: several forks of one session, each in its own place and told something else.

use std::fs;
use std::io::Write;
use std::process::ExitCode;

use engine::{Error, Forked, Opened, Place, Plan, Where};
use serde_json::Value;
use transcript::SessionName;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork;
use super::place;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, CopyBar, Paint};

pub(crate) fn run(desk: &Desk, args: &fork::Args) -> Outcome {
    let options = &args.options;
    let prompts = match &args.prompts {
        Some(file) => {
            lines(&fs::read_to_string(file).map_err(|source| Error::Unreadable { path: file.clone(), source })?)
        }
        None => Vec::new(),
    };
    let times = args.times.map_or(prompts.len(), |times| times as usize);
    if times == 0 || args.prompts.is_some() && prompts.len() != times {
        return Err(Failure::Other {
            kind: "wrong_number",
            message: format!("{} for {}", ui::count(prompts.len() as u64, "prompt"), ui::count(times as u64, "fork")),
            hint: Some("each line of the file that is not empty is one prompt".into()),
        });
    }
    let mut selection = desk.select(&args.session)?;
    selection.session = fork::when_idle(desk, selection.session, options.wait)?;
    let place = options.place.choice(desk, true)?;
    if place == Place::Here {
        return Err(Failure::Other {
            kind: "one_terminal",
            message: "several agents cannot run in one terminal".into(),
            hint: Some("say `--in tmux:window`, `--in headless` or `--in none`".into()),
        });
    }
    let same = options.prompt.as_deref().map(fork::prompt).transpose()?;
    let plan_one = |index: usize| -> Result<Plan, Failure> {
        let mut request = args.request(selection.clone());
        (request.now, request.place) = (options.now, place);
        request.prompt = prompts.get(index).or(same.as_ref()).cloned();
        let number = index + 1;
        if let Where::Worktree { branch: Some(branch), .. } = &mut request.workspace {
            branch.push_str(&format!("-{number}"));
        }
        if let Some(name) = &args.name {
            request.name = Some(SessionName::new(format!("{name}-{number}")).map_err(Error::BadName)?);
        }
        Ok(desk.tine.plan_fork(&request)?)
    };
    // All are planned before the first is made. Without a name the next one is known only when the last has its own.
    let known = if args.name.is_some() { times } else { 1 };
    let plans: Vec<Plan> = (0..known).map(plan_one).collect::<Result<_, _>>()?;
    let mut plans = plans.into_iter();
    let mut out = ui::out();
    let mut told: Vec<Value> = Vec::new();
    for index in 0..times {
        let mut make = || -> Result<(Forked, Opened), Failure> {
            let plan = plans.next().map_or_else(|| plan_one(index), Ok)?;
            let forked = desk.tine.apply_fork(&plan, &CopyBar::new())?;
            let focus = desk.surface.is_interactive;
            let opened = desk.tine.open_fork(&forked, focus, options.place.ready_within())?;
            Ok((forked, opened))
        };
        let made = make().inspect_err(|_| {
            let forks = ui::count(times as u64, "fork");
            ui::warn(&format!("{index} of {forks} were made before this failed; `tine log` lists them"));
        });
        let (forked, opened) = made?;
        let plan = &forked.plan;
        if !options.json {
            let name = Paint(desk.surface.color).name(forked.session.label());
            let place = match &opened.pane {
                Some(pane) => place::told(Some(pane)),
                None => plan.place.as_str().to_owned(),
            };
            let said = plan.prompt.as_deref().map(transcript::text::one_line).unwrap_or_default();
            let directory = ui::path(&desk.surface, &plan.workspace.path);
            writeln!(out, "{name}  {place}  {directory}  {}", transcript::text::clip(&said, 60))?;
            out.flush()?;
        }
        told.push(fork::told(&desk.tine, &forked, &opened));
    }
    if options.json {
        writeln!(out, "{}", to_json_pretty(&told))?;
    } else if matches!(place, Place::In(_)) {
        let names: Vec<&str> = told.iter().filter_map(|fork| fork["session"]["name"].as_str()).collect();
        ui::say(&format!("`tine wait {}` waits for all of them", names.join(" ")));
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}
