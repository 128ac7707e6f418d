//! Values a process fills in by itself: ids and the time of day, without a dependency.

use std::fs::File;
use std::io::{self, Read};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of distinct ids: random once, counted from there.
#[derive(Debug)]
pub(super) struct Ids {
    seed: [u8; 16],
    count: u32,
}

impl Ids {
    pub(super) fn new() -> io::Result<Self> {
        let mut seed = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut seed)?;
        Ok(Self { seed, count: 0 })
    }

    /// Returns an id in the shape of a random UUID.
    pub(super) fn next(&mut self) -> String {
        self.count += 1;
        let mut bytes = self.seed;
        for (byte, count) in bytes[12..].iter_mut().zip(self.count.to_be_bytes()) {
            *byte ^= count;
        }
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

/// Returns the milliseconds since the epoch.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a time as the stream does: `2026-11-30T20:45:26.735Z`.
pub(super) fn timestamp(ms: u64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns the date of a day counted from 1970-01-01, by the usual reckoning in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_stream_writes_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_796_071_526_735, "2026-11-30T20:45:26.735Z"),
        ] {
            assert_eq!(timestamp(ms), text);
        }
    }

    #[test]
    fn ids_differ_and_look_like_uuids() {
        let mut ids = Ids::new().unwrap();
        let (one, two) = (ids.next(), ids.next());
        assert_ne!(one, two);
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'4'));
    }
}
