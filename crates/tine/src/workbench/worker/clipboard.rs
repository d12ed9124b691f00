//! The clipboard: programs that report whether they took a text. The terminal's own escape sequence comes last, because
//! nothing answers it.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use engine::Context;

use crate::workbench::event::Event;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives a text to the first program that takes it.
pub(super) fn copy(context: &Context, text: String) -> Event {
    let lines = text.lines().count();
    for words in programs(|name| is_set(context, name)) {
        let Some(program) = context.find_program(words[0]) else { continue };
        let mut command = Command::new(program);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let took = command.spawn().and_then(|child| write_text(child, &text)).or_log("copy a text");
        if took == Some(true) {
            let program = if words[0] == "tmux" { "tmux's buffer" } else { words[0] };
            return Event::Copied { lines, program: program.to_owned() };
        }
    }
    Event::NotCopied(text)
}

fn is_set(context: &Context, name: &str) -> bool {
    context.environment.texts().any(|(own, value)| own == name && !value.is_empty())
}

/// The programs to try: those that reach the screen in front of the user. Over SSH, only tmux does.
fn programs(is_set: impl Fn(&str) -> bool) -> Vec<Vec<&'static str>> {
    let mut programs = Vec::new();
    if is_set("TMUX") {
        // With -w, tmux passes it on to the terminal.
        programs.push(vec!["tmux", "load-buffer", "-w", "-"]);
        programs.push(vec!["tmux", "load-buffer", "-"]);
    }
    if is_set("SSH_CONNECTION") {
        return programs;
    }
    if is_set("WAYLAND_DISPLAY") {
        programs.push(vec!["wl-copy"]);
    }
    if is_set("DISPLAY") {
        programs.push(vec!["xclip", "-selection", "clipboard"]);
    }
    if cfg!(target_os = "macos") {
        programs.push(vec!["pbcopy"]);
    }
    programs
}

/// Writes the text and waits for the program to succeed.
fn write_text(mut child: Child, text: &str) -> std::io::Result<bool> {
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > PATIENCE {
            child.kill().or_log("stop a program for the clipboard");
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_that_reach_the_users_screen_are_tried() {
        let names = |set: &[&str]| -> Vec<String> {
            programs(|name| set.contains(&name)).into_iter().map(|words| words.join(" ")).collect()
        };
        if !cfg!(target_os = "macos") {
            assert!(names(&[]).is_empty());
            assert_eq!(names(&["DISPLAY"]), ["xclip -selection clipboard"]);
            assert_eq!(names(&["WAYLAND_DISPLAY", "DISPLAY"])[0], "wl-copy");
        }
        assert!(names(&["DISPLAY", "SSH_CONNECTION"]).is_empty());
        assert_eq!(names(&["TMUX", "SSH_CONNECTION", "DISPLAY"]), ["tmux load-buffer -w -", "tmux load-buffer -"]);
    }

    #[test]
    fn a_text_is_copied_only_if_the_program_says_so() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null());
            write_text(command.spawn().expect("a shell"), "text").unwrap_or(false)
        };
        assert!(run("cat > /dev/null"));
        assert!(!run("cat > /dev/null; exit 1"));
    }
}
