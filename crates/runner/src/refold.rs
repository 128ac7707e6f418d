//! Reads a run's log to its end for a driver, which may ask the host for bytes that this machine lost.

use bursar_core::AttemptId;

use crate::driver::length;
use crate::error::RunnerError;
use crate::folded::Stuck;
use crate::host::{AgentHost, Followed, HostError};
use crate::reader::Reader;

/// Folds the log to its end. Bytes that this machine lost after it folded them (its power failed before they reached
/// the disk) are fetched from the host again.
pub(crate) async fn refold(reader: &mut Reader<'_>, host: &dyn AgentHost) -> Result<(), RunnerError> {
    loop {
        match reader.read().await {
            Ok(_) => return Ok(()),
            Err(Stuck::Short { attempt, have, need }) => {
                if let Err(cause) = refetch(reader, host, attempt, have, need).await {
                    return Err(Stuck::Short { attempt, have, need }.into_error(reader.run(), &cause));
                }
            }
            Err(stuck @ Stuck::Store(_)) => return Err(stuck.into_error(reader.run(), "")),
        }
    }
}

async fn refetch(
    reader: &mut Reader<'_>,
    host: &dyn AgentHost,
    attempt: AttemptId,
    have: u64,
    need: u64,
) -> Result<(), String> {
    let failed = |error: HostError| format!("they cannot be fetched again: {error}");
    let mut source = host.follow(&reader.stored.request.run, attempt, have).await.map_err(failed)?;
    let mut have = have;
    while have < need {
        match source.next().await.map_err(failed)? {
            Followed::Bytes { offset, bytes } if offset == have => {
                reader.mirrors.append(attempt, &bytes).map_err(|error| error.to_string())?;
                have += length(&bytes);
            }
            Followed::Bytes { .. }
            | Followed::CaughtUp
            | Followed::Exited { .. }
            | Followed::Vanished { .. } => {
                return Err("the host does not have them either".to_owned());
            }
        }
    }
    Ok(())
}
