//! The user's pager, chosen as git chooses it, but without asking a repository.

use std::process::{Child, Command, Stdio};

use diagnostics::OrLog;

use crate::commands::Desk;

/// Starts the pager; `None` if the user wants none.
pub(crate) fn start(desk: &Desk) -> Option<Child> {
    let context = desk.tine.context();
    let chosen = context.variable("GIT_PAGER").or_else(|| configured(desk)).or_else(|| context.variable("PAGER"));
    let pager = chosen.unwrap_or_else(|| "less".to_owned());
    if pager.trim().is_empty() || pager.trim() == "cat" {
        return None;
    }
    let mut command = Command::new("sh");
    // The user's own words, with arguments, as git runs them.
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if context.variable("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    if context.variable("LV").is_none() {
        command.env("LV", "-c");
    }
    command.spawn().or_log("start the pager")
}

/// `core.pager` of the user or the system. A repository may be anybody's, so its own configuration isn't asked.
fn configured(desk: &Desk) -> Option<String> {
    let git = desk.tine.context().find_program("git")?;
    ["--global", "--system"].into_iter().find_map(|scope| {
        let output =
            Command::new(&git).args(["config", scope, "--get", "core.pager"]).current_dir("/").output().ok()?;
        let pager = String::from_utf8(output.stdout).ok()?.trim_end().to_owned();
        (output.status.success() && !pager.is_empty()).then_some(pager)
    })
}
