//! Experiments as data and three functions.
//!
//! A new experiment is one file in `experiments/` with a constant [`Experiment`],
//! and one line in `experiments::ALL`. A *configuration* is what is measured: size,
//! policies, situation and implementation. The runner measures each configuration
//! several times in turns, keeps the raw samples, and passes all of them to
//! [`Experiment::report_items`].

use crate::testbed::MeasurementFailure;

use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, Measurement, Metric, Published};
use crate::report_items::ReportItem;
use crate::results::View;

/// The paper of an experiment, or that it is one of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Maruyama, Kato, Azumi: Exploring the performance of ROS2 (EMSOFT 2016).
    M16,
    /// Macenski et al.: Impact of ROS 2 node composition in robotic systems (2023).
    C23,
    /// Fernandez et al.: Performance study of ROS 2 QoS and security (2020).
    F20,
    /// Kronauer et al.: Latency analysis of ROS2 multi-node systems (2021).
    K21,
    /// A benchmark of our own.
    Own,
}

impl Paper {
    pub fn citation(self) -> &'static str {
        match self {
            Self::M16 => {
                "Maruyama, Kato, Azumi: Exploring the performance of ROS2. EMSOFT 2016, doi 10.1145/2968478.2968502"
            }
            Self::C23 => {
                "Macenski, Soragna, Carroll, Ge: Impact of ROS 2 Node Composition in Robotic Systems. RA-L 2023"
            }
            Self::F20 => {
                "Fernandez, Allen, Thulasiraman, Bingham: Performance Study of the Robot Operating System 2 with QoS and Cyber Security Settings. SysCon 2020"
            }
            Self::K21 => {
                "Kronauer, Pohlmann, Matthe, Smejkal, Fettweis: Latency Analysis of ROS2 Multi-Node Systems. MFI 2021"
            }
            Self::Own => "Benchmarks of our own (docs/measurements)",
        }
    }
}

/// The implementations of a run and its extent.
#[derive(Clone, Debug)]
pub struct Scope {
    pub extent: Extent,
    /// Names of implementations, Pteros first, even if a program is missing.
    pub implementations: Vec<&'static str>,
}

impl Scope {
    /// The members of `wanted` that take part, in its order.
    pub fn among(&self, wanted: &[&'static str]) -> Vec<&'static str> {
        let takes_part = |name: &&&str| self.implementations.contains(*name);
        wanted.iter().filter(takes_part).copied().collect()
    }
}

/// An experiment of a paper, or a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its id, for example `m16.1`.
    pub id: &'static str,
    pub paper: Paper,
    /// A short title.
    pub title: &'static str,
    /// The figures and tables of the paper, for example `figs 7-10`, or the page of a
    /// benchmark.
    pub reproduces: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Its metrics. Findings and comparisons use mainly the first.
    pub metrics: &'static [Metric],
    pub configurations: fn(&Scope) -> Vec<Configuration>,
    /// Runs one repeat of one configuration.
    pub run: fn(&Lab, &Configuration) -> Result<Measurement, MeasurementFailure>,
    /// Published values.
    pub published: &'static [Published],
    /// Tables and figures of the results.
    pub report_items: fn(&View) -> Vec<ReportItem>,
}

impl Experiment {
    /// The metric of that name.
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}
