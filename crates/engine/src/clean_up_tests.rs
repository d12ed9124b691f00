use super::*;
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
    let note = |path: &PathBuf| (path.clone(), directory::content_digest(path).expect("a fingerprint"));
    let effects = Effects { notes: vec![note(&as_it_was), note(&changed)], ..Effects::default() };
    fs::write(&changed, "more").expect("a note");
    let now = tine.context().clock.now();
    let operation = tine.registry().begin_operation("fork", "fork x", &effects, now).expect("an operation");
    let query = "UPDATE operations SET process = '4194305 1' WHERE id = ?1";
    tine.registry().write(|transaction| transaction.execute(query, [operation])).expect("somebody else's");
    tine.clean_up().expect("a clean home");
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
    let moved = vec![delete::Moved { from: from.clone(), to: to.clone() }];
    let effects = Effects { moved, ..Effects::default() };
    let operation =
        tine.registry().begin_operation("delete", "delete x", &effects, jiff::Timestamp::now()).expect("an operation");
    let query = "UPDATE operations SET process = '4194305 1' WHERE id = ?1";
    tine.registry().write(|transaction| transaction.execute(query, [operation])).expect("somebody else's");
    for _ in 0..2 {
        let told = world.tine().take_warnings();
        assert!(told.iter().any(|told| told.starts_with("`delete x` was cut off, and what it left")), "{told:?}");
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
    let mut effects = Effects {
        expects: Some(Expected {
            agent: transcript::Agent::Codex,
            mark: Some("a nonce".into()),
            parent: SessionId::new("01a1ead8-0000-7000-8000-000000000001").expect("an id"),
            since: since.as_millisecond(),
        }),
        ..Effects::default()
    };
    tine.find_expected(&mut effects, &[parent.clone(), just_before.clone(), with_it.clone(), empty.clone()]);
    tine.remove_effects(&effects);
    assert!([parent, just_before, unwritten].iter().all(|path| path.exists()));
    assert!([with_it, empty].iter().all(|path| !path.exists()));
}
