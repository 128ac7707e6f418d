//! The debt ledger: what a run launched and has not settled.
//!
//! The reference rule counts tool calls ([`Reference`]; pinned by `fixtures/vectors/ledger.jsonl`). bursar pairs: a
//! harvest pays the launch whose id it names, and falls back to the reference rule only for a launch whose id never came.
//!
//! | event | effect |
//! | --- | --- |
//! | background work opens (a launch's result, the live set) | a debt under its id |
//! | the same id opens again (a message to a finished subagent) | a debt again |
//! | a flagged launch came back without an id, or never came back | an unpaired debt |
//! | a flagged launch came back as an error | nothing |
//! | a harvest names an id that is owed | that debt is settled, running or not |
//! | a harvest names an id that is settled | nothing |
//! | a harvest names an id nobody launched, an unpaired debt stands, first time for the id | one unpaired debt is settled |
//! | the same, without an unpaired debt | nothing: a surplus is never banked |
//! | an end the agent learns of, then a word or a call of the agent | that debt is settled |
//! | an end the agent learns of, then a reply that began after it, even a silent one | that debt is settled |
//! | an end by the agent's own exit, or guessed at resume | nothing |
//!
//! Debt belongs to the run, over all its attempts.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::{AgentEvent, Owner};
use crate::background::Change;

/// What is owed.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    debts: BTreeMap<String, Debt>,
    /// Flagged launches that were called and have not come back.
    calls: BTreeMap<String, Owner>,
    /// Owed work that ended in a way the agent learns of, and whether a reply began since; the agent has not spoken.
    untold: BTreeMap<String, bool>,
    unpaired: Reference,
    owed: u64,
    launched: u64,
    settled: u64,
}

#[derive(Debug, Clone)]
struct Debt {
    settled: bool,
    owner: Owner,
}

impl Ledger {
    /// Folds one event of the agent, with what it changed in the background table.
    pub fn apply(&mut self, event: &AgentEvent, changes: &[Change]) {
        match event {
            AgentEvent::ToolCalled { owner, id, call, .. } => {
                self.spoke(owner);
                if call.flagged_launch {
                    self.calls.insert(id.clone(), owner.clone());
                }
                if let Some(target) = &call.harvests {
                    self.harvest(target);
                }
            }
            AgentEvent::Text { owner, .. } => self.spoke(owner),
            AgentEvent::Began(_) => self.untold.values_mut().for_each(|began| *began = true),
            AgentEvent::Replied(reply) if !reply.is_error && !reply.is_empty() => self.replied(),
            AgentEvent::ToolReturned { id, is_error, launch, .. } => {
                if self.calls.remove(id).is_some() && !is_error && launch.is_none() {
                    self.launched += 1;
                    self.unpaired.launch();
                }
            }
            AgentEvent::ApiError { .. }
            | AgentEvent::LiveSet(_)
            | AgentEvent::Started { .. }
            | AgentEvent::Updated { .. }
            | AgentEvent::Notified(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::RateLimit(_)
            | AgentEvent::Lifecycle { .. }
            | AgentEvent::Prompted { .. }
            | AgentEvent::Interrupted
            | AgentEvent::Denied { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::Withdrawn { .. }
            | AgentEvent::ControlAnswered { .. }
            | AgentEvent::Replied(_)
            | AgentEvent::Other => {}
        }
        self.changed(changes);
    }

    /// Folds changes of the background table that no event of the agent brought.
    pub fn changed(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Opened { id, owner } => {
                    self.untold.remove(id);
                    if self.debts.get(id).is_none_or(|debt| debt.settled) {
                        self.owe(id, owner);
                    }
                }
                Change::Ended { id, tellable: true } if self.owes(id) => {
                    self.untold.entry(id.clone()).or_insert(false);
                }
                Change::Ended { id, .. } => {
                    self.untold.remove(id);
                }
                Change::Touched { .. } => {}
            }
        }
    }

    /// The agent's process ended: a flagged launch that never came back may have begun, so it is owed.
    pub fn process_ended(&mut self, began_by_call: impl Fn(&str) -> Option<String>) {
        for (call, owner) in std::mem::take(&mut self.calls) {
            match began_by_call(&call) {
                Some(id) if !self.debts.contains_key(&id) => self.owe(&id, &owner),
                Some(_) => {}
                None => {
                    self.launched += 1;
                    self.unpaired.launch();
                }
            }
        }
        self.untold.clear();
    }

    /// Returns how many launches are not settled.
    #[must_use]
    pub fn debt(&self) -> u64 {
        self.unpaired.debt() + self.owed
    }

    /// Returns how many launches were counted.
    #[must_use]
    pub fn launched(&self) -> u64 {
        self.launched
    }

    /// Returns how many launches were settled.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Whether the background task of this id is owed.
    #[must_use]
    pub fn owes(&self, id: &str) -> bool {
        self.debts.get(id).is_some_and(|debt| !debt.settled)
    }

    /// Whether the background task of this id was launched and is settled.
    #[must_use]
    pub fn is_settled(&self, id: &str) -> bool {
        self.debts.get(id).is_some_and(|debt| debt.settled)
    }

    /// Whether owed work has ended in a way the agent learns of, and it has not spoken since.
    #[must_use]
    pub fn any_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Returns how many owed launches never told their id.
    #[must_use]
    pub fn unpaired(&self) -> u64 {
        self.unpaired.debt()
    }

    fn harvest(&mut self, target: &str) {
        match self.debts.get(target) {
            Some(_) => self.settle(target),
            None => {
                if self.unpaired.harvest(target) {
                    self.settled += 1;
                }
            }
        }
    }

    /// The agent said or did something: it has learned of the ends before that.
    fn spoke(&mut self, by: &Owner) {
        if self.untold.is_empty() {
            return;
        }
        for (id, began) in std::mem::take(&mut self.untold) {
            if *by == Owner::Main || self.debts.get(&id).is_some_and(|debt| debt.owner == *by) {
                self.settle(&id);
            } else {
                self.untold.insert(id, began);
            }
        }
    }

    /// A reply ended well. One that said its last word before the work ended did not learn of the end.
    fn replied(&mut self) {
        for (id, began) in std::mem::take(&mut self.untold) {
            if began {
                self.settle(&id);
            } else {
                self.untold.insert(id, began);
            }
        }
    }

    fn owe(&mut self, id: &str, owner: &Owner) {
        self.launched += 1;
        self.owed += 1;
        self.debts.insert(id.to_owned(), Debt { settled: false, owner: owner.clone() });
    }

    fn settle(&mut self, id: &str) {
        if let Some(debt) = self.debts.get_mut(id)
            && !debt.settled
        {
            debt.settled = true;
            self.owed -= 1;
            self.settled += 1;
        }
    }
}

/// The reference rule: a count, and the ids that have paid.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    debt: u64,
    seen: BTreeSet<String>,
}

impl Reference {
    /// Counts a launch.
    pub fn launch(&mut self) {
        self.debt += 1;
    }

    /// Counts a harvest of `id` and returns whether it paid a debt. An id pays once; without a debt nothing is banked,
    /// and the id is spent all the same.
    pub fn harvest(&mut self, id: &str) -> bool {
        if !self.seen.insert(id.to_owned()) || self.debt == 0 {
            return false;
        }
        self.debt -= 1;
        true
    }

    /// Returns the debt.
    #[must_use]
    pub fn debt(&self) -> u64 {
        self.debt
    }

    /// Returns the ids that were harvested.
    pub fn seen(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }
}
