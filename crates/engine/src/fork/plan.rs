//! Deciding a fork.

use std::collections::HashSet;

use agents::SessionRef;
use transcript::{Agent, DefectKind, SessionName, SessionView, State, text};

use super::copy::Files;
use super::seed::new_nonce;
use super::unstarted::start_words;
use super::window::{chosen_model, context_window, model_of_fork, with_model};
use super::{
    CacheOutlook, CacheState, CodeChoice, Method, Place, Plan, PlannedCode, Request, RequestedWorkspace, Where,
    Workspace, WorkspaceKind,
};
use crate::ctx::Ctx;
use crate::fork::cache;
use crate::fork::method;
use crate::fork::seed;
use crate::fork::tokens;
use crate::fork::translate;
use crate::fork::workspace;
use crate::fork::{Error, Result};
use crate::names;
use crate::naming;
use crate::operations::free_names;
use crate::program;
use crate::run;
use crate::run::profile::Profile;
use crate::run::profile::process;
use crate::sessions::project;
use crate::workspace::Error as WorkspaceError;

/// What is decided before anything is read.
struct Decision {
    agent: Agent,
    turns: u32,
    whole: bool,
    name: SessionName,
    workspace: Workspace,
    asked: RequestedWorkspace,
    method: Method,
    why: String,
}

