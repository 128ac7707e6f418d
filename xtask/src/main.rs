//! Project chores: `cargo xtask test` is the whole gate, `cargo xtask demo` the product at work.
//!
//! Each chore is a module; `gate` puts them in order and `step` runs and times them. Every step of the gate can be run
//! alone by the command printed beside it. Nothing here is shipped, and nothing here knows the product's crates: the
//! demo runs the built binary as a user would.

#![expect(clippy::print_stdout, reason = "a chore talks to the person who runs it")]
#![expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod agents;
mod bench;
mod demo;
mod gate;
mod licences;
mod model;
mod needs;
mod step;
mod tidy;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a chore ends with.
type Outcome = Result<(), Box<dyn Error>>;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Chores of this project", disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Install what is missing and run the whole gate: format, lints, tests, documents, tidy, licences
    #[command(visible_alias = "ci")]
    Test,
    /// Show the main job with the real agent and a scripted model
    Demo,
    /// Install the pinned agent versions into target/agents
    Agents,
    /// Say which programs the tests need, and install them where that is possible
    Needs,
    /// Check the project's own rules
    Tidy,
    /// Check that every dependency comes from the registry under a licence of deny.toml
    Licences,
    /// Compare speed with what the project promises
    Bench {
        /// Run only the benchmarks whose name contains this
        filter: Option<String>,
    },
    /// Serve a model script on loopback until the input ends
    Model {
        /// The script, as JSON
        #[arg(long)]
        script: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().chore {
        Chore::Test => gate::run(),
        Chore::Demo => demo::run(),
        Chore::Agents => agents::run(),
        Chore::Needs => needs::run(),
        Chore::Tidy => tidy::run(),
        Chore::Licences => licences::run(),
        Chore::Bench { filter } => bench::run(filter.as_deref()),
        Chore::Model { script } => model::run(&script),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(source) = cause {
                eprintln!("  caused by: {source}");
                cause = source.source();
            }
            ExitCode::FAILURE
        }
    }
}
