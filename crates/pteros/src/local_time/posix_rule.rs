//! The rule of a time zone as POSIX writes it (XBD §8.3, `TZ`), with the extensions of RFC
//! 9636 §3.3: `CET-1CEST,M3.5.0,M10.5.0/3`.

use super::calendar::{DAY_SECONDS, civil, days_of};

/// Hours of an offset, and of the time at which a season begins.
const OFFSET_HOURS_MAX: i64 = 24;
const TIME_HOURS_MAX: i64 = 167;
/// Without dates, those of the United States.
const DEFAULT_DATES: &str = ",M3.2.0,M11.1.0";

/// A rule. Offsets are in seconds east of Greenwich.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PosixRule {
    pub standard: i64,
    summer: Option<Summer>,
}

/// The daylight-saving season.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summer {
    offset: i64,
    start: Moment,
    end: Moment,
}

/// A date in every year, and the local time of that day, in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    date: YearDay,
    time: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum YearDay {
    /// From 1 to 365; 29 February is not counted.
    Julian(i64),
    /// From 0 to 365.
    Zero(i64),
    /// Month, week (5 is the last) and day of the week from Sunday.
    Weekday(i64, i64, i64),
}

impl PosixRule {
    /// Reads a rule; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = Rest(text);
        rest.name()?;
        let standard = -rest.time(OFFSET_HOURS_MAX)?;
        if rest.0.is_empty() {
            return Some(Self {
                standard,
                summer: None,
            });
        }
        rest.name()?;
        let has_offset = !rest.0.is_empty() && !rest.0.starts_with(',');
        let offset = if has_offset {
            -rest.time(OFFSET_HOURS_MAX)?
        } else {
            standard + 3600
        };
        if rest.0.is_empty() {
            rest = Rest(DEFAULT_DATES);
        }
        let (start, end) = (rest.moment()?, rest.moment()?);
        rest.0.is_empty().then_some(Self {
            standard,
            summer: Some(Summer { offset, start, end }),
        })
    }

    /// The offset at a moment, in seconds since 1970.
    pub(super) fn offset(&self, seconds: i64) -> i64 {
        let Some(summer) = &self.summer else {
            return self.standard;
        };
        let local_day = (seconds + self.standard).div_euclid(DAY_SECONDS);
        let (year, ..) = civil(local_day);
        let start = summer.start.seconds(year) - self.standard;
        let end = summer.end.seconds(year) - summer.offset;
        let is_summer = if start < end {
            (start..end).contains(&seconds)
        } else {
            !(end..start).contains(&seconds)
        };
        if is_summer {
            summer.offset
        } else {
            self.standard
        }
    }
}

impl Moment {
    /// Local seconds since 1970.
    fn seconds(&self, year: i64) -> i64 {
        let first = days_of(year, 1, 1);
        let day = match self.date {
            YearDay::Julian(day) => {
                let is_leap = days_of(year, 3, 1) - first == 60;
                first + day - 1 + i64::from(is_leap && day >= 60)
            }
            YearDay::Zero(day) => first + day,
            YearDay::Weekday(month, week, weekday) => {
                let start = days_of(year, month, 1);
                // 1 January 1970 was a Thursday.
                let to_weekday = (weekday - (start + 4)).rem_euclid(7);
                let (next_year, next_month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
                let end = days_of(next_year, next_month, 1);
                let day = start + to_weekday + 7 * (week - 1);
                if day >= end { day - 7 } else { day }
            }
        };
        day * DAY_SECONDS + self.time
    }
}

/// The unread part of a rule.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn eat(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Three letters or more, or any name in angle brackets.
    fn name(&mut self) -> Option<()> {
        let length = if self.eat('<') {
            let end = self.0.find('>')?;
            self.0 = self.0.get(end + 1..)?;
            return (end >= 3).then_some(());
        } else {
            let other = |c: char| !c.is_ascii_alphabetic();
            self.0.find(other).unwrap_or(self.0.len())
        };
        self.0 = self.0.get(length..)?;
        (length >= 3).then_some(())
    }

    fn number(&mut self, max: i64) -> Option<i64> {
        let other = |c: char| !c.is_ascii_digit();
        let length = self.0.find(other).unwrap_or(self.0.len());
        let number = self.0.get(..length)?.parse().ok()?;
        self.0 = self.0.get(length..)?;
        (0..=max).contains(&number).then_some(number)
    }

    /// `[+-]hours[:minutes[:seconds]]`, in seconds.
    fn time(&mut self, hours_max: i64) -> Option<i64> {
        let is_negative = self.eat('-');
        if !is_negative {
            self.eat('+');
        }
        let mut seconds = self.number(hours_max)? * 3600;
        for unit in [60, 1] {
            if !self.eat(':') {
                break;
            }
            seconds += self.number(59)? * unit;
        }
        Some(if is_negative { -seconds } else { seconds })
    }

    /// `,date[/time]`; at two o'clock without a time.
    fn moment(&mut self) -> Option<Moment> {
        if !self.eat(',') {
            return None;
        }
        let date = if self.eat('J') {
            YearDay::Julian(self.number(365)?.max(1))
        } else if self.eat('M') {
            let month = self.number(12)?;
            let week = self.eat('.').then(|| self.number(5))??;
            let weekday = self.eat('.').then(|| self.number(6))??;
            YearDay::Weekday(month.max(1), week.max(1), weekday)
        } else {
            YearDay::Zero(self.number(365)?)
        };
        let time = if self.eat('/') {
            self.time(TIME_HOURS_MAX)?
        } else {
            2 * 3600
        };
        Some(Moment { date, time })
    }
}
