//! The dialog between choosing a session and forking it: what would be done, and what of it can still be changed.
//!
//! Plain lines and a letter, as in the picker: it works on every terminal and leaves nothing to restore.

use std::io::{self, BufRead, Write};

use engine::{Plan, Request, Where, WorkspaceKind};
use transcript::{SessionName, text};

use super::Desk;
use crate::failure::Failure;
use crate::ui::{Paint, plan as show};

/// Shows the plan of a request, lets the user change it, and returns the accepted plan; `None` if the user cancelled.
/// `hit` is the matching turn.
pub(crate) fn agree(desk: &Desk, mut request: Request, hit: u32) -> Result<Option<Plan>, Failure> {
    let mut stderr = io::stderr().lock();
    let mut other = match &request.workspace {
        Where::Worktree { .. } => Where::Same,
        Where::Same | Where::Directory(_) | Where::Copy(_) => Where::Worktree { branch: None, base: None },
    };
    let can_cut = hit < request.source.view.turns || request.turns.is_some();
    let mut plan = desk.tine.plan_fork(&request)?;
    loop {
        writeln!(stderr)?;
        show::brief(&mut stderr, &desk.surface, &plan)?;
        let worktree = match &other {
            Where::Worktree { .. } => "use a worktree",
            Where::Same => "use the same directory",
            Where::Directory(_) | Where::Copy(_) => "use the given directory",
        };
        let cut = match (can_cut, request.turns) {
            (false, _) => String::new(),
            (true, None) => format!(", [t] cut after turn {hit}"),
            (true, Some(_)) => ", [t] keep all turns".to_owned(),
        };
        let carry = match (plan.leaves_changes, request.carry) {
            (true, _) => ", [c] copy uncommitted changes",
            (false, true) if plan.workspace.kind == WorkspaceKind::Worktree => ", [c] leave uncommitted changes",
            _ => "",
        };
        write!(stderr, "[Enter] fork, [w] {worktree}{cut}{carry}, [n] change the name, [q] cancel: ")?;
        stderr.flush()?;
        let Some(answer) = line()? else { return Ok(None) };
        let mut changed = request.clone();
        match answer.as_str() {
            "" | "y" => return Ok(Some(plan)),
            "q" => return Ok(None),
            "w" => changed.workspace = other.clone(),
            "c" if !carry.is_empty() => changed.carry = !request.carry,
            "t" if can_cut => changed.turns = request.turns.is_none().then_some(hit),
            "n" => {
                write!(stderr, "name: ")?;
                stderr.flush()?;
                let Some(name) = line()? else { return Ok(None) };
                match name.parse::<SessionName>() {
                    Ok(name) => changed.name = Some(name),
                    Err(_) if name.is_empty() => {}
                    Err(error) => complain(desk, &mut stderr, &error.to_string())?,
                }
            }
            _ => writeln!(stderr, "enter one of these letters")?,
        }
        // An impossible change is reported, and the plan stays as it was.
        match desk.tine.plan_fork(&changed) {
            Ok(possible) => {
                if changed.workspace != request.workspace {
                    other = request.workspace.clone();
                }
                (plan, request) = (possible, changed);
            }
            Err(error) => complain(desk, &mut stderr, &error.to_string())?,
        }
    }
}

fn complain(desk: &Desk, out: &mut impl Write, message: &str) -> io::Result<()> {
    writeln!(out, "{}", Paint(desk.surface.color).note(&text::clean(message)))
}

/// What was typed; nothing at the end of the input.
fn line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then(|| line.trim().to_owned()))
}
