//! A real host: `bursar_transport`'s holder, spoken to in the loop's words.
//!
//! The only policy in here is where the agent's program is looked for. How a failure is answered is decided in
//! `contact.rs`, from the kind it is given here.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bursar_core::event::{ExitStatus, OutputTail, Refusal, RefusalKind, Survivor};
use bursar_core::{AttemptId, RunId};
use bursar_transport::{
    AppendError, AttemptRef, BadName, ExitRecord, FindError, FollowEvent, Follower, Holder, Name, OutputFile,
    RunProcess, StartError, StartSpec,
};

use crate::context::{Clock, SystemClock};
use crate::host::{AgentHost, Answer, Appended, Follow, Followed, HostError, StartOrder, Started, Survey};
use crate::store::{Found, Store};

/// How long an agent may take to leave when it is stopped gracefully, TERM included.
const GRACE: Duration = Duration::from_secs(10);

/// The most bytes of stderr that are kept of an attempt.
const STDERR: usize = 4096;

/// For how long a place where an agent was found is believed. A place that turns out wrong is not believed at all.
const FOUND_FRESH: Duration = Duration::from_secs(24 * 3600);

/// A host behind a holder.
#[derive(Clone)]
pub struct HolderHost {
    holder: Holder,
    /// Remembers where agents were found: to ask a login shell takes most of a second on many hosts.
    store: Arc<Store>,
}

impl HolderHost {
    /// Makes a host; nothing is sent yet.
    #[must_use]
    pub fn new(holder: Holder, store: Arc<Store>) -> Self {
        Self { holder, store }
    }

    async fn start_now(&self, order: &StartOrder) -> Result<Started, HostError> {
        let mut place = self.known_place(order);
        let known = place.is_some();
        if place.is_none() {
            place = Some(self.find(order).await?);
        }
        match self.holder.start(&spec(order, place)?).await {
            Err(StartError::AgentNotFound { .. } | StartError::AgentNotExecutable { .. }) if known => {
                let found = self.find(order).await?;
                self.holder.start(&spec(order, Some(found))?).await
            }
            answer => answer,
        }
        .map(|started| Started { pid: started.pid.unwrap_or_default(), found: started.attached })
        .map_err(|error| self.not_started(error))
    }

    /// Returns where the agent is, without asking the host.
    fn known_place(&self, order: &StartOrder) -> Option<Found> {
        // Scripts on this machine have the user's own PATH, which is what a terminal here would use.
        if self.holder.host().transport() == "local" {
            let path = order.agent.path.as_ref().unwrap_or(&order.agent.name).clone().into_bytes();
            return Some(Found { path, env_path: None });
        }
        // A store that cannot tell is as good as one that does not know.
        let since = bursar_core::At(SystemClock.now().0.saturating_sub(millis(FOUND_FRESH)));
        self.store.found_agent(self.holder.host().name(), &order.agent, since).ok().flatten()
    }

    async fn find(&self, order: &StartOrder) -> Result<Found, HostError> {
        let explicit = order.agent.path.as_deref().map(str::as_bytes);
        let found = match self.holder.find_agent(&order.agent.name, explicit).await {
            Ok(found) => Found { path: found.path, env_path: Some(found.env_path) },
            Err(FindError::Host(error)) => return Err(self.failed(error)),
            Err(error) => {
                let host = self.holder.host().name();
                let (detail, looked) = match &error {
                    FindError::NotFound { name, places } => (
                        format!("`{name}` was not found on `{host}`"),
                        format!("looked at {}", places.join(", ")),
                    ),
                    FindError::Host(_) | _ => (error.to_string(), format!("install it on `{host}`")),
                };
                let hint = format!("{looked}; name its place with --agent-path");
                return Err(refused(RefusalKind::NoAgent, detail, hint));
            }
        };
        let now = SystemClock.now();
        if let Err(error) = self.store.keep_found_agent(self.holder.host().name(), &order.agent, &found, now)
        {
            tracing::debug!(target: "bursar::runner", %error, "where the agent was found is not remembered");
        }
        Ok(found)
    }

