//! Listings: thousands of sessions in order, each assembled when it is printed and dropped afterwards.
//!
//! Decoding the facts of all sessions at once takes most of the time of a listing, and memory that the system has to clear
//! first. What sorting and aligning need of all sessions is in their outlines.

use std::collections::HashMap;

use transcript::SessionId;

use crate::sessions::catalog::Entry;
use crate::sessions::session::{Knowledge, Session, beginning, handles};

/// Sessions, newest first, assembled on demand.
pub struct Listing {
    /// The newest last, so that each can be popped.
    entries: Vec<Entry>,
    knowledge: Knowledge,
    handles: HashMap<SessionId, String>,
}

impl Listing {
    pub(super) fn new(mut entries: Vec<Entry>, knowledge: Knowledge, handles: HashMap<SessionId, String>) -> Self {
        entries.sort_unstable_by(|a, b| {
            let number = |entry: &Entry| knowledge.made(&entry.summary).map(|made| made.number);
            // Only the facts of sessions that were written at the same time are decoded for it.
            let order = a.updated().cmp(&b.updated());
            order.then_with(|| number(a).cmp(&number(b))).then_with(|| b.summary.id.cmp(&a.summary.id))
        });
        Listing { entries, knowledge, handles }
    }

    /// The length of the longest name or id prefix among them, in characters.
    pub fn label_width(&self) -> usize {
        // Only sessions whose id begins like one with a name or a long prefix are decoded for it.
        let mut special = self.knowledge.who_may_be_named();
        special.extend(self.handles.keys().map(|id| beginning(id.as_str())));
        let label = |entry: &Entry| {
            if !special.contains(&entry.beginning()) {
                return 8;
            }
            match self.knowledge.name(&entry.summary) {
                Some(name) => name.as_str().len(),
                None => self.handles.get(&entry.summary.id).map_or(8, String::len),
            }
        };
        self.entries.iter().map(label).max().unwrap_or(0)
    }

    /// Whether a process has one of them open.
    pub fn any_live(&self) -> bool {
        self.knowledge.any_live()
    }
}

impl Iterator for Listing {
    type Item = Session;

    fn next(&mut self) -> Option<Session> {
        let mut session = self.knowledge.session(self.entries.pop()?);
        if let Some(handle) = self.handles.get(&session.view.id) {
            session.view.handle.clone_from(handle);
        }
        Some(session)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Listing {}

/// [`handles`] of the ids of these sessions.
pub(super) fn handles_of<'a>(entries: impl Iterator<Item = &'a Entry>) -> HashMap<SessionId, String> {
    // Almost all ids differ in their first eight characters; only the others are decoded and compared further.
    let mut all: Vec<(u64, &Entry)> = entries.map(|entry| (entry.beginning(), entry)).collect();
    all.sort_unstable_by_key(|(beginning, _)| *beginning);
    let alike = all.chunk_by(|(a, _), (b, _)| a == b).filter(|alike| alike.len() > 1);
    handles(alike.flatten().map(|(_, entry)| &entry.summary.id))
}

#[cfg(test)]
mod tests {
    use testkit::build::Corpus;

    use super::Listing;
    use crate::progress::Quiet;
    use crate::sessions::catalog::{file_key, refresh};
    use crate::sessions::survey::Filter;
    use crate::test_world::World;

    #[test]
    fn a_warm_listing_decodes_only_what_is_taken() {
        let world = World::new();
        let corpus = Corpus::new(1).sessions(200).projects(4).median(2_000);
        corpus.write(&world.claude_home(), &world.codex_home(), &world.repository);
        let tine = world.tine();
        let listing = || tine.listing(&Filter::default(), &Quiet).unwrap();
        let cold: Vec<_> = listing().map(|session| session.view).collect();
        assert!(cold.len() > 150 && cold.is_sorted_by(|a, b| a.updated >= b.updated));
        let decoded = |listing: &Listing| listing.entries.iter().filter(|entry| entry.is_decoded()).count();
        let mut warm = listing();
        assert!(warm.label_width() >= 8);
        // Sessions whose ids begin alike are compared further.
        let alike = decoded(&warm);
        assert!(alike < warm.len() / 2, "{alike} of {}", warm.len());
        warm.next().unwrap();
        assert!(decoded(&warm) <= alike);
        assert!(listing().map(|session| session.view).eq(cold));
    }

    #[test]
    fn rows_are_read_in_any_order() {
        let world = World::new();
        let corpus = Corpus::new(1).sessions(300).projects(4).median(2_000);
        corpus.write(&world.claude_home(), &world.codex_home(), &world.repository);
        let tine = world.tine();
        tine.listing(&Filter::default(), &Quiet).unwrap();
        let ctx = &tine.ctx;
        for backwards in [false, true] {
            let mut entries = refresh(ctx.adapters(), &ctx.context().paths.cache, &Quiet).entries;
            if backwards {
                entries.reverse();
            }
            assert!(entries.len() > 250 && entries.iter().all(|entry| !entry.is_decoded()));
            assert!(entries.iter().all(|entry| file_key(&entry.summary.path) == entry.file()));
        }
    }
}
