//! Completions for the command line and the prompt box.

use std::path::Path;
use std::process::{Command, Stdio};

use diagnostics::OrLog;

use super::engine_thread::EngineThread;

/// How many files a completion offers.
const FILES: usize = 50;

impl EngineThread {
    /// Completions for the last word of a command, from the shell completion.
    pub(super) fn complete_command(&self, words: &[String]) -> Vec<(String, String)> {
        let mut command = Command::new(&self.tine.context().program);
        command
            .env(crate::environment::COMPLETE_VARIABLE, "fish")
            .args(["--", "tine"])
            .args(words)
            .stdin(Stdio::null());
        let output = command.current_dir(&self.tine.context().cwd).output().or_log("complete a command");
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let choice = |line: &str| {
            let (word, what) = line.split_once('\t').unwrap_or((line, ""));
            (transcript::text::one_line(word), transcript::text::one_line(what))
        };
        text.lines().filter(|line| !line.is_empty()).map(choice).collect()
    }

    /// Files of a directory whose path contains some letters, as git lists them, or those of the directory itself.
    pub(super) fn files(&self, directory: &Path, part: &str) -> Vec<(String, String)> {
        let listed = self.tine.context().find_program("git").and_then(|git| {
            let words = ["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
            let output = Command::new(git).args(words).current_dir(directory).stdin(Stdio::null()).output();
            output.or_log("list files").filter(|output| output.status.success())
        });
        let names: Vec<String> = match listed {
            Some(output) => {
                let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
            }
            None => {
                let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
        };
        let part = part.to_lowercase();
        let mut fitting: Vec<String> = names
            .into_iter()
            .filter(|name| name.to_lowercase().contains(&part) && !transcript::text::is_deceptive(name))
            .collect();
        // Names that begin with the letters come first.
        let file = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
        fitting.sort_by_key(|name| (!file(name).starts_with(&part), name.len(), name.clone()));
        fitting.into_iter().take(FILES).map(|name| (format!("@{name}"), String::new())).collect()
    }
}
