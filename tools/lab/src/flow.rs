//! Flow: one publisher and its subscriptions, each in a process, or both in one.
//! Most experiments measure a flow, in the same way for every stack.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use crate::testbed::hosts::NAMES;
use crate::testbed::process::value;
use crate::testbed::{EmulatedLink, Implementation, MeasurementFailure};
use anyhow::Context;

use crate::lab::Lab;
use crate::measurement::{Delivery, Measurement};

/// Time for start, matching and end, in addition to sending.
const TIMEOUT: Duration = Duration::from_secs(25);
/// Rate of the slower stacks without pauses.
const BYTES_PER_SECOND: f64 = 500e6;
/// The first count of a remote flow happens this long before its first message.
const FIRST_COUNT_LEAD: Duration = Duration::from_millis(100);

/// Messages, QoS and endpoints of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Both endpoints in one process.
    pub is_intra: bool,
    /// Serialized within a process, as between processes.
    pub is_serialized: bool,
    /// A string instead of a byte sequence.
    pub is_text: bool,
    /// Payload bytes.
    pub size: u64,
    /// Number of measured messages.
    pub count: u64,
    /// Number of warm-up messages before.
    pub warmup: u64,
    /// Publish rate in Hz. 0 is as fast as possible.
    pub rate: u64,
    /// RELIABLE, otherwise BEST_EFFORT.
    pub is_reliable: bool,
    /// TRANSIENT_LOCAL, otherwise VOLATILE.
    pub is_transient_local: bool,
    /// Depth of KEEP_LAST. `None` is KEEP_ALL.
    pub depth: Option<u64>,
    /// DEADLINE in milliseconds. 0 is none. A later message counts as late.
    pub deadline_ms: u64,
    /// Number of subscriptions, each in a process.
    pub subscribers: usize,
    /// Whether the publisher waits until all subscriptions are matched.
    pub waits_for_match: bool,
    /// Uses SCHED_FIFO and mlockall if allowed.
    pub is_real_time: bool,
    /// Uses loaned messages.
    pub is_loaned: bool,
}

impl Flow {
    /// Approximate duration in seconds.
    pub fn seconds(&self) -> f64 {
        let sending = match self.rate {
            0 => (self.count * self.size) as f64 / BYTES_PER_SECOND,
            rate => (self.count + self.warmup) as f64 / rate as f64,
        };
        // Start, matching, settling and end.
        sending + 0.45
    }

    /// The arguments of a process of the flow.
    pub(crate) fn arguments(&self, verb: &str, topic: &str) -> Vec<String> {
        let yes = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
        let options = [
            ("--topic", topic.to_owned()),
            ("--type", yes(self.is_text, "string", "bytes").into()),
            ("--size", self.size.to_string()),
            ("--count", self.count.to_string()),
            ("--warmup", self.warmup.to_string()),
            ("--rate", self.rate.to_string()),
            (
                "--reliability",
                yes(self.is_reliable, "reliable", "best_effort").into(),
            ),
            (
                "--durability",
                yes(self.is_transient_local, "transient_local", "volatile").into(),
            ),
            (
                "--history",
                yes(self.depth.is_none(), "keep_all", "keep_last").into(),
            ),
            ("--loan", yes(self.is_loaned, "yes", "no").into()),
            ("--depth", self.depth.unwrap_or(10).to_string()),
            ("--deadline", self.deadline_ms.to_string()),
            (
                "--subscribers",
                if self.waits_for_match {
                    self.subscribers.to_string()
                } else {
                    "0".into()
                },
            ),
            ("--settle", yes(self.waits_for_match, "200", "0").into()),
            ("--timeout", (self.seconds() as u64 + 6).to_string()),
        ];
        let mut arguments = vec![verb.to_owned()];
        for (name, value) in options {
            arguments.extend([name.to_owned(), value]);
        }
        // Programs of other stacks do not have this option.
        if self.is_serialized {
            arguments.extend(["--serialize".to_owned(), "yes".to_owned()]);
        }
        arguments
    }
}

/// Messages that one subscription received.
#[derive(Clone, Debug)]
pub struct SubscriptionResult {
    /// Number from 1 and latency in microseconds of every measured message, in the
    /// order of arrival.
    pub messages: Vec<(u64, f64)>,
    /// Corrupted messages.
    pub corrupted: u64,
    /// CPU time divided by wall time while receiving, from 0 to the number of CPUs.
    pub load: f64,
    /// Milliseconds from the first to the last message.
    pub wall_ms: f64,
    /// The transport, as the stack reports it.
    pub path: String,
}

