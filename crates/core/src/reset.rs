//! When a limit ends, read from the agent's text where no field tells it.
//!
//! Measured forms (FACTS 12): `You've hit your session limit · resets 1:53am (UTC)` and, from older releases, a Unix
//! time behind a bar: `usage limit reached|1796090000`. Times carry their zone in parentheses; a form with a date may
//! precede the time. Anything else gives None, and the caller waits a default time.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

use crate::time::At;

/// Reads the reset time from a limit's text; a time of day means the next such moment after `now`.
#[must_use]
pub fn from_text(text: &str, now: At) -> Option<At> {
    behind_a_bar(text).or_else(|| behind_the_word(text, now))
}

/// Whether the text speaks of a weekly limit.
#[must_use]
pub fn names_a_week(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("weekly limit") || text.contains("7-day limit") || text.contains("week limit")
}

fn behind_a_bar(text: &str) -> Option<At> {
    let (_, tail) = text.rsplit_once('|')?;
    let digits: String = tail.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok()?;
    match digits.len() {
        10 => Some(At(number.checked_mul(1000)?)),
        13 => Some(At(number)),
        _ => None,
    }
}

fn behind_the_word(text: &str, now: At) -> Option<At> {
    let lower = text.to_ascii_lowercase();
    let (at, word) = ["resets at ", "resets in ", "resets ", "reset at "]
        .iter()
        .filter_map(|word| lower.find(word).map(|at| (at, *word)))
        .min_by_key(|(at, word)| (*at, std::cmp::Reverse(word.len())))?;
    let rest = text.get(at + word.len()..)?;
    if word == "resets in " {
        return Some(now.after(std::time::Duration::from_secs(span_seconds(rest)?)));
    }
    // The zone stands in parentheses behind the time.
    let (when, zone) = match rest.split_once('(') {
        Some((when, tail)) => (when, tail.split_once(')').map(|(zone, _)| zone.trim())),
        None => (rest.split(['\n', '·', '.']).next().unwrap_or(rest), None),
    };
    let zone = match zone {
        Some(name) => TimeZone::get(name).ok()?,
        None => TimeZone::UTC,
    };
    let now = Timestamp::from_millisecond(i64::try_from(now.0).ok()?).ok()?.to_zoned(zone);
    let moment = civil(when.trim(), &now)?;
    let millis = moment.timestamp().as_millisecond();
    u64::try_from(millis).ok().map(At)
}

/// Reads `1:53am`, `3pm`, `15:30`, `Dec 3, 9am`, `Dec 3 at 9am`, `3 December 9:00`, `Monday 9am` in `now`'s zone.
fn civil(when: &str, now: &Zoned) -> Option<Zoned> {
    let mut month = None;
    let mut day = None;
    let mut weekday = None;
    let mut time = None;
    for word in when.split([' ', ',']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        if let Some(found) = time_of_day(&lower) {
            time = Some(found);
        } else if let Some(found) = month_number(&lower) {
            month = Some(found);
        } else if let Some(found) = weekday_number(&lower) {
            weekday = Some(found);
        } else if let Ok(number @ 1..=31) =
            lower.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<i8>()
        {
            day = Some(number);
        }
    }
    let zone = now.time_zone().clone();
    match (month, day, weekday) {
        (Some(month), Some(day), _) => {
            let time = time.unwrap_or(Time::midnight());
            let this =
                Date::new(now.year(), month, day).ok()?.to_datetime(time).to_zoned(zone.clone()).ok()?;
            // A date long past is next year's.
            if this.timestamp() < now.timestamp() - 24.hours() {
                return Date::new(now.year() + 1, month, day).ok()?.to_datetime(time).to_zoned(zone).ok();
            }
            Some(this)
        }
        (_, _, Some(weekday)) => {
            let time = time.unwrap_or(Time::midnight());
            let ahead = (weekday - now.weekday().to_monday_zero_offset()).rem_euclid(7);
            let first = on_day(now, ahead, time)?;
            if first <= *now { on_day(now, ahead + 7, time) } else { Some(first) }
        }
        _ => {
            let time = time?;
            let today = on_day(now, 0, time)?;
            if today > *now { Some(today) } else { on_day(now, 1, time) }
        }
    }
}

