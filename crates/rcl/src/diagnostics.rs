//! Diagnostics: the status of a task, and the checks of frequencies and time stamps (ROS 2's
//! package `diagnostic_updater`).
//!
//! Texts and keys are those of `diagnostic_updater`, which tools such as the diagnostic
//! aggregator show. Times are arguments; nothing here reads a clock, blocks or publishes.

use std::collections::VecDeque;
use std::fmt;

use pteros_interfaces::diagnostic_msgs::msg::{DiagnosticStatus, KeyValue};

use crate::time::Time;

/// How bad a status is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum DiagnosticLevel {
    /// All is well.
    Ok,
    /// Something is unusual.
    Warn,
    /// Something fails.
    Error,
    /// Nothing was heard for too long.
    Stale,
}

impl DiagnosticLevel {
    /// The number in `diagnostic_msgs/DiagnosticStatus`.
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => DiagnosticStatus::OK,
            Self::Warn => DiagnosticStatus::WARN,
            Self::Error => DiagnosticStatus::ERROR,
            Self::Stale => DiagnosticStatus::STALE,
        }
    }
}

/// The status that a task fills in.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StatusReport {
    status: DiagnosticStatus,
}

impl StatusReport {
    /// A report of that name, which fails until its task says otherwise.
    pub fn new(name: impl Into<String>, hardware_id: &str) -> Self {
        Self {
            status: DiagnosticStatus {
                level: DiagnosticStatus::ERROR,
                name: name.into(),
                message: "No message was set".to_owned(),
                hardware_id: hardware_id.to_owned(),
                values: Vec::new(),
            },
        }
    }

    /// Sets level and message.
    pub fn summary(&mut self, level: DiagnosticLevel, message: impl Into<String>) {
        self.status.level = level.number();
        self.status.message = message.into();
    }

    /// Adds a level and a message to those before. The worse level counts. Messages of two
    /// bad levels are joined, else that of the worse one counts.
    pub fn merge_summary(&mut self, level: DiagnosticLevel, message: &str) {
        let level = level.number();
        if level > DiagnosticStatus::OK && self.status.level > DiagnosticStatus::OK {
            if !self.status.message.is_empty() {
                self.status.message.push_str("; ");
            }
            self.status.message.push_str(message);
        } else if level > self.status.level {
            message.clone_into(&mut self.status.message);
        }
        self.status.level = self.status.level.max(level);
    }

    /// Sets the level to OK, without a message.
    pub fn clear_summary(&mut self) {
        self.summary(DiagnosticLevel::Ok, "");
    }

    /// Adds a value.
    pub fn add(&mut self, key: impl Into<String>, value: impl fmt::Display) {
        self.status.values.push(KeyValue {
            key: key.into(),
            value: value.to_string(),
        });
    }

    /// The status so far.
    pub fn status(&self) -> &DiagnosticStatus {
        &self.status
    }

    /// Runs several tasks on one report: values follow each other, summaries are merged.
    /// Each task finds the summary from before: without one of its own, that counts.
    pub fn compose(&mut self, tasks: impl IntoIterator<Item = impl FnOnce(&mut Self)>) {
        let mut combined = Self::default();
        let (level, message) = (self.status.level, self.status.message.clone());
        for task in tasks {
            self.status.level = level;
            self.status.message.clone_from(&message);
            task(self);
            let (level, message) = (self.status.level, &self.status.message);
            combined.merge_number(level, message);
        }
        self.status.level = combined.status.level;
        self.status.message = combined.status.message;
    }

    fn merge_number(&mut self, number: u8, message: &str) {
        let level = match number {
            DiagnosticStatus::OK => DiagnosticLevel::Ok,
            DiagnosticStatus::WARN => DiagnosticLevel::Warn,
            DiagnosticStatus::ERROR => DiagnosticLevel::Error,
            _ => DiagnosticLevel::Stale,
        };
        self.merge_summary(level, message);
    }

    /// The message for `/diagnostics`.
    pub fn into_status(self) -> DiagnosticStatus {
        self.status
    }
}

/// The frequency that an event should have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FrequencyLimits {
    /// Lowest frequency in hertz.
    pub min_hz: f64,
    /// Highest frequency in hertz; infinity for none.
    pub max_hz: f64,
    /// Part of the limits by which a frequency may exceed them; 0.1 by default.
    pub tolerance: f64,
    /// Reports over which events are counted, at least one; 5 by default.
    pub window_size: usize,
}

impl FrequencyLimits {
    /// Frequencies between two limits.
    pub fn new(min_hz: f64, max_hz: f64) -> Self {
        Self {
            min_hz,
            max_hz,
            tolerance: 0.1,
            window_size: 5,
        }
    }
}

/// Checks how often an event happens.
#[derive(Clone, Debug)]
pub struct FrequencyStatus {
    limits: FrequencyLimits,
    count: u64,
    /// Count and time of the last reports, the oldest first.
    history: VecDeque<(u64, Time)>,
}

