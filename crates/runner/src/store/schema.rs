//! The database file: where it lies, who may read it, and its tables.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::error::StoreError;

/// The version of [`TABLES`].
const KNOWN: i64 = 1;

/// How long a write waits for another process's.
const BUSY: Duration = Duration::from_secs(10);

/// `facts.seq` 0 is the beginning of the run; a row with an `end_offset` says that the attempt's bytes up to there
/// were folded at this point, any other row holds a fact. `decisions` repeats what the fold decided, to be read and
/// to be compared with what a later binary decides.
const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT NOT NULL PRIMARY KEY,
        key TEXT UNIQUE,
        created INTEGER NOT NULL,
        host TEXT NOT NULL,
        dir BLOB NOT NULL,
        agent TEXT NOT NULL,
        env TEXT NOT NULL,
        request TEXT NOT NULL,
        finished_at INTEGER,
        finished TEXT
    ) STRICT;
    CREATE TABLE facts (
        run TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        attempt INTEGER,
        end_offset INTEGER,
        fact TEXT,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE decisions (
        run TEXT NOT NULL,
        fact_seq INTEGER NOT NULL,
        place INTEGER NOT NULL,
        at INTEGER NOT NULL,
        decision TEXT NOT NULL,
        PRIMARY KEY (run, fact_seq, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE asks (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL,
        at INTEGER NOT NULL,
        ask TEXT NOT NULL,
        taken_by INTEGER
    ) STRICT;
    CREATE INDEX asks_open ON asks (run) WHERE taken_by IS NULL;
    CREATE TABLE found (
        host TEXT NOT NULL,
        name TEXT NOT NULL,
        explicit TEXT NOT NULL,
        path BLOB NOT NULL,
        env_path BLOB,
        at INTEGER NOT NULL,
        PRIMARY KEY (host, name, explicit)
    ) STRICT, WITHOUT ROWID;
    CREATE VIEW attempts AS
        SELECT run, attempt, MIN(at) AS began, MAX(at) AS heard, MAX(end_offset) AS bytes
        FROM facts WHERE attempt IS NOT NULL GROUP BY run, attempt;
";

/// Opens the database in this folder, making both if need be.
pub(super) fn open(root: &Path) -> Result<(PathBuf, Connection), StoreError> {
    private_dir(root)?;
    let file = root.join("runs.db");
    // SQLite gives its side files the mode of the database, so this one decides.
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&file)
        .map_err(|error| StoreError::io(&file, error))?;
    let mut connection = Connection::open(&file).map_err(|error| StoreError::sql(&file, error))?;
    prepare(&file, &mut connection)?;
    Ok((file, connection))
}

/// Makes a folder that only its owner may enter; an existing one is narrowed.
pub(crate) fn private_dir(dir: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::io(dir, error);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let mode = fs::metadata(dir).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

fn prepare(file: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let failed = |error| StoreError::sql(file, error);
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(32);
    check_version(file, version(connection).map_err(failed)?)?;
    wal(connection).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    if version(connection).map_err(failed)? == KNOWN {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have been first.
    let found = version(&transaction).map_err(failed)?;
    check_version(file, found)?;
    if found == 0 {
        transaction.execute_batch(TABLES).map_err(failed)?;
        transaction.pragma_update(None, "user_version", KNOWN).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn check_version(file: &Path, found: i64) -> Result<(), StoreError> {
    if found > KNOWN {
        return Err(StoreError::Newer { path: file.to_owned(), found, known: KNOWN });
    }
    Ok(())
}

/// Changes to a write-ahead log. SQLite answers "busy" at once when two processes do this to a new file together,
/// whatever the time limit, so the wait is here.
fn wal(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(_) => return Ok(()),
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}