impl SubscriptionResult {
    /// Delivery counts of `count` messages with that deadline.
    pub fn delivery(&self, count: u64, deadline_ms: u64) -> Delivery {
        let mut seen = vec![false; usize::try_from(count).unwrap_or(0) + 1];
        let mut delivery = Delivery {
            expected: count,
            initial_loss: self.messages.first().map_or(count, |(first, _)| first - 1),
            ..Delivery::default()
        };
        let mut highest = 0;
        for (number, latency_us) in &self.messages {
            let Some(seen) = usize::try_from(*number)
                .ok()
                .and_then(|at| seen.get_mut(at))
            else {
                continue;
            };
            if std::mem::replace(seen, true) {
                delivery.duplicates += 1
            } else {
                delivery.received += 1
            }
            delivery.disordered += u64::from(*number < highest);
            highest = highest.max(*number);
            let is_late = deadline_ms > 0 && *latency_us > deadline_ms as f64 * 1e3;
            delivery.late += u64::from(is_late);
        }
        delivery
    }
}

#[derive(Clone, Debug)]
pub struct FlowResult {
    /// By subscription.
    pub results: Vec<SubscriptionResult>,
    /// The publisher's line `sent …`; within a process that of the subscription.
    pub sent: String,
}

impl FlowResult {
    /// CPU time divided by wall time of all processes while messages flowed.
    pub fn load(&self) -> f64 {
        let results = self.results.iter().map(|h| h.load).sum::<f64>();
        if !self.sent.starts_with("sent") {
            return results;
        }
        let of = |key: &str| value(&self.sent, key).and_then(|word| word.parse::<f64>().ok());
        let sent = of("cpu_ms")
            .zip(of("wall_ms"))
            .map(|(cpu, wall)| cpu / wall.max(1e-3));
        results + sent.unwrap_or(0.0)
    }

    /// The latencies as samples of `latency`, and the delivery counts.
    pub fn measured(&self, flow: &Flow) -> Measurement {
        let latencies = self.results.iter().flat_map(|h| &h.messages).map(|m| m.1);
        let deliveries = self
            .results
            .iter()
            .map(|h| h.delivery(flow.count, flow.deadline_ms));
        let corrupted: u64 = self.results.iter().map(|h| h.corrupted).sum();
        Measurement {
            samples: vec![("latency", latencies.collect())],
            delivery: deliveries.reduce(Delivery::and),
            path: self.results.first().map(|h| h.path.clone()),
            notes: match corrupted {
                0 => Vec::new(),
                corrupted => vec![format!("{corrupted} messages were corrupted")],
            },
            ..Measurement::default()
        }
    }
}

/// Runs a flow once.
///
/// # Errors
/// The stack does not have the feature, or a process failed.
pub fn run(
    lab: &Lab,
    implementation: &Implementation,
    flow: &Flow,
) -> Result<FlowResult, MeasurementFailure> {
    run_on_hosts(lab, implementation, flow, None)
}

/// Runs a flow from host to host over `link`, `settle` after matching. `count` reads a counter,
/// for example bytes on the link, after discovery and after the last message.
/// Returns the difference.
///
/// # Errors
/// There are no two hosts, the stack does not have the feature, or a process
/// failed.
pub fn run_remote(
    lab: &Lab,
    implementation: &Implementation,
    flow: &Flow,
    link: EmulatedLink,
    settle: Duration,
    count: &dyn Fn() -> anyhow::Result<u64>,
) -> Result<(FlowResult, u64), MeasurementFailure> {
    lab.join_hosts(link)?;
    let remote = Remote {
        settle,
        count,
        counter_delta: Cell::new(0),
    };
    let flowed = run_on_hosts(lab, implementation, flow, Some(&remote))?;
    Ok((flowed, remote.counter_delta.get()))
}

/// Additional parts of a flow from host to host.
struct Remote<'a> {
    settle: Duration,
    count: &'a dyn Fn() -> anyhow::Result<u64>,
    counter_delta: Cell<u64>,
}

