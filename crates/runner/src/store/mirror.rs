//! The mirrors of a run: for each attempt an append-only copy of its stdout. The length of a mirror is the offset
//! from which the host is followed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bursar_core::AttemptId;

use super::schema::private_dir;
use crate::error::StoreError;

const SUFFIX: &str = ".stdout";

/// The open mirrors of one run.
#[derive(Debug)]
pub(crate) struct Mirrors {
    dir: PathBuf,
    open: BTreeMap<AttemptId, Mirror>,
}

#[derive(Debug)]
struct Mirror {
    path: PathBuf,
    file: File,
    /// Whether it was opened for writing.
    writable: bool,
}

impl Mirrors {
    /// Names the mirrors in a run's folder, which need not be there.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, open: BTreeMap::new() }
    }

    /// Returns how many bytes are there.
    pub(crate) fn length(&mut self, attempt: AttemptId) -> Result<u64, StoreError> {
        match self.mirror(attempt, false)? {
            Some(mirror) => mirror.length(),
            None => Ok(0),
        }
    }

    /// Appends bytes. After an error a part of them may be there; the next driver finds it as the mirror's tail.
    pub(crate) fn append(&mut self, attempt: AttemptId, bytes: &[u8]) -> Result<(), StoreError> {
        let dir = self.dir.clone();
        let Some(mirror) = self.mirror(attempt, true)? else {
            return Err(StoreError::io(&dir, ErrorKind::NotFound.into()));
        };
        mirror.file.write_all(bytes).map_err(|error| StoreError::io(&mirror.path, error))
    }

    /// Reads bytes at this offset, as many as are there and fit.
    pub(crate) fn read(
        &mut self,
        attempt: AttemptId,
        from: u64,
        into: &mut [u8],
    ) -> Result<usize, StoreError> {
        let Some(mirror) = self.mirror(attempt, false)? else {
            return Ok(0);
        };
        let mut read = 0;
        while read < into.len() {
            let offset = from.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            match mirror.file.read_at(&mut into[read..], offset) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io(&mirror.path, error)),
            }
        }
        Ok(read)
    }

    /// Opens a mirror, or returns None if it is only to be read and not there.
    fn mirror(&mut self, attempt: AttemptId, writable: bool) -> Result<Option<&mut Mirror>, StoreError> {
        let known = self.open.get(&attempt).is_some_and(|mirror| mirror.writable || !writable);
        if !known {
            let path = self.dir.join(format!("{attempt}{SUFFIX}"));
            if writable {
                private_dir(&self.dir)?;
            }
            let mut options = OpenOptions::new();
            options.read(true).append(writable).create(writable).mode(0o600);
            match options.open(&path) {
                Ok(file) => drop(self.open.insert(attempt, Mirror { path, file, writable })),
                Err(error) if error.kind() == ErrorKind::NotFound && !writable => return Ok(None),
                Err(error) => return Err(StoreError::io(&path, error)),
            }
        }
        Ok(self.open.get_mut(&attempt))
    }
}

impl Mirror {
    fn length(&self) -> Result<u64, StoreError> {
        let metadata = self.file.metadata().map_err(|error| StoreError::io(&self.path, error))?;
        Ok(metadata.len())
    }
}

/// Lists the mirrors in a run's folder in the order of their attempts.
pub(super) fn list(dir: &Path) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(dir, error)),
    };
    let mut mirrors = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| StoreError::io(dir, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(attempt) = name.strip_suffix(SUFFIX).and_then(|number| number.parse().ok()) {
            mirrors.push((attempt, path));
        }
    }
    mirrors.sort_unstable();
    Ok(mirrors)
}