    fn not_started(&self, error: StartError) -> HostError {
        let host = self.holder.host().name();
        let detail = error.to_string();
        match error {
            StartError::Host(error) => self.failed(error),
            StartError::NoSuchDirectory { .. } => refused(
                RefusalKind::NoDirectory,
                detail,
                format!("make it on `{host}`, or name another with --dir"),
            ),
            StartError::AgentNotFound { .. } | StartError::AgentNotExecutable { .. } => refused(
                RefusalKind::NoAgent,
                detail,
                format!("install it on `{host}`, or name its place with --agent-path"),
            ),
            StartError::SessionBusy { by, .. } | StartError::KeyBusy { by, .. } => refused(
                RefusalKind::SessionBusy,
                detail,
                format!("`bursar attach {}` follows it, `bursar stop {0}` ends it", by.run),
            ),
            StartError::NoSpace { .. } | StartError::ReadOnlyHome { .. } => refused(
                RefusalKind::NoSpace,
                detail,
                format!("make room for the state directory on `{host}`; `bursar gc` removes old runs"),
            ),
            StartError::Spec(_) | _ => {
                refused(RefusalKind::Host, detail, "change what is asked for".to_owned())
            }
        }
    }

    fn failed(&self, error: bursar_transport::HostError) -> HostError {
        let host = self.holder.host().name();
        let detail = chain(&error);
        let look = format!("see that `sh` runs on `{host}`, with a PATH, free processes and open files");
        match error {
            bursar_transport::HostError::Refused { .. } => refused(RefusalKind::Host, detail, look),
            bursar_transport::HostError::Unreachable { .. } => HostError::Unreachable { detail, hint: look },
            bursar_transport::HostError::Lost { .. } => HostError::Cut { detail },
            bursar_transport::HostError::Unusable { .. } | _ => HostError::Failed { detail, hint: look },
        }
    }

    fn not_appended(&self, error: AppendError) -> Result<Appended, HostError> {
        let detail = error.to_string();
        match error {
            AppendError::Host(error) => Err(self.failed(error)),
            AppendError::AgentGone | AppendError::Conflict { closed: true, .. } => Ok(Appended::Gone),
            AppendError::NeverStarted => Err(HostError::Unknown { detail }),
            AppendError::NoSpace => Err(HostError::Failed { detail, hint: "make room there".to_owned() }),
            AppendError::Conflict { closed: false, .. } | _ => Err(refused(
                RefusalKind::Host,
                detail,
                "somebody else writes to this agent: stop that first".to_owned(),
            )),
        }
    }
}

impl fmt::Debug for HolderHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HolderHost").field(&self.holder.host().name()).finish()
    }
}

impl AgentHost for HolderHost {
    fn start<'a>(&'a self, order: &'a StartOrder) -> Answer<'a, Started> {
        Box::pin(self.start_now(order))
    }

    fn follow<'a>(&'a self, run: &'a RunId, attempt: AttemptId, from: u64) -> Answer<'a, Box<dyn Follow>> {
        Box::pin(async move {
            let at = at(run, attempt)?;
            let follower = self.holder.follow(&at, from).await.map_err(|error| self.failed(error))?;
            Ok(Box::new(HolderFollow { host: self.clone(), follower }) as Box<dyn Follow>)
        })
    }

    fn append<'a>(
        &'a self,
        run: &'a RunId,
        attempt: AttemptId,
        offset: u64,
        bytes: &'a [u8],
    ) -> Answer<'a, Appended> {
        Box::pin(async move {
            match self.holder.append(&at(run, attempt)?, offset, bytes).await {
                Ok(_) => Ok(Appended::Written),
                Err(error) => self.not_appended(error),
            }
        })
    }

    fn close_input<'a>(&'a self, run: &'a RunId, attempt: AttemptId, offset: u64) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.holder.close_input(&at(run, attempt)?, offset).await {
                Ok(_) => Ok(()),
                Err(error) => self.not_appended(error).map(|_| ()),
            }
        })
    }

    fn stop<'a>(&'a self, run: &'a RunId, attempt: AttemptId, now: bool) -> Answer<'a, Vec<Survivor>> {
        Box::pin(async move {
            let grace = if now { Duration::ZERO } else { GRACE };
            let report = self.holder.stop(&at(run, attempt)?, grace).await;
            let left = report.map_err(|error| self.failed(error))?.left;
            Ok(left.iter().map(survivor).collect())
        })
    }

    fn survey<'a>(&'a self, run: &'a RunId, outputs: &'a [(String, String)]) -> Answer<'a, Survey> {
        Box::pin(async move {
            let name: Name = run.0.parse().map_err(bad_name)?;
            let paths: Vec<_> = outputs.iter().map(|(_, path)| path.clone().into_bytes()).collect();
            let survey = self.holder.survey(&name, &paths).await.map_err(|error| self.failed(error))?;
            let tails = outputs.iter().zip(survey.outputs).map(|((id, _), file)| output_tail(id, file));
            // What runs under a living agent is its own affair; only what is beside it outlived its starter.
            let outlived =
                survey.processes.iter().filter(|process| !process.is_agent && !process.under_agent);
            Ok(Survey { survivors: outlived.map(survivor).collect(), outputs: tails.collect() })
        })
    }

    fn stderr_tail<'a>(&'a self, run: &'a RunId, attempt: AttemptId) -> Answer<'a, String> {
        Box::pin(async move {
            let tail = self.holder.stderr_tail(&at(run, attempt)?, STDERR).await;
            Ok(String::from_utf8_lossy(&tail.map_err(|error| self.failed(error))?).into_owned())
        })
    }

    fn gc<'a>(&'a self, older_than: Duration, keep: &'a [RunId]) -> Answer<'a, u64> {
        Box::pin(async move {
            let keep: Vec<Name> = keep.iter().filter_map(|run| run.0.parse().ok()).collect();
            let report = self.holder.gc(older_than, &keep).await.map_err(|error| self.failed(error))?;
            Ok(u64::try_from(report.removed.len()).unwrap_or(u64::MAX))
        })
    }
}