fn run_on_hosts(
    lab: &Lab,
    implementation: &Implementation,
    flow: &Flow,
    remote: Option<&Remote<'_>>,
) -> Result<FlowResult, MeasurementFailure> {
    let topic = lab.fresh_topic();
    let timeout = TIMEOUT + Duration::from_secs_f64(2.0 * flow.seconds());
    let file = |index: usize| lab.scratch_file(&format!("{topic}.{index}"));
    let with_file = |mut arguments: Vec<String>, index: usize| {
        arguments.extend([
            "--samples".into(),
            file(index).to_string_lossy().into_owned(),
        ]);
        arguments
    };
    if flow.is_intra {
        let arguments = with_file(flow.arguments("intra", &topic), 0);
        let mut both = lab.start(implementation, flow.is_real_time, arguments)?;
        let took = both.expect("took", timeout)?;
        let result = read_subscription_result(&took, &file(0))?;
        return Ok(FlowResult {
            results: vec![result],
            sent: took,
        });
    }
    let mut subscriptions = Vec::new();
    for index in 0..flow.subscribers {
        let arguments = with_file(flow.arguments("sub", &topic), index);
        let host = remote.map(|_| NAMES[1]);
        subscriptions.push(lab.start_on(host, implementation, flow.is_real_time, arguments)?);
    }
    // A publisher that waits for matching may start together with subscriptions.
    if !flow.waits_for_match {
        for process in &mut subscriptions {
            process.expect("ready", TIMEOUT)?;
        }
    }
    let mut arguments = flow.arguments("pub", &topic);
    if let Some(remote) = remote {
        arguments.extend(["--settle".into(), remote.settle.as_millis().to_string()]);
    }
    let host = remote.map(|_| NAMES[0]);
    let mut publisher = lab.start_on(host, implementation, flow.is_real_time, arguments)?;
    let mut before = 0;
    if let Some(remote) = remote {
        publisher.expect("ready", TIMEOUT)?;
        // Matching happens right after. The rest of the time is idle.
        std::thread::sleep(remote.settle.saturating_sub(FIRST_COUNT_LEAD));
        before = (remote.count)()?;
    }
    let sent = publisher.expect("sent", timeout)?;
    let mut all = Vec::new();
    for (index, process) in subscriptions.iter_mut().enumerate() {
        let took = process.expect("took", timeout)?;
        all.push(read_subscription_result(&took, &file(index))?);
    }
    if let Some(remote) = remote {
        remote
            .counter_delta
            .set((remote.count)()?.saturating_sub(before));
    }
    Ok(FlowResult { results: all, sent })
}

/// Parses the line of a subscription and its file of samples.
pub(crate) fn read_subscription_result(
    took: &str,
    file: &std::path::Path,
) -> anyhow::Result<SubscriptionResult> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    fs::remove_file(file).with_context(|| format!("remove {}", file.display()))?;
    let of = |key: &str| -> anyhow::Result<f64> {
        value(took, key)
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("no {key} in {took}"))
    };
    Ok(SubscriptionResult {
        messages: messages(&text).with_context(|| format!("read {}", file.display()))?,
        corrupted: of("torn")? as u64,
        load: of("cpu_ms")? / of("wall_ms")?.max(1e-3),
        wall_ms: of("wall_ms")?,
        path: value(took, "path").unwrap_or("").to_owned(),
    })
}

/// Parses the file of `--samples`: nanoseconds in the file, microseconds here.
fn messages(text: &str) -> anyhow::Result<Vec<(u64, f64)>> {
    let line = |line: &str| {
        let (number, latency) = line.split_once(',')?;
        Some((number.parse().ok()?, latency.parse::<f64>().ok()? / 1e3))
    };
    text.lines()
        .skip(1)
        .map(|text| line(text).with_context(|| format!("no sample: {text:?}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery_of(text: &str, count: u64) -> Delivery {
        let results = SubscriptionResult {
            messages: messages(text).expect("samples"),
            corrupted: 0,
            load: 0.0,
            wall_ms: 0.0,
            path: String::new(),
        };
        results.delivery(count, 100)
    }

    #[test]
    fn lost_duplicate_late_and_reordered_messages_are_counted() {
        let text = "sequence,latency_ns\n2,1000\n3,1000\n3,2000\n6,101000000\n5,1000\n";
        let expected = Delivery {
            expected: 6,
            received: 4,
            duplicates: 1,
            disordered: 1,
            late: 1,
            initial_loss: 1,
        };
        assert_eq!(delivery_of(text, 6), expected);
        assert_eq!(expected.lost(), 2);
    }

    #[test]
    fn a_subscriber_without_messages_counts_all_as_lost_at_the_start() {
        let nothing = delivery_of("sequence,latency_ns\n", 5);
        assert_eq!((nothing.lost(), nothing.initial_loss), (5, 5));
        assert!(messages("sequence,latency_ns\n1,x\n").is_err());
    }
}
