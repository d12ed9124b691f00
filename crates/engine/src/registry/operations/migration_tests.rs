//! Registries of every format since the log exists: what they recorded is undone and cleaned up by this version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use testkit::build::ClaudeSession;
use transcript::SessionName;

use crate::error::Error;
use crate::operations;
use crate::registry;
use crate::registry::schema::{MIGRATIONS, Migration};
use crate::sessions::catalog::Quiet;
use crate::test_world::World;
use crate::workspace::directory;

/// The first format with a log.
const FIRST: usize = 2;
/// The last format in which all operations had the same fields.
const LAST_FLAT: usize = 8;

/// A process that doesn't run.
const KILLED: &str = "4194305 1";

const KINDS: [&str; 7] = ["fork", "forks", "clone", "worktree", "delete", "adopt", "rename"];

/// The log of a registry in an old format.
struct OldRegistry {
    connection: Connection,
    format: usize,
}

impl OldRegistry {
    fn new(world: &World, format: usize) -> Self {
        let connection = Connection::open(world.registry()).expect("a registry");
        for migration in &MIGRATIONS[..format] {
            match migration {
                Migration::Sql(sql) => connection.execute_batch(sql).expect("a migration"),
                Migration::Rows(_) => panic!("format {format} is not an old one"),
            }
        }
        connection.pragma_update(None, "user_version", format as i64).expect("a format");
        OldRegistry { connection, format }
    }

    /// Records an operation; `effects` are the fields that it has.
    fn add(&self, kind: &str, state: &str, effects: &Value) -> i64 {
        self.add_record(kind, state, &self.flat(effects).to_string())
    }

    fn add_record(&self, kind: &str, state: &str, record: &str) -> i64 {
        let query = "INSERT INTO operations (kind, what, at, state, process, effects) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let now = jiff::Timestamp::now().as_millisecond();
        let values = params![kind, format!("{kind} x"), now, state, KILLED, record];
        self.connection.execute(query, values).expect("a row");
        self.connection.last_insert_rowid()
    }

    fn name(&self, id: &str, path: &Path, name: &str) {
        let query = "INSERT INTO sessions (agent, id, path, name, created) VALUES ('claude', ?1, ?2, ?3, 0)";
        self.connection.execute(query, params![id, path.to_string_lossy(), name]).expect("a name");
    }

    /// The record of an operation: early formats had few fields, the last one had all of them.
    fn flat(&self, fields: &Value) -> Value {
        let mut flat = match self.format {
            LAST_FLAT => json!({
                "session": null, "made": [], "worktree": null, "copy": null, "notes": [], "folders": [], "moved": [],
                "branch": null, "name": null, "reserves": null, "expects": null, "mark": null, "named": null,
                "new_name": null, "old_title": null, "titled": null, "noted_parent": false, "stamp": null,
                "content": null, "beside": null,
            }),
            _ => json!({ "session": null, "made": [], "stamp": null }),
        };
        for (name, value) in fields.as_object().expect("fields") {
            flat[name] = value.clone();
        }
        flat
    }
}

fn each_format(check: impl Fn(&World, &OldRegistry)) {
    for format in FIRST..=LAST_FLAT {
        let world = World::new();
        let old = OldRegistry::new(&world, format);
        check(&world, &old);
    }
}

fn id(number: u32) -> String {
    format!("{number:08}-1111-4111-8111-111111111111")
}

fn transcript(world: &World, number: u32) -> PathBuf {
    let session = ClaudeSession::new(&id(number)).cwd(&world.repository);
    session.turn(|turn| turn.prompt("hi").text("ok")).write(&world.claude_home())
}

