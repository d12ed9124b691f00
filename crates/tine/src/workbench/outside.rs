//! Programs that take over the screen for a while: the user's editor, and the agent's own screen.

use std::fs;
use std::process::Command;

use diagnostics::OrLog;
use engine::{Context, Session, users_editor};

use super::event::{ErrorText, Event};
use super::terminal::AlternateScreen;

/// Opens a prompt in the user's editor.
pub(super) fn edit(screen: &mut AlternateScreen, context: &Context, tab: u64, text: &str) -> Event {
    let file = match tempfile::Builder::new().prefix("tine-prompt-").suffix(".md").tempfile() {
        Ok(file) => file,
        Err(error) => return failed(format!("cannot create a file for the prompt: {error}")),
    };
    if let Err(error) = fs::write(file.path(), text) {
        return failed(format!("cannot write {}: {error}", file.path().display()));
    }
    let mut editor = users_editor(context, &[file.path().to_owned()]);
    let ended = match screen.lend(|| editor.status()) {
        Ok(ended) => ended,
        Err(error) => return failed(format!("cannot use the terminal: {error}")),
    };
    match ended {
        Ok(status) if status.success() => match fs::read_to_string(file.path()) {
            Ok(text) => Event::Edited { tab, text: text.trim_end_matches('\n').to_owned() },
            Err(error) => failed(format!("cannot read {}: {error}", file.path().display())),
        },
        Ok(_) => failed("the editor failed; the prompt is unchanged".to_owned()),
        Err(error) => failed(format!("cannot start the editor: {error}")),
    }
}

/// Opens a session on the agent's own screen, as `tine resume` does.
pub(super) fn hand_over(screen: &mut AlternateScreen, context: &Context, tab: u64, session: &Session) -> Event {
    let mut command = Command::new(&context.program);
    command.args(["resume", session.view.id.as_str(), "--in", "here", "--yes"]);
    if let Some(directory) = session.view.cwd.as_deref().filter(|directory| directory.is_dir()) {
        command.current_dir(directory);
    }
    let ended = screen.lend(|| command.status());
    ended.or_log("lend the screen");
    Event::Returned { tab }
}

/// Opens another workbench on sample sessions, in a temporary home directory.
pub(super) fn samples(screen: &mut AlternateScreen, context: &Context) -> Event {
    let mut command = Command::new(&context.program);
    command.args(["demo", "--workbench"]);
    match screen.lend(|| command.status()) {
        Ok(Ok(status)) if status.success() => Event::Done("back from the sample sessions".to_owned()),
        Ok(Ok(_)) => failed("the sample sessions could not be opened".to_owned()),
        Ok(Err(error)) | Err(error) => failed(format!("cannot open the sample sessions: {error}")),
    }
}

fn failed(message: String) -> Event {
    Event::Failed(ErrorText { message, hint: None })
}
