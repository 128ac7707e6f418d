//! Carries the fold's orders out: each in a task of its own, whose answer comes back as a report.
//!
//! What must keep an order (an attempt's start, what is written to it, the closing of its input) goes through one
//! lane per attempt; the rest runs side by side. A stop waits for a start under way, since stopping what is not there
//! yet would stop nothing. Dropping the carrier ends every task; what they left undone on the host is asked for again
//! by the next driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bursar_core::decision::Start;
use bursar_core::event::{Fact, Refusal, RefusalKind};
use bursar_core::{AttemptId, Decision, RunId};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::contact::{Contact, Hopeless};
use crate::context::{Context, Environment, Patience};
use crate::host::{AgentChoice, AgentHost, Appended, StartOrder};
use crate::store::StoredRun;

/// Reports that wait for the loop; a full channel makes followers wait, and the agent's output stays in its spool.
const REPORTS: usize = 32;

/// What a task tells the loop.
#[derive(Debug)]
pub(crate) enum Report {
    Output {
        attempt: AttemptId,
        offset: u64,
        bytes: Bytes,
    },
    Fact(Fact),
    /// The follower that is this conversation has handed out all that the host had when it began.
    CaughtUp(u64),
    /// The follower that is this conversation may lack something again.
    Behind(u64),
    /// This conversation lost its link.
    Down(u64),
    /// This conversation has its link, again or for the first time.
    Up(u64),
}

/// What every task knows.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn AgentHost>,
    pub(crate) run: RunId,
    pub(crate) reports: mpsc::Sender<Report>,
}

impl Shared {
    pub(crate) async fn fact(&self, fact: Fact) {
        // The loop is gone only when this task is about to be.
        drop(self.reports.send(Report::Fact(fact)).await);
    }
}

/// The tasks that carry out one run's orders.
pub(crate) struct Carrier {
    shared: Arc<Shared>,
    patience: Patience,
    environment: Arc<Environment>,
    env: Vec<String>,
    agent: AgentChoice,
    dir: Vec<u8>,
    key: Option<String>,
    lanes: BTreeMap<AttemptId, Lane>,
    followed: BTreeMap<AttemptId, Following>,
    tasks: JoinSet<()>,
    conversations: u64,
    /// Conversations that another one took the place of.
    over: BTreeSet<u64>,
}

/// The task that follows an attempt.
struct Following {
    conversation: u64,
    task: AbortHandle,
}

struct Lane {
    orders: mpsc::UnboundedSender<LaneOrder>,
    /// Whether no start is under way.
    clear: watch::Receiver<bool>,
}

/// What goes through a lane.
enum LaneOrder {
    Start { order: Box<StartOrder>, patience: Option<Duration> },
    Write { message: bursar_core::MessageId, offset: u64, bytes: Vec<u8> },
    Close { offset: u64 },
}

impl Carrier {
    /// Makes a carrier, and the channel its reports come from.
    pub(crate) fn new(
        context: &Context,
        stored: &StoredRun,
        host: Arc<dyn AgentHost>,
    ) -> (Self, mpsc::Receiver<Report>) {
        let (reports, received) = mpsc::channel(REPORTS);
        let carrier = Self {
            shared: Arc::new(Shared { host, run: stored.request.run.clone(), reports }),
            patience: context.patience,
            environment: Arc::clone(&context.environment),
            env: stored.env.clone(),
            agent: stored.agent.clone(),
            dir: stored.dir.clone(),
            key: stored.key.clone(),
            lanes: BTreeMap::new(),
            followed: BTreeMap::new(),
            tasks: JoinSet::new(),
            conversations: 0,
            over: BTreeSet::new(),
        };
        (carrier, received)
    }