impl FrequencyStatus {
    /// Counts events from `now` on.
    pub fn new(limits: FrequencyLimits, now: Time) -> Self {
        Self {
            limits,
            count: 0,
            history: VecDeque::from([(0, now)]),
        }
    }

    /// An event happened.
    pub fn tick(&mut self) {
        self.count += 1;
    }

    /// Forgets all events.
    pub fn clear(&mut self, now: Time) {
        *self = Self::new(self.limits, now);
    }

    /// Reports the frequency of the last reports' time. If time has gone back meanwhile, it
    /// counts from now on.
    #[expect(clippy::cast_precision_loss, reason = "counts of events")]
    pub fn report(&mut self, now: Time, report: &mut StatusReport) {
        let has_gone_back = self.history.back().is_some_and(|(_, last)| now < *last);
        if has_gone_back {
            self.history.clear();
        }
        let (first_count, start) = *self.history.front().unwrap_or(&(self.count, now));
        let events = self.count - first_count;
        let window = now.since(start).as_secs_f64();
        let hertz = if window > 0.0 {
            events as f64 / window
        } else {
            0.0
        };
        self.history.push_back((self.count, now));
        while self.history.len() > self.limits.window_size.max(1) {
            self.history.pop_front();
        }
        let FrequencyLimits {
            min_hz,
            max_hz,
            tolerance,
            ..
        } = self.limits;
        if events == 0 {
            report.summary(DiagnosticLevel::Error, "No events recorded.");
        } else if hertz < min_hz * (1.0 - tolerance) {
            report.summary(DiagnosticLevel::Warn, "Frequency too low.");
        } else if hertz > max_hz * (1.0 + tolerance) {
            report.summary(DiagnosticLevel::Warn, "Frequency too high.");
        } else {
            report.summary(DiagnosticLevel::Ok, "Desired frequency met");
        }
        report.add("Events in window", events);
        report.add("Events since startup", self.count);
        report.add("Duration of window (s)", format_args!("{window:.6}"));
        report.add("Actual frequency (Hz)", format_args!("{hertz:.6}"));
        if (max_hz - min_hz).abs() < f64::EPSILON {
            report.add("Target frequency (Hz)", format_args!("{min_hz:.6}"));
        }
        if min_hz > 0.0 {
            let limit = min_hz * (1.0 - tolerance);
            report.add(
                "Minimum acceptable frequency (Hz)",
                format_args!("{limit:.6}"),
            );
        }
        if max_hz.is_finite() {
            let limit = max_hz * (1.0 + tolerance);
            report.add(
                "Maximum acceptable frequency (Hz)",
                format_args!("{limit:.6}"),
            );
        }
    }
}

/// How old a time stamp may be on arrival, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StampLimits {
    /// Smallest age, negative for stamps of the future; -1 by default.
    pub min_age_s: f64,
    /// Largest age; 5 by default.
    pub max_age_s: f64,
}

impl Default for StampLimits {
    fn default() -> Self {
        Self {
            min_age_s: -1.0,
            max_age_s: 5.0,
        }
    }
}

/// Checks the age of time stamps.
#[derive(Clone, Debug)]
pub struct StampStatus {
    limits: StampLimits,
    /// Smallest and largest age since the last report.
    ages: Option<(f64, f64)>,
    has_zero: bool,
    early_count: u64,
    late_count: u64,
    zero_count: u64,
}

impl StampStatus {
    /// No stamp was seen yet.
    pub fn new(limits: StampLimits) -> Self {
        Self {
            limits,
            ages: None,
            has_zero: false,
            early_count: 0,
            late_count: 0,
            zero_count: 0,
        }
    }

    /// A message with that stamp arrived at `now`.
    pub fn tick(&mut self, stamp: Time, now: Time) {
        if stamp == Time::default() {
            self.has_zero = true;
            return;
        }
        let age = now.as_secs_f64() - stamp.as_secs_f64();
        let (min, max) = self.ages.unwrap_or((age, age));
        self.ages = Some((min.min(age), max.max(age)));
    }

