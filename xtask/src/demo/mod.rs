//! The demo: the main job with the real agent, twice, checked.
//!
//! A scripted model on loopback stands in for the real one, so it costs nothing, needs no account and says the same
//! thing each time; the agent CLI, its shells and the product are real. First an agent that walks away from a build and
//! is held until it finishes, then one that never collects what it started. `stage` sets one run up and looks at what
//! it left behind; what should come of it is checked here, and a difference fails the demo.

mod stage;

use bursar_testkit::{Script, Step};
use serde_json::Value;

use self::stage::Stage;
use crate::step::{Steps, cargo, status};
use crate::{Outcome, agents, needs};

/// Exit codes of the product.
const DONE: i32 = 0;
const STRANDED: i32 = 3;

pub(crate) fn run() -> Outcome {
    let mut setup = Steps::default();
    let ready = setup.run("needs", "cargo xtask needs", needs::run)
        && setup.run("agents", "cargo xtask agents", agents::run)
        && setup.run("build", "cargo build --package bursar", || {
            status(cargo().args(["build", "--quiet", "--package", "bursar"]))
        });
    if !ready {
        return setup.finish();
    }
    walks_away_and_is_held()?;
    never_collects()?;
    println!("\nBoth runs ended as they should.");
    Ok(())
}

/// The agent ends its turn with a build still running. Left alone, that build would be lost or its result never told.
fn walks_away_and_is_held() -> Outcome {
    narrate(
        "1. An agent starts a build of 8 seconds in the background and ends its turn. bursar holds its input open; \
         when the build ends, the agent wakes by itself, reads the output, and only then is the run done.",
    );
    let script = Script::new()
        .then(
            Step::background_shell("sleep 8; echo done > built; echo build ok").saying("I start the build."),
        )
        .then(Step::text("The build runs in the background."))
        .then(Step::read_background_output())
        .then(Step::text("The build has finished: ok."));
    let stage = Stage::set(script)?;

    let ended = stage.run(&["--max-turns", "10"], "Build the project.")?;

    check("exit code", &ended.code, &Some(DONE))?;
    check("the build ran to its end", &stage.made("built"), &true)?;
    check("requests the model got", &stage.model().main_requests().len(), &4)?;
    check("the model was told of the end", &stage.model().main_requests()[2].notified(), &true)?;
    stage.model().assert_no_faults();
    stage.show(&ended)?;
    let shown = stage.shown(&ended)?;
    check("outcome", &shown["outcome"], &Value::from("done"))?;
    check("background tasks still owed", &shown["finished"]["debt"], &Value::from(0))?;
    check("nudges used", &shown["finished"]["nudges"]["used"], &Value::from(0))
}

/// The agent leaves something behind for good. A run that ends so must not look like a success.
fn never_collects() -> Outcome {
    narrate(
        "2. An agent starts something that outlives the hold, here 5 seconds, and never looks at it again. bursar \
         reminds it once, and then says what is still owed: the run is stranded.",
    );
    let script = Script::new()
        .then(Step::background_shell("sleep 45; echo late > late").saying("I start a long job."))
        .then(Step::text("There is nothing more to do.").forever());
    let stage = Stage::set(script)?;

    let ended = stage.run(&["--max-turns", "10", "--hold", "5s"], "Do the long job.")?;

    check("exit code", &ended.code, &Some(STRANDED))?;
    stage.show(&ended)?;
    let shown = stage.shown(&ended)?;
    check("outcome", &shown["outcome"], &Value::from("stranded"))?;
    check("background tasks still owed", &shown["finished"]["debt"], &Value::from(1))?;
    check("nudges used", &shown["finished"]["nudges"]["used"], &Value::from(1))?;
    let told = shown["finished"]["survivors"].as_array().map_or(0, Vec::len);
    check("processes that still run, as told and as found", &told, &stage.left_running())?;
    narrate("Each decision is one line of the log, with the budget and what was spent:");
    let decisions = ended.decisions()?;
    for decision in &decisions {
        println!("{decision}");
    }
    check("the log tells of the nudge", &decisions.iter().any(|line| line.contains("nudge")), &true)
}

fn narrate(text: &str) {
    println!("\n# {text}");
}

/// Compares what came with what should have come; a difference ends the demo.
fn check<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected {
        println!("  ok: {what}: {found:?}");
        return Ok(());
    }
    Err(format!("{what}: {found:?}, but it should be {expected:?}").into())
}