/// Decides everything about a fork and touches nothing.
pub(crate) fn plan_fork(ctx: &Ctx, request: &Request) -> Result<Plan> {
    let Decision { agent, turns, whole, name, mut workspace, mut asked, method, why } = decide(ctx, request)?;
    if let Some(code) = PlannedCode::choose(ctx, request, turns, whole)? {
        asked.code = Some(code);
        workspace = workspace::workspace(ctx, &asked, &name)?;
    }
    let source = &request.source.view;
    let now = ctx.context().clock.now();
    let is_now = asked.code.is_none() && !asked.carry && request.code != CodeChoice::None;
    let dirty = workspace.kind == WorkspaceKind::Worktree && is_now && workspace::is_dirty(ctx, source.cwd.as_deref());
    let adapter = ctx.adapter(agent);
    let id = ctx.adapter(agent).new_id(now);
    // Another agent's options mean nothing to this one.
    let (mut profile, mut not_inherited) = match agent == source.agent {
        true => process::inherited_profile(ctx, &request.source)?,
        false => (Profile::default(), Vec::new()),
    };
    if request.asks_permission {
        let (asking, unasked) = agents::about(agent).options.split_by_permission(&profile.args);
        if !unasked.is_empty() {
            not_inherited.push(format!("`{}` is not inherited: the fork asks for permissions", unasked.join(" ")));
            profile.args = asking;
        }
    }
    if let Some(model) = &request.model {
        profile.args = with_model(profile.args, model);
    }
    let count = tokens::count_tokens(ctx, request, turns, method == Method::Seed)?;
    // Another agent's model isn't known before it runs; nor does what this one reported say anything about it.
    let options = profile.args.clone();
    let chosen = chosen_model(&options);
    let window = match agent == source.agent {
        true => {
            let details = &request.source.details;
            let model = model_of_fork(chosen, details.model.as_deref());
            let answered = model.map(|model| ctx.registry().reported_window(agent, &source.id, model)).transpose()?;
            // Once, it ran with a larger one than it reported.
            let answered = answered.flatten().filter(|window| *window >= count.largest);
            context_window(adapter, model, details.version.as_deref(), count.window.or(answered), count.largest)
        }
        false => context_window(adapter, None, None, None, 0),
    };
    let context_window = window.map(|(window, _)| window);
    let target = adapter.path_for(&id, &workspace.path, now);
    let resumed = SessionRef { id: &id, path: &target };
    let after_compaction = method == Method::Native && request.source.details.compacted;
    let mut plan = Plan {
        source: source.clone(),
        known: request.source.details.known.clone(),
        turns,
        whole,
        agent,
        method,
        method_is_chosen: request.method.is_some(),
        why,
        place: request.place,
        prompt: request.prompt.clone(),
        command: program::as_configured(
            ctx,
            agent,
            adapter.resume_command(resumed, &workspace.path, &profile.args, request.prompt.as_deref()),
        ),
        profile,
        not_inherited,
        target,
        id_is_chosen: matches!(method, Method::Copy | Method::Translate)
            || adapter.accepts_ids() && !(method == Method::Seed && request.no_start),
        workspace,
        asked,
        id,
        name,
        name_is_chosen: request.name.is_some(),
        model: chosen.or(request.source.details.model.as_deref().filter(|_| agent == source.agent)).map(str::to_owned),
        tokens: count.tokens,
        cache: CacheOutlook { state: CacheState::Unknown, rewritten: None, why: String::new() },
        context_window,
        window_source: window.map(|(_, source)| source),
        translation: None,
        retry: (method == Method::Translate && request.method.is_none()).then(|| Box::new(request.clone())),
        seed: None,
        keeps_seed: method == Method::Seed && request.no_start,
        unfinished: whole && request.source.details.mid_turn,
        after_compaction,
        lacks_beginning: request.source.details.defects.count(DefectKind::MissingBase) > 0,
        tip: request.source.details.tip,
        relinks: request.source.details.defects.count(DefectKind::BrokenLink) > 0,
        relinked: request.source.details.gaps.iter().filter(|turn| **turn <= turns).count(),
        requests: Vec::new(),
        later_requests: Vec::new(),
        losses: Vec::new(),
        warnings: Vec::new(),
        leaves_changes: dirty,
        code: None,
    };
    plan.code.clone_from(&plan.asked.code);
    if let Some(code) = &plan.code {
        plan.warnings.extend(code.warnings());
    }
    if method == Method::Translate {
        let translation = translate::plan_translation(ctx, request, turns, agent, context_window)?;
        plan.tokens = Some(translation.tokens);
        plan.losses.extend(translation.receipt.losses());
        plan.translation = Some(translation);
    }
    if method == Method::Seed {
        let seed = seed::plan_seed(ctx, request, turns, agent, context_window, count.per_token)?;
        plan.tokens = Some((seed.fit.characters as f64 / count.per_token) as u64);
        plan.losses.extend(seed.left_out());
        plan.losses.extend(seed.fit.shortened.iter().cloned());
        match seed.secrets {
            0 => {}
            1 => plan.losses.push("one secret is redacted; `--keep-secrets` keeps it".into()),
            count => plan.losses.push(format!("{count} secrets are redacted; `--keep-secrets` keeps them")),
        }
        plan.seed = Some(seed);
    }
    if plan.keeps_seed {
        plan.command = start_words(&plan);
    }
    plan.cache = cache::outlook(&plan, adapter, &request.source.details, request.model.as_deref(), now);
    add_losses(ctx, &mut plan);
    add_model_requests(&mut plan);
    warn(&mut plan, request);
    if !whole && count.ends_compacted && method != Method::Translate {
        plan.warnings.push(format!(
            "the fork includes the compaction after turn {turns}: the model sees its summary instead of the earlier \
             turns"
        ));
    }
    if dirty {
        plan.warnings
            .push("uncommitted changes stay in the source's directory; `--carry` copies them to the worktree".into());
    }
    if plan.workspace.kind == WorkspaceKind::Worktree && request.carry && !whole {
        plan.warnings.push(format!("`--carry` copies the files as they are now, not as they were after turn {turns}"));
    }
    if let Some((then, now)) = other_branch(&plan) {
        plan.warnings.push(format!(
            "the session worked on branch {then}, but the worktree starts from {now}, which is checked out now"
        ));
    }
    Ok(plan)
}

/// The branch that the source's records name and the one that is checked out in its directory, where a worktree
/// begins at the latter and they differ.
fn other_branch(plan: &Plan) -> Option<(String, String)> {
    let Where::Worktree { base: None, .. } = plan.asked.workspace else { return None };
    if plan.code.is_some() {
        return None;
    }
    let then = plan.source.branch.clone().filter(|branch| branch != "HEAD")?;
    let now = project::current_branch(&plan.asked.own).filter(|now| *now != then)?;
    Some((text::one_line(&then), text::one_line(&now)))
}