    /// Reports the stamps since the last report.
    pub fn report(&mut self, report: &mut StatusReport) {
        let StampLimits {
            min_age_s,
            max_age_s,
        } = self.limits;
        let (min, max) = self.ages.unwrap_or_default();
        report.summary(DiagnosticLevel::Ok, "Timestamps are reasonable.");
        if self.ages.is_none() && !self.has_zero {
            report.summary(DiagnosticLevel::Warn, "No data since last update.");
        }
        if self.ages.is_some() && min < min_age_s {
            let text = "Timestamps too far in future seen.";
            report.merge_summary(DiagnosticLevel::Error, text);
            self.early_count += 1;
        }
        if self.ages.is_some() && max > max_age_s {
            let text = "Timestamps too far in past seen.";
            report.merge_summary(DiagnosticLevel::Error, text);
            self.late_count += 1;
        }
        if self.has_zero {
            report.merge_summary(DiagnosticLevel::Error, "Zero timestamp seen.");
            self.zero_count += 1;
        }
        report.add("Earliest timestamp delay:", format_args!("{min:.6}"));
        report.add("Latest timestamp delay:", format_args!("{max:.6}"));
        report.add(
            "Earliest acceptable timestamp delay:",
            format_args!("{min_age_s:.6}"),
        );
        report.add(
            "Latest acceptable timestamp delay:",
            format_args!("{max_age_s:.6}"),
        );
        report.add("Late diagnostic update count:", self.late_count);
        report.add("Early diagnostic update count:", self.early_count);
        report.add("Zero seen diagnostic update count:", self.zero_count);
        self.ages = None;
        self.has_zero = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: f64) -> Time {
        Time::default() + Duration::from_secs_f64(seconds)
    }

    fn summary(report: &StatusReport) -> (u8, &str) {
        (report.status().level, &report.status().message)
    }

    #[test]
    fn summaries_are_merged_by_level() {
        use DiagnosticLevel::{Error, Ok, Warn};
        let mut report = StatusReport::new("it", "robot");
        assert_eq!(summary(&report), (2, "No message was set"));
        report.summary(Ok, "fine");
        for (level, text, expected) in [
            (Ok, "still", (0, "fine")),
            (Warn, "hot", (1, "hot")),
            (Ok, "cold", (1, "hot")),
            (Error, "burnt", (2, "hot; burnt")),
            (Warn, "wet", (2, "hot; burnt; wet")),
        ] {
            report.merge_summary(level, text);
            assert_eq!(summary(&report), expected);
        }
        let tasks: [fn(&mut StatusReport); 3] = [
            |report| report.summary(Ok, "one"),
            |report| report.summary(Error, "two"),
            |report| report.summary(Warn, "three"),
        ];
        report.compose(tasks);
        assert_eq!(summary(&report), (2, "two; three"));
        let tasks: [fn(&mut StatusReport); 2] = [
            |report| report.summary(Ok, "one"),
            |report| report.add("silent", 2),
        ];
        let mut report = StatusReport::new("it", "robot");
        report.compose(tasks);
        assert_eq!(summary(&report), (2, "No message was set"));
    }

    #[test]
    fn frequencies_are_counted_over_the_window() {
        let limits = FrequencyLimits {
            window_size: 2,
            ..FrequencyLimits::new(10.0, 20.0)
        };
        let mut frequency = FrequencyStatus::new(limits, at(100.0));
        let mut play = |ticks: u32, time: f64| {
            (0..ticks).for_each(|_| frequency.tick());
            let mut report = StatusReport::default();
            frequency.report(at(time), &mut report);
            let value = |index: usize| report.status().values[index].value.clone();
            (report.status().message.clone(), value(0), value(3))
        };
        for (ticks, time, expected) in [
            (0, 101.0, ("No events recorded.", "0", "0.000000")),
            // Two reports: since 100.
            (20, 102.0, ("Desired frequency met", "20", "10.000000")),
            (6, 103.0, ("Desired frequency met", "26", "13.000000")),
            (0, 104.0, ("Frequency too low.", "6", "3.000000")),
            (50, 105.0, ("Frequency too high.", "50", "25.000000")),
            // Back in time: from now on.
            (10, 5.0, ("No events recorded.", "0", "0.000000")),
            (10, 6.0, ("Desired frequency met", "10", "10.000000")),
        ] {
            let (message, events, hertz) = play(ticks, time);
            assert_eq!((&*message, &*events, &*hertz), expected, "{time}");
        }
    }

    #[test]
    fn stamps_are_compared_with_the_time_of_arrival() {
        let mut stamps = StampStatus::new(StampLimits::default());
        let mut play = |seen: &[f64]| {
            for stamp in seen {
                stamps.tick(at(*stamp), at(100.0));
            }
            let mut report = StatusReport::default();
            stamps.report(&mut report);
            report.into_status()
        };
        let future = "Timestamps too far in future seen.";
        let past = "Timestamps too far in past seen.";
        for (seen, level, message) in [
            (&[][..], 1, "No data since last update.".to_owned()),
            (&[99.0, 100.5], 0, "Timestamps are reasonable.".into()),
            (&[99.0, 101.5], 2, future.into()),
            (&[94.0], 2, past.into()),
            (&[94.0, 102.0], 2, format!("{future}; {past}")),
            (&[0.0], 2, "Zero timestamp seen.".into()),
        ] {
            let status = play(seen);
            assert_eq!((status.level, status.message), (level, message), "{seen:?}");
        }
        let counts = play(&[]).values;
        let counts: Vec<_> = counts[4..].iter().map(|pair| &*pair.value).collect();
        assert_eq!(counts, ["2", "2", "1"]);
    }
}
