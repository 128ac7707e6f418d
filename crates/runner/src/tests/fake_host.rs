//! A host in memory, whose agent answers messages by a script and whose link can be cut.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bursar_core::event::{ExitStatus, Survivor};
use bursar_core::{AttemptId, RunId};
use bytes::Bytes;
use tokio::sync::watch;

use crate::{AgentHost, Answer, Appended, Follow, Followed, HostError, StartOrder, Started, Survey};

/// The host; it outlives drivers.
#[derive(Debug)]
pub(super) struct FakeHost {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    reactions: Vec<String>,
    attempts: BTreeMap<AttemptId, FakeAgent>,
    /// Processes started, ever.
    starts: usize,
    /// Errors for the next questions, whichever they are.
    errors: VecDeque<HostError>,
    down: bool,
    /// Followers hand out at most this many bytes at once.
    piece: usize,
    stops: usize,
    /// What the last start was given.
    env: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct FakeAgent {
    spool: Vec<u8>,
    journal: Vec<u8>,
    reacted: usize,
    exit: Option<ExitStatus>,
}

impl FakeHost {
    pub(super) fn new(reactions: &[&str]) -> Self {
        let state = State {
            reactions: reactions.iter().map(|&reaction| reaction.to_owned()).collect(),
            attempts: BTreeMap::new(),
            starts: 0,
            errors: VecDeque::new(),
            down: false,
            piece: 7,
            stops: 0,
            env: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), changed: watch::channel(0).0 }
    }

    pub(super) fn hand_out(&self, piece: usize) {
        self.state().piece = piece;
    }

    pub(super) fn fail_next(&self, error: HostError) {
        self.state().errors.push_back(error);
    }

    /// Cuts the link, or mends it.
    pub(super) fn set_down(&self, down: bool) {
        self.state().down = down;
        self.touch();
    }

    pub(super) fn starts(&self) -> usize {
        self.state().starts
    }

    pub(super) fn env(&self) -> Vec<(String, Vec<u8>)> {
        self.state().env.clone()
    }

    pub(super) fn stops(&self) -> usize {
        self.state().stops
    }

    pub(super) fn spools(&self) -> Vec<(u32, Vec<u8>)> {
        self.state().attempts.iter().map(|(attempt, agent)| (attempt.0, agent.spool.clone())).collect()
    }

    pub(super) fn journals(&self) -> Vec<String> {
        let text = |agent: &FakeAgent| String::from_utf8(agent.journal.clone()).unwrap();
        self.state().attempts.values().map(text).collect()
    }

    /// The agent of this attempt says something by itself.
    pub(super) fn say(&self, attempt: u32, text: &str) {
        self.state().attempts.get_mut(&AttemptId(attempt)).unwrap().spool.extend_from_slice(text.as_bytes());
        self.touch();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        answer: impl FnOnce(&mut State) -> Result<T, HostError> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let result = {
                let mut state = self.state();
                state.reachable().and_then(|()| answer(&mut state))
            };
            self.touch();
            // A driver can die while the answer is on its way.
            tokio::task::yield_now().await;
            result
        })
    }
}

impl State {
    fn reachable(&mut self) -> Result<(), HostError> {
        if self.down {
            return Err(cut());
        }
        self.errors.pop_front().map_or(Ok(()), Err)
    }

    fn agent(&mut self, attempt: AttemptId) -> Result<&mut FakeAgent, HostError> {
        let unknown = || HostError::Unknown { detail: format!("no attempt {attempt}") };
        self.attempts.get_mut(&attempt).ok_or_else(unknown)
    }

    /// Lets the agent answer what it was sent.
    fn react(&mut self) {
        let mut said: usize = self.attempts.values().map(|agent| agent.reacted).sum();
        if let Some(agent) = self.attempts.values_mut().next_back() {
            let messages = agent.journal.iter().filter(|byte| **byte == b'\n').count();
            while agent.reacted < messages + 1 {
                let reaction = self.reactions.get(said).map(String::as_str).unwrap_or_default();
                agent.spool.extend_from_slice(reaction.as_bytes());
                agent.reacted += 1;
                said += 1;
            }
        }
    }
}

pub(super) fn cut() -> HostError {
    HostError::Cut { detail: "the fake link is down".to_owned() }
}

