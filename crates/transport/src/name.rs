//! Names that become names of files on a host, and so have a small alphabet.

use std::fmt;
use std::str::FromStr;

/// The name of a run or a session: 1 to 100 ASCII letters, digits, `-`, `_` or `.`, not beginning with
/// `-` or `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A text that cannot be a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name: 1 to 100 letters, digits, `-`, `_` or `.`, beginning with a letter, digit or `_`")]
pub struct BadName(pub String);

impl Name {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name of any bytes, different bytes giving different names: for keys that users choose.
    #[must_use]
    pub fn encoded(bytes: &[u8]) -> Self {
        // FNV-1a, 128 bits: long keys must fit into a file's name, and stay apart.
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in bytes {
            hash ^= u128::from(*byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        let readable: String = bytes
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .take(40)
            .map(|byte| char::from(*byte))
            .collect();
        Self(format!("k{readable}-{hash:032x}"))
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if (1..=100).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with(['-', '.']) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadName(text.to_owned()))
        }
    }
}

impl TryFrom<&str> for Name {
    type Error = BadName;

    fn try_from(text: &str) -> Result<Self, BadName> {
        text.parse()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one attempt on a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptRef {
    /// The run.
    pub run: Name,
    /// Its attempt, from 1.
    pub attempt: u32,
}

impl AttemptRef {
    /// Makes a reference.
    ///
    /// # Errors
    ///
    /// When `run` cannot be a file's name.
    pub fn new(run: &str, attempt: u32) -> Result<Self, BadName> {
        Ok(Self { run: run.parse()?, attempt })
    }

    /// Returns the two payload lines that begin most requests.
    pub(crate) fn lines(&self) -> Vec<u8> {
        format!("{}\n{}\n", self.run, self.attempt).into_bytes()
    }
}

impl fmt::Display for AttemptRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for text in ["", ".", "..", "a/b", "-rf", "a b", "a\nb", "ü", ".hidden"] {
            assert!(Name::try_from(text).is_err(), "{text:?}");
        }
        for text in ["k7f2", "018f-44", "_x.y"] {
            assert!(Name::try_from(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn encoded_keys_are_names_and_stay_apart() {
        let keys = ["card 1", "card1", "card/1", "", "é"];
        for (at, key) in keys.iter().enumerate() {
            let name = Name::encoded(key.as_bytes());
            assert!(Name::try_from(name.as_str()).is_ok(), "{name}");
            for other in &keys[at + 1..] {
                assert_ne!(name, Name::encoded(other.as_bytes()));
            }
        }
    }
}
