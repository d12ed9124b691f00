//! Passing a message to an agent unchanged, through its editor.
//!
//! Input lines alter pasted text: tabs become spaces; carriage returns, invisible characters and combining accents are
//! lost. Text from an editor is unchanged. So agents in panes have tine as their editor: it fetches the message, and
//! runs the user's own editor at any other time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use diagnostics::OrLog;

use super::PAUSE;
use crate::advice::FileError;
use crate::context::Context;
use crate::ctx::Ctx;
use crate::private;
use crate::run::Result;
use crate::run::places::{Key, OpenPane};

/// Names the file from which the editor fetches a message.
const FILE_VARIABLE: &str = "TINE_HAND_OVER";
/// Names the person's own editor.
const OWN_VARIABLE: &str = "TINE_EDITOR";
/// The variable that agents read first to find an editor.
const EDITOR_VARIABLE: &str = "VISUAL";
/// How long an agent takes to run its editor.
const FETCHED_WITHIN: Duration = Duration::from_secs(4);

/// The variables that make tine the editor of an agent.
pub(crate) fn editor_variables(context: &Context) -> Vec<(String, String)> {
    let program = context.program.to_string_lossy();
    // Every agent splits this command in its own way, so it must not need quotes.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if context.surroundings.proc.is_none() || !program.bytes().all(is_plain) {
        return Vec::new();
    }
    let file = folder(context).join(uuid::Uuid::new_v4().to_string());
    let own = [OWN_VARIABLE, EDITOR_VARIABLE, "EDITOR"].into_iter().find_map(|name| context.variable(name));
    let mut variables = vec![
        (EDITOR_VARIABLE.to_owned(), format!("{program} editor")),
        (FILE_VARIABLE.to_owned(), file.to_string_lossy().into_owned()),
    ];
    variables.extend(own.map(|own| (OWN_VARIABLE.to_owned(), own)));
    variables
}

fn folder(context: &Context) -> PathBuf {
    context.paths.cache.join("hand-over")
}

/// Whether an input line keeps a text unchanged when it is pasted.
pub(super) fn survives_paste(text: &str) -> bool {
    let changes = |letter: char| match letter {
        '\n' => false,
        // Control characters, invisible ones, and those that combine with the letter before them.
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{feff}' => true,
        letter => letter.is_control(),
    };
    !text.contains(changes)
}

/// Moves the message that waits for this agent to `file`. Returns false without a message.
pub fn fetch_message(context: &Context, file: &Path) -> io::Result<bool> {
    let Some(handed) = context.variable(FILE_VARIABLE).map(PathBuf::from) else {
        return Ok(false);
    };
    match fs::read(&handed) {
        Ok(text) => fs::write(file, text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    // The sender waits until the file is removed.
    fs::remove_file(&handed)?;
    Ok(true)
}

/// The command that runs the person's own editor, as a shell would.
pub fn users_editor(context: &Context, files: &[PathBuf]) -> Command {
    let known = context.variable(OWN_VARIABLE);
    let usual = || ["editor", "nano", "vim", "vi"].into_iter().find(|name| context.find_program(name).is_some());
    let editor = known.clone().unwrap_or_else(|| usual().unwrap_or("vi").to_owned());
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec {editor} \"$@\"")).arg(&editor).args(files);
    command.env_remove(EDITOR_VARIABLE).envs(known.map(|known| (EDITOR_VARIABLE, known)));
    command
}

/// Lets the agent in a pane fetch a message. Returns false if it doesn't.
pub(super) fn hand_over(ctx: &Ctx, open: &OpenPane<'_>, process: Option<u32>, text: &str) -> Result<bool> {
    let proc = ctx.context().surroundings.proc.as_deref();
    let file = proc.and_then(|proc| agents::variable_of(proc, process?, FILE_VARIABLE));
    // The process in that pane may set the variable to anything; only our own folder is written to.
    let folder = folder(ctx.context());
    let Some(file) = file.map(PathBuf::from).filter(|file| file.parent() == Some(&folder)) else {
        return Ok(false);
    };
    let failed = |source| FileError::Write { path: file.clone(), source };
    private::create_folder(&folder).map_err(failed)?;
    let mut handed = private::open_file(&file).map_err(failed)?;
    io::Write::write_all(&mut handed, text.as_bytes()).map_err(failed)?;
    drop(handed);
    let fetched = open.press(Key::Editor).and_then(|()| wait_until_fetched(ctx, &file));
    // A message that was not fetched must not appear when the user opens the editor.
    fs::remove_file(&file).or_log(format_args!("remove {}", file.display()));
    fetched
}

fn wait_until_fetched(ctx: &Ctx, file: &Path) -> Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < FETCHED_WITHIN {
        if !file.exists() {
            ctx.pause(PAUSE * 2)?;
            return Ok(true);
        }
        ctx.pause(PAUSE / 2)?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_a_paste_would_change_are_recognized() {
        for text in ["plain", "two\nlines", "ünï 漢字 🙂", "quotes ' \" $(x)"] {
            assert!(survives_paste(text), "{text:?}");
        }
        for text in ["a\tb", "a\r\nb", "\u{1b}[31m", "e\u{301}", "z\u{200b}w", "\u{feff}bom", "\u{7f}", "a\u{2028}b"] {
            assert!(!survives_paste(text), "{text:?}");
        }
    }
}
