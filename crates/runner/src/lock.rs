//! The driver's lock: one process drives a run. The kernel lets go of it when that process dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::store::private_dir;

/// The right to drive one run, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct DriverLock {
    _file: File,
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
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path, error)),
        }
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
