//! `sessions-index.json`: a list of a project's sessions that older clients keep. Where there is one, a fork gets its
//! entry; it is never made, and one of another shape is left alone.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use transcript::{SessionId, Summary};

const NAME: &str = "sessions-index.json";

/// Whether the folder of the session at `path` has a list.
pub(super) fn is_kept(path: &Path) -> bool {
    path.with_file_name(NAME).is_file()
}

/// Adds the session at `path`.
pub(super) fn list_session(path: &Path, summary: &Summary) -> io::Result<()> {
    change(path, |entries| {
        if entries.iter().any(|entry| entry["sessionId"] == json!(summary.id)) {
            return false;
        }
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let modified = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        entries.push(json!({
            "sessionId": summary.id,
            "fullPath": path.to_string_lossy(),
            "fileMtime": modified.map(|since| since.as_millis() as u64),
            "firstPrompt": summary.first_prompt,
            "summary": summary.title(),
            "messageCount": summary.turns * 2,
            "created": summary.created,
            "modified": summary.updated,
            "gitBranch": summary.branch.as_deref().unwrap_or_default(),
            "projectPath": summary.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
            "isSidechain": false,
        }));
        true
    })
}

/// Takes the session at `path` out again.
pub(super) fn unlist_session(id: &SessionId, path: &Path) -> io::Result<()> {
    change(path, |entries| {
        let before = entries.len();
        entries.retain(|entry| entry["sessionId"] != json!(id));
        entries.len() != before
    })
}

/// Changes the list next to a transcript, if it exists and is readable, by writing a temporary file and renaming it. If
/// another process changes it meanwhile, its change is not overwritten: this one is repeated.
fn change(transcript: &Path, change: impl Fn(&mut Vec<Value>) -> bool) -> io::Result<()> {
    const TRIES: usize = 20;
    let file = transcript.with_file_name(NAME);
    // Two concurrent changes must not write to the same file.
    let new = file.with_extension(format!("json.{}.tine-new", std::process::id()));
    for _ in 0..TRIES {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let Ok(mut index) = serde_json::from_str::<Value>(&text) else {
            return Ok(());
        };
        let Some(entries) = index.get_mut("entries").and_then(Value::as_array_mut) else {
            return Ok(());
        };
        if !change(entries) {
            return Ok(());
        }
        fs::write(&new, serde_json::to_string_pretty(&index).unwrap_or_else(|_| text.clone()))?;
        fs::set_permissions(&new, fs::metadata(&file)?.permissions())?;
        if fs::read_to_string(&file).is_ok_and(|now| now == text) {
            return fs::rename(&new, &file);
        }
    }
    fs::remove_file(&new)?;
    Err(io::Error::other(format!("{NAME} keeps changing")))
}
