//! `bursar attach`: shows a run from its beginning, and goes on with it if nobody else does.

use bursar_core::RunId;
use clap::Args;

use crate::args::{RunName, RunOutput};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{End, Role, Session};
use crate::signals::Wish;
use crate::{driver, exit, hosts, state};

/// Show a run from its beginning and follow it to its end
///
/// If nobody drives the run any more, because its process was killed or the machine slept, this one takes over. Ctrl-C
/// leaves the run alone. The exit code is that of the run.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    name: RunName,
    /// How the run is shown
    #[arg(long, value_name = "FORM", default_value = "human", env = "BURSAR_OUTPUT", hide_env_values = true)]
    output: RunOutput,
    /// Drive the run without a terminal
    #[arg(long, hide = true)]
    background: bool,
}

impl AttachArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        let (store, run) = state::find(&self.name.run)?;
        if self.background {
            let left = driver::leave_terminal(&store, &run)
                .map_err(|error| Failure::new(exit::LOST, "cannot leave the terminal").caused_by(&error))?;
            if !left {
                return Ok(exit::DONE);
            }
        }
        let context = hosts::context(store);
        let session = Session {
            context: &context,
            run: &run,
            output,
            kind: Some(self.output),
            role: Role::Visitor,
            ask: None,
        };
        Ok(end_code(session.follow().await?, Role::Visitor, &run, output))
    }
}

/// Returns the exit code for how following a run ended, and says how to get back to a run that goes on.
pub(crate) fn end_code(end: End, role: Role, run: &RunId, output: &Output) -> u8 {
    match end {
        End::Over(finished) => finished.exit_code,
        End::Left(wish) => {
            output.note(&format!(
                "left run {run}, which goes on; `bursar attach {run}` shows it again, `bursar stop {run}` stops it"
            ));
            match (role, wish) {
                (Role::Visitor, Wish::Interrupt | Wish::Terminate | Wish::HangUp) => exit::DONE,
                // Whoever asked for the run's outcome did not get it.
                (Role::Owner, Wish::Interrupt | Wish::Terminate | Wish::HangUp) => exit::LOST,
            }
        }
    }
}
