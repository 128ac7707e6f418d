//! Placeholder; the crate is written next.