    /// Sets an order going. `last` is the run's last attempt; `reached` tells whether its host ever answered.
    /// Returns the names of `--env` that have no value.
    pub(crate) fn carry(&mut self, decision: Decision, last: AttemptId, reached: bool) -> Vec<String> {
        match decision {
            Decision::Start(start) => {
                let (order, missing) = self.start_order(start);
                let patience =
                    if reached { self.patience.give_up } else { Some(self.patience.first_contact) };
                self.lane(order.start.attempt, LaneOrder::Start { order: Box::new(order), patience });
                return missing;
            }
            Decision::Write { attempt, message, offset, bytes } => {
                self.lane(attempt, LaneOrder::Write { message, offset, bytes });
            }
            Decision::CloseInput { attempt, offset } => self.lane(attempt, LaneOrder::Close { offset }),
            Decision::Survey { survey: number, outputs } => {
                let (shared, contact) = (Arc::clone(&self.shared), self.contact());
                self.tasks.spawn(survey(shared, contact, last, number, outputs));
            }
            Decision::Stop { attempt, now } => {
                let clear = self.lanes.get(&attempt).map(|lane| lane.clear.clone());
                let (shared, contact) = (Arc::clone(&self.shared), self.contact());
                self.tasks.spawn(stop(shared, contact, clear, attempt, now));
            }
            // These are for the loop.
            Decision::Report(_) | Decision::Finish(_) => {}
        }
        Vec::new()
    }

    /// Follows the attempt's stdout from here on, once.
    pub(crate) fn follow(&mut self, attempt: AttemptId, from: u64) {
        if !self.followed.contains_key(&attempt) {
            self.follow_afresh(attempt, from);
        }
    }

    /// Follows the attempt's stdout from here on by a new conversation; one that there was is over.
    pub(crate) fn follow_afresh(&mut self, attempt: AttemptId, from: u64) {
        let (shared, contact) = (Arc::clone(&self.shared), self.contact());
        let conversation = contact.id();
        let task = self.tasks.spawn(crate::follow::follow(shared, contact, attempt, from));
        if let Some(before) = self.followed.insert(attempt, Following { conversation, task }) {
            before.task.abort();
            self.over.insert(before.conversation);
        }
    }

    /// Returns the conversation that follows the attempt.
    pub(crate) fn follower(&self, attempt: AttemptId) -> Option<u64> {
        self.followed.get(&attempt).map(|following| following.conversation)
    }

    /// Whether a conversation was ended by another that took its place.
    pub(crate) fn is_over(&self, conversation: u64) -> bool {
        self.over.contains(&conversation)
    }

    /// Waits until a task fails, which none should, and returns how.
    ///
    /// Cancel safe.
    pub(crate) async fn broken(&mut self) -> String {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(())) => {}
                Some(Err(error)) if error.is_cancelled() => {}
                Some(Err(error)) => return error.to_string(),
                None => std::future::pending().await,
            }
        }
    }

    fn start_order(&self, start: Start) -> (StartOrder, Vec<String>) {
        let mut env = Vec::new();
        let mut missing = Vec::new();
        for name in &self.env {
            match (self.environment)(name) {
                Some(value) => env.push((name.clone(), value)),
                None => missing.push(name.clone()),
            }
        }
        let (run, agent, dir) = (self.shared.run.clone(), self.agent.clone(), self.dir.clone());
        (StartOrder { run, agent, dir, env, key: self.key.clone(), start }, missing)
    }

    fn lane(&mut self, attempt: AttemptId, order: LaneOrder) {
        let (shared, contact) = (Arc::clone(&self.shared), self.contact());
        let lane = self.lanes.entry(attempt).or_insert_with(|| {
            let (orders, received) = mpsc::unbounded_channel();
            let (busy, clear) = watch::channel(!matches!(order, LaneOrder::Start { .. }));
            self.tasks.spawn(drive_lane(shared, contact, attempt, received, busy));
            Lane { orders, clear }
        });
        // The lane's task ends only with the carrier; one that panicked is reported by `broken`.
        drop(lane.orders.send(order));
    }

    fn contact(&mut self) -> Contact {
        self.conversations += 1;
        Contact::new(self.conversations, self.shared.reports.clone(), self.patience.give_up)
    }
}

async fn drive_lane(
    shared: Arc<Shared>,
    mut contact: Contact,
    attempt: AttemptId,
    mut orders: mpsc::UnboundedReceiver<LaneOrder>,
    clear: watch::Sender<bool>,
) {
    while let Some(order) = orders.recv().await {
        contact.proven();
        match order {
            LaneOrder::Start { order, patience } => {
                let give_up = contact.bear(patience);
                let fact = start(&shared, &mut contact, &order).await;
                contact.bear(give_up);
                clear.send_replace(true);
                shared.fact(fact).await;
            }
            LaneOrder::Write { message, offset, bytes } => {
                let fact = write(&shared, &mut contact, attempt, message, offset, &bytes).await;
                shared.fact(fact).await;
            }
            LaneOrder::Close { offset } => {
                let fact = close(&shared, &mut contact, attempt, offset).await;
                shared.fact(fact).await;
            }
        }
    }
}

