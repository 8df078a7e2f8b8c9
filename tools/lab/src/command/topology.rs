//! `pteros-lab topology`: graphs of nodes from JSON files, run and measured.

use super::setting::{Ending, Setting};
use anyhow::{Result, bail};
use clap::Args;
use pteros::msg::suggest::did_you_mean;
use pteros_lab::lab::topology_worker;
use pteros_lab::topology::{self, Division, ProcessResult, RunOptions, Shape};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Largest number of nodes in a generated file.
const NODES_MAX: usize = 1_000;

/// Run a graph of nodes from ros2-performance's JSON files, and measure it
#[derive(Debug, Args)]
#[command(
    after_help = "Each file is a process, as in irobot_benchmark. It stays on this host unless \
                  ROS_AUTOMATIC_DISCOVERY_RANGE or ROS_STATIC_PEERS say otherwise.\n\
                  A file: {\"nodes\": [{\"node_name\": \"a\", \"publishers\": [{\"topic_name\": \
                  \"t\", \"msg_type\": \"stamped10kb\", \"period_ms\": 10}]}]}"
)]
pub struct TopologyVerb {
    /// Topology files, JSON
    #[arg(value_name = "FILE", required_unless_present = "generate")]
    files: Vec<PathBuf>,
    /// Duration of the measurement in seconds
    #[arg(
        short = 't',
        long,
        value_name = "SECONDS",
        default_value_t = 5.0,
        allow_negative_numbers = true
    )]
    duration: f64,
    /// One process for all files
    #[arg(long, conflicts_with = "processes")]
    composed: bool,
    /// One process per node
    #[arg(long)]
    processes: bool,
    /// Serialize messages within a process too
    #[arg(long)]
    no_intra_process: bool,
    /// Number of threads per executor
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Folder for tables, events and samples
    #[arg(long, value_name = "DIR", default_value = "topology_log")]
    out: PathBuf,
    /// Only read the files and print errors and warnings
    #[arg(long)]
    check: bool,
    /// Print a file: chain, star, fan-in or all-to-all, and its number of nodes
    #[arg(long, num_args = 2, value_names = ["SHAPE", "N"], conflicts_with_all = ["files", "check"])]
    generate: Vec<String>,
    /// Message type of a generated file
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "stamped10b",
        requires = "generate"
    )]
    ty: String,
    /// Bytes of `data` in a generated file, for stamped_vector
    #[arg(long, value_name = "BYTES", requires = "generate")]
    size: Option<u64>,
    /// Messages per second of each publisher in a generated file
    #[arg(
        long,
        value_name = "HZ",
        default_value_t = 50.0,
        requires = "generate",
        allow_negative_numbers = true
    )]
    rate: f64,
}

impl TopologyVerb {
    /// Runs the verb.
    pub fn run(self, cli: &Setting) -> Result<Ending> {
        let mut library = cli.library()?;
        topology::add_to(&mut library);
        if let [shape, number] = self.generate.as_slice() {
            return self.generate(cli, shape, number);
        }
        let (topologies, warnings) = topology::check(&self.files, &library)?;
        for warning in &warnings {
            cli.console.note(format!("warning: {warning}"));
        }
        if self.check {
            let nodes: usize = topologies.iter().map(|one| one.nodes.len()).sum();
            let files = self.files.len();
            if cli.console.json {
                let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
                let output = json!({ "files": files, "nodes": nodes, "warnings": texts });
                cli.console.json(&output)?;
            } else {
                let text = format!("{files} files with {nodes} nodes can run");
                cli.console.line(text)?;
            }
            return Ok(Ending::Done);
        }
        let options = self.options(cli)?;
        let console = cli.console;
        let seconds = self.duration;
        let mut began = |processes| {
            console.note(format!(
                "{processes} processes have discovered each other; measuring for {seconds} s"
            ));
        };
        let outcome = topology::run(&self.files, &library, &options, &mut began)?;
        if console.json {
            let results = outcome.results.iter();
            let list: Vec<_> = results.map(ProcessResult::to_json).collect();
            console.json(&json!(list))?;
        } else {
            let text = topology::summary(&outcome.results);
            let out = options.out.display();
            console.line(format!("{text}\nTables, events and samples: {out}"))?;
        }
        Ok(if outcome.interrupted {
            Ending::Interrupted
        } else {
            Ending::Done
        })
    }

    fn options(&self, cli: &Setting) -> Result<RunOptions> {
        if !(0.1..=1e6).contains(&self.duration) {
            bail!("--duration {}: give 0.1 to 1000000 seconds", self.duration);
        }
        Ok(RunOptions {
            worker: topology_worker(&cli.interface_folders)?,
            duration: Duration::from_secs_f64(self.duration),
            division: match (self.composed, self.processes) {
                (true, _) => Division::Composed,
                (false, true) => Division::PerNode,
                (false, false) => Division::PerFile,
            },
            out: self.out.clone(),
            intra_process: !self.no_intra_process,
            threads: usize::from(self.threads),
            container: None,
        })
    }

    fn generate(&self, cli: &Setting, shape: &str, number: &str) -> Result<Ending> {
        let shapes = Shape::ALL.iter();
        let Some((_, shape)) = shapes.clone().find(|(name, _)| *name == shape) else {
            let hint = did_you_mean(shape, shapes.clone().map(|(name, _)| *name));
            let known: Vec<&str> = shapes.map(|(name, _)| *name).collect();
            bail!(
                "--generate {shape}: no such shape{hint} Known: {}",
                known.join(", ")
            );
        };
        let nodes = number.parse().ok().filter(|n| (2..=NODES_MAX).contains(n));
        let Some(nodes) = nodes else {
            bail!("--generate … {number}: give the number of nodes, 2 to {NODES_MAX}");
        };
        if !(0.001..=1e6).contains(&self.rate) {
            bail!(
                "--rate {}: give 0.001 to 1000000 messages per second",
                self.rate
            );
        }
        let value = topology::generate(*shape, nodes, &self.ty, self.rate, self.size);
        // An unknown type is reported here, not when the file is run.
        let text = value.to_string();
        let mut library = cli.library()?;
        topology::add_to(&mut library);
        let name = "the generated file".as_ref();
        topology::Topology::parse(name, &text, &library)?;
        cli.console.json(&value)?;
        Ok(Ending::Done)
    }
}
