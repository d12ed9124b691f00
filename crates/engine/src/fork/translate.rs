//! The method `translate`: tine writes the conversation in another agent's own format, next to the final name, and reads
//! it back.

use std::io::{self, BufWriter, Write};

use agents::{TranslationOptions, TranslationRequest, compare_translation, survey_translation, write_translation};
use transcript::Agent;
use transcript::seed::Fit;
use transcript::translate::Receipt;

use super::copy::Files;
use super::{Plan, Request};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::copy;
use crate::fork::{Error, Result};
use crate::private;

/// The share of the window that a translated conversation may fill.
const SHARE_OF_WINDOW: f64 = 0.75;
/// Characters per token; see `tokens.rs`. Another agent's model has a ratio of its own, which isn't known.
const CHARACTERS_PER_TOKEN: f64 = 3.5;

/// What is decided about a translation before it is written.
#[derive(Debug, Clone)]
pub struct TranslationPlan {
    /// What becomes of everything.
    pub receipt: Receipt,
    /// About how many tokens there are.
    pub(super) tokens: u64,
    pub(super) options: TranslationOptions,
    compactions: usize,
    fit: Option<Fit>,
}

/// Reads the source and decides what is shortened.
pub(super) fn plan_translation(
    ctx: &Ctx,
    request: &Request,
    turns: u32,
    agent: Agent,
    window: Option<u64>,
) -> Result<TranslationPlan> {
    let source = &request.source;
    let path = &source.view.path;
    let options = TranslationOptions {
        until: (turns != source.view.turns || request.now).then_some(turns),
        tip: source.details.tip,
        keeps_thinking: request.keep_thinking,
        masks: !request.keep_secrets,
    };
    let (from, to) = (ctx.adapter(source.view.agent), ctx.adapter(agent));
    let unreadable = |source| FileError::Read { path: path.clone(), source };
    let mut survey = survey_translation(from, path, to, &options, None).map_err(unreadable)?;
    if survey.messages == 0 {
        return Err(Error::NothingToFork(source.view.label().to_owned()));
    }
    let limit = window.map(|window| (window as f64 * SHARE_OF_WINDOW * CHARACTERS_PER_TOKEN) as usize);
    let fit = survey.sizes.fit(limit);
    let compactions = survey.compactions;
    let tokens = (fit.characters as f64 / CHARACTERS_PER_TOKEN) as u64;
    let fit = fit.shortens().then_some(fit);
    if fit.is_some() {
        survey = survey_translation(from, path, to, &options, Some((compactions, fit.clone()))).map_err(unreadable)?;
    }
    Ok(TranslationPlan { receipt: survey.receipt, tokens, options, compactions, fit })
}

/// Writes the translation next to its final name, flushes it and compares it with what was meant to be written. Returns
/// what became of everything, and the number of turns.
pub(super) fn prepare(ctx: &Ctx, plan: &Plan, files: &Files) -> Result<(Receipt, u32)> {
    let Some(decided) = &plan.translation else {
        unreachable!("a plan by translation has surveyed it");
    };
    let source = &plan.source.path;
    let failed = |source: io::Error| FileError::Write { path: plan.target.clone(), source };
    agents::check_readable(source).map_err(|error| FileError::Read { path: source.clone(), source: error })?;
    let (from, to) = (ctx.adapter(plan.source.agent), ctx.adapter(plan.agent));
    let request = TranslationRequest {
        id: plan.id.clone(),
        title: plan.name.to_string(),
        cwd: plan.workspace.path.clone(),
        branch: plan.workspace.branch.clone(),
        now: ctx.context().clock.now(),
    };
    private::create_folder(agents::folder_of(&plan.target)).map_err(failed)?;
    let path = files.transcript();
    let mut out = BufWriter::with_capacity(256 << 10, private::open_file(path).map_err(failed)?);
    let known = (decided.compactions, decided.fit.clone());
    let written = write_translation(from, source, to, &decided.options, known, &request, &mut out).map_err(failed)?;
    out.flush().map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)?;
    let differs = |what| Error::TranslationDiffers { agent: plan.agent, what };
    compare_translation(to, path, &written).map_err(failed)?.map_err(differs)?;
    files.prepare_beside(to, &plan.target, &copy::order(plan, request.now), None).map_err(failed)?;
    Ok((written.receipt, written.turns))
}
