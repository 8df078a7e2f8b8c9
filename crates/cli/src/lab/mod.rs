//! `pteros lab`: published measurements, repeated, beside real peers.

mod compare;
mod list;
mod report;
mod run;
mod topology;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List the experiments
    List(list::List),
    /// Measure experiments beside other stacks, and report
    Run(run::Run),
    /// Write the report of a run anew, and print its summary
    Report(report::Report),
    /// Say what became better or worse from one run to another; exit code 1 if anything became worse
    Compare(compare::Compare),
    /// Run a graph of nodes from ros2-performance's JSON files, and measure it
    #[command(arg_required_else_help = true)]
    Topology(topology::TopologyVerb),
}

impl LabVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Run(verb) => verb.run(shared),
            Self::Report(verb) => verb.run(shared),
            Self::Compare(verb) => verb.run(shared),
            Self::Topology(verb) => verb.run(shared),
        }
    }
}
