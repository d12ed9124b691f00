//! The smart fork: describe what you want to build, and continue from the session that solved it before.

use std::path::PathBuf;

use engine::{BriefSession, BriefSuggestions, Choice, Filter, Intent, Place, Quiet, SmartForkView, Suggestions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{fork, look, usual_place};
use crate::failure::Failure;
use crate::mcp::tool::{Arguments, Call, CallError, QUOTED, ToolEffect, count};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SmartFork {
    /// What you want to build or solve, in plain words
    #[schemars(example = "retry uploads that time out")]
    intent: String,
    /// Maximum number of sessions
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "five")]
    limit: usize,
    /// Only sessions of the project that contains this directory
    project_path: Option<PathBuf>,
    /// qmd collection to search first, if it exists
    #[serde(default = "collection")]
    collection: String,
    /// Leave out sessions with a lower score
    #[schemars(range(min = 0.0, max = 1.0))]
    min_score: Option<f32>,
    /// Include a snippet with each result
    #[serde(default = "yes")]
    include_snippets: bool,
    /// Fork the best match immediately
    #[serde(default)]
    auto_fork: bool,
    /// Fork the result with this rank; 1 is the best
    #[schemars(range(min = 1, max = 50))]
    fork_index: Option<usize>,
    /// Include your own session
    #[serde(default)]
    include_self: bool,
}

fn five() -> usize {
    5
}

fn yes() -> bool {
    true
}

fn collection() -> String {
    engine::DEFAULT_COLLECTION.to_owned()
}

impl Arguments for SmartFork {
    const NAME: &'static str = "smart_fork";
    const TITLE: &'static str = "Fork from where this was solved before";
    const DESCRIPTION: &'static str = "Finds past sessions that match your intent, best first, and forks one of them \
        with its full context if you ask for it. Call it with the intent alone, then again with `fork_index`; or pass \
        `auto_fork` right away. Use send_message to give the fork its task. The source is not changed. \
        Example: {\"intent\": \"csv export for invoices\", \"limit\": 5}";
    const TOUCH: ToolEffect = ToolEffect::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let limit = count("limit", self.limit, 50)?;
        if self.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(CallError::argument("min_score", "must be from 0 to 1"));
        }
        if self.auto_fork && self.fork_index.is_some() {
            return Err(CallError::argument("fork_index", "cannot be combined with `auto_fork`"));
        }
        if self.fork_index.is_some_and(|index| !(1..=limit).contains(&index)) {
            return Err(CallError::argument("fork_index", format!("must be from 1 to {limit} (the limit)")));
        }
        let project = self.project_path.as_deref().map(|path| call.directory("project_path", path)).transpose()?;
        let intent = Intent {
            text: self.intent.clone(),
            project,
            // The caller may be among them.
            limit: limit + 1,
            min_score: self.min_score,
            collection: Some(self.collection.clone()).filter(|collection| !collection.is_empty()),
        };
        let mut suggestions = match call.tine.suggest(&intent, &Quiet, &Quiet) {
            Ok(suggestions) => suggestions,
            Err(error) => match look::bad_query("intent", error) {
                CallError::Failed(failure) => return Err(no_search(call, &intent, &failure)),
                trouble => return Err(trouble),
            },
        };
        let mut results = std::mem::take(&mut suggestions.answer.results);
        if !self.include_self {
            call.remove_own_session(&mut results);
        }
        results.truncate(limit);
        let mut choices = fork::choices(call, results);
        let place = usual_place(call);
        let chosen = match (self.auto_fork, self.fork_index) {
            (true, _) => call.tine.choose(&mut choices, |found| fork::of_found(place, found)),
            (false, Some(index)) => Some(index - 1).filter(|at| *at < choices.len()),
            (false, None) => return Ok(answer(&self.brief(&suggestions, &choices))),
        };
        // From here on, an error comes with the results: the caller can choose another one.
        let brief = self.brief(&suggestions, &choices);
        match self.fork(call, chosen, place, &choices) {
            Ok(fork) => Ok(answer(&brief.with_fork(fork))),
            Err(trouble) => Err(CallError::Told(answer(&brief.with_error(trouble.reported())))),
        }
    }
}

impl SmartFork {
    /// Forks the chosen result, or explains why none can be forked.
    fn fork(
        &self,
        call: &Call<'_>,
        chosen: Option<usize>,
        place: Place,
        choices: &[Choice],
    ) -> Result<SmartForkView, CallError> {
        let Some(at) = chosen else {
            // No match can be forked: the error is that of the best one.
            if let Some(refusal) = choices.first().filter(|_| self.auto_fork).and_then(|best| best.refusal().cloned()) {
                return Err(Failure::from(refusal).into());
            }
            let message = match self.fork_index {
                Some(index) => format!("result {index} not found"),
                None => "no matching session found".to_owned(),
            };
            let hint = Some("rephrase the intent, or call list_sessions".to_owned());
            return Err(Failure::Other { kind: "nothing_found", message, hint }.into());
        };
        let choice = &choices[at];
        if let Some(refusal) = choice.refusal() {
            return Err(Failure::from(refusal.clone()).into());
        }
        let found = &choice.found;
        let (made, opened) = fork::apply(call, &fork::plan(call, &fork::of_found(place, found))?)?;
        Ok(SmartForkView::new(&found.session.view, made, opened.pane.as_ref()))
    }

    fn brief(&self, suggestions: &Suggestions, choices: &[Choice]) -> BriefSuggestions {
        suggestions.brief(choices, self.include_snippets)
    }
}

fn answer(suggestions: &BriefSuggestions) -> Value {
    let mut answer = json!(suggestions);
    answer["note"] = json!(QUOTED);
    answer
}

/// Nothing can be searched: what to do about it, and what there is to choose from without.
fn no_search(call: &Call<'_>, intent: &Intent, failure: &Failure) -> CallError {
    let filter = Filter { agent: None, directory: intent.project.clone() };
    let listing = call
        .tine
        .listing(&filter, &Quiet)
        .map(|listing| listing.filter(|session| !session.view.unstarted).take(intent.limit).collect::<Vec<_>>());
    let mut told = failure.as_json();
    told["error"]["next_steps"] = json!([
        "run `tine doctor` to see what is wrong",
        "run `tine index --rebuild` to rebuild the index",
        "choose one of fallback_sessions and fork it with fork_session",
    ]);
    told["fallback_sessions"] =
        json!(listing.unwrap_or_default().iter().map(|session| BriefSession::new(&session.view)).collect::<Vec<_>>());
    CallError::Told(told)
}
