//! Where this user's store lies, and how to find a run in it.

use std::path::PathBuf;
use std::sync::Arc;

use bursar_core::{RunId, SessionId};
use bursar_runner::{FindError, Store};

use crate::failure::Failure;

/// Returns the folder of the store: `${XDG_STATE_HOME:-$HOME/.local/state}/bursar`.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("bursar"))
        .ok_or_else(|| {
            Failure::usage("there is no place for the store: neither XDG_STATE_HOME nor HOME names a folder")
                .hint("set HOME, or set XDG_STATE_HOME to a folder that you can write to")
        })
}

/// Opens the store for a new run, making it if need be.
pub(crate) fn open() -> Result<Arc<Store>, Failure> {
    let store = Store::open(&root()?).map_err(|error| Failure::nothing_started(&error))?;
    Ok(Arc::new(store))
}

/// Opens the store if there is one; a command that only looks makes none.
pub(crate) fn open_existing() -> Result<Option<Arc<Store>>, Failure> {
    let root = root()?;
    if !root.join("runs.db").exists() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Store::open(&root)?)))
}

/// Finds the run that the user names.
pub(crate) fn find(name: &str) -> Result<(Arc<Store>, RunId), Failure> {
    let Some(store) = open_existing()? else {
        let unknown = FindError::Unknown { prefix: name.to_owned() };
        return Err(Failure::usage(unknown.to_string())
            .hint("this machine has no runs yet; `bursar run \"...\"` makes the first one"));
    };
    let run = store.find(name)?;
    Ok((store, run))
}

/// Returns the session that the user names by its own id, or by the run it was; of a run, the folder it worked in, too,
/// since the agent keeps its sessions by folder.
pub(crate) fn session(name: &str) -> Result<(SessionId, Option<Vec<u8>>), Failure> {
    if is_uuid(name) {
        return Ok((SessionId(name.to_owned()), None));
    }
    let runs = "`bursar ls --all` shows runs";
    let found = match open_existing()? {
        Some(store) => match store.find(name) {
            Err(FindError::Unknown { .. }) => None,
            found => Some((store, found?)),
        },
        None => None,
    };
    let Some((store, run)) = found else {
        return Err(Failure::usage(format!(
            "`{name}` is neither a session's id (a UUID) nor the beginning of a run's"
        ))
        .hint(runs));
    };
    let stored = store.load(&run)?;
    let dir = stored.as_ref().map(|stored| stored.dir.clone());
    let Some(finished) = stored.and_then(|stored| stored.finished) else {
        return Err(Failure::usage(format!("run `{run}` is not over"))
            .hint(format!("`bursar send {run} \"...\"` tells its agent something more; {runs}")));
    };
    finished.session.map(|session| (SessionId(session), dir)).ok_or_else(|| {
        Failure::usage(format!("run `{run}` has no session: its agent did not come to begin one")).hint(runs)
    })
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Draws the id of a new run: 8 letters and digits that are hard to mix up.
pub(crate) fn new_id(seed: u64) -> RunId {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut rest = seed;
    let mut id = String::with_capacity(8);
    for _ in 0..8 {
        // The remainder is below 32, so it fits any integer.
        id.push(char::from(LETTERS[usize::try_from(rest % 32).unwrap_or_default()]));
        rest /= 32;
    }
    RunId(id)
}

/// Draws 64 random bits from the operating system, by way of the standard library's hasher seeds.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    hasher.write_u128(now.as_nanos());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_8_letters_and_digits() {
        for seed in [0, 1, u64::MAX, random()] {
            let id = new_id(seed).0;
            assert_eq!(id.len(), 8);
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{id}");
        }
    }
}
