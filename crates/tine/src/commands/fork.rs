//! `tine fork`: a new session whose history is a prefix of another's.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use engine::{CodeChoice, ForkView, Forked, Method, Place, Plan, Request, Selection, Session, Until, Where};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{Agent, SessionName, State};

use super::Desk;
use super::place::{self, PlaceArgs};
use super::times;
use crate::Outcome;
use crate::cli::{POINT, RUNNING, WORKSPACE, agent_parser};
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Busy, CopyBar, Paint, Waiting, confirm, plan as show};

/// Fork a session at a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The source is never changed. `tine undo` removes the fork again.

Methods:
  auto       choose a method that carries over everything you asked for
  native     use the agent's own fork command
  copy       write a new session file
  translate  write the conversation in another agent's format
  seed       send the transcript to a new session as its first prompt

For a different agent, tine translates the session; --plan shows what is carried, converted and dropped. Seeding sends a \
model request right away unless you pass --no-start.

Examples:
  tine fork .                        the newest session in this directory
  tine fork auth-fix@4 auth-cookie   fork after turn 4 and name the fork
  tine fork auth-fix cookies -w      in a new worktree on branch `cookies`
  tine fork auth-fix --to ../other   in another directory
  tine fork auth-fix --agent codex   hand over to another agent
  tine fork auth-fix --times 3 -w    three forks in three worktrees
  tine fork auth-fix@4 -w --code then  with the files as they were after turn 4
  tine fork auth-fix@-1 --plan       show what would happen")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION[@TURN]", help = POINT, add = complete::points())]
    pub session: String,
    /// Name of the fork [default: SOURCE-fork-N]
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    #[command(flatten)]
    pub shape: Shape,
    /// Number of forks to create, named NAME-1, NAME-2 and so on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=super::times::MOST as i64), conflicts_with_all = ["to", "copy_to"])]
    pub times: Option<u32>,
    /// File with one first prompt per line, for one fork each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "to", "copy_to"])]
    pub prompts: Option<PathBuf>,
    #[command(flatten)]
    pub options: Options,
}

/// The properties of a fork, independent of its source.
#[derive(Debug, clap::Args)]
pub(crate) struct Shape {
    /// Agent for the fork; for a different agent, the session is translated
    #[arg(long, value_parser = agent_parser())]
    pub agent: Option<Agent>,
    /// How to create the fork: auto, native, copy, translate or seed
    #[arg(long, default_value = "auto", value_enum, hide_possible_values = true)]
    pub method: MethodChoice,
    /// Work in another directory
    #[arg(long, value_name = "DIR", group = "workspace", help_heading = WORKSPACE)]
    pub to: Option<PathBuf>,
    /// Work in a new worktree on a new branch [default: the fork's name]
    #[arg(long, short, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "", group = "workspace")]
    #[arg(help_heading = WORKSPACE)]
    pub worktree: Option<String>,
    /// Work in a copy of the whole directory
    #[arg(long, value_name = "DIR", group = "workspace", help_heading = WORKSPACE)]
    pub copy_to: Option<PathBuf>,
    /// Copy uncommitted changes to the worktree
    #[arg(long, requires = "worktree", conflicts_with_all = ["to", "copy_to"], help_heading = WORKSPACE)]
    pub carry: bool,
    /// Files of the worktree: then (as they were after the turn), now (with uncommitted changes) or none (the last commit)
    #[arg(long, value_name = "WHEN", requires = "worktree", conflicts_with_all = ["to", "copy_to", "carry"])]
    #[arg(value_parser = code_parser(), hide_possible_values = true, help_heading = WORKSPACE)]
    pub code: Option<CodeChoice>,
    /// Don't redact secrets when handing over to another agent
    #[arg(long)]
    pub keep_secrets: bool,
    /// Keep the agent's thinking as text when translating
    #[arg(long)]
    pub keep_thinking: bool,
    /// Don't run the agent; `tine resume` hands over the transcript later
    #[arg(long, conflicts_with = "place", help_heading = RUNNING)]
    pub no_start: bool,
}

