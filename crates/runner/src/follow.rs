//! Follows one attempt's stdout for as long as it lives, over as many connections as it takes.

use std::sync::Arc;

use bursar_core::AttemptId;
use bursar_core::event::{ExitStatus, Fact};

use crate::carry::{Report, Shared};
use crate::contact::{Contact, Hopeless};
use crate::host::{Followed, HostError};

/// Hands the attempt's bytes to the loop from this offset on, then how it ended. Says on the way when the loop has all
/// that the host had, and when it no longer does.
///
/// It is dropped with the driver: what it had not handed over is read again from the mirror's length on.
pub(crate) async fn follow(shared: Arc<Shared>, mut contact: Contact, attempt: AttemptId, mut from: u64) {
    loop {
        let error = match follow_once(&shared, &mut contact, attempt, &mut from).await {
            Ok(ended) => {
                let fact = end(&shared, &mut contact, attempt, ended).await;
                shared.fact(fact).await;
                return;
            }
            Err(error) => error,
        };
        // The loop is gone only when this task is about to be.
        drop(shared.reports.send(Report::Behind(contact.id())).await);
        if let Err(hopeless) = contact.failed(error).await {
            shared.fact(Fact::Lost { attempt, cause: hopeless.cause() }).await;
            return;
        }
    }
}

/// How the process ended, before its stderr is known.
enum End {
    Exited { status: ExitStatus, spooled: u64 },
    Vanished { rebooted: bool },
}

/// Follows over one connection.
async fn follow_once(
    shared: &Shared,
    contact: &mut Contact,
    attempt: AttemptId,
    from: &mut u64,
) -> Result<End, HostError> {
    let mut source = shared.host.follow(&shared.run, attempt, *from).await?;
    contact.answered().await;
    loop {
        match source.next().await? {
            Followed::Bytes { offset, bytes } => {
                contact.proven();
                *from = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or_default());
                // The loop is gone only when this task is about to be.
                drop(shared.reports.send(Report::Output { attempt, offset, bytes }).await);
            }
            Followed::CaughtUp => drop(shared.reports.send(Report::CaughtUp(contact.id())).await),
            Followed::Exited { status, spooled } => return Ok(End::Exited { status, spooled }),
            Followed::Vanished { rebooted } => return Ok(End::Vanished { rebooted }),
        }
    }
}

async fn end(shared: &Shared, contact: &mut Contact, attempt: AttemptId, ended: End) -> Fact {
    contact.proven();
    let stderr = loop {
        match shared.host.stderr_tail(&shared.run, attempt).await {
            Ok(stderr) => {
                contact.answered().await;
                break stderr;
            }
            Err(error) => match contact.failed(error).await {
                Ok(()) => {}
                // The end itself is known, and counts for more than what was said at it.
                Err(Hopeless::Refused(_) | Hopeless::Unknown(_) | Hopeless::GivenUp { .. }) => {
                    break String::new();
                }
            },
        }
    };
    match ended {
        End::Exited { status, spooled } => Fact::Exited { attempt, status, spooled, stderr },
        End::Vanished { rebooted } => Fact::Vanished { attempt, rebooted, stderr },
    }
}
