//! Measurement of one row, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::testbed::implementation::{PTEROS, ROSBAG2};
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};

use super::super::{TIMEOUT, number};
use super::rosbag2::Rosbag2;
use super::rows::{Kind, Load, Packing, Store};
use super::{
    BUFFER, CPU_MESSAGE, CPU_PER_GB, DELIVERY_ALONE, DELIVERY_BESIDE, MB_PER_S, MESSAGES_PER_S,
    PSS_PEAK, PUBLISH_ALONE, PUBLISH_BESIDE, PUBLISHED, QUEUE, RATE, RECEIVED, SPACING, TIMER,
    WIRE, WRITER, WRITTEN,
};
use crate::lab::{BAG, Lab};
use crate::measurement::{Delivery, Measurement};

/// Time between two looks at the recorder's memory.
const MEMORY_PERIOD: Duration = Duration::from_millis(100);
/// The file system in memory.
const TMPFS: &str = "/dev/shm";
/// Its number in statfs.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Measures a row.
pub fn measure(
    kind: Kind,
    lab: &Lab,
    implementation: &Implementation,
) -> Result<Measurement, MeasurementFailure> {
    let run = BagRun {
        lab,
        implementation,
    };
    match kind {
        Kind::Record { load, .. } if implementation.stack == ROSBAG2 => run.record_by_rosbag2(load),
        Kind::Record {
            load,
            packing,
            store,
        } => run.record(load, packing, store),
        Kind::Beside { load } => run.beside(load),
        Kind::Play { rate } => run.play(rate),
    }
}

/// Seconds of traffic of a row.
pub fn seconds(kind: Kind, lab_extent: crate::measurement::Extent) -> f64 {
    match kind {
        // Four flows.
        Kind::Beside { .. } => 4.0 * (1.5 + lab_extent.choose(0.1, 1.5, 5.0)),
        _ => 2.0 + lab_extent.choose(0.1, 2.0, 5.0),
    }
}

/// A folder for bags, removed at the end.
struct BagFolder(PathBuf);

impl Drop for BagFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct BagRun<'a> {
    lab: &'a Lab,
    implementation: &'a Implementation,
}

/// The lines of a flow.
struct Flowed {
    sent: String,
    /// Without a subscription, none.
    took: Option<String>,
    recorded: Option<Recorded>,
}

/// A recorder's line and memory.
struct Recorded {
    line: String,
    pss_peak_kb: u64,
}

