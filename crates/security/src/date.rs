//! Times of certificates and permissions files, in seconds since 1970 (UTC). No
//! clock is read here: `now` is always an argument.

use std::fmt;

/// Seconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// Parses `xsd:dateTime`: `CCYY-MM-DDThh:mm:ss[.s…][Z|±hh:mm]`. Without a zone
    /// it is UTC (DDS Security 1.1 §9.4.1.3.2.2). A leap second counts as the
    /// second before.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('T')?;
        let mut parts = date.splitn(3, '-');
        let year = digits(parts.next()?, 4)?;
        let month = digits(parts.next()?, 2)?;
        let day = digits(parts.next()?, 2)?;
        let (time, offset_seconds) = zone(time)?;
        let mut parts = time.splitn(3, ':');
        let hour = digits(parts.next()?, 2)?;
        let minute = digits(parts.next()?, 2)?;
        let seconds = parts.next()?;
        let whole = match seconds.split_once('.') {
            Some((whole, fraction)) => {
                let plain = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
                plain.then_some(whole)?
            }
            None => seconds,
        };
        let second = digits(whole, 2)?.min(59);
        let valid = (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && (hour < 24 || (hour == 24 && minute == 0 && second == 0))
            && minute < 60
            && digits(whole, 2)? <= 60;
        let days = days_since_1970(year, month, day);
        let of_day = hour
            .saturating_mul(3600)
            .saturating_add(minute.saturating_mul(60))
            .saturating_add(second);
        valid.then_some(Self(
            days.saturating_mul(DAY_SECONDS)
                .saturating_add(of_day)
                .saturating_sub(offset_seconds),
        ))
    }

    /// This many days later.
    pub fn after_days(self, days: u32) -> Self {
        Self(
            self.0
                .saturating_add(i64::from(days).saturating_mul(DAY_SECONDS)),
        )
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, of_day) = (
            self.0.div_euclid(DAY_SECONDS),
            self.0.rem_euclid(DAY_SECONDS),
        );
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (
            of_day.div_euclid(3600),
            of_day.div_euclid(60).rem_euclid(60),
            of_day.rem_euclid(60),
        );
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

/// Validity period, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: UnixTime,
    /// The last.
    pub not_after: UnixTime,
}

impl Validity {
    /// Why it is not valid at `now`; `None` if it is.
    pub fn rejection(&self, now: UnixTime) -> Option<String> {
        if now < self.not_before {
            Some(format!(
                "not valid before {}, now is {now}",
                self.not_before
            ))
        } else if now > self.not_after {
            Some(format!("expired at {}, now is {now}", self.not_after))
        } else {
            None
        }
    }
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let plain = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The time without its zone, and the zone in seconds east of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(utc) = time.strip_suffix('Z') {
        return Some((utc, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let (time, zone) = time.split_at_checked(at)?;
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = hours
        .saturating_mul(3600)
        .saturating_add(minutes.saturating_mul(60));
    let valid = hours <= 14 && minutes < 60;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    valid.then_some((time, seconds.saturating_mul(sign)))
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the Gregorian calendar. Years begin in March here, so that the leap day
/// is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 {
        year.saturating_sub(1)
    } else {
        year
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = month.saturating_add(9).rem_euclid(12);
    let day_of_year = month_from_march
        .saturating_mul(153)
        .saturating_add(2)
        .div_euclid(5)
        .saturating_add(day)
        .saturating_sub(1);
    let day_of_era = of_era
        .saturating_mul(365)
        .saturating_add(of_era.div_euclid(4))
        .saturating_sub(of_era.div_euclid(100))
        .saturating_add(day_of_year);
    era.saturating_mul(ERA_DAYS)
        .saturating_add(day_of_era)
        .saturating_sub(DAYS_TO_1970)
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = 1970_i64.saturating_add(days.div_euclid(366));
    while days_since_1970(year.saturating_add(1), 1, 1) <= days {
        year = year.saturating_add(1);
    }
    let mut month = 1_i64;
    while month < 12 && days_since_1970(year, month.saturating_add(1), 1) <= days {
        month = month.saturating_add(1);
    }
    let day = days
        .saturating_sub(days_since_1970(year, month, 1))
        .saturating_add(1);
    (year, month, day)
}

const DAY_SECONDS: i64 = 86_400;
/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00", 0),
            ("1970-01-01T00:00:00Z", 0),
            ("2013-10-26T00:00:00", 1_382_745_600),
            ("2023-10-26T22:45:30", 1_698_360_330),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("2033-05-18T03:33:20.5Z", 2_000_000_000),
            // Midnight at the end of a day, and a leap second.
            ("1970-01-01T24:00:00Z", 86_400),
            ("1969-12-31T23:59:60Z", -1),
            ("1970-01-31T00:59:59Z", 30 * 86_400 + 3_599),
            ("1970-12-31T00:00:00-14:00", 364 * 86_400 + 14 * 3_600),
            ("1970-01-01T05:30:00+05:30", 0),
        ] {
            assert_eq!(UnixTime::parse(text), Some(UnixTime(seconds)), "{text}");
        }
        for text in [
            "",
            "2013-10-26",
            "2013-13-26T00:00:00",
            "2013-02-29T00:00:00",
            "2013-10-26T25:00:00",
            "2013-10-26T24:00:01",
            "2013-10-26T24:01:00",
            "2013-10-26T00:60:00",
            "2013-10-26T00:00:61",
            "2013-00-26T00:00:00",
            "2013-10-00T00:00:00",
            "2013-11-31T00:00:00",
            "1900-02-29T00:00:00",
            "2013-10-26T0:00:00",
            "2013-10-26T00:00:00.x",
            "2013-10-26T00:00:00+05:60",
            "2013-10-26T00:61:00",
            "26.10.2013T00:00:00",
            "2013-10-26T00:00:00+99:00",
            "2013-10-26T00:00:00.Z",
        ] {
            assert_eq!(UnixTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for seconds in [
            0,
            1,
            951_825_600,
            4_102_444_799,
            -1,
            1_709_164_800,
            1_709_251_199,
        ] {
            let shown = UnixTime(seconds).to_string();
            assert_eq!(UnixTime::parse(&shown), Some(UnixTime(seconds)), "{shown}");
        }
    }

    #[test]
    fn validity_says_what_is_wrong() {
        let validity = Validity {
            not_before: UnixTime(100),
            not_after: UnixTime(200),
        };
        assert!(validity.rejection(UnixTime(99)).unwrap().contains("before"));
        assert_eq!(validity.rejection(UnixTime(100)), None);
        assert_eq!(validity.rejection(UnixTime(200)), None);
        assert!(
            validity
                .rejection(UnixTime(201))
                .unwrap()
                .contains("expired")
        );
    }
}