/// Options of `fork`, `smart-fork` and `clone`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// First prompt for the fork; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = RUNNING)]
    pub prompt: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Wait for a busy source, up to TIMEOUT
    #[arg(long, value_name = "TIMEOUT", num_args = 0..=1, default_missing_value = "", value_parser = timeout)]
    #[arg(conflicts_with = "now")]
    pub wait: Option<Timeout>,
    /// Don't wait for a busy source; fork after its last complete turn
    #[arg(long)]
    pub now: bool,
    /// Show what would happen without doing it
    #[arg(long)]
    pub plan: bool,
    /// Skip confirmation prompts
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Adds these options to a request.
    pub(crate) fn complete(&self, desk: &Desk, request: &mut Request) -> Result<(), Failure> {
        request.now = self.now;
        request.prompt = self.prompt.as_deref().map(prompt).transpose()?;
        request.place = if request.no_start { Place::None } else { self.place.choice(desk, self.json)? };
        Ok(())
    }

    /// The options that define the fork, as typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.prompt.iter().map(|prompt| format!("--prompt={prompt}")));
        words.extend(self.place.place.map(|place| format!("--in={place}")));
        words.extend(self.now.then(|| "--now".to_owned()));
        words
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodChoice {
    /// Choose a method that carries over everything you asked for
    Auto,
    /// Use the agent's own fork command
    Native,
    /// Write a new session file
    Copy,
    /// Write the conversation in another agent's format
    Translate,
    /// Send the transcript to a new session as its first prompt
    Seed,
}

fn code_parser() -> impl TypedValueParser<Value = CodeChoice> {
    PossibleValuesParser::new(CodeChoice::CHOICES.map(CodeChoice::as_str))
        .map(|word| CodeChoice::CHOICES.into_iter().find(|choice| choice.as_str() == word).unwrap_or_default())
}

/// A time limit; `None` waits without limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeout(pub Option<Duration>);

pub(crate) fn timeout(text: &str) -> Result<Timeout, String> {
    if text.is_empty() {
        return Ok(Timeout(None));
    }
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Timeout(Some(Duration::from_secs(seconds))));
    }
    let duration: Option<jiff::SignedDuration> = text.parse().ok();
    let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
    duration
        .map(|duration| Timeout(Some(duration)))
        .ok_or_else(|| "use a duration such as `30s`, `5m` or `1h`".to_owned())
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    if args.times.is_some() || args.prompts.is_some() {
        return times::run(desk, args);
    }
    let selection = desk.select(&args.session)?;
    let wait = args.shape.wait(&args.options);
    fork(desk, selection, &args.options, wait, |selection| args.request(selection))
}

impl Args {
    /// The request for the selected session.
    pub(crate) fn request(&self, selection: Selection) -> Request {
        self.shape.request(selection, self.name.as_ref())
    }
}

impl Shape {
    /// A fork with these properties of the selected session.
    pub(crate) fn request(&self, selection: Selection, name: Option<&SessionName>) -> Request {
        let workspace = match (&self.to, &self.worktree, &self.copy_to) {
            (Some(directory), _, _) => Where::Directory(directory.clone()),
            (_, Some(branch), _) => {
                Where::Worktree { branch: Some(branch.clone()).filter(|branch| !branch.is_empty()), base: None }
            }
            (_, _, Some(directory)) => Where::Copy(directory.clone()),
            (None, None, None) => Where::Same,
        };
        let mut request = Request::of(selection.session);
        request.turns = selection.turns;
        request.agent = self.agent;
        request.method = match self.method {
            MethodChoice::Auto => None,
            MethodChoice::Native => Some(Method::Native),
            MethodChoice::Copy => Some(Method::Copy),
            MethodChoice::Translate => Some(Method::Translate),
            MethodChoice::Seed => Some(Method::Seed),
        };
        request.name = name.cloned();
        request.workspace = workspace;
        request.carry = self.carry;
        request.code = self.code.unwrap_or_default();
        request.keep_secrets = self.keep_secrets;
        request.keep_thinking = self.keep_thinking;
        request.no_start = self.no_start;
        request
    }

    /// These options as typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: &str| words.push(format!("--{name}={value}"));
        if let Some(agent) = self.agent {
            option("agent", agent.as_str());
        }
        if let Some(method) = self.method.to_possible_value().filter(|_| self.method != MethodChoice::Auto) {
            option("method", method.get_name());
        }
        if let Some(directory) = &self.to {
            option("to", &directory.to_string_lossy());
        }
        if let Some(directory) = &self.copy_to {
            option("copy-to", &directory.to_string_lossy());
        }
        if let Some(code) = self.code {
            option("code", code.as_str());
        }
        match self.worktree.as_deref() {
            Some("") => words.push("--worktree".into()),
            Some(branch) => option("worktree", branch),
            None => {}
        }
        let flags = [
            ("--carry", self.carry),
            ("--keep-secrets", self.keep_secrets),
            ("--keep-thinking", self.keep_thinking),
            ("--no-start", self.no_start),
        ];
        words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| (*word).to_owned()));
        words
    }

    /// How long to wait for a busy source: a directory is only copied while its session is idle.
    pub(crate) fn wait(&self, options: &Options) -> Option<Timeout> {
        options.wait.or(self.copy_to.as_ref().filter(|_| !options.now).map(|_| Timeout(None)))
    }
}

