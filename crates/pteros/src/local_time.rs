//! Local time: dates in the system's time zone, as ROS 2's tools print them (POSIX
//! `localtime`).
//!
//! The zone is that of the variable `TZ`, else of `/etc/localtime`, else UTC. Both the
//! files of the time zone database (RFC 9636) and the rules of POSIX (`CET-1CEST`) are
//! read. A file is data of the system's administrator; one that is damaged counts as
//! none. This file reads the variable and the files, once in a process.
#![allow(
    clippy::disallowed_methods,
    reason = "the time zone is the environment's"
)]

mod calendar;
mod posix_rule;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use calendar::{DAY_SECONDS, civil};
use posix_rule::PosixRule;

/// The largest file of the database has 4 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
const DATABASE: &str = "/usr/share/zoneinfo";

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
    /// The local time of a moment, in nanoseconds since 1970. The first call reads the
    /// time zone from the file system.
    pub fn of(nanos: i128) -> Self {
        static ZONE: OnceLock<TimeZone> = OnceLock::new();
        ZONE.get_or_init(TimeZone::of_system).at(nanos)
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// When an offset begins, in seconds since 1970, and the offset, in seconds east of
    /// Greenwich.
    changes: Vec<(i64, i64)>,
    /// The offset before the first change.
    first: i64,
    /// For the time after the last change.
    rule: Option<PosixRule>,
}

impl TimeZone {
    /// The zone of the process: that of `TZ`, else of `/etc/localtime`, else UTC.
    fn of_system() -> Self {
        let read = |path: &Path| Self::read_file(path);
        match std::env::var("TZ") {
            Ok(text) => Self::of_variable(&text, read),
            Err(_) => read(Path::new("/etc/localtime")),
        }
        .unwrap_or_default()
    }

    /// The zone that a value of `TZ` names: a file, a name in the database, or a rule.
    fn of_variable(text: &str, read: impl Fn(&Path) -> Option<Self>) -> Option<Self> {
        let name = text.strip_prefix(':').unwrap_or(text);
        if name.is_empty() {
            return None;
        }
        let path = if name.starts_with('/') {
            PathBuf::from(name)
        } else {
            Path::new(DATABASE).join(name)
        };
        read(&path).or_else(|| Self::of_rule(name))
    }

    fn read_file(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let is_usable = metadata.is_file() && metadata.len() <= FILE_BYTES_MAX;
        Self::of_file(&is_usable.then(|| std::fs::read(path).ok())??)
    }

    /// The zone of a rule, for example `CET-1CEST,M3.5.0,M10.5.0/3`.
    pub fn of_rule(text: &str) -> Option<Self> {
        let rule = PosixRule::parse(text)?;
        Some(Self {
            first: rule.standard,
            rule: Some(rule),
            ..Self::default()
        })
    }

    /// The zone of a file of the time zone database; `None` if it is damaged.
    pub fn of_file(content: &[u8]) -> Option<Self> {
        let mut file = Fields(content);
        let version = file.head()?;
        let mut counts = file.counts()?;
        let mut word_bytes = 4;
        if version >= b'2' {
            // The first block is for readers of version 1.
            let first = counts.block_bytes(word_bytes)?;
            file.take(first)?;
            file.head()?;
            counts = file.counts()?;
            word_bytes = 8;
        }
        let times = file.take(counts.times.checked_mul(word_bytes)?)?;
        let kinds = file.take(counts.times)?;
        let types = file.take(counts.types.checked_mul(6)?)?;
        let rest = counts.after_types(word_bytes)?;
        file.take(rest)?;
        let offset_of = |kind: u8| {
            let at = usize::from(kind).checked_mul(6)?;
            let bytes = types.get(at..at.checked_add(4)?)?;
            Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?)))
        };
        let mut changes = Vec::new();
        for (time, kind) in times.chunks_exact(word_bytes).zip(kinds) {
            changes.push((signed(time)?, offset_of(*kind)?));
        }
        let footer = file.0.strip_prefix(b"\n").unwrap_or_default();
        let footer = footer.split(|byte| *byte == b'\n').next();
        let footer = std::str::from_utf8(footer.unwrap_or_default()).ok()?;
        Some(Self {
            changes,
            first: offset_of(0)?,
            rule: PosixRule::parse(footer),
        })
    }

    /// The local time of a moment, in nanoseconds since 1970.
    pub fn at(&self, nanos: i128) -> LocalTime {
        let seconds = nanos.div_euclid(1_000_000_000);
        // Years beyond a million have no date.
        let seconds = seconds.clamp(-31_556_952_000_000, 31_556_952_000_000);
        let seconds = i64::try_from(seconds).unwrap_or(0);
        let local = seconds.saturating_add(self.offset(seconds));
        let (year, month, day) = civil(local.div_euclid(DAY_SECONDS));
        let of_day = local.rem_euclid(DAY_SECONDS);
        let small = |value: i64| u8::try_from(value).unwrap_or(0);
        LocalTime {
            year,
            month: small(month),
            day: small(day),
            hour: small(of_day / 3600),
            minute: small(of_day / 60 % 60),
            second: small(of_day % 60),
            nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
        }
    }

    /// Seconds east of Greenwich at a moment, in seconds since 1970.
    fn offset(&self, seconds: i64) -> i64 {
        let begun = self.changes.partition_point(|(start, _)| *start <= seconds);
        if begun == self.changes.len()
            && let Some(rule) = &self.rule
        {
            return rule.offset(seconds);
        }
        let last = begun.checked_sub(1).and_then(|at| self.changes.get(at));
        last.map_or(self.first, |(_, offset)| *offset)
    }
}

