//! A registry that can't be used: continuing without it, and restoring it from a backup.

use std::fs;

use crate::operations::trash;
use crate::registry;
use crate::registry::RegistryProblem;
use crate::registry::operations::{Effects, OperationState};
use crate::registry::{Registry, Source, backups, rebuild};
use crate::setup::Result;
use crate::setup::doctor::{Check, Verdict};
use crate::{ctx::Ctx, setup::doctor};

/// Restores a damaged or lost registry from a backup, and adds deletions found in the trash to the log. Returns what
/// was done, one sentence each.
pub(crate) fn repair(ctx: &Ctx) -> Result<Vec<String>> {
    let path = &ctx.context().paths.registry;
    let mut done = Vec::new();
    let is_lost = ctx.registry().is_kept() && ctx.registry().is_blank() && !backups(path).is_empty();
    if is_lost || ctx.registry().is_damaged() {
        // The connection must not outlive the file that it was opened for.
        let (message, trouble) = ("it is being repaired".to_owned(), RegistryProblem::Damaged);
        let error = registry::Error::Unusable { path: path.clone(), message, trouble };
        let stand_in = Registry::stand_in(path, &error)?;
        *ctx.registry() = stand_in;
        let rebuilt = rebuild(path, ctx.context().clock.now())?;
        let reopened = Registry::open(path)?;
        *ctx.registry() = reopened;
        // They were about the registry that was replaced.
        ctx.take_warnings();
        let aside = rebuilt.aside.display();
        done.push(match rebuilt.from {
            Source::Itself => format!("rebuilt the registry; nothing was lost; the damaged file is {aside}"),
            Source::Backup(at) => format!(
                "restored the registry from the backup of {}; names and operations since then are lost; the old file \
                 is at {aside}",
                at.strftime("%Y-%m-%d %H:%M UTC")
            ),
            Source::Nothing => format!(
                "found no usable backup and created an empty registry; names are lost; the damaged file is {aside}"
            ),
        });
    }
    ctx.registry().check_writable()?;
    for stranded in trash::stranded_trash(ctx)? {
        let label = stranded.label.what.clone();
        let operation = log_stranded(ctx, stranded)?;
        done.push(format!("added `{label}` to the log again; `tine undo {operation}` restores the session"));
    }
    Ok(done)
}

pub(crate) fn registry_checks(ctx: &Ctx) -> Vec<Check> {
    let path = &ctx.context().paths.registry;
    let check =
        |verdict, found: String, hint: Option<String>| Check { subject: "registry".to_owned(), verdict, found, hint };
    let backups = backups(path);
    let since = |at: jiff::Timestamp| at.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let repair = match backups.first() {
        Some(backup) => format!("`tine doctor --repair` restores the backup of {}", since(backup.at)),
        None => "no backup found; `tine doctor --repair` saves what can be read".to_owned(),
    };
    let unusable = ctx.registry().check_writable();
    let mut checks = vec![match unusable {
        _ if ctx.registry().is_damaged() => {
            check(Verdict::Bad, format!("{} is damaged; tine works read-only", path.display()), Some(repair))
        }
        Err(error) => check(Verdict::Bad, error.to_string(), error.advice().hint),
        Ok(()) if doctor::readable_by_others(path) => check(
            Verdict::Bad,
            format!("{} can be read by other users", path.display()),
            Some(format!("chmod 600 {}", path.display())),
        ),
        Ok(()) if ctx.registry().is_blank() && !backups.is_empty() => {
            check(Verdict::Note, format!("{} is empty, although there are backups", path.display()), Some(repair))
        }
        Ok(()) => check(Verdict::Good, path.display().to_string(), None),
    }];
    checks.extend(trash_check(ctx));
    checks
}

/// Deleted sessions that no operation in the log could bring back.
fn trash_check(ctx: &Ctx) -> Option<Check> {
    let (verdict, found, hint) = match trash::stranded_trash(ctx) {
        Err(error) => (Verdict::Bad, error.to_string(), error.advice().hint),
        Ok(stranded) if stranded.is_empty() => return None,
        Ok(stranded) => {
            let what: Vec<String> = stranded.iter().map(|stranded| format!("`{}`", stranded.label.what)).collect();
            let found = format!("holds sessions that the log doesn't list: {}", what.join(", "));
            let hint = "`tine doctor --repair` puts them back into the log; `tine undo` then restores them";
            (Verdict::Note, found, Some(hint.to_owned()))
        }
    };
    Some(Check { subject: "trash".into(), verdict, found, hint })
}

/// Makes an operation of a deletion that the log doesn't know.
fn log_stranded(ctx: &Ctx, stranded: crate::operations::trash::StrandedTrash) -> Result<i64> {
    let crate::operations::trash::StrandedTrash { folder, label } = stranded;
    let at = jiff::Timestamp::from_millisecond(label.at).unwrap_or_else(|_| ctx.context().clock.now());
    let mut registry = ctx.registry();
    let effects = Effects::Delete(label.effects.clone());
    let operation = registry.begin_operation(&label.what, &effects, None, at)?;
    registry.set_state(operation, &OperationState::Done, None)?;
    drop(registry);
    // Next time it is known by its label alone.
    if fs::metadata(folder.join(crate::operations::trash::LABEL)).is_err() {
        crate::operations::trash::write_label(&folder, &label)?;
    }
    Ok(operation)
}