struct HolderFollow {
    host: HolderHost,
    follower: Follower,
}

impl Follow for HolderFollow {
    fn next(&mut self) -> Answer<'_, Followed> {
        Box::pin(async move {
            let event = self.follower.next().await.map_err(|error| self.host.failed(error))?;
            match event {
                Some(FollowEvent::Output { offset, bytes }) => Ok(Followed::Bytes { offset, bytes }),
                Some(FollowEvent::CaughtUp) => Ok(Followed::CaughtUp),
                Some(FollowEvent::Exited(record)) => {
                    Ok(Followed::Exited { status: exit_status(&record), spooled: record.spool_length })
                }
                Some(FollowEvent::Gone) => Ok(Followed::Vanished { rebooted: false }),
                Some(FollowEvent::Rebooted) => Ok(Followed::Vanished { rebooted: true }),
                // Only what was started is followed.
                Some(FollowEvent::NeverStarted | FollowEvent::Deleted) => {
                    Err(HostError::Unknown { detail: "its folder was removed".to_owned() })
                }
                Some(FollowEvent::Short { length }) => Err(HostError::Unknown {
                    detail: format!("its output there is only {length} bytes long"),
                }),
                // An event of a later transport, or none after the last: look again.
                Some(_) | None => {
                    Err(HostError::Cut { detail: "the output ended without an end".to_owned() })
                }
            }
        })
    }
}

fn at(run: &RunId, attempt: AttemptId) -> Result<AttemptRef, HostError> {
    AttemptRef::new(&run.0, attempt.0).map_err(bad_name)
}

fn bad_name(error: BadName) -> HostError {
    refused(RefusalKind::Host, error.to_string(), String::new())
}

fn refused(kind: RefusalKind, detail: String, hint: String) -> HostError {
    HostError::Refused(Refusal { kind, detail, hint })
}

fn spec(order: &StartOrder, place: Option<Found>) -> Result<StartSpec, HostError> {
    let start = &order.start;
    let Found { path, env_path } =
        place.unwrap_or_else(|| Found { path: order.agent.name.clone().into_bytes(), env_path: None });
    let mut argv = vec![path];
    argv.extend(start.args.iter().map(|argument| argument.clone().into_bytes()));
    let mut spec = StartSpec::new(at(&order.run, start.attempt)?, argv, directory(&order.dir));
    // Later ones win: what the user names is what the agent gets.
    spec.env.extend(env_path.map(|path| ("PATH".to_owned(), path)));
    spec.env.extend(start.env.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())));
    spec.env.extend(order.env.iter().cloned());
    spec.session = start
        .session
        .as_ref()
        .map(|session| session.0.parse().unwrap_or_else(|_| Name::encoded(session.0.as_bytes())));
    spec.key = order.key.as_ref().map(|key| Name::encoded(key.as_bytes()));
    spec.input.clone_from(&start.input);
    spec.close_after_input = start.close;
    Ok(spec)
}

fn directory(dir: &[u8]) -> &[u8] {
    if dir.is_empty() { b"~" } else { dir }
}

fn exit_status(record: &ExitRecord) -> ExitStatus {
    record.signal().map_or(ExitStatus::Code(record.status), ExitStatus::Signal)
}

fn survivor(process: &RunProcess) -> Survivor {
    let command = String::from_utf8_lossy(&process.command_line()).into_owned();
    Survivor { pid: process.pid, command }
}

fn output_tail(id: &str, file: OutputFile) -> OutputTail {
    let (size, tail) = match file {
        OutputFile::Regular { size, tail } => (Some(size), String::from_utf8_lossy(&tail).into_owned()),
        OutputFile::Missing | OutputFile::Other => (None, String::new()),
    };
    OutputTail { id: id.to_owned(), size, tail }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
