//! One file a command: its arguments and what it does.

pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod fold;
pub(crate) mod gc;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod stop;
