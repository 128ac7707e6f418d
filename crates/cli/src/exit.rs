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
   0  done: the reply succeeded, and nothing is owed
   1  failed: the agent or its service failed in a way no continue repairs: sign-in, bad request
   2  usage: the command line or the configuration is wrong
   3  stranded: the reply succeeded, but background work was never settled
   4  exhausted: a budget is used up: continues, cost, time; or continues bring no progress
   5  refused: the host refused or could not be reached; nothing was started
   6  lost: contact is lost, or the run was handed to the background when its terminal closed; the
      agent may still run
   7  needs_input: only a person can go on (not in this version)
   8  stopped: stopped on request
   9  limited: the account's limit does not end in time
  70  a bug in bursar";
