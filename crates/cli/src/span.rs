//! Spans of time as people write and read them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `90s`, `30m`, `1h30m`, `500ms`, `14d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and a unit (ms, s, m, h, d), such as 90s, 30m or 1h30m".to_owned();
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let scale = UNITS.iter().find(|(unit, _)| *unit == &rest[..end]).ok_or_else(wrong)?.1;
        rest = &rest[end..];
        total = number
            .checked_mul(scale)
            .and_then(|millis| total.checked_add(millis))
            .ok_or_else(|| "that is longer than bursar can count".to_owned())?;
    }
    Ok(Duration::from_millis(total))
}

/// Writes `0:07`, `12:30`, `1:02:03`.
pub(crate) fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Writes the largest unit only: `12s`, `5m`, `3h`, `9d`.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("30m", 1_800_000),
            ("2h", 7_200_000),
            ("1h30m", 5_400_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_span_without_a_unit_or_with_a_strange_one_is_refused() {
        for text in
            ["", "30", "m", "-1s", "1.5h", "5x", "10s5", "99999999999999999999d", "18446744073709551615d"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_shown_short() {
        assert_eq!(clock(Duration::from_millis(7_900)), "0:07");
        assert_eq!(clock(Duration::from_secs(3_723)), "1:02:03");
        assert_eq!(age(Duration::from_secs(59)), "59s");
        assert_eq!(age(Duration::from_secs(86_400)), "24h");
        assert_eq!(age(Duration::from_secs(9 * 86_400)), "9d");
    }
}
