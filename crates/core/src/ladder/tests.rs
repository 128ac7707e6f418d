//! One test a row, and an oracle that reads the table as data.

use proptest::prelude::*;

use super::*;

const NOW: At = At(1_000_000_000);

fn clean() -> Facts {
    Facts {
        stop_asked: false,
        fault: None,
        running: false,
        debt: 0,
        hold_left: true,
        spent: Spent::default(),
        over_budget: None,
        now: NOW,
    }
}

fn faulty(fault: Fault) -> Facts {
    Facts { fault: Some(fault), ..clean() }
}

#[track_caller]
fn check(facts: &Facts, step: Step, reason: &str) {
    assert_eq!(
        decide(facts, &Limits::default()),
        Verdict { step, reason: decide(facts, &Limits::default()).reason }
    );
    assert_eq!(decide(facts, &Limits::default()).reason, reason);
}

#[test]
fn a_stop_comes_before_everything() {
    check(&Facts { stop_asked: true, ..faulty(Fault::SignIn) }, Step::Finish(Ending::Stopped), "user_stop");
    check(&Facts { stop_asked: true, ..clean() }, Step::Finish(Ending::Stopped), "user_stop");
}

#[test]
fn a_clean_reply_with_nothing_owed_is_done() {
    check(&clean(), Step::Finish(Ending::Done), "settled");
}

#[test]
fn a_clean_reply_is_done_even_when_every_budget_is_spent() {
    let spent = Spent { continues: 3, nudges: 1, waits: 3, backoffs: 5, restarts: 1, idle_continues: 2 };
    check(
        &Facts { spent, over_budget: Some(OverBudget::Cost), ..clean() },
        Step::Finish(Ending::Done),
        "settled",
    );
}

#[test]
fn work_that_runs_is_held_for_and_costs_nothing() {
    check(&Facts { running: true, debt: 1, ..clean() }, Step::Hold, "background_running");
    check(&Facts { running: true, debt: 0, ..clean() }, Step::Hold, "background_running");
}

#[test]
fn debt_left_after_the_hold_is_nudged_once() {
    check(&Facts { debt: 2, ..clean() }, Step::Nudge, "debt");
    check(&Facts { debt: 2, running: true, hold_left: false, ..clean() }, Step::Nudge, "debt");
}

#[test]
fn debt_left_after_the_nudge_is_stranded() {
    let spent = Spent { nudges: 1, ..Spent::default() };
    check(&Facts { debt: 1, spent, ..clean() }, Step::Finish(Ending::Stranded), "nudge_spent");
}

#[test]
fn work_that_was_looked_at_does_not_strand_a_run_after_the_hold() {
    check(&Facts { running: true, hold_left: false, ..clean() }, Step::Finish(Ending::Done), "looked_at");
}

#[test]
fn a_limit_that_resets_in_time_is_waited_for() {
    let resets = |secs| Fault::Limit { resets: Some(NOW.after(Duration::from_secs(secs))), weekly: false };
    check(&faulty(resets(3)), Step::Wait { until: NOW.after(Duration::from_secs(10)) }, "limit");
    check(&faulty(resets(600)), Step::Wait { until: NOW.after(Duration::from_secs(602)) }, "limit");
    check(
        &faulty(Fault::Limit { resets: None, weekly: false }),
        Step::Wait { until: NOW.after(UNNAMED_WAIT) },
        "limit",
    );
    // A reset in the past: the service says it is over, but refused us all the same.
    let past = Fault::Limit { resets: Some(At(1)), weekly: false };
    check(&faulty(past), Step::Wait { until: NOW.after(SHORTEST_WAIT) }, "limit");
}

#[test]
fn a_limit_that_is_far_weekly_or_waited_for_often_ends_the_run() {
    let far = Fault::Limit { resets: Some(NOW.after(Duration::from_secs(7200))), weekly: false };
    check(&faulty(far), Step::Finish(Ending::Limited), "limit");
    let weekly = Fault::Limit { resets: Some(NOW.after(Duration::from_secs(3))), weekly: true };
    check(&faulty(weekly), Step::Finish(Ending::Limited), "limit");
    let spent = Spent { waits: 3, ..Spent::default() };
    let near = Fault::Limit { resets: None, weekly: false };
    check(&Facts { spent, ..faulty(near) }, Step::Finish(Ending::Limited), "limit");
}

#[test]
fn an_overloaded_service_is_backed_off_from_five_times() {
    for (used, seconds) in [(0, 20), (1, 30), (2, 40), (3, 50), (4, 60)] {
        let spent = Spent { backoffs: used, ..Spent::default() };
        let until = NOW.after(Duration::from_secs(seconds));
        check(&Facts { spent, ..faulty(Fault::Overloaded) }, Step::Backoff { until }, "overloaded");
    }
    let spent = Spent { backoffs: 5, ..Spent::default() };
    check(&Facts { spent, ..faulty(Fault::Overloaded) }, Step::Finish(Ending::Exhausted), "overloaded");
}

#[test]
fn what_no_continue_repairs_fails_at_once() {
    check(&faulty(Fault::SignIn), Step::Finish(Ending::Failed), "sign_in");
    check(&faulty(Fault::BadRequest), Step::Finish(Ending::Failed), "bad_request");
    check(&faulty(Fault::AgentRefused), Step::Finish(Ending::Failed), "agent_refused");
}

#[test]
fn an_unknown_session_is_started_afresh_once() {
    check(&faulty(Fault::SessionUnknown), Step::Restart, "session_unknown");
    let spent = Spent { restarts: 1, continues: 1, ..Spent::default() };
    check(
        &Facts { spent, ..faulty(Fault::SessionUnknown) },
        Step::Finish(Ending::Exhausted),
        "session_unknown",
    );
}