/// Where a fork would work, if it could be made. The transcript isn't read.
pub(crate) fn check_fork(ctx: &Ctx, request: &Request) -> Result<Workspace> {
    decide(ctx, request).map(|decision| decision.workspace)
}

fn decide(ctx: &Ctx, request: &Request) -> Result<Decision> {
    let source = &request.source.view;
    let agent = request.agent.unwrap_or(source.agent);
    let turns = turns_to_keep(request)?;
    let whole = turns == source.turns;
    let asked = workspace::requested_workspace(ctx, request);
    let (name, workspace) = name_and_workspace(ctx, request, &asked, &[])?;
    let (method, why) = method::choose_method(ctx, request, agent, whole, &workspace)?;
    if !matches!(method, Method::Copy | Method::Translate) || request.place != Place::None {
        // The program that will start it must exist.
        program::program(ctx, agent)?;
    }
    check_prompt(request)?;
    Ok(Decision { agent, turns, whole, name, workspace, asked, method, why })
}

/// The plan of a fork that differs from `first` only by its name, its workspace and its prompt. `others` are names
/// that are about to be taken.
pub(super) fn plan_alike(ctx: &Ctx, first: &Plan, request: &Request, others: &[SessionName]) -> Result<Plan> {
    check_prompt(request)?;
    let now = ctx.context().clock.now();
    let mut plan = first.clone();
    plan.asked = RequestedWorkspace { code: first.asked.code.clone(), ..workspace::requested_workspace(ctx, request) };
    (plan.name, plan.workspace) = name_and_workspace(ctx, request, &plan.asked, others)?;
    plan.prompt.clone_from(&request.prompt);
    plan.id = ctx.adapter(plan.agent).new_id(now);
    if let Some(seed) = &mut plan.seed {
        seed.nonce = new_nonce();
    }
    set_target(ctx, &mut plan);
    Ok(plan)
}

/// Decides where the transcript of a fork goes and which command resumes it, by its id and its workspace.
pub(super) fn set_target(ctx: &Ctx, plan: &mut Plan) {
    if plan.keeps_seed {
        plan.command = start_words(plan);
        return;
    }
    let adapter = ctx.adapter(plan.agent);
    plan.target = adapter.path_for(&plan.id, &plan.workspace.path, ctx.context().clock.now());
    let planned = SessionRef { id: &plan.id, path: &plan.target };
    let (directory, prompt) = (&plan.workspace.path, plan.prompt.as_deref());
    let words = adapter.resume_command(planned, directory, &plan.profile.args, prompt);
    plan.command = program::as_configured(ctx, plan.agent, words);
}

fn name_and_workspace(
    ctx: &Ctx,
    request: &Request,
    asked: &RequestedWorkspace,
    others: &[SessionName],
) -> Result<(SessionName, Workspace)> {
    match &request.name {
        Some(name) => {
            free_names::check_name(ctx, name)?;
            Ok((name.clone(), workspace::workspace(ctx, asked, name)?))
        }
        None => named_workspace(ctx, &names::base_of(&request.source.view), asked, others),
    }
}

