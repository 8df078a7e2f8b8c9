//! ROS 2's own recorder, `ros2 bag record`, fed by the publishers of our rows.
//!
//! It says what it wrote (`metadata.yaml`) and what its cache dropped. It does not know
//! what was lost before.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::{TIMEOUT, number};
use super::{
    BUFFER, CPU_MESSAGE, CPU_PER_GB, MB_PER_S, MESSAGES_PER_S, PSS_PEAK, PUBLISHED, RATE, WRITTEN,
};
use crate::measurement::{Delivery, Measurement};
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};

/// Its line when it has subscribed to everything.
const READY: &str = "All requested topics are subscribed";
/// Its line when the bag is complete.
const STOPPED: &str = "Recording stopped";
/// Begins its line with the messages that its cache dropped.
const DROPPED: &str = "Total lost: ";

/// A recorder that has subscribed.
pub(super) struct Rosbag2 {
    process: PeerProcess,
    folder: PathBuf,
    /// CPU time before the first message.
    cpu_ms: f64,
}

/// The result of a recorder that has ended.
pub(super) struct Recorded {
    written: u64,
    dropped: u64,
    cpu_ms: f64,
    /// From the interrupt until the bag was complete.
    ending: Duration,
    pss_peak_kb: u64,
}

impl Rosbag2 {
    pub(super) fn start(
        recorder: &Implementation,
        folder: &Path,
        topics: impl Iterator<Item = String>,
    ) -> Result<Self, MeasurementFailure> {
        let mut words = vec!["-o".to_owned(), folder.display().to_string()];
        words.push("--topics".to_owned());
        words.extend(topics);
        let mut process = recorder.start_with_prefix(&[], &words)?;
        process.expect_line(READY, |line| line.contains(READY), TIMEOUT)?;
        let cpu_ms = procfs::whole_cpu_ms(process.id())?;
        Ok(Self {
            process,
            folder: folder.to_owned(),
            cpu_ms,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Interrupts it, and waits until the bag is complete.
    pub(super) fn finish(mut self, timeout: Duration) -> Result<Recorded, MeasurementFailure> {
        let id = self.process.id();
        let pid = i32::try_from(id).map_err(anyhow::Error::from)?;
        let begin = Instant::now();
        kill(Pid::from_raw(pid), Signal::SIGINT).map_err(anyhow::Error::from)?;
        let dropped = Cell::new(0);
        let is_stopped = |line: &str| {
            if let Some((_, count)) = line.split_once(DROPPED) {
                dropped.set(count.trim().parse().unwrap_or(0));
            }
            line.contains(STOPPED)
        };
        self.process.expect_line(STOPPED, is_stopped, timeout)?;
        let ending = begin.elapsed();
        let cpu_ms = procfs::whole_cpu_ms(id)? - self.cpu_ms;
        let path = self.folder.join("metadata.yaml");
        let metadata =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Recorded {
            written: message_count(&metadata)?,
            dropped: dropped.get(),
            cpu_ms,
            ending,
            pss_peak_kb: 0,
        })
    }
}

/// The messages of all topics in a `metadata.yaml`.
fn message_count(metadata: &str) -> Result<u64> {
    let mut lines = metadata.lines();
    let count = lines.find_map(|line| line.strip_prefix("  message_count: "));
    let count = count.context("metadata.yaml has no message_count")?;
    count
        .trim()
        .parse()
        .context("message_count of metadata.yaml")
}

impl Recorded {
    pub(super) fn with_peak(self, pss_peak_kb: u64) -> Self {
        Self {
            pss_peak_kb,
            ..self
        }
    }

    /// Its figures beside the publisher's line. The time is that of publishing and of
    /// ending, without the wait for acknowledgements between them.
    pub(super) fn figures(
        &self,
        sent: &str,
        bytes: u64,
    ) -> Result<Measurement, MeasurementFailure> {
        let published = number(sent, "count")?;
        let publishing = (number(sent, "end_ns")? - number(sent, "begin_ns")?) / 1e9;
        let seconds = publishing + self.ending.as_secs_f64();
        let written = self.written as f64;
        let megabytes = written * bytes as f64 / 1e6;
        let mut values = vec![
            (MB_PER_S.name, megabytes / seconds),
            (MESSAGES_PER_S.name, written / seconds),
            (RATE.name, published / publishing),
            (PUBLISHED.name, published),
            (WRITTEN.name, written),
            (BUFFER.name, self.dropped as f64),
            (PSS_PEAK.name, self.pss_peak_kb as f64 / 1024.0),
        ];
        // Without a message there is no cost of one.
        if self.written > 0 {
            values.push((CPU_PER_GB.name, self.cpu_ms / megabytes));
            values.push((CPU_MESSAGE.name, self.cpu_ms * 1e3 / written));
        }
        Ok(Measurement {
            values,
            delivery: Some(Delivery {
                expected: published as u64,
                received: self.written,
                ..Delivery::default()
            }),
            ..Measurement::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_a_bag_is_not_that_of_a_topic() {
        let metadata = "rosbag2_bagfile_information:\n  version: 9\n  message_count: 400\n  \
                        topics_with_message_count:\n    - topic_metadata:\n      message_count: 200\n";
        assert_eq!(message_count(metadata).unwrap(), 400);
        assert!(message_count("  version: 9\n").is_err());
    }

    #[test]
    fn the_wait_for_acknowledgements_is_no_part_of_a_rate() {
        let recorded = Recorded {
            written: 5,
            dropped: 1,
            cpu_ms: 10.0,
            ending: Duration::from_secs(1),
            pss_peak_kb: 2048,
        };
        let sent = "sent count=10 begin_ns=1000 end_ns=1000001000 cpu_ms=1";
        let figures = recorded.figures(sent, 1_000_000).unwrap();
        assert_eq!(figures.values[0], (MB_PER_S.name, 2.5));
        assert_eq!(figures.values[2], (RATE.name, 10.0));
        assert_eq!(figures.values[7], (CPU_PER_GB.name, 2.0));
        assert_eq!(figures.delivery.unwrap().lost(), 5);
    }
}