impl BagRun<'_> {
    /// Starts a process of ours, also beside another recorder.
    fn start(&self, words: &str) -> Result<PeerProcess, MeasurementFailure> {
        let ours = match self.implementation.is_ours() {
            true => self.implementation,
            false => self.lab.implementation(PTEROS)?,
        };
        let mut process = ours.start(&format!("{BAG} {words}"), None)?;
        process.expect("ready", TIMEOUT)?;
        Ok(process)
    }

    fn publisher(
        &self,
        prefix: &str,
        load: Load,
        count: u64,
        subscriptions: u32,
    ) -> Result<PeerProcess, MeasurementFailure> {
        self.start(&format!(
            "publish --prefix {prefix} --topics {} --size {} --rate {} --count {count} --depth {} --subscriptions {subscriptions}",
            load.topics, load.bytes, load.rate, load.depth,
        ))
    }

    /// A folder in that store. The stores differ, or the row has no meaning.
    fn folder(&self, store: Store) -> Result<BagFolder, MeasurementFailure> {
        // The private one of the run, where there is one.
        self.lab.has_private_shared_memory();
        let (parent, is_right): (PathBuf, fn(bool) -> bool) = match store {
            Store::Tmpfs => (TMPFS.into(), |is_tmpfs| is_tmpfs),
            Store::Disk => (self.lab.scratch_file("bags"), |is_tmpfs| !is_tmpfs),
        };
        fs::create_dir_all(&parent)
            .map_err(|error| anyhow!("make {}: {error}", parent.display()))?;
        let about = rustix::fs::statfs(&parent)
            .map_err(|error| anyhow!("look at {}: {error}", parent.display()))?;
        let is_tmpfs = u64::try_from(about.f_type).is_ok_and(|kind| kind == TMPFS_MAGIC);
        if !is_right(is_tmpfs) {
            let found = if is_tmpfs { "a tmpfs" } else { "no tmpfs" };
            return Err(MeasurementFailure::Unsupported(format!(
                "{} is {found}; the row measures {store}, so give --out on a disk",
                parent.display()
            )));
        }
        let folder = parent.join(self.lab.fresh_topic());
        Ok(BagFolder(folder))
    }

    /// Publishes with a recorder, a subscription, or both.
    fn flow(
        &self,
        load: Load,
        count: u64,
        recorder: Option<(Packing, &Path)>,
        is_heard: bool,
    ) -> Result<Flowed, MeasurementFailure> {
        let prefix = self.lab.fresh_topic();
        let subscriptions = u32::from(is_heard) + u32::from(recorder.is_some());
        let mut publisher = self.publisher(&prefix, load, count, subscriptions)?;
        let mut listener = match is_heard {
            true => Some(self.start(&format!(
                "listen --topic {prefix}_0 --count {count} --depth {}",
                load.depth
            ))?),
            false => None,
        };
        let recording = match recorder {
            None => None,
            Some((packing, folder)) => {
                let folder = folder
                    .to_str()
                    .filter(|text| !text.contains(char::is_whitespace));
                let folder = folder.context("the folder of the run has a space in its name")?;
                let process = self.start(&format!(
                    "record --folder {folder} --compression {packing} --prefix {prefix} --topics {}",
                    load.topics
                ))?;
                Some(process)
            }
        };
        let timeout = timeout(load, count);
        let Some(mut recorder) = recording else {
            return Ok(Flowed {
                sent: publisher.expect("sent", timeout)?,
                took: listener
                    .as_mut()
                    .map(|process| process.expect("took", timeout))
                    .transpose()?,
                recorded: None,
            });
        };
        let watch = MemoryWatch::default();
        let id = recorder.id();
        std::thread::scope(|scope| {
            let peak = scope.spawn(|| watch.peak_kb(id));
            let flowed = (|| {
                let sent = publisher.expect("sent", timeout)?;
                let took = listener
                    .as_mut()
                    .map(|process| process.expect("took", timeout))
                    .transpose()?;
                let pid = i32::try_from(id).map_err(anyhow::Error::from)?;
                kill(Pid::from_raw(pid), Signal::SIGINT).map_err(anyhow::Error::from)?;
                let line = recorder.expect("recorded", timeout)?;
                Ok::<_, MeasurementFailure>((sent, took, line))
            })();
            watch.end();
            let pss_peak_kb = peak.join().unwrap_or(0);
            let (sent, took, line) = flowed?;
            Ok(Flowed {
                sent,
                took,
                recorded: Some(Recorded { line, pss_peak_kb }),
            })
        })
    }

    fn record(
        &self,
        load: Load,
        packing: Packing,
        store: Store,
    ) -> Result<Measurement, MeasurementFailure> {
        let folder = self.folder(store)?;
        let count = self.count(load);
        let flowed = self.flow(load, count, Some((packing, &folder.0)), false)?;
        let Some(recorded) = flowed.recorded else {
            return Err(MeasurementFailure::Failed("nothing was recorded".into()));
        };
        recording_figures(&flowed.sent, &recorded, load.bytes)
    }

    /// Messages of a recording.
    fn count(&self, load: Load) -> u64 {
        let ms = self.lab.extent.choose(100, 2000, 5000);
        (load.rate * ms / 1000).max(1)
    }

    /// The same publishers and ROS 2's recorder.
    fn record_by_rosbag2(&self, load: Load) -> Result<Measurement, MeasurementFailure> {
        let folder = self.folder(Store::Tmpfs)?;
        let count = self.count(load);
        let prefix = self.lab.fresh_topic();
        let mut publisher = self.publisher(&prefix, load, count, 1)?;
        let topics = (0..load.topics).map(|number| format!("/{prefix}_{number}"));
        let recorder = Rosbag2::start(self.implementation, &folder.0, topics)?;
        let watch = MemoryWatch::default();
        let id = recorder.id();
        let (sent, recorded) = std::thread::scope(|scope| {
            let peak = scope.spawn(|| watch.peak_kb(id));
            let sent = publisher.expect("sent", timeout(load, count));
            let recorded = sent.and_then(|sent| Ok((sent, recorder.finish(TIMEOUT)?)));
            watch.end();
            let peak = peak.join().unwrap_or(0);
            recorded.map(|(sent, recorded)| (sent, recorded.with_peak(peak)))
        })?;
        recorded.figures(&sent, load.bytes)
    }

    /// Alone, beside, beside and alone: a machine that grows slower or faster meanwhile
    /// changes both alike.
    fn beside(&self, load: Load) -> Result<Measurement, MeasurementFailure> {
        let ms = self.lab.extent.choose(100, 1500, 5000);
        let count = (load.rate * ms / 1000).max(1);
        let mut sums = [0.0; 4];
        for has_recorder in [false, true, true, false] {
            let folder = self.folder(Store::Tmpfs)?;
            let recorder = has_recorder.then_some((Packing::None, folder.0.as_path()));
            let flowed = self.flow(load, count, recorder, true)?;
            let took = flowed.took.unwrap_or_default();
            if number(&took, "lost")? > 0.0 {
                let why = format!("the subscription lost messages: {took}");
                return Err(MeasurementFailure::Failed(why));
            }
            if let Some(recorded) = &flowed.recorded {
                check_sums(&flowed.sent, &recorded.line)?;
            }
            let at = 2 * usize::from(has_recorder);
            sums[at] += number(&flowed.sent, "p95")? / 2.0;
            sums[at + 1] += number(&took, "p95")? / 2.0;
        }
        let [
            publish_alone,
            delivery_alone,
            publish_beside,
            delivery_beside,
        ] = sums;
        Ok(Measurement {
            values: vec![
                (PUBLISH_ALONE.name, publish_alone),
                (PUBLISH_BESIDE.name, publish_beside),
                (DELIVERY_ALONE.name, delivery_alone),
                (DELIVERY_BESIDE.name, delivery_beside),
            ],
            ..Measurement::default()
        })
    }

    fn play(&self, rate: u64) -> Result<Measurement, MeasurementFailure> {
        let folder = self.folder(Store::Tmpfs)?;
        let seconds = self.lab.extent.choose(0.2, 4.0, 20.0);
        let count = (rate as f64 * seconds) as u64;
        let topic = self.lab.fresh_topic();
        let line = format!(
            "{BAG} play --folder {} --topic {topic} --rate {rate} --count {count}",
            folder.0.display()
        );
        let mut player = self.implementation.start(&line, None)?;
        let timeout = TIMEOUT + Duration::from_secs_f64(4.0 * seconds);
        let spaced = player.expect("spaced", timeout)?;
        let timed = player.expect("timed", timeout)?;
        let mut values = Vec::new();
        for (line, metrics) in [(spaced, SPACING), (timed, TIMER)] {
            for (metric, key) in metrics.into_iter().zip(["p50", "p99", "max"]) {
                values.push((metric.name, number(&line, key)?));
            }
        }
        Ok(Measurement {
            values,
            ..Measurement::default()
        })
    }
}

