use testkit::build::ClaudeSession;
use transcript::{SessionId, SessionName};

use super::*;
use crate::registry::operations::{Deletion, Forking, Moved};
use crate::test_world::World;

/// Others keep notes in the same folder, so a note is known by what it held when it was about to be put there.
#[test]
fn notes_of_a_fork_that_was_cut_off_go_with_it() {
    let world = World::new();
    let tine = world.tine();
    let memory = world.claude_home().join("projects/-x/memory");
    fs::create_dir_all(&memory).expect("a folder");
    let (as_it_was, changed) = (memory.join("one.md"), memory.join("two.md"));
    fs::write(&as_it_was, "one").expect("a note");
    fs::write(&changed, "two").expect("a note");
    let note = |path: &PathBuf| {
        let digest = directory::content_digest(path).expect("a fingerprint");
        Note { path: path.clone(), digest }
    };
    let created = Created { notes: vec![note(&as_it_was), note(&changed)], ..Created::default() };
    let effects = Effects::Fork(Forking { created, ..Forking::default() });
    fs::write(&changed, "more").expect("a note");
    let now = tine.context().clock.now();
    let operation = tine.registry().begin_operation("fork x", &effects, None, now).expect("an operation");
    tine.registry().simulate_kill(operation);
    crate::operations::clean_up::clean_up(&tine.ctx).expect("a clean home");
    assert!(!as_it_was.exists() && changed.exists());
}

/// Every command failed until it could be.
#[test]
fn a_deletion_that_cannot_be_put_right_now_keeps_nobody_from_anything() {
    let world = World::new();
    let tine = world.tine();
    let folder = world.claude_home().join("projects/-x");
    let (from, to) = (folder.join("one.jsonl"), world.claude_home().join("in-the-trash"));
    fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
    fs::write(&folder, "a file where the folder was").expect("a file");
    fs::write(&to, "a transcript").expect("a file");
    let moved = vec![Moved { from: from.clone(), to: to.clone() }];
    let effects = Effects::Delete(Deletion { session: None, moved, branch: None, name: None });
    let now = jiff::Timestamp::now();
    let operation = tine.registry().begin_operation("delete x", &effects, None, now).expect("an operation");
    tine.registry().simulate_kill(operation);
    for _ in 0..2 {
        let told = world.tine().take_warnings();
        assert!(
            told.iter().any(|told| told.starts_with("`delete x` was interrupted, and tine cannot clean up")),
            "{told:?}"
        );
        assert!(to.exists());
    }
    fs::remove_file(&folder).expect("a free place");
    let told = world.tine().take_warnings();
    assert!(from.exists() && !to.exists(), "{told:?}");
}

/// A Codex that reads the source when it is ended, or a thread that began just before, is no reason to remove either.
#[test]
fn only_what_began_with_a_fork_goes_with_it() {
    let world = World::new();
    let tine = world.tine();
    let folder = world.codex_home().join("sessions/2026/11/17");
    fs::create_dir_all(&folder).expect("a folder");
    let since = tine.context().clock.now();
    let rollout = |number: u32, began: Option<i64>| {
        let id = format!("01a1ead8-0000-7000-8000-{number:012}");
        let began = began.and_then(|after| jiff::Timestamp::from_millisecond(since.as_millisecond() + after).ok());
        let meta = began.map(|at| {
            let payload = serde_json::json!({ "id": id, "timestamp": at.to_string(), "cwd": "/x", "source": "exec" });
            serde_json::json!({ "timestamp": at.to_string(), "type": "session_meta", "payload": payload })
        });
        let path = folder.join(format!("rollout-2026-11-17T18-00-00-{id}.jsonl"));
        fs::write(&path, meta.map(|meta| format!("{meta}\n")).unwrap_or_default()).expect("a rollout");
        path
    };
    let (parent, just_before) = (rollout(1, Some(5)), rollout(2, Some(-300)));
    let (unwritten, with_it, empty) = (rollout(3, Some(5)), rollout(4, Some(5)), rollout(5, None));
    let expected = Expected {
        agent: transcript::Agent::Codex,
        mark: Some("a nonce".into()),
        parent: SessionId::new("01a1ead8-0000-7000-8000-000000000001").expect("an id"),
        since: since.as_millisecond(),
    };
    let mut created = Created::default();
    let written = [parent.clone(), just_before.clone(), with_it.clone(), empty.clone()];
    find_expected(&tine.ctx, &mut created, Some(&expected), &written);
    remove_created(&tine.ctx, &created).expect("nothing is left");
    assert!([parent, just_before, unwritten].iter().all(|path| path.exists()));
    assert!([with_it, empty].iter().all(|path| !path.exists()));
}

/// The name stayed, and so did the title in the transcript.
#[test]
fn a_renaming_that_was_cut_off_did_not_happen() {
    const ID: &str = "11111111-1111-4111-8111-111111111111";
    let world = World::new();
    let session = ClaudeSession::new(ID).cwd(&world.repository);
    let path = session.turn(|turn| turn.prompt("hi").text("ok")).write(&world.claude_home());
    let (tine, name) = (world.tine(), |name: &str| SessionName::new(name).expect("a name"));
    let find = |tine: &crate::Tine| tine.resolve(ID, &crate::sessions::catalog::Quiet).expect("the session").session;
    tine.adopt(&find(&tine), Some(name("old")), None).expect("a name");
    let before = fs::read(&path).expect("a transcript");
    let operation = tine.rename(&find(&tine), &name("new")).expect("another name");
    tine.registry().simulate_kill(operation);
    let tine = world.tine();
    assert_eq!(find(&tine).view.name, Some(name("old")), "{:?}", tine.take_warnings());
    assert_eq!(fs::read(&path).expect("a transcript"), before);
    assert_eq!(tine.registry().operations().expect("the log")[0].state.as_str(), "cleaned");
}
