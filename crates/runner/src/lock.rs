//! The driver's lock: one process drives a run. The kernel lets go of it when that process dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bursar_core::At;

use crate::error::StoreError;
use crate::store::private_dir;

/// The right to drive one run, for as long as it is kept. The file's time of modification says until when it was driven.
#[derive(Debug)]
pub(crate) struct DriverLock {
    file: File,
    /// When the driver before this one was last known to drive.
    before: Option<At>,
}

impl DriverLock {
    /// Takes the lock of the run with this folder; None if another driver has it.
    pub(crate) fn try_take(dir: &Path) -> Result<Option<Self>, StoreError> {
        private_dir(dir)?;
        let path = path(dir);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| StoreError::io(&path, error))?;
        match file.try_lock() {
            Ok(()) => {
                let modified = file.metadata().and_then(|data| data.modified()).ok();
                let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let before = since.and_then(|since| u64::try_from(since.as_millis()).ok()).map(At);
                // For whoever waits for a driver that does not move; nothing depends on it.
                if let Err(error) = file
                    .set_len(0)
                    .and_then(|()| (&file).write_all(std::process::id().to_string().as_bytes()))
                {
                    tracing::debug!(%error, "the driver's lock does not name its process");
                }
                Ok(Some(Self { file, before }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path, error)),
        }
    }

    /// Returns when the driver before this one was last known to drive; about now for the first one.
    pub(crate) fn driven_before(&self) -> Option<At> {
        self.before
    }

    /// Notes that the run is driven at this moment. A file system that keeps no times costs only the note.
    pub(crate) fn beat(&self, now: At) {
        if let Err(error) = self.file.set_modified(UNIX_EPOCH + Duration::from_millis(now.0)) {
            tracing::debug!(%error, "the driver's lock keeps no time");
        }
    }

    /// Returns for how long the driver of the run with this folder has not moved, and its process id if it told it.
    pub(crate) fn still_for(dir: &Path, now: At) -> Option<(Duration, Option<u32>)> {
        let path = path(dir);
        let beat = std::fs::metadata(&path).and_then(|data| data.modified()).ok()?;
        let beat = u64::try_from(beat.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
        let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        Some((now.since(At(beat)), pid))
    }

    /// Whether somebody drives the run with this folder.
    pub(crate) fn is_taken(dir: &Path) -> Result<bool, StoreError> {
        let path = path(dir);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(StoreError::io(&path, error)),
        };
        // Shared, so that two who look do not take each other for a driver.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path, error)),
        }
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("driver.lock")
}
