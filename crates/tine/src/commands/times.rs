//! `tine fork --times N`: several forks of one session, each in its own place and told something else.

use std::fs;
use std::io::Write;
use std::process::ExitCode;

use engine::{Error, Place, Quiet, Where};
use serde_json::Value;
use transcript::SessionName;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{self, Timeout};
use super::place::{self, PlaceChoice};
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, CopyBar, Paint, Waiting, plan as show};

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
    if let Some(Timeout(timeout)) = options.wait {
        let waiting = Waiting::new();
        let tell = |session: &engine::Session, waited| waiting.tell(&session.view, waited);
        selection.session = desk.tine.wait_until_idle(selection.session, timeout, &tell)?;
    }
    let place = match options.place.choice(desk, true)? {
        PlaceChoice::Here => {
            return Err(Failure::Other {
                kind: "one_terminal",
                message: "several agents cannot run in one terminal".into(),
                hint: Some("say `--in tmux:window`, `--in headless` or `--in none`".into()),
            });
        }
        PlaceChoice::Headless => Place::Headless,
        PlaceChoice::None => Place::None,
        PlaceChoice::In(spot) => Place::In(spot),
    };
    // All are planned before the first is made, as far as that can be known.
    let mut plans = Vec::new();
    for number in 1..=times {
        let mut request = args.request(selection.clone());
        request.now = options.now;
        request.place = place;
        request.prompt = prompts.get(number - 1).cloned();
        if let Where::Worktree(Some(branch)) = &mut request.workspace {
            branch.push_str(&format!("-{number}"));
        }
        if let Some(name) = &args.name {
            let name = format!("{name}-{number}");
            request.name = Some(SessionName::new(name).map_err(Error::BadName)?);
        } else if number > 1 {
            // Names and branches of the forks before it are taken by then.
            plans.push(None);
            continue;
        }
        plans.push(Some(desk.tine.plan_fork(&request)?));
    }
    let mut out = ui::out();
    let mut told: Vec<Value> = Vec::new();
    for (index, plan) in plans.into_iter().enumerate() {
        let plan = match plan {
            Some(plan) => plan,
            None => {
                let mut request = args.request(selection.clone());
                (request.now, request.place) = (options.now, place);
                request.prompt = prompts.get(index).cloned();
                if let Where::Worktree(Some(branch)) = &mut request.workspace {
                    branch.push_str(&format!("-{}", index + 1));
                }
                desk.tine.plan_fork(&request)?
            }
        };
        let forked = desk.tine.apply_fork(&plan, &CopyBar::new())?;
        let pane = match plan.place {
            Place::In(spot) => Some(fork::open_pane(desk, &plan, &forked, spot, options)?),
            _ => None,
        };
        let answer = match (plan.place, &plan.prompt) {
            (Place::Headless, Some(prompt)) => Some(desk.tine.say(&plan, &forked.session, prompt)?),
            _ => None,
        };
        let command = desk.tine.resume_words(&plan, &forked.session);
        let mut value = show::as_json(&plan, Some(&forked), Some(&command));
        if let Some(pane) = &pane {
            value["place"] = serde_json::to_value(pane).unwrap_or_default();
        }
        if let Some(answer) = answer {
            value["answer"] = answer.into();
        }
        if !options.json {
            let name = Paint(desk.surface.color).name(forked.session.label());
            let place = pane.as_ref().map_or_else(|| plan.place.as_str().to_owned(), |pane| place::told(Some(pane)));
            let said = plan.prompt.as_deref().map(transcript::text::one_line).unwrap_or_default();
            let directory = ui::path(&desk.surface, &plan.workspace.path);
            writeln!(out, "{name}  {place}  {directory}  {}", transcript::text::clip(&said, 60))?;
            out.flush()?;
        }
        told.push(value);
    }
    if options.json {
        writeln!(out, "{}", to_json_pretty(&told))?;
    } else if matches!(place, Place::In(_)) {
        let names: Vec<&str> = told.iter().filter_map(|fork| fork["session"]["name"].as_str()).collect();
        ui::say(&format!("`tine wait {}` waits for all of them", names.join(" ")));
    }
    out.flush()?;
    // What was learned on the way is noted for those who look next.
    let _ = desk.tine.all_sessions(&Quiet);
    Ok(ExitCode::SUCCESS)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}
