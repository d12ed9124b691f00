//! Names of threads, which Codex's own program sets.

use std::path::Path;

use serde_json::json;
use transcript::SessionId;

use super::app_server::AppServer;
use crate::program::{Program, ProgramError};

/// Makes Codex list a thread that it did not write itself, under a title.
pub(super) fn announce(program: &Program, id: &SessionId, title: &str, directory: &Path) -> Result<(), ProgramError> {
    let mut server = AppServer::start(program, directory)?;
    // Listing makes Codex read the files and register new ones.
    server.call("thread/list", &json!({ "limit": 1 }))?;
    server.call("thread/name/set", &json!({ "threadId": id, "name": title }))?;
    Ok(())
}

/// Restores the previous name of a thread and returns it. Codex refuses an empty name, but lists threads without a name
/// by their first words, so those become the name.
pub(super) fn restore_name(
    program: &Program,
    id: &SessionId,
    old: Option<&str>,
    directory: &Path,
) -> Result<String, ProgramError> {
    let mut server = AppServer::start(program, directory)?;
    server.call("thread/list", &json!({ "limit": 1 }))?;
    let name = match old {
        Some(old) => old.to_owned(),
        None => {
            let answer = server.call("thread/read", &json!({ "threadId": id }))?;
            let preview = answer["thread"]["preview"].as_str().map(str::to_owned);
            preview.ok_or_else(|| program.failed("it did not return the start of the thread"))?
        }
    };
    server.call("thread/name/set", &json!({ "threadId": id, "name": name }))?;
    Ok(name)
}
