//! The whole gate, the same on a laptop and on the server.
//!
//! What the machine lacks is settled first, since everything after it depends on it. All further steps run whatever
//! became of the ones before, so that one run tells everything that is wrong.

use crate::step::{Steps, on_path};
use crate::{Outcome, agents, licences, needs, tidy};

pub(crate) fn run() -> Outcome {
    let mut steps = Steps::default();
    if !steps.run("needs", "cargo xtask needs", needs::run)
        || !steps.run("agents", "cargo xtask agents", agents::run)
    {
        return steps.finish();
    }
    steps.cargo("format", &["fmt", "--all", "--check"], &[]);
    steps.cargo("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]);
    steps.cargo("tests", &["test", "--workspace", "--no-fail-fast"], &[]);
    steps.cargo("documents", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")]);
    steps.run("tidy", "cargo xtask tidy", tidy::run);
    steps.run("licences", "cargo xtask licences", licences::run);
    if on_path("cargo-deny") {
        // Advisories are left out: they need a database from the network, and change without a change here.
        steps.cargo("deny", &["deny", "check", "bans", "licenses", "sources"], &[]);
    } else {
        println!(
            "\n=== deny: skipped, cargo-deny is not installed; `licences` has checked licences and sources by itself \
             (`cargo install cargo-deny --locked` takes some minutes and adds duplicates and, with `cargo deny check \
             advisories`, known vulnerabilities)"
        );
    }
    steps.finish()
}
