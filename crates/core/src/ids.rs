//! The names of things: runs, attempts, messages, sessions.
//!
//! Ids that bursar hands out are derived from the run's seed, so that a fold repeated after a crash names the same
//! things alike: a resent message keeps its id, and the agent drops what it has already seen (captures p-dup-uuid).

use std::fmt;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// One request, from its prompt to its outcome: 8 letters and digits.
    RunId
}
text_id! {
    /// The agent's own conversation id (a UUID).
    SessionId
}
text_id! {
    /// The id of one message to the agent (a UUID), followed through its life-cycle events.
    MessageId
}

impl SessionId {
    /// Returns the id if it can be one. It comes from the agent and goes into an argument list and into hints that people
    /// paste, so it is letters, digits, `-` and `_` only, and is no option.
    #[must_use]
    pub fn told(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (plain && (1..=100).contains(&text.len()) && !text.starts_with('-')).then(|| Self(text.to_owned()))
    }
}

/// One agent process that serves a run, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u32);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A source of UUIDs that gives the same sequence for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct IdSource {
    seed: u64,
    drawn: u64,
}

impl IdSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Returns the next id in the textual form of a version 4 UUID (RFC 9562, section 5.4).
    pub(crate) fn uuid(&mut self) -> String {
        let high = self.word();
        let low = self.word();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48 & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// SplitMix64: each output is a fixed mix of the seed and a counter.
    fn word(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut z = self.seed.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_ids_and_each_is_a_version_4_uuid() {
        let (mut a, mut b, mut other) = (IdSource::new(7), IdSource::new(7), IdSource::new(8));
        for _ in 0..64 {
            let id = a.uuid();
            assert_eq!(id, b.uuid());
            assert_ne!(id, other.uuid());
            assert_eq!(id.len(), 36);
            assert_eq!(&id[14..15], "4");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }
}
