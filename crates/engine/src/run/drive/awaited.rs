//! Waiting for a session that was opened a moment ago: it may have no transcript yet, and its agent may choose its id.

use std::time::{Duration, Instant};

use transcript::{SessionId, SessionName};

use crate::ctx::Ctx;
use crate::run::Result;
use crate::sessions::catalog::Quiet;
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;
use crate::sessions::survey;

/// How often all sessions are listed while nothing shows where the transcript is.
const LIST_EVERY: Duration = Duration::from_millis(500);

/// A session that was opened a moment ago.
pub(crate) struct OpeningSession<'a> {
    id: Option<&'a SessionId>,
    name: Option<&'a SessionName>,
    found: Option<Session>,
    /// Whether it had messages before it was opened.
    is_known: bool,
    listed: Option<Instant>,
}

impl<'a> OpeningSession<'a> {
    pub(crate) fn new(id: Option<&'a SessionId>, name: Option<&'a SessionName>) -> Self {
        OpeningSession { id, name, found: None, is_known: false, listed: None }
    }

    /// A session that is known already.
    pub(crate) fn known(session: &Session) -> Self {
        OpeningSession { id: None, name: None, found: Some(session.clone()), is_known: true, listed: None }
    }

    /// The current session, once its transcript has a prompt. Until its path is known, `search` may find it among all
    /// sessions. The first records of a new transcript contain neither its directory nor its title.
    pub(crate) fn refresh(
        &mut self,
        ctx: &Ctx,
        search: impl FnOnce() -> Result<Option<Session>>,
    ) -> Result<Option<&Session>> {
        if let Some(session) = &self.found {
            self.found = Some(refresh(ctx, session)?);
        } else if self.is_written(ctx)? || self.listed.is_none_or(|listed| listed.elapsed() >= LIST_EVERY) {
            self.listed = Some(Instant::now());
            let spec = self.id.map(SessionId::as_str).or(self.name.map(SessionName::as_str));
            self.found = match spec.map(|spec| survey::resolve(ctx, spec, &Quiet)) {
                Some(Ok(selection)) => Some(selection.session),
                Some(Err(_)) => search()?,
                None => None,
            };
        }
        Ok(self.found.as_ref().filter(|session| self.is_known || session.view.turns > 0))
    }

    /// Whether the transcript is where the registry expects it.
    fn is_written(&self, ctx: &Ctx) -> Result<bool> {
        let Some(name) = self.name else {
            return Ok(false);
        };
        let row = ctx.registry().named(name)?;
        Ok(row.is_some_and(|row| agents::is_session(&row.key.path)))
    }
}
