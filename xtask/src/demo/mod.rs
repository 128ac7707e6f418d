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

/// What is shown of a decision in the log.
const FIELDS: [&str; 9] = [
    "reason",
    "turn_budget",
    "turns_spent",
    "turns_spent_total",
    "continues_used",
    "nudges_used",
    "nudges_limit",
    "debt",
    "cost_usd",
];

pub(crate) fn run() -> Outcome {
    let mut setup = Steps::default();
    let ready = setup.run("needs", "cargo xtask needs", needs::run)
        && setup.run("agents", "cargo xtask agents", agents::run)
        && setup.run("build", "cargo build --package bursar", || {
            println!("    building bursar (debug), about a minute the first time");
            status(cargo().args(["build", "--quiet", "--package", "bursar"]))
        });
    if !ready {
        return setup.finish();
    }
    walks_away_and_is_held()?;
    never_collects()?;
    narrate(
        "Both runs ended as they should. What was shown: the same agent left work running in the background twice. \
         Once its result was collected, and only then was the run `done`; once it was not, and the run was `stranded`, \
         naming the work and how it ended. Every decision is in the log with what it cost.",
    );
    println!(
        "\nNext, with your own agent and key:\n\n    cargo install --path crates/cli\n    cd your/project\n    \
         bursar run --permissions acceptEdits \"Fix the failing test, and run the whole suite.\""
    );
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

    let requests = stage.model().main_requests();
    check("exit code", word(ended.code), DONE)?;
    holds("the build ran to its end", stage.made("built"))?;
    check("requests to the model", requests.len(), 4)?;
    holds("the model was told of the build's end", requests[2].notified())?;
    stage.model().assert_no_faults();
    stage.show(&ended)?;
    let shown = stage.shown(&ended)?;
    check("outcome", text(&shown["outcome"]), "done")?;
    check("background tasks still owed", &shown["finished"]["debt"], 0)?;
    check("nudges used", &shown["finished"]["nudges"]["used"], 0)?;
    plainly("though up to version 2.1.291 it kills the build 5 seconds after the turn");
    Ok(())
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

    check("exit code", word(ended.code), STRANDED)?;
    stage.show(&ended)?;
    let shown = stage.shown(&ended)?;
    check("outcome", text(&shown["outcome"]), "stranded")?;
    check("background tasks still owed", &shown["finished"]["debt"], 1)?;
    check("nudges used", &shown["finished"]["nudges"]["used"], 1)?;
    let told = shown["finished"]["survivors"].as_array().map_or(0, Vec::len);
    check("processes that still run, as told and as found", told, stage.left_running())?;
    plainly("without a word about the job that nobody looked at");
    narrate("Each decision is one record of the log, with the budget and what was spent:");
    let decisions = ended.decisions()?;
    for decision in &decisions {
        println!("\n  {}: {}", text(&decision["action"]), text(&decision["message"]));
        for field in FIELDS {
            println!("    {field:<17} {}", text(&decision[field]));
        }
    }
    println!();
    let nudged = decisions.iter().any(|decision| decision["action"] == "nudge");
    holds("the log tells of the nudge", nudged)
}

fn narrate(text: &str) {
    let mut line = "#".to_owned();
    println!();
    for word in text.split_whitespace() {
        if line.len() + word.len() >= 100 {
            println!("{line}");
            line = "#".to_owned();
        }
        line = format!("{line} {word}");
    }
    println!("{line}");
}

/// Says what the agent alone would have said.
fn plainly(and: &str) {
    println!("\n  Plain `claude -p` would have reported \"success\" here, {and}.");
}

/// Says that something is so; if it is not, that ends the demo.
fn holds(what: &str, is_so: bool) -> Outcome {
    if !is_so {
        return Err(format!("{what}: that is not so").into());
    }
    println!("  ok: {what}");
    Ok(())
}

fn word(code: Option<i32>) -> String {
    code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

/// Returns a value as people write it: text without quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Compares what came with what should have come; a difference ends the demo.
fn check(what: &str, found: impl ToString, expected: impl ToString) -> Outcome {
    let (found, expected) = (found.to_string(), expected.to_string());
    if found == expected {
        println!("  ok: {what} {found}");
        return Ok(());
    }
    Err(format!("{what}: {found}, but it should be {expected}").into())
}
