//! The one place where transports meet: from a host's name to the machine.

use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

use bursar_core::event::{Refusal, RefusalKind, Survivor};
use bursar_core::{AttemptId, RunId};
use bursar_local::LocalHost;
use bursar_runner::{
    AgentHost, Answer, Appended, Context, Follow, HolderHost, HostError, StartOrder, Started, Store, Survey,
};
use bursar_transport::Holder;

use crate::agent;
use crate::failure::Failure;

/// The name of this machine.
pub(crate) const LOCAL: &str = "local";

const NOT_YET: &str = "hosts over SSH are not in this version yet";

/// Refuses hosts that this version cannot reach.
pub(crate) fn check(name: &str) -> Result<(), Failure> {
    if name == LOCAL {
        return Ok(());
    }
    Err(Failure::usage(format!("no host `{name}`: {NOT_YET}")).hint("use --host local"))
}

/// Makes what a driver needs: the store, the hosts and this process's environment.
pub(crate) fn context(store: Arc<Store>) -> Context {
    let hosts_of = store.clone();
    let mut context = Context::new(store, Arc::new(move |name: &str| host(name, &hosts_of)));
    context.environment = Arc::new(|name| std::env::var_os(name).map(OsStringExt::into_vec));
    context
}

/// Returns this machine as a place to look for programs.
pub(crate) fn here() -> Holder {
    Holder::new(Arc::new(LocalHost::new()))
}

fn host(name: &str, store: &Arc<Store>) -> Arc<dyn AgentHost> {
    match name {
        LOCAL => Arc::new(Here(HolderHost::new(here(), store.clone()))),
        _ => Arc::new(Unknown { name: name.to_owned() }),
    }
}

/// This machine, where what is wrong with the agent's program can be seen from here.
#[derive(Debug)]
struct Here(HolderHost);

impl AgentHost for Here {
    fn start<'a>(&'a self, order: &'a StartOrder) -> Answer<'a, Started> {
        Box::pin(async move {
            match self.0.start(order).await {
                Err(HostError::Refused(refusal)) if refusal.kind == RefusalKind::NoAgent => {
                    Err(HostError::Refused(agent::refusal(&order.agent).await.unwrap_or(refusal)))
                }
                answer => answer,
            }
        })
    }

    fn follow<'a>(&'a self, run: &'a RunId, attempt: AttemptId, from: u64) -> Answer<'a, Box<dyn Follow>> {
        self.0.follow(run, attempt, from)
    }

    fn append<'a>(
        &'a self,
        run: &'a RunId,
        attempt: AttemptId,
        offset: u64,
        bytes: &'a [u8],
    ) -> Answer<'a, Appended> {
        self.0.append(run, attempt, offset, bytes)
    }

    fn close_input<'a>(&'a self, run: &'a RunId, attempt: AttemptId, offset: u64) -> Answer<'a, ()> {
        self.0.close_input(run, attempt, offset)
    }

    fn stop<'a>(&'a self, run: &'a RunId, attempt: AttemptId, now: bool) -> Answer<'a, Vec<Survivor>> {
        self.0.stop(run, attempt, now)
    }

    fn survey<'a>(&'a self, run: &'a RunId, outputs: &'a [(String, String)]) -> Answer<'a, Survey> {
        self.0.survey(run, outputs)
    }

    fn stderr_tail<'a>(&'a self, run: &'a RunId, attempt: AttemptId) -> Answer<'a, String> {
        self.0.stderr_tail(run, attempt)
    }

    fn gc<'a>(&'a self, older_than: Duration, keep: &'a [RunId]) -> Answer<'a, u64> {
        self.0.gc(older_than, keep)
    }
}

/// A host that a run in the store names and this version cannot reach.
#[derive(Debug)]
struct Unknown {
    name: String,
}

impl Unknown {
    fn answer<T: Send + 'static>(&self) -> Answer<'_, T> {
        let refusal = Refusal {
            kind: RefusalKind::Host,
            detail: format!("no host `{}`: {NOT_YET}", self.name),
            hint: "use the bursar that started the run".to_owned(),
        };
        Box::pin(async move { Err(HostError::Refused(refusal)) })
    }
}

impl AgentHost for Unknown {
    fn start<'a>(&'a self, _: &'a StartOrder) -> Answer<'a, Started> {
        self.answer()
    }

    fn follow<'a>(&'a self, _: &'a RunId, _: AttemptId, _: u64) -> Answer<'a, Box<dyn Follow>> {
        self.answer()
    }

    fn append<'a>(&'a self, _: &'a RunId, _: AttemptId, _: u64, _: &'a [u8]) -> Answer<'a, Appended> {
        self.answer()
    }

    fn close_input<'a>(&'a self, _: &'a RunId, _: AttemptId, _: u64) -> Answer<'a, ()> {
        self.answer()
    }

    fn stop<'a>(&'a self, _: &'a RunId, _: AttemptId, _: bool) -> Answer<'a, Vec<Survivor>> {
        self.answer()
    }

    fn survey<'a>(&'a self, _: &'a RunId, _: &'a [(String, String)]) -> Answer<'a, Survey> {
        self.answer()
    }

    fn stderr_tail<'a>(&'a self, _: &'a RunId, _: AttemptId) -> Answer<'a, String> {
        self.answer()
    }

    fn gc<'a>(&'a self, _: Duration, _: &'a [RunId]) -> Answer<'a, u64> {
        self.answer()
    }
}