/// The first free generated name for a fork, and its workspace. Another process may take the name meanwhile and create
/// a workspace of the same name, which is then in the way. A name is not free either if a branch or directory already
/// has the workspace's name.
pub(super) fn named_workspace(
    ctx: &Ctx,
    base: &str,
    asked: &RequestedWorkspace,
    others: &[SessionName],
) -> Result<(SessionName, Workspace)> {
    const TRIES: usize = 100;
    let mut occupied: HashSet<String> = others.iter().map(ToString::to_string).collect();
    loop {
        let taken = ctx.registry().taken_names()?;
        let is_taken = |name: &str| taken.contains(name) || occupied.contains(name);
        let name = names::for_fork(base, is_taken).ok_or(naming::Error::NoNameLeft)?;
        match workspace::workspace(ctx, asked, &name) {
            Err(_) if asked.follows_name() && ctx.registry().taken_names()?.contains(name.as_str()) => {}
            Err(
                Error::Workspace(WorkspaceError::BranchExists(_))
                | Error::Workspace(WorkspaceError::CheckedOut { .. })
                | Error::Workspace(WorkspaceError::BranchRival { .. })
                | Error::Workspace(WorkspaceError::InTheWay(_)),
            ) if asked.follows_name() && occupied.len() < TRIES + others.len() => {
                occupied.insert(name.to_string());
            }
            workspace => return workspace.map(|workspace| (name, workspace)),
        }
    }
}

/// Another method for a fork whose first one failed: a copy, which needs nothing of the agent.
pub(super) fn as_copy(ctx: &Ctx, plan: &Plan, trouble: &Error) -> Plan {
    let adapter = ctx.adapter(plan.agent);
    let now = ctx.context().clock.now();
    let id = ctx.adapter(plan.agent).new_id(now);
    let target = adapter.path_for(&id, &plan.workspace.path, now);
    let resumed = SessionRef { id: &id, path: &target };
    let words = adapter.resume_command(resumed, &plan.workspace.path, &plan.profile.args, plan.prompt.as_deref());
    let mut plan = Plan {
        method: Method::Copy,
        why: "the agent's own fork failed".into(),
        command: program::as_configured(ctx, plan.agent, words),
        id_is_chosen: true,
        after_compaction: false,
        losses: Vec::new(),
        target,
        id,
        ..plan.clone()
    };
    add_losses(ctx, &mut plan);
    let trouble = transcript::text::one_line(&trouble.to_string());
    plan.warnings.push(format!("the agent's own fork failed, so tine copied the session: {trouble}"));
    plan
}

/// The plan for a seed instead of a translation that failed, unless the user chose the method.
pub(super) fn as_seed(ctx: &Ctx, plan: &Plan, trouble: &Error) -> Result<Option<Plan>> {
    let Some(request) = &plan.retry else { return Ok(None) };
    let request = Request { method: Some(Method::Seed), ..(**request).clone() };
    let mut seeded = plan_fork(ctx, &request)?;
    seeded.method_is_chosen = false;
    seeded.why = "the translation failed".into();
    let trouble = transcript::text::one_line(&trouble.to_string());
    seeded.warnings.push(format!("the translation failed, so the agent receives the transcript: {trouble}"));
    Ok(Some(seeded))
}

fn add_losses(ctx: &Ctx, plan: &mut Plan) {
    if !matches!(plan.method, Method::Seed | Method::Translate)
        && ctx.adapter(plan.agent).leaves_subagents(&plan.source.path)
    {
        plan.losses.push("the subagents' transcripts are not copied".into());
    }
    plan.losses.extend_from_slice(&plan.not_inherited);
    if plan.lacks_beginning {
        plan.losses.push(
            "the beginning of the history is missing: the session that the source was forked from no longer exists"
                .into(),
        );
    }
    if plan.after_compaction {
        plan.losses.push("the turns before the last compaction are not included".into());
    }
    if plan.method == Method::Native && Files::of(ctx, plan).copies_notes() {
        plan.losses.push("the agent's notes about the source's project are not copied".into());
    }
    if plan.method == Method::Native && plan.unfinished {
        plan.losses.push("the agent ends the unfinished turn in its own way".into());
    }
    if plan.method == Method::Native && agents::about(plan.agent).native_fork.may_refer_to_source {
        let agent = plan.agent.product_name();
        plan.losses
            .push(format!("the fork may depend on the source's file ({agent} forks by reference): don't delete it"));
    }
}

