//! Times in records: RFC 3339, UTC, milliseconds.

use bursar_core::At;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(at: &At, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.rfc3339())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(D::Error::custom)
}

fn parse(text: &str) -> Result<At, jiff::Error> {
    let stamp: jiff::Timestamp = text.parse()?;
    Ok(At(u64::try_from(stamp.as_millisecond()).unwrap_or_default()))
}

pub(super) mod option {
    use bursar_core::At;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    // The signature is the one `serde(with)` asks for.
    pub(in super::super) fn serialize<S: Serializer>(
        at: &Option<At>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.serialize_some(&at.rfc3339()),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<At>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| super::parse(&text)).transpose().map_err(D::Error::custom)
    }
}
