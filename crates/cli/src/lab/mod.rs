//! `pteros lab`: repeats published measurements, with other stacks for comparison.

mod compare;
mod list;
mod report;
mod run;
mod topology;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List the experiments
    List(list::List),
    /// Measure experiments beside other stacks, and report
    Run(run::Run),
    /// Write the report of a run again, and print its summary
    Report(report::Report),
    /// Show what became better or worse between two runs; exit code 1 if anything
    /// became worse
    Compare(compare::Compare),
    /// Run a graph of nodes from ros2-performance's JSON files, and measure it
    #[command(arg_required_else_help = true)]
    Topology(topology::TopologyVerb),
}

impl LabVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Run(verb) => verb.run(cli),
            Self::Report(verb) => verb.run(cli),
            Self::Compare(verb) => verb.run(cli),
            Self::Topology(verb) => verb.run(cli),
        }
    }
}