/// Time limit for publishing so many messages, acknowledgements included.
fn timeout(load: Load, count: u64) -> Duration {
    2 * TIMEOUT + Duration::from_secs(3 * count / load.rate)
}

/// The largest PSS of a process, while it is watched.
#[derive(Default)]
struct MemoryWatch {
    is_over: AtomicBool,
}

impl MemoryWatch {
    fn peak_kb(&self, id: u32) -> u64 {
        let mut peak = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            // A process that is ending has no more memory.
            peak = peak.max(procfs::memory(id).map_or(0, |memory| memory.pss_kb));
            std::thread::sleep(MEMORY_PERIOD);
        }
        peak
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The causes of a loss, in the order of [`recording_figures`].
const CAUSES: [&str; 4] = ["wire", "queue", "buffer", "writer"];

/// Published, received, written, and lost by cause. They add up, or the row fails.
fn check_sums(sent: &str, recorded: &str) -> Result<[u64; 7], MeasurementFailure> {
    let whole = |line: &str, key: &str| number(line, key).map(|value| value as u64);
    let published = whole(sent, "count")?;
    let (received, written) = (whole(recorded, "received")?, whole(recorded, "written")?);
    let mut lost = [0; 4];
    for (cause, count) in CAUSES.iter().zip(&mut lost) {
        *count = whole(recorded, cause)?;
    }
    let [wire, queue, buffer, writer] = lost;
    if published != received + wire + queue || received != written + buffer + writer {
        return Err(MeasurementFailure::Failed(format!(
            "the numbers do not add up: published={published}, {recorded}"
        )));
    }
    Ok([published, received, written, wire, queue, buffer, writer])
}

fn recording_figures(
    sent: &str,
    recorded: &Recorded,
    bytes: u64,
) -> Result<Measurement, MeasurementFailure> {
    let line = &recorded.line;
    let counts = check_sums(sent, line)?;
    let [published, received, written, wire, queue, buffer, writer] = counts;
    let begin = number(sent, "begin_ns")?;
    let publish_seconds = (number(sent, "end_ns")? - begin) / 1e9;
    // The end is after the last byte is on the disk.
    let seconds = (number(line, "end_ns")? - begin) / 1e9;
    let megabytes = written as f64 * bytes as f64 / 1e6;
    let cpu_ms = number(line, "cpu_ms")?;
    Ok(Measurement {
        values: vec![
            (MB_PER_S.name, megabytes / seconds),
            (MESSAGES_PER_S.name, written as f64 / seconds),
            (RATE.name, published as f64 / publish_seconds),
            (PUBLISHED.name, published as f64),
            (RECEIVED.name, received as f64),
            (WRITTEN.name, written as f64),
            (WIRE.name, wire as f64),
            (QUEUE.name, queue as f64),
            (BUFFER.name, buffer as f64),
            (WRITER.name, writer as f64),
            (CPU_PER_GB.name, cpu_ms / megabytes),
            (CPU_MESSAGE.name, cpu_ms * 1e3 / written.max(1) as f64),
            (PSS_PEAK.name, recorded.pss_peak_kb as f64 / 1024.0),
        ],
        delivery: Some(Delivery {
            expected: published,
            received: written,
            ..Delivery::default()
        }),
        ..Measurement::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_numbers_do_not_add_up_fails() {
        let sent = "sent count=10 begin_ns=1000 end_ns=1000001000 cpu_ms=1";
        let recorded = |received: u64| Recorded {
            line: format!(
                "recorded received={received} written=6 wire=1 queue=1 buffer=2 writer=0 end_ns=2000001000 cpu_ms=3"
            ),
            pss_peak_kb: 2048,
        };
        let figures = recording_figures(sent, &recorded(8), 1_000_000).expect("they add up");
        assert_eq!(figures.values[0], (MB_PER_S.name, 3.0));
        assert_eq!(figures.values[10], (CPU_PER_GB.name, 0.5));
        let Err(MeasurementFailure::Failed(why)) = recording_figures(sent, &recorded(7), 1) else {
            panic!("a message is missing");
        };
        assert!(why.contains("do not add up: published=10"), "{why}");
    }
}
