//! A model that answers from a script: the Anthropic Messages API on loopback, for the real agent CLI.
//!
//! [`Script`] says what to answer, [`ModelServer`] answers it and remembers what each request carried, so that a test
//! can assert that the model received these exact bytes. `route` tells the conversations apart, `sse` writes an answer
//! as the API streams it. It binds 127.0.0.1 only and ends, with all its connections, when dropped.

mod answer;
mod body;
mod gate;
mod log;
mod play;
mod request;
mod route;
mod script;
mod server;
mod sse;

pub use answer::{Answer, Block, HttpFault, Message, StopReason, Usage};
pub use gate::Gate;
pub use log::{Exchange, TooFew};
pub use request::ModelRequest;
pub use route::Route;
pub use script::{Choice, Script, Step};
pub use server::{ModelError, ModelServer};
