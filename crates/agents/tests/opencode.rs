//! OpenCode's database: reading, copying, deleting and restoring sessions.

use std::fs;
use std::path::{Path, PathBuf};

use agents::opencode::OpenCode;
use agents::{Adapter, AgentEnvironment, CopyRequest, Launch, Transcripts, write_copy};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::json;
use testkit::build::OpenCodeSession;
use transcript::{Block, BlockKind, DefectKind, SessionId};

const ONE: &str = "ses_23c1f0e8b001AAAAAAAAAAAAAA";
const TWO: &str = "ses_23c1f0e8a001BBBBBBBBBBBBBB";

struct World {
    folder: tempfile::TempDir,
    opencode: OpenCode,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = AgentEnvironment { home: folder.path().to_owned(), ..AgentEnvironment::default() };
        World { opencode: OpenCode::new(&surroundings), folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join(".local/share/opencode")
    }

    fn connection(&self) -> Connection {
        let connection = Connection::open(self.data().join("opencode.db")).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        connection
    }

    /// All rows that belong to sessions, as text.
    fn rows(&self) -> Vec<String> {
        let connection = self.connection();
        let mut all = Vec::new();
        for table in ["project", "session", "message", "part", "todo"] {
            let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let values: Vec<String> = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
                all.push(format!("{table}: {}", values.join(" ")));
            }
        }
        all
    }

    fn read(&self, path: &Path) -> Vec<Block> {
        let mut blocks = self.opencode.read(path, None, None).unwrap();
        std::iter::from_fn(|| blocks.next_block()).collect()
    }

    /// Copies a session and puts it into the database.
    fn copy(&self, source: &Path, turns: Option<u32>, cwd: &Path) -> PathBuf {
        let now = Timestamp::from_millisecond(1_795_000_000_000).unwrap();
        let id = self.opencode.new_id(now);
        let target = source.with_file_name(id.as_str());
        let request = CopyRequest {
            source_id: SessionId::new(source.file_name().unwrap().to_str().unwrap()).unwrap(),
            id,
            turns,
            tip: None,
            relink: false,
            cwd: cwd.to_owned(),
            branch: None,
            title: Some("copied".to_owned()),
            target: target.clone(),
            now,
        };
        let staged = agents::beside(&target, ".copy.tine-new");
        let file = fs::File::create(&staged).unwrap();
        let (copied, found) = write_copy(&self.opencode, source, &request, None, (&staged, &file)).unwrap();
        copied.compare(&found, &request).unwrap();
        agents::rename(&staged, &target).unwrap();
        assert!(!staged.exists());
        target
    }
}

fn session(id: &str) -> OpenCodeSession {
    OpenCodeSession::new(id)
        .title("Fix the login")
        .turn(|turn| {
            turn.prompt("Why does it fail?")
                .thinking("Look first.")
                .parallel([("bash", json!({"command": "ls"}), "a b"), ("read", json!({"filePath": "a"}), "x")])
                .failing_tool("bash", json!({"command": "false"}), "failed")
                .text("Because of a.")
        })
        .turn(|turn| {
            turn.prompt("Ask somebody. \u{1F600}").subagent("Look around", |turn| turn.prompt("Look.").text("Seen."))
        })
        .compact("We fixed the login.")
        .turn(|turn| turn.prompt("Go on.").text("Done."))
}

/// Prompts, answers and outputs.
fn said(blocks: &[Block]) -> Vec<(u32, u8, String)> {
    let text = |kind: &BlockKind| match kind {
        BlockKind::Prompt { text, .. } => Some(format!("> {text}")),
        BlockKind::Answer { text, .. } => Some(text.clone()),
        BlockKind::Call { name, .. } => Some(format!("{name}()")),
        BlockKind::Output { text, error, .. } => Some(format!("{}{text}", if *error { "! " } else { "= " })),
        BlockKind::Thinking { text } => Some(format!("({text})")),
        BlockKind::Compaction { summary } => Some(format!("[{summary}]")),
        BlockKind::Subagent { role, .. } => Some(format!("@{}", role.as_deref().unwrap_or_default())),
        _ => None,
    };
    blocks.iter().filter_map(|block| Some((block.turn, block.depth, text(&block.kind)?))).collect()
}

