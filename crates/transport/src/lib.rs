//! How bursar reaches hosts. [`Host`] is all a transport has to offer: run a POSIX sh script there. On top of
//! it, shared by all transports, is the [`Holder`]: it starts an agent once, follows it from any offset,
//! writes to it, stops it, and tells what is left of it.
//!
//! This crate holds no policy: it retries nothing, sets no time limit on an agent and reads nothing of what
//! one prints. Read `holder.rs` next, then `sh/holder.sh`.

mod collect;
mod error;
mod exchange;
mod find;
mod follow;
mod holder;
mod host;
mod journal;
mod name;
mod payload;
mod script;
mod spec;
mod start;
mod status;
mod survey;

pub use collect::GcReport;
pub use error::HostError;
pub use find::{DirectoryState, FindError, FoundAgent};
pub use follow::{FollowEngine, FollowEvent, Follower, Followers};
pub use holder::Holder;
pub use host::{BoxFuture, Host, Shell, ShellExit};
pub use journal::{AppendError, Appended};
pub use name::{AttemptRef, BadName, Name};
pub use spec::{BadSpec, StartSpec};
pub use start::{StartError, Started};
pub use status::{AgentSignal, AttemptStatus, ExitRecord, Signalled};
pub use survey::{AgentEnd, OutputFile, RunProcess, StopReport, Survey};
