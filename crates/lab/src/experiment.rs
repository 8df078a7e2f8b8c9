//! What an experiment is: plain data and three functions.
//!
//! A new experiment is one file below `experiments/` with a constant
//! [`Experiment`] in it, and its line in `experiments::ALL`. Its *cells* are what is measured
//! (size × policies × situation × contestant); the runner measures each so many times, in turns,
//! keeps the raw samples and hands all of it back to [`Experiment::exhibits`].

use std::fmt;

use pteros_testbed::Failure;

use crate::exhibit::Exhibit;
use crate::lab::Lab;
use crate::results::View;

/// Whose experiment it is.
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
}

impl Paper {
    /// As it is cited.
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
        }
    }
}

/// How much of an experiment is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// The least that goes through all layers, in seconds: says whether it works.
    Smoke,
    /// Some values of each parameter, fewer samples; all papers in 20 minutes.
    Quick,
    /// The paper's own values, counts and durations.
    Full,
}

impl Extent {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// Which of three, for this extent.
    pub fn choose<T>(self, smoke: T, quick: T, full: T) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    /// How often each cell is measured unless asked otherwise.
    pub fn repeats(self) -> usize {
        self.choose(1, 3, 5)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latency, memory.
    Lower,
    /// Throughput.
    Higher,
    /// Neither: it is only told.
    Neither,
}

/// One number of a repeat: the statistic of many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The middle one.
    Median,
    /// All but the slowest twentieth are below.
    P95,
    /// The average.
    Mean,
}

/// Something that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// As tables and files call it.
    pub name: &'static str,
    /// `us`, `kB`, `MB/s`, …; empty for counts.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What stands for a repeat where it has many samples.
    pub statistic: Statistic,
}

/// The metric of most experiments.
pub const LATENCY: Metric = Metric {
    name: "latency",
    unit: "us",
    better: Better::Lower,
    statistic: Statistic::Median,
};

/// One case of an experiment, measured of one contestant.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Parameters by name, the same names in the same order in all cells of an
    /// experiment. No value has a comma, a quote or a line break.
    pub case: Vec<(&'static str, String)>,
    /// The contestant's name.
    pub contestant: &'static str,
    /// About how long one repeat takes, for the remaining time.
    pub seconds: f64,
}

impl Cell {
    /// A parameter's value; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.case.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    /// A parameter that is a number; 0 if it is none.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// What tells it from every other cell of its experiment.
    pub fn key(&self) -> String {
        format!("{} {}", case_text(&self.case), self.contestant)
    }
}

/// `qos=reliable size=1024`.
pub fn case_text(case: &[(&'static str, String)]) -> String {
    let words: Vec<String> = case.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(" ")
}

/// What one repeat of a cell brought.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Raw samples by the metric's name, as they came.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// Single figures by the metric's name.
    pub figures: Vec<(&'static str, f64)>,
    /// What became of the messages, where there were any.
    pub delivery: Option<Delivery>,
    /// By which path they came, as the stack tells.
    pub path: Option<String>,
    /// What else is to be said, as `SCHED_FIFO refused`.
    pub notes: Vec<String>,
}

/// What became of messages, summed over subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// That should have come: published, times subscriptions.
    pub expected: u64,
    /// That came, each counted once.
    pub received: u64,
    /// That came again.
    pub duplicates: u64,
    /// That came behind one published later.
    pub disordered: u64,
    /// That came later than their deadline.
    pub late: u64,
    /// Missing before the first one that came.
    pub initial_loss: u64,
}

impl Delivery {
    /// That never came.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    /// Both together.
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

/// A value that the paper printed.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The parameters it is for; cells that agree with all of them show it.
    pub case: &'static [(&'static str, &'static str)],
    /// Whose: `OpenSplice`, `ROS 1`.
    pub who: &'static str,
    /// As printed, with its unit.
    pub value: &'static str,
    /// Where in the paper: `table 7`.
    pub place: &'static str,
}

/// Who is there to be measured, and how much is wanted.
#[derive(Clone, Debug)]
pub struct Scope {
    /// How much.
    pub extent: Extent,
    /// Contestants' names, ours first, whether or not their programs are there.
    pub contestants: Vec<&'static str>,
}

impl Scope {
    /// Those of `wanted` that take part, in `wanted`'s order.
    pub fn among(&self, wanted: &[&'static str]) -> Vec<&'static str> {
        let takes_part = |name: &&&str| self.contestants.contains(*name);
        wanted.iter().filter(takes_part).copied().collect()
    }
}

/// One experiment of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `m16.1`.
    pub id: &'static str,
    /// Whose it is.
    pub paper: Paper,
    /// A few words.
    pub title: &'static str,
    /// The paper's figures and tables: `figs 7-10`.
    pub shows: &'static str,
    /// The question it answers.
    pub asks: &'static str,
    /// What is measured; the first is what findings and comparisons look at most.
    pub metrics: &'static [Metric],
    /// Its cells.
    pub cells: fn(&Scope) -> Vec<Cell>,
    /// One repeat of one cell.
    pub run: fn(&Lab, &Cell) -> Result<Measured, Failure>,
    /// What the paper printed.
    pub published: &'static [Published],
    /// Tables and figures of what was measured.
    pub exhibits: fn(&View) -> Vec<Exhibit>,
}

impl Experiment {
    /// The metric of that name.
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}
