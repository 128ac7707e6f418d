//! The one async loop around the fold, the log of each run, and the store.
//!
//! A run is its request, the facts that reached it and the bytes its agents wrote; all three are in the [`Store`]
//! before the fold's decisions are carried out, so that a driver may be killed at any instruction and the next one
//! goes on. This crate does not print, does not read the environment and knows no agent: what to do is decided by
//! `bursar_core`, and done on an [`AgentHost`].
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(hosts: Arc<bursar_runner::Hosts>, new: bursar_runner::NewRun) -> Result<(), Box<dyn std::error::Error>> {
//! use bursar_runner::{Clock, Context, Store, SystemClock, Update, attend, updates};
//!
//! let store = Arc::new(Store::open("/home/me/.local/state/bursar".as_ref())?);
//! let run = new.request.run.clone();
//! store.create(&new, SystemClock.now())?;
//!
//! let context = Context::new(store, hosts);
//! let (send, mut reader) = updates();
//! let (_ask, asks) = tokio::sync::mpsc::channel(8);
//! let driver = tokio::spawn(async move { attend(&context, &run, &send, asks).await });
//! while let Some(update) = reader.next().await {
//!     if let Update::Replayed(record) | Update::Live(record) = update {
//!         eprintln!("{}", record.to_json());
//!     }
//! }
//! let finished = driver.await??;
//! # let _ = finished.exit_code; Ok(()) }
//! ```
//!
//! Read next: `attend.rs` for the entries, `host.rs` for what is asked of a host, `record.rs` for what watchers get.

mod attend;
mod carry;
mod contact;
mod context;
mod decision_log;
mod driver;
mod error;
mod fold;
mod folded;
mod follow;
mod holder;
mod host;
mod lock;
mod reader;
mod record;
mod refold;
mod run_clock;
mod store;
#[cfg(test)]
mod tests;
mod updates;
mod view;

pub use attend::{Collected, attend, gc, replay, watch};
pub use context::{Clock, Context, Environment, Hosts, Patience, SystemClock};
pub use error::{FindError, RunnerError, StoreError};
pub use holder::HolderHost;
pub use host::{
    AgentChoice, AgentHost, Answer, Appended, Follow, Followed, HostError, StartOrder, Started, Survey,
};
pub use record::{
    AttemptRecord, BackgroundRecord, DecisionRecord, EndRecord, FinishedRecord, RECORD_VERSION, Record,
    RecordEvent, ReplyRecord, SurvivorRecord, ToolRecord, ToolState, Turns, Used,
};
pub use store::{Created, NewRun, RunLine, Store, StoredRun};
pub use updates::{Update, Updates, UpdatesReader, updates};
pub use view::RunView;