#[test]
fn a_session_is_read_with_its_tools_subagents_and_summaries() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let listed = world.opencode.discover();
    assert_eq!((listed.files.len(), listed.unreadable.len()), (2, 0));
    let summary = world.opencode.scan(&path);
    assert_eq!((summary.id.as_str(), summary.turns, summary.mid_turn), (ONE, 3, false));
    assert_eq!(summary.title(), Some("Fix the login"));
    assert_eq!(summary.cwd.as_deref(), Some(Path::new("/home/me/app")));
    assert_eq!(summary.model.as_deref(), Some("mock/mock-model"));
    assert!(summary.compacted && !summary.is_subagent && summary.defects.is_empty());
    let expected: Vec<(u32, u8, &str)> = vec![
        (1, 0, "> Why does it fail?"),
        (1, 0, "(Look first.)"),
        (1, 0, "bash()"),
        (1, 0, "= a b"),
        (1, 0, "read()"),
        (1, 0, "= x"),
        (1, 0, "bash()"),
        (1, 0, "! failed"),
        (1, 0, "Because of a."),
        (2, 0, "> Ask somebody. \u{1F600}"),
        (2, 0, "task()"),
        (2, 0, "@general"),
        (2, 1, "> Look."),
        (2, 1, "Seen."),
        (2, 0, "= Seen."),
        (2, 0, "[We fixed the login.]"),
        (3, 0, "> Go on."),
        (3, 0, "Done."),
    ];
    let found = said(&world.read(&path));
    assert_eq!(found.iter().map(|(turn, depth, text)| (*turn, *depth, text.as_str())).collect::<Vec<_>>(), expected);
    let helper = world.opencode.subagents(&path);
    assert!(world.opencode.scan(&helper[0].1).is_subagent);
}

#[test]
fn what_the_user_went_back_behind_is_not_read() {
    let world = World::new();
    let path = session(ONE).reverted_to(2).write(&world.data());
    assert_eq!(world.opencode.scan(&path).turns, 1);
    assert!(world.read(&path).iter().all(|block| block.turn == 1));
    let copy = world.copy(&path, None, Path::new("/home/me/app"));
    assert_eq!(said(&world.read(&copy)), said(&world.read(&path)));
}

#[test]
fn a_copy_has_the_history_up_to_its_turn_and_the_source_stays_as_it_is() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let before = world.rows();
    for turns in [Some(0), Some(1), Some(2), Some(3), None] {
        let copy = world.copy(&path, turns, Path::new("/home/me/elsewhere"));
        let summary = world.opencode.scan(&copy);
        assert_eq!(summary.turns, turns.unwrap_or(3));
        assert_eq!(summary.cwd.as_deref(), Some(Path::new("/home/me/elsewhere")));
        assert_eq!(summary.title(), Some("copied"));
        let mut expected = said(&world.read(&path));
        expected.retain(|(turn, ..)| *turn <= turns.unwrap_or(3));
        assert_eq!(said(&world.read(&copy)), expected);
        let source = world.opencode.scan(&path);
        assert_eq!(summary.turn_keys, source.turn_keys[..summary.turns as usize]);
        // Every reference is to a message of the copy.
        let foreign: i64 = world
            .connection()
            .query_row(
                "SELECT count(*) FROM message WHERE session_id = ?1 AND data ->> 'parentID' IS NOT NULL
                 AND data ->> 'parentID' NOT IN (SELECT id FROM message WHERE session_id = ?1)",
                [summary.id.as_str()],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(foreign, 0);
        assert!(agents::remove_rows(&copy).unwrap());
        assert_eq!(world.rows(), before);
    }
}

#[test]
fn a_deleted_session_comes_back_as_it_was() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    session(TWO).write(&world.data());
    let connection = world.connection();
    let todo = "INSERT INTO todo (session_id, content, status, priority, position, time_created, time_updated)
                VALUES (?1, 'x', 'pending', 'low', 0, 1, 1)";
    connection.execute(todo, [ONE]).unwrap();
    // Garbage, other types and bytes that are not UTF-8 are kept.
    let garbage =
        "UPDATE part SET data = CAST(x'ff00fe7b' AS TEXT) WHERE id = (SELECT min(id) FROM part WHERE session_id = ?1)";
    connection.execute(garbage, [ONE]).unwrap();
    connection
        .execute(
            "UPDATE message SET data = 'no json' WHERE id = (SELECT max(id) FROM message WHERE session_id = ?1)",
            [ONE],
        )
        .unwrap();
    let before = world.rows();
    let trash = world.folder.path().join("0-ses");
    agents::rename(&path, &trash).unwrap();
    assert!(!agents::is_there(&path) && trash.exists());
    assert_eq!(world.opencode.discover().files.len(), 2, "the other session and its subagent are left");
    assert_eq!(
        agents::agent_of_file(&[Box::new(world.opencode.clone()) as Box<dyn Adapter>], &trash),
        Some(transcript::Agent::OpenCode)
    );
    assert_eq!(world.opencode.scan(&trash).id.as_str(), ONE);
    agents::rename(&trash, &path).unwrap();
    assert_eq!(world.rows(), before);
    assert!(!trash.exists());
}

