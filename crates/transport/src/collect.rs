//! Removing what finished runs left on a host.

use std::time::Duration;

use crate::HostError;
use crate::exchange::exchange;
use crate::holder::Holder;
use crate::name::Name;
use crate::script::Script;

/// What [`Holder::gc`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcReport {
    /// The runs that were removed.
    pub removed: Vec<String>,
    /// The runs that are old enough or not, but have something alive: an agent, or what it left running.
    pub living: Vec<String>,
}

impl Holder {
    /// Removes the folders of runs that ended at least `older_than` ago (whole days where no record tells
    /// when), never one of which anything lives, nor one in `keep`.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the host goes on with it.
    pub async fn gc(&self, older_than: Duration, keep: &[Name]) -> Result<GcReport, HostError> {
        let mut header = format!("{}\n", older_than.as_secs());
        for run in keep {
            header.push_str(run.as_str());
            header.push('\n');
        }
        header.push_str(".\n");
        let answer = exchange(self.host().as_ref(), Script::Collect, header.as_bytes(), &[]).await?;
        let names = |word| answer.all(word).map(str::to_owned).collect();
        Ok(GcReport { removed: names("removed"), living: names("living") })
    }
}