async fn start(shared: &Shared, contact: &mut Contact, order: &StartOrder) -> Fact {
    let attempt = order.start.attempt;
    loop {
        let error = match shared.host.start(order).await {
            Ok(started) => {
                contact.answered().await;
                return Fact::Started { attempt, pid: started.pid, found: started.found };
            }
            Err(error) => error,
        };
        match contact.failed(error).await {
            Ok(()) => {}
            Err(Hopeless::Refused(refusal)) => return Fact::Refused { attempt, refusal },
            Err(Hopeless::GivenUp { detail, heard: true, .. }) => {
                return Fact::Lost { attempt, cause: detail };
            }
            Err(Hopeless::GivenUp { detail, hint, heard: false }) => {
                return Fact::Refused { attempt, refusal: Refusal { kind: RefusalKind::Host, detail, hint } };
            }
            Err(Hopeless::Unknown(detail)) => {
                let refusal = Refusal { kind: RefusalKind::Host, detail, hint: String::new() };
                return Fact::Refused { attempt, refusal };
            }
        }
    }
}

async fn write(
    shared: &Shared,
    contact: &mut Contact,
    attempt: AttemptId,
    message: bursar_core::MessageId,
    offset: u64,
    bytes: &[u8],
) -> Fact {
    loop {
        match shared.host.append(&shared.run, attempt, offset, bytes).await {
            Ok(appended) => {
                contact.answered().await;
                return match appended {
                    Appended::Written => Fact::Written { attempt, message },
                    Appended::Gone => Fact::Undeliverable { attempt, message },
                };
            }
            Err(error) => match contact.failed(error).await {
                Ok(()) => {}
                Err(Hopeless::Unknown(_)) => return Fact::Undeliverable { attempt, message },
                Err(hopeless) => return Fact::Lost { attempt, cause: hopeless.cause() },
            },
        }
    }
}

async fn close(shared: &Shared, contact: &mut Contact, attempt: AttemptId, offset: u64) -> Fact {
    loop {
        match shared.host.close_input(&shared.run, attempt, offset).await {
            Ok(()) => {
                contact.answered().await;
                return Fact::InputClosed { attempt };
            }
            Err(error) => match contact.failed(error).await {
                Ok(()) => {}
                Err(Hopeless::Unknown(_)) => return Fact::InputClosed { attempt },
                Err(hopeless) => return Fact::Lost { attempt, cause: hopeless.cause() },
            },
        }
    }
}

async fn survey(
    shared: Arc<Shared>,
    mut contact: Contact,
    last: AttemptId,
    number: u32,
    outputs: Vec<(String, String)>,
) {
    let fact = loop {
        match shared.host.survey(&shared.run, &outputs).await {
            Ok(survey) => {
                contact.answered().await;
                break Fact::Surveyed {
                    survey: number,
                    survivors: survey.survivors,
                    outputs: survey.outputs,
                };
            }
            Err(error) => match contact.failed(error).await {
                Ok(()) => {}
                Err(hopeless) => break Fact::Lost { attempt: last, cause: hopeless.cause() },
            },
        }
    };
    shared.fact(fact).await;
}

async fn stop(
    shared: Arc<Shared>,
    mut contact: Contact,
    clear: Option<watch::Receiver<bool>>,
    attempt: AttemptId,
    now: bool,
) {
    if let Some(mut clear) = clear {
        // The lane is gone only when this task is about to be.
        drop(clear.wait_for(|clear| *clear).await);
    }
    let fact = loop {
        let error = match shared.host.stop(&shared.run, attempt, now).await {
            Ok(left) => {
                contact.answered().await;
                break Fact::Stopped { attempt, left };
            }
            Err(error) => error,
        };
        match contact.failed(error).await {
            Ok(()) => {}
            Err(Hopeless::Unknown(_)) => break Fact::Stopped { attempt, left: Vec::new() },
            Err(hopeless) => break Fact::Lost { attempt, cause: hopeless.cause() },
        }
    };
    shared.fact(fact).await;
}