#[test]
fn a_session_is_not_put_over_another_one() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let trash = world.folder.path().join("0-ses");
    agents::rename(&path, &trash).unwrap();
    session(ONE).write(&world.data());
    let before = world.rows();
    assert_eq!(agents::rename(&trash, &path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert!(trash.exists());
    assert_eq!(world.rows(), before);
}

#[test]
fn a_copy_that_was_damaged_before_it_is_put_in_is_refused() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let trash = world.folder.path().join("0-ses");
    agents::rename(&path, &trash).unwrap();
    let text = fs::read_to_string(&trash).unwrap();
    let before = world.rows();
    let damage: [(&str, String); 4] = [
        ("cut off", text[..text.len() - 20].to_owned()),
        ("another session", text.replace(ONE, TWO)),
        ("an unknown column", text.replace("\"slug\"", "\"snail\"")),
        ("no header", text.split_once('\n').unwrap().1.to_owned()),
    ];
    for (what, damaged) in damage {
        fs::write(&trash, damaged).unwrap();
        assert!(agents::rename(&trash, &path).is_err(), "{what}");
        assert_eq!(world.rows(), before, "{what}");
    }
    fs::write(&trash, text).unwrap();
    agents::rename(&trash, &path).unwrap();
}

#[test]
fn a_database_that_cannot_be_read_is_reported() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let database = world.data().join("opencode.db");
    world.connection().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let good = fs::read(&database).unwrap();
    let check = |bytes: &[u8], what: &str| {
        for name in ["opencode.db-wal", "opencode.db-shm"] {
            let _ = fs::remove_file(world.data().join(name));
        }
        fs::write(&database, bytes).unwrap();
        let listed = world.opencode.discover();
        let summary = world.opencode.scan(&path);
        let is_told = !listed.unreadable.is_empty() || !summary.defects.is_empty();
        assert!(is_told, "{what}: {listed:?}");
        assert!(agents::rename(&path, &world.folder.path().join("out")).is_err(), "{what}");
        assert!(!world.folder.path().join("out").exists(), "{what}");
    };
    check(b"", "empty");
    check(b"not a database at all, just text", "text");
    check(&good[..good.len() / 2], "cut off");
    check(&good[..100], "only a header");
    fs::write(&database, &good).unwrap();
    for (change, what) in [
        ("ALTER TABLE part RENAME TO piece", "no table of parts"),
        ("ALTER TABLE message RENAME COLUMN data TO body", "another column"),
    ] {
        fs::write(&database, &good).unwrap();
        world.connection().execute_batch(change).unwrap();
        world.connection().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        check(&fs::read(&database).unwrap(), what);
        assert_eq!(world.opencode.scan(&path).defects.count(DefectKind::UnknownFormat), 1, "{what}");
    }
}

#[test]
fn a_later_version_with_more_columns_is_carried_and_one_that_needs_more_is_refused() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    world.connection().execute_batch("ALTER TABLE message ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'").unwrap();
    world.connection().execute("UPDATE message SET mood = 'wild' WHERE session_id = ?1", [ONE]).unwrap();
    let copy = world.copy(&path, None, Path::new("/home/me/app"));
    let id = copy.file_name().unwrap().to_str().unwrap();
    let moods: i64 = world
        .connection()
        .query_row("SELECT count(*) FROM message WHERE session_id = ?1 AND mood = 'wild'", [id], |row| row.get(0))
        .unwrap();
    assert!(moods > 5, "{moods}");
    let trash = world.folder.path().join("0-ses");
    agents::rename(&copy, &trash).unwrap();
    world.connection().execute_batch("ALTER TABLE todo RENAME TO todo_old; DROP TABLE part; CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text, weight integer NOT NULL)").unwrap();
    let error = agents::rename(&trash, &copy).unwrap_err();
    assert_eq!(error.to_string(), "the format of the database is unknown: table `part` requires a column `weight`");
}

#[test]
fn a_writer_that_keeps_the_database_is_waited_for() {
    let world = World::new();
    let path = session(ONE).write(&world.data());
    let other = world.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reader = world.opencode.scan(&path);
    assert_eq!(reader.turns, 3, "reading needs no lock");
    std::thread::scope(|scope| {
        let copy = scope.spawn(|| world.copy(&path, Some(1), Path::new("/home/me/app")));
        std::thread::sleep(std::time::Duration::from_millis(50));
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(world.opencode.scan(&copy.join().unwrap()).turns, 1);
    });
}
