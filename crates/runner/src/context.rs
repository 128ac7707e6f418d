//! What a driver is given from outside: the store, the hosts, the clock and the user's environment.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bursar_core::At;

use crate::fold::Begin;
use crate::host::AgentHost;
use crate::store::Store;

/// Finds the host of a name; the answer is asked for once per driver and need not be connected yet.
pub type Hosts = dyn Fn(&str) -> Arc<dyn AgentHost> + Send + Sync;

/// Finds the value of one `--env NAME` when an agent is started.
pub type Environment = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// Everything a driver needs from outside. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub store: Arc<Store>,
    pub hosts: Arc<Hosts>,
    pub environment: Arc<Environment>,
    pub clock: Arc<dyn Clock>,
    pub patience: Patience,
    pub(crate) begin: Begin,
    #[cfg(test)]
    pub(crate) crash: crate::tests::Crash,
}

impl Context {
    /// Makes a context with the system's clock, no environment and the default patience.
    pub fn new(store: Arc<Store>, hosts: Arc<Hosts>) -> Self {
        Self {
            store,
            hosts,
            environment: Arc::new(|_| None),
            clock: Arc::new(SystemClock),
            patience: Patience::default(),
            begin: Begin::default(),
            #[cfg(test)]
            crash: crate::tests::Crash::default(),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("store", &self.store)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// How long a driver bears with a link that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long the first start of a run may fail to reach its host before the run is refused.
    pub first_contact: Duration,
    /// How long a link may be down before the agent's state is called unverifiable.
    pub unverifiable: Duration,
    /// How long a link may be down before the attempt is given up as lost (`--give-up`); None waits for ever.
    pub give_up: Option<Duration>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { first_contact: Duration::from_secs(5), unverifiable: Duration::from_secs(60), give_up: None }
    }
}

/// The wall clock.
pub trait Clock: Send + Sync {
    /// Returns the present moment; it may jump, a driver keeps its run's time from running backwards.
    fn now(&self) -> At;
}

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> At {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        At(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
