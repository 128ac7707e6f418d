//! The exit codes, which scripts and boards rely on.

/// The run is done, or the command did what it was asked.
pub(crate) const DONE: u8 = 0;
/// The command was used wrongly.
pub(crate) const USAGE: u8 = 2;
/// Nothing was started.
pub(crate) const REFUSED: u8 = 5;
/// The run may still go on.
pub(crate) const LOST: u8 = 6;
/// bursar itself is wrong.
pub(crate) const BUG: u8 = 70;

/// The table shown by `bursar --help` and `bursar run --help`.
pub(crate) const TABLE: &str = "\
Exit codes of `run` and `attach`:
   0  done: the agent succeeded and owes nothing
   1  failed: the agent or its service failed in a way that trying again does not repair
   2  usage: the command line is wrong; nothing was started
   3  stranded: the agent succeeded, but left background work that was never collected
   4  exhausted: turns, continues, cost or time are used up
   5  refused: nothing was started; the host, its agent or the local store cannot be used
   6  lost: contact is lost, or was handed to the background; the agent may still run
   7  needs input: only a person can go on
   8  stopped: stopped on request
   9  limited: the account's limit does not end in time
  70  a bug in bursar";
