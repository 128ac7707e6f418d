//! Background work: held for, collected, nudged about, or stranded; never forgotten.

use bursar_testkit::{Script, Step, on_every_version};

use crate::rig::Rig;

#[test]
fn an_obedient_agent_is_done_without_a_nudge() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 1; echo built > built"))
            .then(Step::until_notified("sleep 0.2"))
            .then(Step::read_background_output())
            .then(Step::text("all is built"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert_eq!(finished["nudges"]["used"], 0, "{ran}");
        assert_eq!(finished["debt"], 0);
        assert_eq!(finished["attempts"].as_array().unwrap().len(), 1);
        assert!(rig.made("built"));
    });
}

#[test]
fn a_walk_away_is_held_until_its_shell_has_run_to_its_end() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 30; echo built > built"))
            .then(Step::text("I will wait for it"))
            .then(Step::text("it has finished"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert!(rig.made("built"), "{ran}");
        assert_eq!(finished["nudges"]["used"], 0);
        assert_eq!(finished["attempts"].as_array().unwrap().len(), 1, "one process");
        assert_eq!(ran.decisions(), ["hold/background_running", "finish/settled"]);
        assert_eq!(finished["background"][0]["state"], "done");
        assert_eq!(finished["background"][0]["exit"], 0);
    });
}