/// A big-endian number of four or eight bytes.
fn signed(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}

/// The unread bytes of a file.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a block's mark, and returns its version.
    fn head(&mut self) -> Option<u8> {
        let head = self.take(20)?;
        head.starts_with(b"TZif").then(|| head.get(4).copied())?
    }

    fn counts(&mut self) -> Option<Counts> {
        let mut next = || {
            let bytes = self.take(4)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        Some(Counts {
            universal: next()?,
            standard: next()?,
            leaps: next()?,
            times: next()?,
            types: next()?,
            chars: next()?,
        })
    }
}

/// The counts in a block's head.
struct Counts {
    universal: usize,
    standard: usize,
    leaps: usize,
    times: usize,
    types: usize,
    chars: usize,
}

impl Counts {
    fn after_types(&self, word_bytes: usize) -> Option<usize> {
        let leaps = self.leaps.checked_mul(word_bytes.checked_add(4)?)?;
        let flags = self.standard.checked_add(self.universal)?;
        self.chars.checked_add(leaps)?.checked_add(flags)
    }

    fn block_bytes(&self, word_bytes: usize) -> Option<usize> {
        let times = self.times.checked_mul(word_bytes.checked_add(1)?)?;
        let types = self.types.checked_mul(6)?;
        times
            .checked_add(types)?
            .checked_add(self.after_types(word_bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A date as ISO 8601 writes it.
    fn shown(zone: &TimeZone, seconds: i64) -> String {
        let time = zone.at(i128::from(seconds) * 1_000_000_000 + 7);
        assert_eq!(time.nanos, 7);
        let LocalTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = time;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
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
            ("EST5EDT", 1_720_000_000, "2024-07-03T05:46:40"),
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
            (
                "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
                1_711_846_800,
                "2024-03-31T00:00:00",
            ),
        ] {
            let zone = TimeZone::of_rule(rule).unwrap();
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
            assert_eq!(TimeZone::of_rule(wrong), None, "{wrong}");
        }
    }

    /// A file of version 2 with one change, and a rule behind it.
    fn file() -> Vec<u8> {
        let mut out = Vec::new();
        for word_bytes in [4, 8] {
            out.extend(b"TZif2");
            out.extend([0; 15]);
            for count in [0u32, 0, 0, 1, 2, 8] {
                out.extend(count.to_be_bytes());
            }
            let change = 1_000_000i64.to_be_bytes();
            out.extend(&change[8 - word_bytes..]);
            out.push(1);
            for offset in [600i32, 7200] {
                out.extend(offset.to_be_bytes());
                out.extend([0, 0]);
            }
            out.extend(b"LMT\0ABC\0");
        }
        out.extend(b"\nABC-2\n");
        out
    }

    #[test]
    fn a_file_of_the_database_is_read_and_a_damaged_one_is_not() {
        let whole = file();
        let zone = TimeZone::of_file(&whole).unwrap();
        assert_eq!(shown(&zone, 999_999), "1970-01-12T13:56:39");
        assert_eq!(shown(&zone, 1_000_000), "1970-01-12T15:46:40");
        assert_eq!(zone.offset(5_000_000), 7200);
        for length in 0..whole.len() {
            let _ = TimeZone::of_file(&whole[..length]);
        }
        let mut many = whole.clone();
        many[32..36].fill(0xff);
        assert_eq!(TimeZone::of_file(&many), None);
        assert_eq!(TimeZone::of_file(b"no zone"), None);
    }

    #[test]
    fn the_variable_names_a_file_or_a_rule() {
        let read = |path: &Path| {
            let known = ["/usr/share/zoneinfo/Europe/Berlin", "/my/zone"];
            let is_known = known.iter().any(|known| path == Path::new(known));
            is_known.then(|| TimeZone::of_file(&file()))?
        };
        let offset = |text: &str| Some(TimeZone::of_variable(text, read)?.offset(9_000_000));
        assert_eq!(offset("Europe/Berlin"), Some(7200));
        assert_eq!(offset(":/my/zone"), Some(7200));
        assert_eq!(offset("IST-5:30"), Some(19_800));
        assert_eq!(offset(""), None);
        assert_eq!(offset("No/Such"), None);
    }
}
