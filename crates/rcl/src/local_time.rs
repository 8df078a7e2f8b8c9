//! Local time: dates in the system's time zone, as ROS 2's tools print them (POSIX
//! `localtime`).
//!
//! The zone is that of the variable `TZ`, else of `/etc/localtime`, else UTC. The crate
//! `tz-rs` reads the time zone database and the rules of POSIX (`CET-1CEST`). A damaged
//! file counts as none. This file reads the variable, once in a process.
#![allow(
    clippy::disallowed_methods,
    reason = "the time zone is the environment's"
)]

use std::sync::OnceLock;

use tz::DateTime;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The year, for example 2026.
    pub year: i64,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
    /// From 0 to 23.
    pub hour: u8,
    /// From 0 to 59.
    pub minute: u8,
    /// From 0 to 59.
    pub second: u8,
    /// Within the second.
    pub nanos: u32,
}

impl LocalTime {
    const EPOCH: Self = Self {
        year: 1970,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
    };

    /// The local time of a moment, in nanoseconds since 1970. The first call reads the
    /// time zone from the file system.
    pub fn of(nanos: i128) -> Self {
        static ZONE: OnceLock<TimeZone> = OnceLock::new();
        ZONE.get_or_init(TimeZone::of_system).at(nanos)
    }

    /// Date and time of day with these separators, from the year to the second:
    /// `text("-", "T", ":")` is ISO 8601.
    pub fn text(&self, in_date: &str, between: &str, in_time: &str) -> String {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self;
        format!(
            "{year:04}{in_date}{month:02}{in_date}{day:02}{between}{hour:02}{in_time}{minute:02}{in_time}{second:02}"
        )
    }

    /// The month in three letters.
    pub fn month_name(&self) -> &'static str {
        const NAMES: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let name = NAMES.get(usize::from(self.month).wrapping_sub(1));
        name.copied().unwrap_or_default()
    }
}

/// A time zone: its changes so far, and the rule for later ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

impl Default for TimeZone {
    /// UTC.
    fn default() -> Self {
        Self(tz::TimeZone::utc())
    }
}

impl TimeZone {
    /// The zone of the process: that of `TZ`, else of `/etc/localtime`, else UTC.
    fn of_system() -> Self {
        match std::env::var("TZ") {
            Ok(text) => Self::of_variable(&text),
            Err(_) => tz::TimeZone::local().ok().map(Self),
        }
        .unwrap_or_default()
    }

    /// The zone that a value of `TZ` names: a file, a name in the database, or a rule as
    /// `CET-1CEST,M3.5.0,M10.5.0/3`. Reads the file that it names.
    pub fn of_variable(text: &str) -> Option<Self> {
        tz::TimeZone::from_posix_tz(text).ok().map(Self)
    }

    /// The local time of a moment, in nanoseconds since 1970.
    pub fn at(&self, nanos: i128) -> LocalTime {
        // Years beyond a million have no date.
        let nanos = nanos.clamp(-NANOS_MAX, NANOS_MAX);
        let local = DateTime::from_total_nanoseconds(nanos, self.0.as_ref());
        // A rule may not reach that far.
        let utc = || DateTime::from_total_nanoseconds(nanos, tz::TimeZone::utc().as_ref());
        let Ok(date) = local.or_else(|_| utc()) else {
            return LocalTime::EPOCH;
        };
        LocalTime {
            year: date.year().into(),
            month: date.month(),
            day: date.month_day(),
            hour: date.hour(),
            minute: date.minute(),
            second: date.second(),
            nanos: date.nanoseconds(),
        }
    }
}

/// A million years.
const NANOS_MAX: i128 = 31_556_952_000_000 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A date as ISO 8601 writes it.
    fn shown(zone: &TimeZone, seconds: i64) -> String {
        let time = zone.at(i128::from(seconds) * 1_000_000_000 + 7);
        assert_eq!(time.nanos, 7);
        time.text("-", "T", ":")
    }

    #[test]
    fn utc_is_the_civil_calendar() {
        let utc = TimeZone::default();
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_210_096, "2024-02-29T12:34:56"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(shown(&utc, seconds), date);
        }
        assert_eq!(TimeZone::default().at(0).month_name(), "Jan");
        utc.at(i128::MAX);
        utc.at(i128::MIN);
    }

    /// Measured with `date` of GNU.
    #[test]
    fn a_zone_has_the_offset_of_its_season() {
        for (rule, seconds, date) in [
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_709_210_096,
                "2024-02-29T13:34:56",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_711_846_799,
                "2024-03-31T01:59:59",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_711_846_800,
                "2024-03-31T03:00:00",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_729_990_799,
                "2024-10-27T02:59:59",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_729_990_800,
                "2024-10-27T02:00:00",
            ),
            (
                "EST5EDT4,M3.2.0/2:00:00,M11.1.0",
                1_735_689_600,
                "2024-12-31T19:00:00",
            ),
            (
                "AEST-10AEDT,M10.1.0,M4.1.0/3",
                1_735_689_600,
                "2025-01-01T11:00:00",
            ),
            (
                "AEST-10AEDT,M10.1.0,M4.1.0/3",
                1_720_000_000,
                "2024-07-03T19:46:40",
            ),
            ("<+0330>-3:30", 0, "1970-01-01T03:30:00"),
            ("XXX-1YYY,J60,300/1", 1_709_251_200, "2024-03-01T01:00:00"),
        ] {
            let zone = TimeZone::of_variable(rule).unwrap();
            assert_eq!(shown(&zone, seconds), date, "{rule}");
        }
        for wrong in [
            "",
            "CE",
            "CET-25",
            "CET-1CEST,M13.1.0,M1.1.0",
            "CET-1x",
            "<A>",
            "CET1CEST,M3",
        ] {
            assert_eq!(TimeZone::of_variable(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_variable_names_a_file_or_a_rule() {
        let hour = |text: &str| Some(TimeZone::of_variable(text)?.at(0).hour);
        assert_eq!(hour("IST-5:30"), Some(5));
        assert_eq!(hour(":/no/such/file"), None);
        assert_eq!(hour("No/Such"), None);
    }
}