fn turns_to_keep(request: &Request) -> Result<u32> {
    let (view, details) = (&request.source.view, &request.source.details);
    if view.unstarted {
        return Err(run::Error::NotStarted(view.label().to_owned()).into());
    }
    let turns = request.turns.unwrap_or(view.turns);
    let at_work = matches!(view.state, State::Busy | State::Waiting) && turns == view.turns;
    if at_work && !request.now && !request.waits {
        let session = view.label().to_owned();
        return Err(Error::AtWork { session, state: view.state });
    }
    let unfinished = request.now && details.mid_turn && turns == view.turns;
    let turns = if unfinished { turns.saturating_sub(1) } else { turns };
    if view.turns == 0 {
        run::headless::check_format(&request.source)?;
    }
    if turns == 0 {
        return Err(Error::NothingToFork(view.label().to_owned()));
    }
    Ok(turns)
}

/// A prompt on a command line has a maximum length and cannot contain NUL.
fn check_prompt(request: &Request) -> Result<()> {
    const LONGEST: usize = 120_000;
    match &request.prompt {
        Some(prompt) if prompt.contains('\0') => Err(run::Error::BadPrompt("contains a NUL character").into()),
        Some(prompt) if request.place != Place::Headless && prompt.len() > LONGEST => {
            Err(run::Error::PromptTooLongHere.into())
        }
        _ => Ok(()),
    }
}

/// Notes which model requests the fork will cause.
fn add_model_requests(plan: &mut Plan) {
    let agent = plan.agent.product_name();
    if plan.method == Method::Seed {
        let tokens = plan.tokens.unwrap_or_default();
        match plan.keeps_seed {
            true => {
                let name = &plan.name;
                let later = format!("`tine resume {name}` sends the transcript to {agent}: about {tokens} tokens");
                plan.later_requests.push(later);
            }
            false => plan.requests.push(format!("sends the transcript to {agent} now: about {tokens} tokens")),
        }
    }
    match (&plan.prompt, plan.place) {
        (Some(_), Place::Headless) => plan.requests.push(format!("sends the prompt to {agent} now")),
        (Some(_), Place::Here | Place::In(_)) => plan.requests.push(format!("sends the prompt when {agent} opens")),
        (_, Place::None) | (None, _) => {}
    }
}

fn warn(plan: &mut Plan, request: &Request) {
    if let (Some(tokens), Some(window)) = (plan.tokens, plan.context_window) {
        let percent = tokens * 100 / window.max(1);
        if percent >= 100 {
            plan.warnings.push(format!(
                "the history has about {tokens} tokens and does not fit the context window of {window}; fork at an \
                 earlier turn, or compact the session"
            ));
        } else if percent >= 80 {
            plan.warnings.push(format!("the history fills about {percent}% of the context window of {window} tokens"));
        }
    }
    if request.source.details.mid_turn && plan.whole {
        plan.warnings.push("the last turn is unfinished; the agent will treat it as interrupted".into());
    }
    let defects = &request.source.details.defects;
    if [DefectKind::BadLine, DefectKind::TruncatedLine].iter().any(|kind| defects.count(*kind) > 0) {
        plan.warnings.push("damaged records of the source are not copied".into());
    }
    if plan.method == Method::Copy && plan.relinked > 0 {
        let what = match plan.relinked {
            1 => "one record refers to a missing parent; the fork links it to the preceding record",
            _ => "some records refer to a missing parent; the fork links them to the preceding record",
        };
        plan.warnings.push(what.to_owned());
    }
    if request.waits {
        plan.warnings.push("the source is busy; tine forks it when it is idle, including the turns until then".into());
    }
    if let Some(wanted) = request.turns.filter(|wanted| *wanted > plan.turns) {
        plan.warnings.push(format!("turn {wanted} is unfinished, so the fork ends after turn {}", plan.turns));
    }
}

impl Plan {
    /// The session that is forked, as a parent.
    pub fn parent(&self) -> &SessionView {
        &self.source
    }

    /// The same plan to keep for later: without data that is only useful immediately and takes memory.
    #[must_use]
    pub fn for_later(mut self) -> Plan {
        if let Some(known) = &mut self.known {
            known.layout = None;
        }
        self
    }
}
