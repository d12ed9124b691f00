//! Sessions as resources, and the prompt that begins with them.

use engine::Filter;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

use super::tool::{Call, CallError, QUOTED};
use super::tools::look;

const SESSIONS: &str = "tine://sessions";
const SESSION: &str = "tine://session/";
const PROMPT: &str = "fork_from_before";

pub(super) fn fixed() -> Vec<Resource> {
    let sessions = Resource::new(SESSIONS, "sessions")
        .with_title("Sessions of this project")
        .with_description("Conversations with coding agents in this project, newest first")
        .with_mime_type("application/json");
    vec![sessions]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let session = ResourceTemplate::new(format!("{SESSION}{{id}}"), "session")
        .with_title("A session")
        .with_description("Details of a session, by id or name")
        .with_mime_type("application/json");
    vec![session]
}

pub(super) fn read(call: &Call<'_>, uri: &str) -> Result<ReadResourceResult, CallError> {
    let value = if uri == SESSIONS {
        let directory = Some(call.tine.context().cwd.clone());
        let listing = call.tine.listing(&Filter { agent: None, directory }, &engine::Quiet)?;
        json!({"sessions": listing.take(50).map(|session| session.view).collect::<Vec<_>>(), "note": QUOTED})
    } else if let Some(word) = uri.strip_prefix(SESSION) {
        let sessions = call.sessions()?;
        let session = call.select_whole(&sessions, "uri", word)?;
        look::overview(call, &sessions, &session)?
    } else {
        return Err(CallError::argument("uri", format!("`{SESSIONS}` or `{SESSION}ID`")));
    };
    let contents = ResourceContents::text(value.to_string(), uri).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents]))
}

pub(super) fn prompts() -> Vec<Prompt> {
    let intent = PromptArgument::new("intent").with_description("What you want to build or solve").with_required(true);
    let prompt =
        Prompt::new(PROMPT, Some("Find the past session that solved this and continue from it"), Some(vec![intent]));
    vec![prompt.with_title("Fork from where we solved this before")]
}

pub(super) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != PROMPT {
        return Err(ErrorData::invalid_params(
            format!("prompt `{}` not found; the only prompt is `{PROMPT}`", request.name),
            None,
        ));
    }
    let intent = request.arguments.as_ref().and_then(|arguments| arguments.get("intent"));
    let Some(intent) = intent.and_then(|intent| intent.as_str()).filter(|intent| !intent.trim().is_empty()) else {
        return Err(ErrorData::invalid_params(
            "intent: describe what you want to build",
            Some(json!({"field": "intent"})),
        ));
    };
    let text = format!(
        "I want to do this: {intent}\n\nWe may have solved it before. Call tine's `smart_fork` with that intent. List \
         the past sessions that fit, one line each with the reason, and ask me which one to fork before you call it \
         again with `fork_index`. If none fits, say so and continue without a fork."
    );
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
