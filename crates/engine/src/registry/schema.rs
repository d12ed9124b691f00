//! The registry's tables. Migrations are only appended: existing ones have already run on users' disks.

use rusqlite::Transaction;

use super::operations::type_operations;

/// What takes the registry from one format to the next.
pub(super) enum Migration {
    /// Statements.
    Sql(&'static str),
    /// Something that statements can't do.
    Rows(fn(&Transaction<'_>) -> rusqlite::Result<()>),
}

/// Each entry takes the registry from the format of its index to the next.
pub(super) const MIGRATIONS: &[Migration] = &[
    // 1: sessions with their names, previous ids and lineage; a small memory.
    Migration::Sql(
        "CREATE TABLE sessions (
        key           INTEGER PRIMARY KEY,
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        path          TEXT NOT NULL,
        name          TEXT UNIQUE,
        created       INTEGER NOT NULL,
        UNIQUE (agent, id, path)
     ) STRICT;
     CREATE TABLE lineage (
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        parent_agent  TEXT NOT NULL,
        parent_id     TEXT NOT NULL,
        parent_turn   INTEGER,
        source        TEXT NOT NULL,
        noted         INTEGER NOT NULL,
        PRIMARY KEY (agent, id)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX lineage_by_parent ON lineage (parent_agent, parent_id);
     CREATE TABLE memory (
        key           TEXT PRIMARY KEY,
        value         TEXT NOT NULL
     ) STRICT, WITHOUT ROWID;",
    ),
    // 2: the log of operations.
    Migration::Sql(
        "CREATE TABLE operations (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        kind          TEXT NOT NULL,
        what          TEXT NOT NULL,
        at            INTEGER NOT NULL,
        state         TEXT NOT NULL,
        process       TEXT NOT NULL,
        effects       TEXT NOT NULL
     ) STRICT;
     CREATE INDEX operations_begun ON operations (state) WHERE state = 'started';",
    ),
    // 3: what is remembered of sessions that began with another one's transcript; never the text.
    Migration::Sql(
        "CREATE TABLE seeds (
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        parent_agent  TEXT NOT NULL,
        parent_id     TEXT NOT NULL,
        turn          INTEGER NOT NULL,
        hash          TEXT NOT NULL,
        tokens        INTEGER NOT NULL,
        window        INTEGER,
        hidden        INTEGER NOT NULL,
        PRIMARY KEY (agent, id)
     ) STRICT, WITHOUT ROWID;",
    ),
    // 4: how sessions are launched, the ids that they had before, which process has which, and what happened.
    Migration::Sql(
        "ALTER TABLE sessions ADD COLUMN cwd TEXT;
     ALTER TABLE sessions ADD COLUMN profile TEXT;
     ALTER TABLE sessions ADD COLUMN launch TEXT;
     CREATE INDEX sessions_launched ON sessions (launch) WHERE launch IS NOT NULL;
     CREATE TABLE previous_ids (
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        path          TEXT NOT NULL,
        key           INTEGER NOT NULL,
        since         INTEGER NOT NULL,
        PRIMARY KEY (agent, id)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX previous_ids_by_key ON previous_ids (key);
     CREATE TABLE processes (
        agent         TEXT NOT NULL,
        pid           INTEGER NOT NULL,
        start         TEXT NOT NULL,
        id            TEXT NOT NULL,
        kind          TEXT NOT NULL,
        mark          TEXT NOT NULL,
        at            INTEGER NOT NULL,
        PRIMARY KEY (agent, pid)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE events (
        number        INTEGER PRIMARY KEY,
        at            INTEGER NOT NULL,
        hook          TEXT NOT NULL,
        kind          TEXT,
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        name          TEXT
     ) STRICT;",
    ),
    // 5: the pane in which a session was opened.
    Migration::Sql("ALTER TABLE sessions ADD COLUMN pane TEXT;"),
    // 6: when a fork was made, in milliseconds, and how many turns it had then.
    Migration::Sql(
        "ALTER TABLE sessions ADD COLUMN forked INTEGER;
     ALTER TABLE sessions ADD COLUMN turns INTEGER;
     UPDATE sessions SET
        forked = made.at,
        cwd = coalesce(json_extract(made.effects, '$.worktree.path'), json_extract(made.effects, '$.copy.path'), cwd)
     FROM operations AS made
     WHERE made.kind = 'fork' AND made.state = 'done' AND json_extract(made.effects, '$.session') = sessions.id;
     UPDATE sessions SET turns =
        (SELECT parent_turn FROM lineage WHERE lineage.agent = sessions.agent AND lineage.id = sessions.id)
     WHERE forked IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM seeds WHERE seeds.agent = sessions.agent AND seeds.id = sessions.id);",
    ),
    // 7: the source of a fork, in its event.
    Migration::Sql(
        "ALTER TABLE events ADD COLUMN parent_agent TEXT;
     ALTER TABLE events ADD COLUMN parent_id TEXT;
     ALTER TABLE events ADD COLUMN parent_name TEXT;",
    ),
    // 8: forks that have not started, with the operation that made them; `path` is the transcript that tine keeps for them.
    Migration::Sql(
        "ALTER TABLE sessions ADD COLUMN unstarted INTEGER;
     CREATE INDEX sessions_unstarted ON sessions (unstarted) WHERE unstarted IS NOT NULL;",
    ),
    // 9: the effects of each kind of operation by themselves; links between operations and undos under way as columns.
    Migration::Rows(type_operations),
    // 10: the context windows that agents reported for the models of a session, in tokens.
    Migration::Sql(
        "CREATE TABLE windows (
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        model         TEXT NOT NULL,
        window        INTEGER NOT NULL,
        reported      INTEGER NOT NULL,
        PRIMARY KEY (agent, id, model)
     ) STRICT, WITHOUT ROWID;",
    ),
    // 11: sessions that were started: whether the agent still has to choose the id, and the process that becomes the agent.
    // Both were words in other columns before.
    Migration::Sql(
        "ALTER TABLE sessions ADD COLUMN is_start INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE sessions ADD COLUMN id_is_pending INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE sessions ADD COLUMN launch_pid INTEGER;
     ALTER TABLE sessions ADD COLUMN launch_start TEXT;
     UPDATE sessions SET id_is_pending = 1 WHERE substr(id, 1, 8) = 'unknown-';
     UPDATE sessions SET is_start = 1 WHERE launch IS NOT NULL;
     UPDATE sessions SET
        launch_pid = CAST(substr(launch, 1, instr(launch, ' ') - 1) AS INTEGER),
        launch_start = substr(launch, instr(launch, ' ') + 1)
     WHERE instr(launch, ' ') > 1 AND CAST(substr(launch, 1, instr(launch, ' ') - 1) AS INTEGER) > 0;
     DROP INDEX sessions_launched;
     ALTER TABLE sessions DROP COLUMN launch;
     CREATE INDEX sessions_started ON sessions (key) WHERE is_start;",
    ),
    // 12: what became of the parts of conversations that were translated.
    Migration::Sql(
        "CREATE TABLE translations (
        agent         TEXT NOT NULL,
        id            TEXT NOT NULL,
        item          TEXT NOT NULL,
        count         INTEGER NOT NULL,
        PRIMARY KEY (agent, id, item)
     ) STRICT, WITHOUT ROWID;",
    ),
];
