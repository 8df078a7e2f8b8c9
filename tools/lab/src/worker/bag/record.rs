//! The recorder as `pteros bag record` runs it: one executor, the writer's thread beside.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use pteros_bag::mcap::Compression;
use pteros_bag::{BagOptions, RECORDER_LATENCY_BUDGET, Recorder, RecorderOptions, TopicFilter};

use super::process::{cpu_ns, monotonic_ns, open_with, topic_names};

/// As of the command.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Records until SIGINT.
#[derive(Debug, Args)]
pub struct Record {
    /// The new bag
    #[arg(long)]
    folder: PathBuf,
    /// none, lz4 or zstd
    #[arg(long)]
    compression: Compression,
    /// Start of the topics' names
    #[arg(long)]
    prefix: String,
    /// Topics to record
    #[arg(long)]
    topics: usize,
}

impl Record {
    pub fn run(self) -> Result<()> {
        let (context, node, executor) = open_with("bag_recorder", RECORDER_LATENCY_BUDGET)?;
        let options = RecorderOptions {
            filter: TopicFilter {
                topics: topic_names(&format!("/{}", self.prefix), self.topics),
                ..TopicFilter::default()
            },
            bag: BagOptions {
                compression: self.compression,
                ..BagOptions::default()
            },
            ..RecorderOptions::default()
        };
        let mut recorder = Recorder::start(&node, &self.folder, options)?;
        let mut cpu = None;
        while !context.is_shut_down() {
            for note in recorder.poll(Instant::now()) {
                if note.starts_with("WARNING") {
                    eprintln!("{note}");
                }
            }
            if cpu.is_none() && recorder.topics().count() == self.topics {
                println!("ready");
                cpu = Some(cpu_ns());
            }
            executor.spin_until(|| false, POLL_PERIOD);
        }
        let summary = recorder.finish()?;
        if let Some(problem) = summary.problem {
            bail!("{}: {problem}", self.folder.display());
        }
        let sum = |field: fn(&pteros_bag::accounting::TopicAccount) -> u64| -> u64 {
            summary.accounts.values().map(field).sum()
        };
        println!(
            "recorded received={} written={} wire={} queue={} buffer={} writer={} end_ns={} cpu_ms={:.3}",
            sum(|account| account.received),
            sum(|account| account.written),
            sum(|account| account.lost_wire),
            sum(|account| account.lost_queue),
            sum(|account| account.lost_buffer),
            sum(|account| account.lost_writer),
            monotonic_ns(),
            (cpu_ns() - cpu.unwrap_or(0)) as f64 / 1e6,
        );
        Ok(())
    }
}