/// Waits if requested, plans, asks, forks, and opens the fork.
pub(crate) fn fork(
    desk: &Desk,
    selection: Selection,
    options: &Options,
    wait: Option<Timeout>,
    request: impl FnOnce(Selection) -> Request,
) -> Outcome {
    fork_as(desk, selection, options, wait, request, &|fork| json!(fork))
}

/// The same; `to_json` adds the fork's JSON to a larger result.
pub(crate) fn fork_as(
    desk: &Desk,
    mut selection: Selection,
    options: &Options,
    wait: Option<Timeout>,
    request: impl FnOnce(Selection) -> Request,
    to_json: &dyn Fn(ForkView) -> Value,
) -> Outcome {
    // A plan alone does not wait.
    let waits = options.plan && wait.is_some() && matches!(selection.session.view.state, State::Busy | State::Waiting);
    if !options.plan {
        selection.session = when_idle(desk, selection.session, wait)?;
    }
    let source = selection.session.clone();
    let mut request = request(selection);
    request.waits = waits;
    options.complete(desk, &mut request)?;
    let mut plan = desk.tine.plan_fork(&request)?;
    let mut out = ui::out();
    if options.plan {
        match options.json {
            true => writeln!(out, "{}", to_json_pretty(&to_json(plan.view())))?,
            false => show::show(&mut out, &desk.surface, &plan)?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let asks = plan.needs_confirmation() && !options.yes;
    if asks {
        match ask_about_changes(desk, options.json, std::slice::from_ref(&plan))? {
            Answer::Leave => {}
            Answer::Code(code) => {
                request.code = code;
                plan = desk.tine.plan_fork(&request)?;
            }
            Answer::Cancel => {
                ui::print_message("cancelled");
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    make(desk, &source, &plan, options, asks, to_json)
}

/// Creates the fork and opens it. Warnings that were `shown` before are not repeated.
pub(crate) fn make(
    desk: &Desk,
    source: &Session,
    plan: &Plan,
    options: &Options,
    shown: bool,
    to_json: &dyn Fn(ForkView) -> Value,
) -> Outcome {
    if plan.place == Place::Headless && plan.prompt.is_none() && !options.json {
        ui::warn("no message was sent: a headless fork needs `--prompt`");
    }
    if plan.method == Method::Seed && !shown && !options.json {
        plan.requests.iter().for_each(|request| ui::print_message(request));
    }
    let agent = plan.agent.product_name();
    // An agent retries an unreachable model for a long time; the message lets the user interrupt it.
    let busy = match plan.method {
        Method::Seed if plan.keeps_seed => None,
        Method::Seed => Some(format!("waiting for {agent} to read the transcript…")),
        Method::Native => Some(format!("waiting for {agent} to fork the session…")),
        Method::Copy | Method::Translate => None,
    };
    let busy = busy.filter(|_| desk.surface.is_interactive).map(Busy::new);
    let forked = desk.tine.apply_fork(plan, &CopyBar::new())?;
    drop(busy);
    desk.tine.remember_use(source);
    if !options.json {
        // Warnings shown before the question are not repeated.
        let shown = if shown { plan.warnings.as_slice() } else { &[] };
        for warning in forked.plan.warnings.iter().filter(|warning| !shown.contains(warning)) {
            ui::warn(warning);
        }
    }
    open(desk, &forked, options, to_json)
}

/// The source, once it is idle if requested.
pub(crate) fn when_idle(desk: &Desk, source: Session, wait: Option<Timeout>) -> Result<Session, Failure> {
    let Some(Timeout(timeout)) = wait else {
        return Ok(source);
    };
    let waiting = Waiting::new();
    let show = |session: &Session, waited| waiting.show(&session.view, waited);
    Ok(desk.tine.wait_for(vec![source], Until::AllIdle, timeout, &show)?.swap_remove(0))
}

/// Runs the agent where the plan says, and prints the result.
fn open(desk: &Desk, forked: &Forked, options: &Options, to_json: &dyn Fn(ForkView) -> Value) -> Outcome {
    let plan = &forked.plan;
    let mut out = ui::out();
    let opened = desk.tine.open_fork(forked, desk.surface.is_interactive, options.place.ready_within())?;
    if options.json {
        writeln!(out, "{}", to_json_pretty(&to_json(forked.view(&opened))))?;
    } else {
        let paint = Paint(desk.surface.color);
        let name = paint.name(forked.session.label());
        let done = format!("forked {} after turn {} as {name}", plan.source.label(), plan.turns);
        match (plan.place, &opened.answer) {
            (_, Some(answer)) => {
                ui::print_message(&done);
                writeln!(out, "{}", transcript::text::clean(answer))?;
            }
            (Place::Here, None) => ui::print_message(&done),
            (Place::In(_), None) => {
                ui::print_message(&format!("{done}, in {}", place::describe_pane(opened.pane.as_ref())));
            }
            (_, None) if plan.keeps_seed => {
                ui::print_message(&format!("{done}; start it with:"));
                writeln!(out, "{}", show::line(&opened.command))?;
            }
            (_, None) => {
                ui::print_message(&format!("{done}; resume it with:"));
                let variables = plan.variables();
                let command = show::resume_words(&plan.profile, &opened.command, forked.session.label());
                writeln!(out, "{}", show::in_directory(&plan.workspace.path, &variables, &command))?;
            }
        }
    }
    out.flush()?;
    if plan.place == Place::Here {
        for warning in desk.tine.take_warnings() {
            ui::warn(&warning);
        }
    }
    match opened.here {
        Some(command) => super::become_program(command),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The first prompt; `-` reads standard input.
pub(crate) fn prompt(text: &str) -> Result<String, Failure> {
    let mut prompt = text.to_owned();
    if text == "-" {
        prompt.clear();
        io::stdin().lock().read_to_string(&mut prompt).map_err(|error| Failure::Other {
            kind: "no_prompt",
            message: format!("cannot read the prompt from standard input: {error}"),
            hint: None,
        })?;
    }
    if prompt.trim().is_empty() {
        return Err(Failure::Other {
            kind: "no_prompt",
            message: "the prompt is empty".into(),
            hint: Some("pass some text, or leave out `--prompt`".into()),
        });
    }
    Ok(prompt)
}

/// What to do with uncommitted changes.
pub(crate) enum Answer {
    /// Fork as planned.
    Leave,
    /// Begin with these files instead.
    Code(CodeChoice),
    /// Don't fork.
    Cancel,
}

/// Shows the plan of forks that would leave uncommitted changes, or whose files are not certain, and asks.
pub(crate) fn ask_about_changes(desk: &Desk, json: bool, plans: &[Plan]) -> Result<Answer, Failure> {
    if let Some(code) = &plans[0].code {
        confirm::require_terminal(
            &desk.surface,
            json,
            &format!("did not fork `{}`: {}", plans[0].source.label(), code.summary()),
            "pass `--code then` or `--yes` to accept these files, `--code now` for those of now, or `--code none`",
        )?;
        show::show_all(&mut io::stderr().lock(), &desk.surface, plans)?;
        let answer =
            confirm::ask("Fork with these files? [y] yes, [w] with those of now, [c] with the last commit, [N] no:")?;
        return Ok(match answer.as_str() {
            "y" | "yes" => Answer::Leave,
            "w" | "now" => Answer::Code(CodeChoice::Now),
            "c" | "none" => Answer::Code(CodeChoice::None),
            _ => Answer::Cancel,
        });
    }
    confirm::require_terminal(
        &desk.surface,
        json,
        &format!("did not fork `{}`: its directory has uncommitted changes", plans[0].source.label()),
        "pass `--carry` to copy the changes into the worktree, or `--yes` to fork without them",
    )?;
    show::show_all(&mut io::stderr().lock(), &desk.surface, plans)?;
    let answer = confirm::ask("Fork without the uncommitted changes? [y] yes, [c] copy them to the worktree, [N] no:")?;
    Ok(match answer.as_str() {
        "y" | "yes" => Answer::Leave,
        "c" | "carry" => Answer::Code(CodeChoice::Now),
        _ => Answer::Cancel,
    })
}
