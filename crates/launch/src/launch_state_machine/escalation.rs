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