fn on_day(now: &Zoned, days: i8, time: Time) -> Option<Zoned> {
    let date = now.date().checked_add(i64::from(days).days()).ok()?;
    date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()
}

fn time_of_day(word: &str) -> Option<Time> {
    let (digits, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (word, None),
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?),
        // A bare number is a time only with am or pm behind it.
        None => (half.and_then(|_| digits.parse::<i8>().ok())?, 0),
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

fn month_number(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let index = MONTHS.iter().position(|month| word.starts_with(month))?;
    i8::try_from(index + 1).ok()
}

/// Days after Monday.
fn weekday_number(word: &str) -> Option<i8> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let index = DAYS.iter().position(|day| word.starts_with(day))?;
    i8::try_from(index).ok()
}

/// Reads `2h 30m`, `45 minutes`, `3 s`.
fn span_seconds(text: &str) -> Option<u64> {
    let mut total = 0u64;
    let mut number = None;
    let spaced: String = text
        .split(['\n', '·', '.'])
        .next()?
        .chars()
        .flat_map(|c| if c.is_ascii_alphabetic() { vec![' ', c] } else { vec![c] })
        .collect();
    for word in spaced.split_whitespace() {
        if let Ok(found) = word.parse::<u64>() {
            number = Some(found);
        } else if let Some(count) = number.take() {
            let unit = match word.as_bytes()[0].to_ascii_lowercase() {
                b'd' => 86_400,
                b'h' => 3_600,
                b'm' => 60,
                b's' => 1,
                _ => return None,
            };
            total = total.checked_add(count.checked_mul(unit)?)?;
        }
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T20:00:00Z, a Monday.
    const NOW: At = At(1_796_068_800_000);

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(from_text(text, NOW).map(|at| at.rfc3339()).as_deref(), expected, "{text}");
    }

    #[test]
    fn a_time_of_day_is_the_next_such_moment_in_its_zone() {
        check("You've hit your session limit · resets 1:53am (UTC)", Some("2026-12-01T01:53:00.000Z"));
        check("You've hit your 5-hour limit · resets 11pm (UTC)", Some("2026-11-30T23:00:00.000Z"));
        check("limit · resets 3:30pm (America/New_York)", Some("2026-11-30T20:30:00.000Z"));
        check("limit · resets 2pm (America/New_York)", Some("2026-12-01T19:00:00.000Z"));
        check("limit · resets 12am (Asia/Kolkata)", Some("2026-12-01T18:30:00.000Z"));
        check("limit reached, resets at 21:15 (Europe/Berlin)", Some("2026-11-30T20:15:00.000Z"));
        check("limit resets 22:00", Some("2026-11-30T22:00:00.000Z"));
    }

    #[test]
    fn a_date_a_weekday_a_unix_time_and_a_span_are_read() {
        check("limit · resets Dec 3, 9am (Europe/Berlin)", Some("2026-12-03T08:00:00.000Z"));
        check("limit · resets Dec 3 at 9:30am (UTC)", Some("2026-12-03T09:30:00.000Z"));
        check("limit · resets Jan 2, 1pm (UTC)", Some("2027-01-02T13:00:00.000Z"));
        check("limit · resets Tuesday 9am (UTC)", Some("2026-12-01T09:00:00.000Z"));
        check("limit · resets Mon 9am (UTC)", Some("2026-12-07T09:00:00.000Z"));
        check("Claude AI usage limit reached|1796090000", Some("2026-12-01T01:53:20.000Z"));
        check("limit · resets in 2h 30m", Some("2026-11-30T22:30:00.000Z"));
        check("limit, resets in 45 minutes", Some("2026-11-30T20:45:00.000Z"));
    }

    #[test]
    fn what_names_no_time_or_no_known_zone_gives_none() {
        check("API Error: 429 rate limited", None);
        check("limit · resets soon (UTC)", None);
        check("limit · resets 3pm (Mars/Olympus)", None);
        check("limit · resets 25:99 (UTC)", None);
        check("resets 13pm (UTC)", None);
        check("a|b|12", None);
        check("resets ", None);
    }
}
