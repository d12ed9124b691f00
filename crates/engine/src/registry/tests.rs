//! The registry under many hands.

use std::fs;

use super::*;

fn key(number: usize) -> SessionKey {
    SessionKey {
        agent: Agent::Claude,
        id: SessionId::new(format!("session-{number}")).unwrap(),
        path: PathBuf::from(format!("/sessions/{number}.jsonl")),
    }
}

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Each writer has a connection of its own, as a process would; all of them create the file at once.
#[test]
fn a_hundred_writers_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/registry.db");
    std::thread::scope(|scope| {
        for number in 0..100 {
            let path = &path;
            scope.spawn(move || {
                let mut registry = Registry::open(path).unwrap();
                for round in 0..5 {
                    let session = key(number * 10 + round);
                    assert!(registry.set_name(&session, Some(&name(&format!("name-{number}-{round}"))), NOW).unwrap());
                }
                registry.remember("last-session", &number.to_string()).unwrap();
            });
        }
    });
    let registry = Registry::open(&path).unwrap();
    let names = registry.names().unwrap();
    assert_eq!(names.len(), 500);
    assert_eq!(names[&key(994)].as_str(), "name-99-4");
    assert!(registry.recall("last-session").unwrap().is_some());
}

#[test]
fn a_name_belongs_to_one_session() {
    let mut registry = Registry::in_memory().unwrap();
    assert!(registry.set_name(&key(1), Some(&name("auth")), NOW).unwrap());
    assert!(registry.set_name(&key(1), Some(&name("auth")), NOW).unwrap(), "it may keep its own");
    assert!(!registry.set_name(&key(2), Some(&name("auth")), NOW).unwrap());
    assert!(registry.set_name(&key(1), None, NOW).unwrap());
    assert!(registry.set_name(&key(2), Some(&name("auth")), NOW).unwrap());
    assert_eq!(registry.names().unwrap(), HashMap::from([(key(2), name("auth"))]));
    registry.move_session(&key(2), Path::new("/elsewhere.jsonl")).unwrap();
    let moved = SessionKey { path: "/elsewhere.jsonl".into(), ..key(2) };
    assert_eq!(registry.names().unwrap(), HashMap::from([(moved, name("auth"))]));
}

#[test]
fn what_tine_knows_of_a_parent_is_not_replaced_by_a_guess() {
    let mut registry = Registry::in_memory().unwrap();
    let child = (Agent::Codex, SessionId::new("child").unwrap());
    let parent =
        |id: &str, source| Lineage { agent: Agent::Codex, id: SessionId::new(id).unwrap(), turn: Some(2), source };
    let mut check = |noted: Lineage, kept: &str| {
        registry.note_lineage(&[(child.clone(), noted)], NOW).unwrap();
        assert_eq!(registry.lineage().unwrap()[&child].id.as_str(), kept);
    };
    check(parent("a-guess", ParentSource::Inferred), "a-guess");
    check(parent("the-agent", ParentSource::Agent), "the-agent");
    check(parent("tine", ParentSource::Tine), "tine");
    check(parent("another-guess", ParentSource::Inferred), "tine");
    check(parent("tine-again", ParentSource::Tine), "tine-again");
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tine/registry.db");
    let mut registry = Registry::open(&path).unwrap();
    registry.remember("key", "value").unwrap();
    for entry in fs::read_dir(folder.path().join("tine")).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    assert_eq!(fs::metadata(folder.path().join("tine")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.db");
    fs::write(&path, "this is not a database, but it is long enough to be looked at as one").unwrap();
    assert!(matches!(Registry::open(&path), Err(Error::Unusable { .. })));
    assert!(fs::read_to_string(&path).unwrap().starts_with("this is not"));
}

/// A default in its place could start an agent with other options, or lead a fork to the wrong parent.
#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(&folder.path().join("registry.db")).unwrap();
    let key = key(1);
    registry.set_name(&key, Some(&name("damaged")), NOW).unwrap();
    registry.connection.execute("UPDATE sessions SET profile = 'x', pane = 'x', is_start = 1, cwd = '/'", []).unwrap();
    let seed = "INSERT INTO seeds VALUES ('claude', 'session-1', 'claude', 'other', 1, 'x', -1, NULL, 0)";
    let lineage = "INSERT INTO lineage VALUES ('claude', 'session-1', 'claude', 'other', 1, 'dreamt', 0)";
    registry.connection.execute(seed, []).unwrap();
    registry.connection.execute(lineage, []).unwrap();
    registry.remember("last-session", "x").unwrap();
    assert!(registry.profile(key.agent, &key.id).is_err());
    assert!(registry.recorded_pane::<String>(&name("damaged")).is_err());
    assert!(registry.empty_session("damaged").is_err());
    assert!(registry.seed(key.agent, &key.id).is_err());
    assert!(registry.lineage().is_err());
    assert!(registry.recall_value::<String>("last-session").is_err());
}
