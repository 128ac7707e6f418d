//! What people see of a run: single lines, the live view, the summary. Text in, text out; `output.rs` writes it.

pub(crate) mod background;
pub(crate) mod lines;
pub(crate) mod screen;
pub(crate) mod summary;
pub(crate) mod view;

use bursar_runner::Used;

/// Writes an amount of US dollars.
pub(crate) fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { "<$0.01".to_owned() } else { format!("${amount:.2}") }
}

/// Writes `1/3`.
pub(crate) fn used(used: Used) -> String {
    format!("{}/{}", used.used, used.limit)
}

/// Writes `1 turn`, `2 turns`.
pub(crate) fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}