#[test]
fn a_used_up_budget_ends_the_run_before_anything_is_spent() {
    for fault in [Fault::MaxTurns, Fault::NoResult, Fault::Overloaded, Fault::SessionUnknown] {
        let facts = Facts { over_budget: Some(OverBudget::Cost), ..faulty(fault) };
        check(&facts, Step::Finish(Ending::Exhausted), "cost");
    }
    let owing = Facts { debt: 1, running: true, over_budget: Some(OverBudget::Time), ..clean() };
    check(&owing, Step::Finish(Ending::Exhausted), "timeout");
    check(&faulty(Fault::Budget), Step::Finish(Ending::Exhausted), "agent_budget");
}

#[test]
fn a_stop_short_is_continued_three_times() {
    for fault in [Fault::MaxTurns, Fault::Execution, Fault::EmptyReply, Fault::NoResult] {
        let reason = fault.reason();
        for continues in 0..3 {
            let spent = Spent { continues, ..Spent::default() };
            check(&Facts { spent, ..faulty(fault.clone()) }, Step::Continue, reason);
        }
        let spent = Spent { continues: 3, ..Spent::default() };
        check(&Facts { spent, ..faulty(fault) }, Step::Finish(Ending::Exhausted), reason);
    }
}

#[test]
fn two_continues_without_a_tool_call_are_no_progress() {
    let spent = Spent { continues: 2, idle_continues: 2, ..Spent::default() };
    check(&Facts { spent, ..faulty(Fault::MaxTurns) }, Step::Finish(Ending::Exhausted), "no_progress");
}

/// The table once more, as rows of data in order, with every condition written out from the design's words.
fn oracle(f: &Facts, l: &Limits) -> Action {
    let clean = f.fault.is_none();
    let is = |faults: &[&str]| f.fault.as_ref().is_some_and(|fault| faults.contains(&fault.reason()));
    let affordable = f.over_budget.is_none();
    let waitable = match &f.fault {
        Some(Fault::Limit { weekly: true, .. }) => false,
        Some(Fault::Limit { resets: Some(at), .. }) => {
            at.0.saturating_sub(f.now.0) + 2000 <= l.max_wait.as_millis() as u64
        }
        Some(_) | None => true,
    };
    let stopping_short = is(&["max_turns", "execution_error", "empty_reply", "no_result"]);
    let rows: [(bool, Action); 14] = [
        (f.stop_asked, Action::Finish),
        (clean && !f.running && f.debt == 0, Action::Finish),
        (clean && f.running && f.hold_left && affordable, Action::Hold),
        (clean && f.debt > 0 && f.spent.nudges < l.nudges && affordable, Action::Nudge),
        (clean && f.debt > 0, Action::Finish),
        (clean, Action::Finish),
        (is(&["limit"]) && waitable && f.spent.waits < l.waits && affordable, Action::Wait),
        (is(&["limit"]), Action::Finish),
        (is(&["overloaded"]) && f.spent.backoffs < l.backoffs && affordable, Action::Backoff),
        (is(&["sign_in", "bad_request", "agent_refused"]), Action::Finish),
        (
            is(&["session_unknown"]) && f.spent.restarts < 1 && f.spent.continues < l.continues && affordable,
            Action::Restart,
        ),
        (!affordable || is(&["agent_budget"]), Action::Finish),
        (stopping_short && f.spent.continues < l.continues && f.spent.idle_continues < 2, Action::Continue),
        (true, Action::Finish),
    ];
    rows.into_iter().find(|(matches, _)| *matches).map(|(_, action)| action).unwrap()
}

fn any_fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        Just(None),
        (proptest::option::of(0u64..20_000), any::<bool>()).prop_map(|(ahead, weekly)| {
            Some(Fault::Limit { resets: ahead.map(|s| NOW.after(Duration::from_secs(s))), weekly })
        }),
        proptest::sample::select(vec![
            Fault::Overloaded,
            Fault::SignIn,
            Fault::BadRequest,
            Fault::AgentRefused,
            Fault::SessionUnknown,
            Fault::Budget,
            Fault::MaxTurns,
            Fault::Execution,
            Fault::EmptyReply,
            Fault::NoResult,
        ])
        .prop_map(Some),
    ]
}

proptest! {
    #[test]
    fn the_function_and_the_table_agree(
        stop_asked in proptest::bool::weighted(0.1),
        fault in any_fault(),
        running: bool,
        debt in 0u64..3,
        hold_left: bool,
        spent in (0u32..5, 0u32..3, 0u32..5, 0u32..7, 0u32..3, 0u32..4),
        over in proptest::option::weighted(0.2, proptest::sample::select(vec![OverBudget::Cost, OverBudget::Time])),
    ) {
        let (continues, nudges, waits, backoffs, restarts, idle_continues) = spent;
        let spent = Spent { continues, nudges, waits, backoffs, restarts, idle_continues };
        let facts = Facts { stop_asked, fault, running, debt, hold_left, spent, over_budget: over, now: NOW };
        let limits = Limits::default();
        let verdict = decide(&facts, &limits);
        prop_assert_eq!(verdict.step.action(), oracle(&facts, &limits));
        // Only a clean reply that owes nothing, or whose debts were all looked at, is done.
        if verdict.step == Step::Finish(Ending::Done) {
            prop_assert!(facts.fault.is_none() && facts.debt == 0 && !facts.stop_asked);
        }
    }
}