fn git(world: &World, words: &[&str]) -> String {
    let output = Command::new("git").current_dir(&world.repository).args(words).output().expect("git");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn state_of(tine: &crate::Tine, operation: i64) -> String {
    let log = tine.registry().operations().expect("the log");
    log.iter().find(|found| found.id == operation).expect("a record that can be read").state.to_string()
}

/// Both were words in other columns: `unknown-` before the id, and `0 -` for a process that isn't known.
#[test]
fn starts_keep_their_process_and_what_is_known_of_their_ids() {
    /// The first format that knew sessions that were started.
    const FIRST_WITH_STARTS: usize = 4;
    for format in FIRST_WITH_STARTS..=LAST_FLAT {
        let world = World::new();
        let old = OldRegistry::new(&world, format);
        let add = |id: &str, name: &str, launch: Option<&str>| {
            let query = "INSERT INTO sessions (agent, id, path, name, created, cwd, launch)
                         VALUES ('codex', ?1, '', ?2, 0, '/work', ?3)";
            old.connection.execute(query, params![id, name, launch]).expect("a row");
        };
        add(&id(1), "known", Some("12 345 6"));
        add(&format!("unknown-{}", id(2)), "pending", Some("0 -"));
        add(&id(3), "odd", Some("nonsense"));
        add(&id(4), "begun", None);
        let registry = registry::Registry::open(&world.registry()).expect("a registry");
        let mut found: Vec<String> = registry
            .starts()
            .expect("starts")
            .iter()
            .map(|start| format!("{:?} {:?}", start.launcher, start.id.known().map(ToString::to_string)))
            .collect();
        found.sort();
        let known = |number| Some(id(number));
        let process = registry::Process { pid: 12, start: "345 6".into() };
        let mut expected = vec![
            format!("{:?} {:?}", registry::Launcher::Process(process), known(1)),
            format!("{:?} {:?}", registry::Launcher::Anybody, None::<String>),
            format!("{:?} {:?}", registry::Launcher::Anybody, known(3)),
        ];
        expected.sort();
        assert_eq!(found, expected, "format {format}");
        assert!(registry.empty_session("begun").expect("a row").is_none(), "format {format}");
    }
}

#[test]
fn a_registry_without_a_log_gets_one() {
    let world = World::new();
    drop(OldRegistry::new(&world, 1));
    assert!(world.tine().log().expect("the log").is_empty());
}

#[test]
fn old_forks_are_undone() {
    each_format(|world, old| {
        let (one, two, three) = (transcript(world, 1), transcript(world, 2), transcript(world, 3));
        let fork = |number: u32, path: &Path| json!({ "session": id(number), "made": [path] });
        old.name(&id(1), &one, "one");
        let single = old.add("fork", "done", &fork(1, &one));
        let whole = old.add("forks", "done", &json!({}));
        for (number, path) in [(2, &two), (3, &three)] {
            let mut effects = fork(number, path);
            effects["part_of"] = whole.into();
            old.add("fork", "done", &effects);
        }
        let tine = world.tine();
        assert_eq!(tine.undo(None, false).expect("undone").id, whole);
        assert!(one.exists() && !two.exists() && !three.exists(), "format {}", old.format);
        assert_eq!(tine.undo(Some(single), false).expect("undone").id, single);
        assert!(!one.exists());
        assert!(tine.registry().names().expect("names").is_empty());
        assert!(matches!(tine.undo(None, false), Err(Error::Operations(operations::Error::NothingToUndo(None)))));
    });
}

#[test]
fn an_old_fork_that_has_grown_stays() {
    each_format(|world, old| {
        let path = transcript(world, 1);
        let operation = old.add("fork", "done", &json!({ "session": id(1), "made": [path], "stamp": [1, 1] }));
        let undone = world.tine().undo(None, false);
        assert!(
            matches!(undone, Err(Error::Operations(operations::Error::HasGrown { id })) if id == operation),
            "{undone:?}"
        );
        assert!(path.exists());
    });
}

#[test]
fn old_forks_that_were_cut_off_are_removed() {
    each_format(|world, old| {
        let source = transcript(world, 1);
        let target = source.with_file_name(format!("{}.jsonl", id(2)));
        let unfinished = source.with_file_name(format!(".{}.tine-new", id(2)));
        fs::write(&unfinished, "half a transcript").expect("a file");
        let note = source.with_file_name("note.md");
        fs::write(&note, "a note").expect("a note");
        let digest = directory::content_digest(&note).expect("a digest");
        let tree = world.repository.with_file_name("tree");
        git(world, &["worktree", "add", "--quiet", "-b", "tree", &tree.to_string_lossy()]);
        let base = git(world, &["rev-parse", "HEAD"]);
        let worktree = json!({ "repository": world.repository, "path": tree, "branch": "tree", "base": base });
        let operation = old.add(
            "fork",
            "started",
            &json!({
                "session": id(2), "made": [unfinished, target], "reserves": "cut-off", "mark": id(2),
                "notes": [[note, digest]], "worktree": worktree,
            }),
        );
        let tine = world.tine();
        assert!(!unfinished.exists() && !note.exists() && !tree.exists() && source.exists());
        assert_eq!(git(world, &["branch", "--list", "tree"]), "");
        assert_eq!(state_of(&tine, operation), "cleaned");
        assert!(!tine.registry().taken_names().expect("names").contains("cut-off"));
    });
}

#[test]
fn an_old_undo_that_was_cut_off_is_finished() {
    each_format(|world, old| {
        let (begun, decided) = (transcript(world, 1), transcript(world, 2));
        let aside = |path: &Path, number: i64| path.with_file_name(format!(".tine-undo-{number}-1"));
        let undoing = |path: &Path, number: i64, is_decided: bool| {
            json!({ "since": 1, "force": false, "aside": [{ "from": path, "to": aside(path, number) }],
                    "is_decided": is_decided })
        };
        let effects =
            |number: u32, path: &Path, undoing| json!({ "session": id(number), "made": [path], "undoing": undoing });
        let first = old.add("fork", "started", &effects(1, &begun, undoing(&begun, 1, false)));
        let second = old.add("fork", "started", &effects(2, &decided, undoing(&decided, 2, true)));
        fs::rename(&decided, aside(&decided, second)).expect("another name");
        let tine = world.tine();
        for (path, operation) in [(&begun, first), (&decided, second)] {
            assert!(!path.exists() && !aside(path, operation).exists(), "format {}", old.format);
            assert_eq!(state_of(&tine, operation), "undone");
        }
    });
}

#[test]
fn old_deletions_are_restored() {
    each_format(|world, old| {
        let (done, cut_off) = (transcript(world, 1), transcript(world, 2));
        let trash = world.registry().with_file_name("trash");
        fs::create_dir(&trash).expect("a folder");
        let deletion = |number: u32, path: &Path, state: &str| {
            let to = trash.join(format!("{number}")).join("0-transcript");
            fs::create_dir(to.parent().expect("a folder")).expect("a folder");
            fs::rename(path, &to).expect("deleted");
            let effects = json!({ "session": id(number), "moved": [{ "from": path, "to": to }], "name": format!("name-{number}") });
            old.add("delete", state, &effects)
        };
        let first = deletion(1, &done, "done");
        let second = deletion(2, &cut_off, "started");
        let tine = world.tine();
        assert!(cut_off.exists() && !done.exists(), "format {}: {:?}", old.format, tine.take_warnings());
        assert_eq!(state_of(&tine, second), "cleaned");
        tine.undo(Some(first), false).expect("undone");
        assert!(done.exists());
        let names = tine.registry().names().expect("names");
        let mut names: Vec<&str> = names.values().map(SessionName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["name-1", "name-2"]);
    });
}

#[test]
fn old_names_are_taken_back() {
    each_format(|world, old| {
        let key = |number: u32, path: &Path| json!({ "agent": "claude", "id": id(number), "path": path });
        let paths: Vec<PathBuf> = (1..=3).map(|number| transcript(world, number)).collect();
        for (number, path) in (1..).zip(&paths) {
            old.name(&id(number), path, &format!("new-{number}"));
        }
        // Early formats didn't record the new name.
        let adopted = old.add("adopt", "done", &json!({ "named": [key(1, &paths[0]), null] }));
        let renamed = old.add("rename", "done", &json!({ "named": [key(2, &paths[1]), "old-2"], "new_name": "new-2" }));
        let cut_off =
            old.add("rename", "started", &json!({ "named": [key(3, &paths[2]), "old-3"], "new_name": "new-3" }));
        let tine = world.tine();
        assert_eq!(state_of(&tine, cut_off), "cleaned");
        tine.undo(Some(renamed), false).expect("undone");
        tine.undo(Some(adopted), false).expect("undone");
        let name = |number: u32| tine.resolve(&id(number), &Quiet).expect("a session").session.view.name;
        let expected =
            [None, Some("old-2"), Some("old-3")].map(|name| name.map(|name| SessionName::new(name).expect("a name")));
        assert_eq!([name(1), name(2), name(3)], expected, "format {}", old.format);
    });
}

#[test]
fn old_workspaces_are_removed() {
    each_format(|world, old| {
        let (tree, copy) = (world.repository.with_file_name("tree"), world.repository.with_file_name("copy"));
        git(world, &["worktree", "add", "--quiet", "-b", "tree", &tree.to_string_lossy()]);
        let base = git(world, &["rev-parse", "HEAD"]);
        let worktree = json!({ "repository": world.repository, "path": tree, "branch": "tree", "base": base });
        old.add("worktree", "done", &json!({ "worktree": worktree }));
        fs::create_dir(&copy).expect("a copy");
        let digest = directory::digest_of(&copy).expect("a digest");
        let unfinished = copy.with_file_name(".copy.tine-new");
        let directory = json!({ "source": world.repository, "path": copy, "unfinished": unfinished, "was_there": false,
                                "parents": [], "digest": digest });
        old.add("clone", "done", &json!({ "session": id(1), "copy": directory }));
        let tine = world.tine();
        tine.undo(None, false).expect("undone");
        assert!(!copy.exists() && tree.exists(), "format {}", old.format);
        tine.undo(None, false).expect("undone");
        assert!(!tree.exists());
    });
}

/// `tine log --json` is a contract: whatever was recorded is shown as it was.
#[test]
fn every_kind_in_every_state_is_shown_as_it_was() {
    let world = World::new();
    let old = OldRegistry::new(&world, LAST_FLAT);
    let key = json!({ "agent": "claude", "id": id(1), "path": "/t.jsonl" });
    let worktree = json!({ "repository": "/r", "path": "/tree", "branch": "b", "base": "c", "parents": ["/p"], "brought": [],
                           "fills": true, "state": "s", "newest_ignored": 7 });
    let copy = json!({ "source": "/r", "path": "/copy", "unfinished": "/.copy", "was_there": true, "parents": [], "digest": "d" });
    let fields = |kind: &str| match kind {
        "fork" => json!({
            "session": id(1), "made": ["/t.jsonl", "/t"], "worktree": worktree, "notes": [["/n", "d"]], "folders": ["/f"],
            "reserves": "mine", "mark": id(1), "stamp": [1, 2], "content": "c", "beside": "b",
            "expects": { "agent": "codex", "mark": null, "parent": id(2), "since": 3 },
            "kept": { "file": "/k", "nonce": "n", "stage": { "sending": { "since": 1, "target": null } } },
        }),
        "forks" => json!({}),
        "clone" => json!({ "session": id(1), "copy": copy, "reserves": "mine" }),
        "worktree" => json!({ "worktree": worktree }),
        "delete" => json!({
            "session": id(1), "moved": [{ "from": "/a", "to": "/b" }], "name": "mine",
            "branch": { "repository": "/r", "name": "b", "commit": "c" },
        }),
        "adopt" => json!({ "named": [key, null], "new_name": "new", "noted_parent": true }),
        _ => json!({
            "named": [key, "old"], "new_name": "new", "old_title": "title", "titled": { "file": "/t", "end": [1, 2] },
        }),
    };
    let mut recorded = Vec::new();
    for kind in KINDS {
        for state in ["done", "failed", "undone", "cleaned", "purged", "started", "undoing"] {
            let mut flat = old.flat(&fields(kind));
            if kind == "fork" && state == "done" {
                // It doesn't show as a part, because what it is a part of is gone.
                flat["part_of"] = 99.into();
            }
            let recorded_state = match state {
                "undoing" => {
                    flat["undoing"] = json!({ "since": 1, "force": true, "aside": [], "is_decided": true });
                    "started"
                }
                state => state,
            };
            let number = old.add_record(kind, recorded_state, &flat.to_string());
            recorded.push((number, kind, state, flat));
        }
    }
    // Not by `Tine`, which would clean up what is under way.
    let log = super::Registry::open(&world.registry()).expect("a registry").log().expect("the log");
    let shown = serde_json::to_value(&log).expect("JSON");
    assert_eq!(log.len(), recorded.len());
    for (number, kind, state, flat) in recorded {
        let entry = shown.as_array().expect("a list").iter().find(|entry| entry["id"] == number).expect("an entry");
        assert_eq!((&entry["kind"], &entry["state"]), (&json!(kind), &json!(state)), "{entry:#}");
        assert_eq!(entry["effects"], flat, "{kind} {state}");
    }
}

/// An undo of such a record used to succeed, and removed nothing.
#[test]
fn a_record_that_cannot_be_read_is_left_alone_and_keeps_nothing_from_working() {
    each_format(|world, old| {
        let path = transcript(world, 1);
        let readable = old.add("fork", "done", &json!({ "session": id(1), "made": [path] }));
        let unreadable = [
            old.add_record("fork", "done", ""),
            old.add_record("fork", "started", "{\"session\": 1"),
            old.add_record("fork", "started", "{}"),
            old.add_record("delete", "done", "{\"made\": [], \"moved\": [{}]}"),
            old.add_record("teleport", "done", &old.flat(&json!({})).to_string()),
            old.add_record("fork", "elsewhere", &old.flat(&json!({})).to_string()),
            old.add_record("rename", "done", &old.flat(&json!({})).to_string()),
        ];
        let rows = |connection: &Connection| -> Vec<(i64, String, String, String)> {
            let query = "SELECT id, kind, state, effects FROM operations WHERE id <> ?1 ORDER BY id";
            let mut statement = connection.prepare(query).expect("a query");
            let rows = statement.query_map([readable], |row| {
                let (state, effects): (String, String) = (row.get(2)?, row.get(3)?);
                Ok((row.get(0)?, row.get(1)?, state, effects))
            });
            rows.expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
        };
        let before = rows(&old.connection);
        let tine = world.tine();
        assert!(tine.take_warnings().is_empty());
        assert_eq!(tine.all_sessions(&Quiet).expect("a list").len(), 1);
        let log = tine.log().expect("the log");
        assert_eq!(log.len(), unreadable.len() + 1);
        let shown = serde_json::to_value(&log[0]).expect("JSON");
        assert!(shown["effects"].is_null() && shown["unreadable"].is_string(), "{shown:#}");
        // Not passed over for an older one.
        assert!(matches!(tine.undo(None, false), Err(Error::Registry(registry::Error::UnreadableOperation { .. }))));
        for operation in unreadable {
            let undone = tine.undo(Some(operation), true);
            assert!(
                matches!(&undone, Err(Error::Registry(registry::Error::UnreadableOperation { id, .. })) if *id == operation),
                "{undone:?}"
            );
        }
        assert_eq!(rows(&old.connection), before, "format {}", old.format);
        assert!(path.exists());
        tine.undo(Some(readable), false).expect("undone");
        assert!(!path.exists());
    });
}

/// Nothing of it would be known, so it must not begin.
#[cfg(unix)]
#[test]
fn an_operation_that_cannot_be_recorded_does_not_begin() {
    use std::os::unix::ffi::OsStrExt;
    let mut registry = super::Registry::in_memory().expect("a registry");
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/not-\xff-text"));
    let created = super::Created { files: vec![path], ..super::Created::default() };
    let begun = registry.begin_operation("x", &super::Effects::Worktree(created), None, jiff::Timestamp::now());
    assert!(matches!(begun, Err(registry::Error::NotRecordable { .. })), "{begun:?}");
    assert!(registry.log().expect("the log").is_empty());
}
