//! The pure half of bursar: events in, decisions out.
//!
//! Nothing in here reads a clock, the environment, a file or a socket; time is an argument ([`At`]) and every
//! outside fact is an [`Event`]. The one entry is [`Run::apply`]. Both transports feed it through the same loop,
//! so a run behaves alike wherever its agent lives.
//!
//! Read next: `event.rs` and `decision.rs` for the boundary, `run.rs` for the fold, `ladder.rs` for the table of
//! decisions, `background.rs` and `ledger.rs` for what is owed.
#![forbid(unsafe_code)]

pub mod agent;
pub mod background;
pub mod decision;
pub mod event;
pub mod fault;
pub mod ids;
pub mod instruction;
pub mod ladder;
pub mod ledger;
pub mod notice;
pub mod offline;
pub mod outcome;
pub mod phase;
pub mod policy;
pub mod reset;
pub mod run;
pub mod tally;
pub mod time;
pub mod wire;

pub use decision::Decision;
pub use event::Event;
pub use ids::{AttemptId, MessageId, RunId, SessionId};
pub use outcome::Outcome;
pub use phase::{Link, Phase};
pub use policy::Request;
pub use run::Run;
pub use time::At;
