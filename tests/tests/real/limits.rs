//! Turns, continues, and agents that get nowhere.

use bursar_testkit::{Script, Step, on_every_version};
use serde_json::json;

use crate::rig::{Rig, list, word};

#[test]
fn the_turn_limit_is_continued_in_one_process_three_times_and_then_exhausted() {
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::shell("echo step >> steps").forever()));
        let ran = rig.run(&["--max-turns", "3"], "never stop");
        let finished = ran.ended("exhausted", 4);
        let expected = ["continue/max_turns", "continue/max_turns", "continue/max_turns", "finish/max_turns"];
        assert_eq!(ran.decisions(), expected, "{ran}");
        assert_eq!(list(&finished, "attempts").len(), 1, "one process");
        assert_eq!(list(&finished, "replies").len(), 4);
        assert_eq!(finished["continues"], json!({"used": 3, "limit": 3}));
        assert_eq!(finished["turns"], json!({"budget": 3, "spent": 4, "total": 16}));
        let continued = ran.decided("continue/max_turns");
        assert!(word(&continued, "message").contains("used 4 of 3 turns"), "{continued}");
        assert_eq!(rig.told("used 4 of 3 turns").len(), 3);
        assert_eq!(rig.text_of("steps").lines().count(), 12);
    });
}

#[test]
fn a_turn_limit_from_elsewhere_is_told_as_one_and_never_answered_with_a_larger_budget() {
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::shell("echo step >> steps").forever()));
        let mut command = rig.run_command(&["--continues", "1"]);
        command.args(["never stop", "--", "--max-turns", "2"]);
        let ran = crate::going::Going::begin(&mut command).finish();
        let finished = ran.ended("exhausted", 4);
        assert_eq!(ran.decisions(), ["continue/max_turns", "finish/max_turns"], "{ran}");
        for text in [word(&finished, "message"), word(&ran.decided("continue/max_turns"), "message")] {
            assert!(text.contains("after 3 turns") && text.contains("the limit is not ours"), "{text}");
            assert!(text.contains("settings") && text.contains("hooks"), "{text}");
        }
        assert!(
            !ran.out().contains("raise --max-turns") && !ran.stderr.contains("raise --max-turns"),
            "{ran}"
        );
        assert_eq!(rig.told("though this run allows 50").len(), 1, "{:?}", rig.model.exchanges());
    });
}

#[test]
fn a_success_on_the_last_allowed_continue_is_done() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::shell("echo step >> steps").times(4))
            .then(Step::text("all four steps are done"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&["--max-turns", "2", "--continues", "2"], "do four steps");
        let finished = ran.ended("done", 0);
        assert_eq!(finished["continues"], json!({"used": 2, "limit": 2}), "{ran}");
        assert_eq!(ran.decisions(), ["continue/max_turns", "continue/max_turns", "finish/settled"]);
        assert_eq!(word(&finished, "text"), "all four steps are done");
    });
}

#[test]
fn an_agent_that_answers_nothing_is_given_up_for_want_of_progress() {
    on_every_version(|version| {
        let rig = Rig::impatient(version, Script::new().then(Step::empty().forever()));
        let ran = rig.run(&[], "say something");
        let finished = ran.ended("exhausted", 4);
        assert_eq!(word(&finished, "reason"), "no_progress", "{ran}");
        assert_eq!(finished["continues"], json!({"used": 2, "limit": 3}), "{ran}");
    });
}