impl AgentHost for FakeHost {
    fn start<'a>(&'a self, order: &'a StartOrder) -> Answer<'a, Started> {
        self.answer(|state| {
            let attempt = order.start.attempt;
            let found = state.attempts.contains_key(&attempt);
            if !found {
                state.starts += 1;
                state.env.clone_from(&order.env);
                state.attempts.insert(attempt, FakeAgent::default());
                state.react();
            }
            Ok(Started { pid: 100 + attempt.0, found })
        })
    }

    fn follow<'a>(&'a self, _run: &'a RunId, attempt: AttemptId, from: u64) -> Answer<'a, Box<dyn Follow>> {
        Box::pin(async move {
            self.answer(|state| state.agent(attempt).map(|_| ())).await?;
            let source = FakeFollow {
                state: Arc::clone(&self.state),
                changed: self.changed.subscribe(),
                attempt,
                from: usize::try_from(from).unwrap(),
                caught_up: false,
            };
            Ok(Box::new(source) as Box<dyn Follow>)
        })
    }

    fn append<'a>(
        &'a self,
        _run: &'a RunId,
        attempt: AttemptId,
        offset: u64,
        bytes: &'a [u8],
    ) -> Answer<'a, Appended> {
        self.answer(move |state| {
            let agent = state.agent(attempt)?;
            let offset = usize::try_from(offset).unwrap();
            if agent.journal.get(offset..offset + bytes.len()) == Some(bytes) {
                return Ok(Appended::Written);
            }
            if agent.exit.is_some() {
                return Ok(Appended::Gone);
            }
            assert_eq!(agent.journal.len(), offset, "the journal is appended to in order");
            agent.journal.extend_from_slice(bytes);
            state.react();
            Ok(Appended::Written)
        })
    }

    fn close_input<'a>(&'a self, _run: &'a RunId, attempt: AttemptId, offset: u64) -> Answer<'a, ()> {
        self.answer(move |state| {
            let agent = state.agent(attempt)?;
            assert_eq!(agent.journal.len(), usize::try_from(offset).unwrap());
            agent.exit.get_or_insert(ExitStatus::Code(0));
            Ok(())
        })
    }

    fn stop<'a>(&'a self, _run: &'a RunId, attempt: AttemptId, _now: bool) -> Answer<'a, Vec<Survivor>> {
        self.answer(move |state| {
            state.stops += 1;
            state.agent(attempt)?.exit.get_or_insert(ExitStatus::Signal(15));
            Ok(Vec::new())
        })
    }

    fn survey<'a>(&'a self, _run: &'a RunId, _outputs: &'a [(String, String)]) -> Answer<'a, Survey> {
        self.answer(|_| Ok(Survey::default()))
    }

    fn stderr_tail<'a>(&'a self, _run: &'a RunId, _attempt: AttemptId) -> Answer<'a, String> {
        self.answer(|_| Ok(String::new()))
    }

    fn gc<'a>(&'a self, _older_than: Duration, _keep: &'a [RunId]) -> Answer<'a, u64> {
        self.answer(|_| Ok(1))
    }
}

struct FakeFollow {
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<u64>,
    attempt: AttemptId,
    from: usize,
    caught_up: bool,
}

impl FakeFollow {
    #[expect(clippy::unwrap_in_result, reason = "in a test")]
    fn try_next(&mut self) -> Result<Option<Followed>, HostError> {
        let mut state = self.state.lock().unwrap();
        state.reachable()?;
        let piece = state.piece;
        let agent = state.agent(self.attempt)?;
        let rest = &agent.spool[self.from..];
        if !rest.is_empty() {
            let bytes = Bytes::copy_from_slice(&rest[..rest.len().min(piece)]);
            let offset = u64::try_from(self.from).unwrap();
            self.from += bytes.len();
            return Ok(Some(Followed::Bytes { offset, bytes }));
        }
        let spooled = u64::try_from(agent.spool.len()).unwrap();
        if !std::mem::replace(&mut self.caught_up, true) {
            return Ok(Some(Followed::CaughtUp));
        }
        Ok(agent.exit.map(|status| Followed::Exited { status, spooled }))
    }
}

impl Follow for FakeFollow {
    fn next(&mut self) -> Answer<'_, Followed> {
        Box::pin(async move {
            loop {
                self.changed.borrow_and_update();
                if let Some(followed) = self.try_next()? {
                    return Ok(followed);
                }
                self.changed.changed().await.map_err(|_| cut())?;
            }
        })
    }
}
