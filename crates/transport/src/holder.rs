//! The holder: what keeps an agent running on a host whatever happens to the connection.
//!
//! Its methods are spread over the modules by what they do; its other half are the scripts in `sh/`, above
//! all `sh/holder.sh`, which says what lies where on the host.

use std::sync::Arc;

use crate::follow::FollowEngine;
use crate::host::Host;

/// Runs agents on one host. Cheap to clone; has no state of its own, all state is on the host.
#[derive(Debug, Clone)]
pub struct Holder {
    host: Arc<dyn Host>,
    engine: FollowEngine,
}

impl Holder {
    /// Makes a holder for a host. Nothing is sent yet.
    #[must_use]
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self { host, engine: FollowEngine::Auto }
    }

    /// Chooses what carries out the following, instead of the best there is.
    #[must_use]
    pub fn with_engine(self, engine: FollowEngine) -> Self {
        Self { engine, ..self }
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    pub(crate) fn engine(&self) -> FollowEngine {
        self.engine
    }
}
