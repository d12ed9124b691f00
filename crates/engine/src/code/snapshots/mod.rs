//! Snapshots: the working tree at the end of a turn, as a git tree under a private ref of the repository itself.
//!
//! The ref `refs/tine/snapshots/AGENT/SESSION/TURN-MOMENT-KEY` names the turn three times: by session and number for
//! people, and by the turn's fingerprint for tine. The fingerprint is the same in a session and in its forks, and
//! different for a turn that replaces another one after a rewind. The commit's tree holds the bytes of the files as they
//! were on disk, and its message what was left out ([`trailers`]).

pub(crate) mod list;
mod prune;
pub(crate) mod record;
mod refs;
mod rules;
mod seen;
mod take;
mod trailers;

use std::path::PathBuf;

use jiff::Timestamp;

use crate::code::Result;
use crate::ctx::Ctx;
use crate::sessions::session::Session;

pub use list::{SnapshotList, SnapshotView};
pub use prune::Kept;
pub(crate) use record::tree_now;
pub use record::{SnapshotRequest, are_snapshots_wanted, record_snapshot};
pub use refs::Moment;
pub(crate) use rules::is_refused;
pub use trailers::{LeftOut, Reason};

/// The tree that was recorded for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The top of the working tree that it was taken of.
    pub repository: PathBuf,
    /// A git tree with the bytes that were on disk: no filter and no conversion of line endings was applied.
    pub tree: String,
    /// The commit that holds the tree.
    pub commit: String,
    /// The commit that was checked out then, if there was one.
    pub head: Option<String>,
    /// The turn.
    pub turn: u32,
    /// Whether it was taken when the turn ended, or only before the next one began.
    pub moment: Moment,
    /// When this tree was first seen.
    pub taken: Timestamp,
    /// What the tree lacks.
    pub left_out: Vec<LeftOut>,
}

/// The snapshot at the end of a turn of a session, whether the turn ran in this session or in one that it was forked
/// from. If the turn was interrupted, it is the tree that the next prompt found.
pub fn find(ctx: &Ctx, session: &Session, turn: u32) -> Result<Option<Snapshot>> {
    let git = ctx.git()?;
    let summary = ctx.adapter(session.view.agent).scan(&session.view.path);
    let key = turn.checked_sub(1).and_then(|index| summary.turn_keys.get(index as usize));
    let directory = session.view.cwd.as_deref().filter(|cwd| git.is_in_repository(cwd));
    let (Some(key), Some(directory)) = (key, directory) else { return Ok(None) };
    let found = refs::of_turn(&git, directory, session.view.agent, *key)?;
    let is_own = |found: &&refs::SnapshotRef| found.name.session == session.view.id;
    let best = found.iter().max_by_key(|found| (found.name.moment == Moment::End, is_own(found), found.name.turn));
    best.map(|found| Ok(Snapshot { turn, ..found.read()? })).transpose()
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use testkit::build::ClaudeSession;

    use super::*;
    use crate::sessions::catalog::Quiet;
    use crate::test_world::World;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    fn git(world: &World, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(&world.repository).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
        let output = git.output().expect("git");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn a_turn_finds_its_snapshot_and_a_fork_finds_its_parents() {
        let world = World::new();
        let session = ClaudeSession::new(ID).cwd(&world.repository);
        let session = session.turn(|turn| turn.prompt("one").text("1")).turn(|turn| turn.prompt("two").text("2"));
        session.write(&world.claude_home());
        let tine = world.tine();
        let session = tine.resolve(ID, &Quiet).expect("a session").session;
        assert_eq!(find(&tine.ctx, &session, 1).expect("an answer"), None);

        let keys = tine.ctx.adapter(session.view.agent).scan(&session.view.path).turn_keys;
        let tree = git(&world, &["rev-parse", "HEAD^{tree}"]);
        let left_out = vec![LeftOut { path: ".env".into(), reason: Reason::Secret }];
        let message = trailers::Trailers { worktree: world.repository.clone(), head: None, left_out: left_out.clone() };
        let commit = git(&world, &["commit-tree", &tree, "-m", &message.write("one")]);
        let name = |turn: u32, moment| refs::Name {
            agent: session.view.agent,
            session: session.view.id.clone(),
            turn,
            moment,
            key: keys[turn as usize - 1],
        };
        for name in [name(1, Moment::BeforeNext), name(1, Moment::End), name(2, Moment::BeforeNext)] {
            git(&world, &["update-ref", &name.to_ref(), &commit]);
        }
        let found = find(&tine.ctx, &session, 1).expect("an answer").expect("a snapshot");
        assert_eq!((found.turn, found.moment, &found.left_out), (1, Moment::End, &left_out));
        assert_eq!((&found.repository, &found.tree, &found.commit), (&world.repository, &tree, &commit));
        assert_eq!(find(&tine.ctx, &session, 2).expect("an answer").expect("a snapshot").moment, Moment::BeforeNext);
        assert_eq!(find(&tine.ctx, &session, 3).expect("an answer"), None);

        let plan = tine.plan_fork(&crate::Request::of(session.clone())).expect("a plan");
        tine.apply_fork(&plan, &Quiet).expect("a fork");
        let fork = tine.resolve(plan.name.as_str(), &Quiet).expect("the fork").session;
        assert_eq!(find(&tine.ctx, &fork, 1).expect("an answer"), Some(found));

        git(&world, &["update-ref", &name(1, Moment::End).to_ref(), "HEAD"]);
        let error = find(&tine.ctx, &fork, 1).expect_err("a foreign commit");
        assert!(matches!(error, crate::code::Error::UnknownSnapshot(_)), "{error}");
    }
}
