//! Escalation of signals: which signal a process gets that does not end, and when. XML,
//! YAML and Python launch files share this.

use std::time::Duration;

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopSignal {
    /// SIGINT, as Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl StopSignal {
    /// The signal's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }

    /// The signal after this one; none after SIGKILL.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Interrupt => Some(Self::Terminate),
            Self::Terminate => Some(Self::Kill),
            Self::Kill => None,
        }
    }
}

/// How long a process has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTimeouts {
    /// After SIGINT (`sigterm_timeout`).
    pub sigterm: Duration,
    /// After SIGTERM (`sigkill_timeout`).
    pub sigkill: Duration,
}

impl StopTimeouts {
    /// Of any two numbers of seconds, so that the end of a launch does not fail: a negative
    /// number, or one that is none, is no time, and one that is too large is endless.
    pub fn of_seconds(sigterm: f64, sigkill: f64) -> Self {
        // The greater one of NaN and 0 is 0.
        let span = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0));
        Self {
            sigterm: span(sigterm).unwrap_or(Duration::MAX),
            sigkill: span(sigkill).unwrap_or(Duration::MAX),
        }
    }

    /// The time that the process has after a signal.
    pub fn after(self, stop: StopSignal) -> Duration {
        match stop {
            StopSignal::Interrupt => self.sigterm,
            StopSignal::Terminate => self.sigkill,
            StopSignal::Kill => Duration::MAX,
        }
    }

    /// The signals after SIGINT, each with its time after that.
    pub fn steps(self) -> [(StopSignal, Duration); 2] {
        [
            (StopSignal::Terminate, self.sigterm),
            (StopSignal::Kill, self.sigterm.saturating_add(self.sigkill)),
        ]
    }

    /// The log line of a process that has not ended in time and gets this signal, as ROS
    /// 2's launch writes it.
    pub fn text(self, process: &str, stop: StopSignal) -> String {
        let (before, seconds) = match stop {
            StopSignal::Kill => (StopSignal::Terminate, self.sigkill),
            _ => (StopSignal::Interrupt, self.sigterm),
        };
        format!(
            "process[{process}] failed to terminate '{}' seconds after receiving '{}', escalating to '{}'",
            seconds.as_secs_f64(),
            before.name(),
            stop.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_seconds_is_a_time_out() {
        for (seconds, timeout) in [
            (2.5, Duration::from_millis(2_500)),
            (0.0, Duration::ZERO),
            (-0.0, Duration::ZERO),
            (-1.0, Duration::ZERO),
            (f64::NEG_INFINITY, Duration::ZERO),
            (f64::NAN, Duration::ZERO),
            (1e30, Duration::MAX),
            (f64::INFINITY, Duration::MAX),
        ] {
            let timeouts = StopTimeouts::of_seconds(seconds, seconds);
            assert_eq!(timeouts.sigterm, timeout, "{seconds}");
            assert_eq!(timeouts.sigkill, timeout, "{seconds}");
            assert_eq!(timeouts.steps()[0], (StopSignal::Terminate, timeout));
            assert_eq!(timeouts.steps()[1].1, timeout.saturating_mul(2));
        }
    }
}
