//! Sending a message to a session without a terminal.

use std::path::Path;

use agents::{HeadlessMessage, Holder, SessionRef};
use transcript::DefectKind;

use crate::ctx::Ctx;
use crate::program;
use crate::run::drive::send::{self, Target};
use crate::run::launch;
use crate::run::profile::Launch;
use crate::run::{Error, Result};
use crate::sessions::moved;
use crate::sessions::session::Session;

/// Refuses sessions in a format that the agent no longer reads.
pub(crate) fn check_format(session: &Session) -> Result<()> {
    let view = &session.view;
    match session.details.defects.count(DefectKind::OldFormat) {
        0 => Ok(()),
        _ if view.turns == 0 => Err(Error::EmptyOldFormat { session: view.label().to_owned(), agent: view.agent }),
        _ => Err(Error::OldFormat(view.agent)),
    }
}

/// Warns if the agent itself would not find the messages.
pub(crate) fn warn_of_other_tip(ctx: &Ctx, session: &Session) {
    if session.details.tip_differs {
        let (agent, label) = (session.view.agent.product_name(), session.view.label());
        ctx.warn(format!(
            "{agent} resumes this session at a later record, without the conversation; \
             `tine fork {label}` creates a session that has all of it"
        ));
    }
}

/// Sends a message to a session without a terminal, and returns the answer.
pub(crate) fn resume_headless(
    ctx: &Ctx,
    session: &Session,
    directory: &Path,
    launch: &Launch,
    text: &str,
) -> Result<String> {
    let view = &session.view;
    ctx.registry().check_writable()?;
    check_format(session)?;
    warn_of_other_tip(ctx, session);
    moved::check_directory(ctx, session, directory)?;
    // Only the daemon can continue a session that it has open.
    if session.holder() == Some(Holder::Daemon) {
        let sent = send::send(ctx, &Target::Session(Box::new(session.clone())), text, true, None)?;
        return Ok(sent.answer.unwrap_or_default());
    }
    let options = launch.options();
    let session = Some(SessionRef { id: &view.id, path: &view.path });
    let message = HeadlessMessage { session, id: None, title: None, directory, options: &options, text };
    let program = launch::program_as(ctx, view.agent, &launch.profile, view.name.as_ref())?;
    let said = program::send(ctx, view.agent, &program, &message);
    Ok(said.map_err(|source| Error::NotAnswered { session: Some(view.label().to_owned()), source })?.answer)
}
