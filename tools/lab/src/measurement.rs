//! Measurements as data: configurations, metrics, and what one repeat returned.

use std::fmt;

/// How much of an experiment is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// A minimum that passes all layers in seconds: does it work?
    Smoke,
    /// Some values of each parameter and fewer samples. All papers take 20 minutes.
    Quick,
    /// The values, counts and durations of the paper.
    Full,
}

impl Extent {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// Selects a value by extent.
    pub fn choose<T>(self, smoke: T, quick: T, full: T) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    /// Default number of repeats of each configuration.
    pub fn repeats(self) -> usize {
        self.choose(1, 3, 5)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower: latency, memory.
    Lower,
    /// Higher: throughput.
    Higher,
    /// Neither: for information only.
    Neither,
}

/// The statistic that represents a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The middle one.
    Median,
    /// The 95th percentile.
    P95,
    Mean,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in tables and files.
    pub name: &'static str,
    /// `us`, `kB`, `MB/s`, …; empty for counts.
    pub unit: &'static str,
    /// The better direction.
    pub better: Better,
    /// The statistic of a repeat's samples.
    pub statistic: Statistic,
}

impl Metric {
    /// A metric of these fields.
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        better: Better,
        statistic: Statistic,
    ) -> Self {
        Self {
            name,
            unit,
            better,
            statistic,
        }
    }
}

/// The metric of most experiments.
pub const LATENCY: Metric = Metric::new("latency", "us", Better::Lower, Statistic::Median);

/// A configuration of an experiment: a case measured with one implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Parameters by name, with the same names in the same order in all
    /// configurations of an experiment. Values have no comma, quote or line break.
    pub case: Vec<(&'static str, String)>,
    /// Name of the implementation.
    pub implementation: &'static str,
    /// Approximate seconds of one repeat, for the progress display.
    pub seconds: f64,
}

impl Configuration {
    /// The value of a parameter. Empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.case.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The number of a parameter. 0 if it is none.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// A unique key within the experiment.
    pub fn key(&self) -> String {
        format!("{} {}", case_text(&self.case), self.implementation)
    }
}

/// The case as `qos=reliable size=1024`.
pub fn case_text(case: &[(&'static str, String)]) -> String {
    let words: Vec<String> = case.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(" ")
}

/// Result of one repeat of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Raw samples by metric, in order.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// Single values by metric.
    pub values: Vec<(&'static str, f64)>,
    /// Delivery counts, if messages were sent.
    pub delivery: Option<Delivery>,
    /// The transport, as the stack reports it.
    pub path: Option<String>,
    /// Remarks, for example `SCHED_FIFO refused`.
    pub notes: Vec<String>,
}

/// Delivery counts, summed over subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Published messages times subscriptions.
    pub expected: u64,
    /// Received messages without duplicates.
    pub received: u64,
    pub duplicates: u64,
    /// Messages received out of order.
    pub disordered: u64,
    /// Messages received after their deadline.
    pub late: u64,
    /// Messages lost before the first received one.
    pub initial_loss: u64,
}

impl Delivery {
    /// Number of lost messages.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    /// The sum of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            received: self.received + other.received,
            duplicates: self.duplicates + other.duplicates,
            disordered: self.disordered + other.disordered,
            late: self.late + other.late,
            initial_loss: self.initial_loss + other.initial_loss,
        }
    }
}

/// A value that the paper published.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its parameters. Configurations with the same values show it.
    pub case: &'static [(&'static str, &'static str)],
    /// The implementation, for example `OpenSplice` or `ROS 1`.
    pub implementation: &'static str,
    /// The printed value with its unit.
    pub value: &'static str,
    /// Its source in the paper, for example `table 7`.
    pub source: &'static str,
}
