//! One publisher and its subscriptions, each a process, or both ends in one: what
//! most experiments measure, the same for every stack.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use pteros_testbed::hosts::NAMES;
use pteros_testbed::process::value;
use pteros_testbed::{Contestant, Failure};

use crate::experiment::{Delivery, Measured};
use crate::lab::Lab;

/// How long processes may take to begin, to match and to end, beside sending.
const PATIENCE: Duration = Duration::from_secs(25);
/// What the slower stacks send without pause.
const BYTES_PER_SECOND: f64 = 500e6;
/// So long before the first message of a remote flow is counted for the first time.
const BEFORE_FIRST: Duration = Duration::from_millis(100);

/// What is sent, how, and to whom.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Both ends in one process.
    pub is_intra: bool,
    /// Within a process, but as bytes as between processes.
    pub is_serialized: bool,
    /// A string instead of a sequence of bytes.
    pub is_text: bool,
    /// Payload bytes.
    pub size: u64,
    /// Messages that count.
    pub count: u64,
    /// Messages before them.
    pub warmup: u64,
    /// Hz; 0 is as fast as possible.
    pub rate: u64,
    /// RELIABLE, else BEST_EFFORT.
    pub is_reliable: bool,
    /// TRANSIENT_LOCAL, else VOLATILE.
    pub is_transient_local: bool,
    /// KEEP_LAST with this depth; `None` is KEEP_ALL.
    pub depth: Option<u64>,
    /// DEADLINE, milliseconds; 0 is none. What comes later than that is late.
    pub deadline_ms: u64,
    /// Subscriptions, a process each.
    pub subscribers: usize,
    /// Whether the publisher waits for the subscriptions before it begins.
    pub waits_for_match: bool,
    /// SCHED_FIFO and mlockall where allowed.
    pub is_real_time: bool,
    /// Written into and read from memory that the stack lends.
    pub is_lent: bool,
}

impl Flow {
    /// About how long it takes.
    pub fn seconds(&self) -> f64 {
        let sending = match self.rate {
            0 => (self.count * self.size) as f64 / BYTES_PER_SECOND,
            rate => (self.count + self.warmup) as f64 / rate as f64,
        };
        // To start, to meet, to settle and to end.
        sending + 0.45
    }

    /// The words of a process with that part in it.
    pub(crate) fn words(&self, verb: &str, topic: &str) -> Vec<String> {
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
            ("--loan", yes(self.is_lent, "yes", "no").into()),
            ("--depth", self.depth.unwrap_or(10).to_string()),
            ("--deadline", self.deadline_ms.to_string()),
            (
                "--subscribers",
                match self.waits_for_match {
                    true => self.subscribers.to_string(),
                    false => "0".into(),
                },
            ),
            ("--settle", yes(self.waits_for_match, "200", "0").into()),
            ("--timeout", (self.seconds() as u64 + 6).to_string()),
        ];
        let mut words = vec![verb.to_owned()];
        for (name, value) in options {
            words.extend([name.to_owned(), value]);
        }
        // Other stacks' programs do not know it.
        if self.is_serialized {
            words.extend(["--serialize".to_owned(), "yes".to_owned()]);
        }
        words
    }
}

/// What one subscription heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Number, counted from 1, and latency in microseconds of every message that
    /// counts, in the order in which they came.
    pub messages: Vec<(u64, f64)>,
    /// Messages that came damaged.
    pub torn: u64,
    /// CPU time over wall time of the process while it received, 0 to the number
    /// of CPUs.
    pub load: f64,
    /// From the first to the last message, milliseconds.
    pub wall_ms: f64,
    /// As the stack tells it.
    pub path: String,
}

impl Heard {
    /// What became of `count` messages with that deadline.
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
            match std::mem::replace(seen, true) {
                true => delivery.duplicates += 1,
                false => delivery.received += 1,
            }
            delivery.disordered += u64::from(*number < highest);
            highest = highest.max(*number);
            let is_late = deadline_ms > 0 && *latency_us > deadline_ms as f64 * 1e3;
            delivery.late += u64::from(is_late);
        }
        delivery
    }
}

/// What a flow brought.
#[derive(Clone, Debug)]
pub struct Flowed {
    /// By subscription.
    pub heard: Vec<Heard>,
    /// The publisher's line: `sent …`; within a process the subscription's.
    pub sent: String,
}

impl Flowed {
    /// CPU time over wall time of all processes together while messages flowed; of both
    /// ends in one process that one's.
    pub fn load(&self) -> f64 {
        let heard = self.heard.iter().map(|h| h.load).sum::<f64>();
        if !self.sent.starts_with("sent") {
            return heard;
        }
        let of = |key: &str| value(&self.sent, key).and_then(|word| word.parse::<f64>().ok());
        let sent = of("cpu_ms")
            .zip(of("wall_ms"))
            .map(|(cpu, wall)| cpu / wall.max(1e-3));
        heard + sent.unwrap_or(0.0)
    }

    /// All latencies as samples of `latency`, and what became of the messages.
    pub fn measured(&self, flow: &Flow) -> Measured {
        let latencies = self.heard.iter().flat_map(|h| &h.messages).map(|m| m.1);
        let deliveries = self
            .heard
            .iter()
            .map(|h| h.delivery(flow.count, flow.deadline_ms));
        let torn: u64 = self.heard.iter().map(|h| h.torn).sum();
        Measured {
            samples: vec![("latency", latencies.collect())],
            delivery: deliveries.reduce(Delivery::and),
            path: self.heard.first().map(|h| h.path.clone()),
            notes: match torn {
                0 => Vec::new(),
                torn => vec![format!("{torn} messages came damaged")],
            },
            ..Measured::default()
        }
    }
}

/// Lets it flow, once.
///
/// # Errors
/// The stack has no such thing, or a process failed.
pub fn run(lab: &Lab, who: &Contestant, flow: &Flow) -> Result<Flowed, Failure> {
    run_placed(lab, who, flow, None)
}

/// The same from host to host, `settle` after they have met; `count` is asked for
/// bytes or whatever grows when discovery is over and when the last message came.
///
/// # Errors
/// There are no two hosts here, the stack has no such thing, or a process failed.
pub fn run_remote(
    lab: &Lab,
    who: &Contestant,
    flow: &Flow,
    settle: Duration,
    count: &dyn Fn() -> anyhow::Result<u64>,
) -> Result<(Flowed, u64), Failure> {
    lab.hosts()?;
    let remote = Remote {
        settle,
        count,
        grown: Cell::new(0),
    };
    let flowed = run_placed(lab, who, flow, Some(&remote))?;
    Ok((flowed, remote.grown.get()))
}

/// What a flow from host to host has beside others.
struct Remote<'a> {
    settle: Duration,
    count: &'a dyn Fn() -> anyhow::Result<u64>,
    grown: Cell<u64>,
}

fn run_placed(
    lab: &Lab,
    who: &Contestant,
    flow: &Flow,
    remote: Option<&Remote<'_>>,
) -> Result<Flowed, Failure> {
    let topic = lab.fresh_topic();
    let patience = PATIENCE + Duration::from_secs_f64(2.0 * flow.seconds());
    let file = |index: usize| lab.scratch_file(&format!("{topic}.{index}"));
    let with_file = |mut words: Vec<String>, index: usize| {
        words.extend([
            "--samples".into(),
            file(index).to_string_lossy().into_owned(),
        ]);
        words
    };
    if flow.is_intra {
        let words = with_file(flow.words("intra", &topic), 0);
        let mut both = lab.start(who, flow.is_real_time, words)?;
        let took = both.expect("took", patience)?;
        let heard = heard(&took, &file(0))?;
        return Ok(Flowed {
            heard: vec![heard],
            sent: took,
        });
    }
    let mut listening = Vec::new();
    for index in 0..flow.subscribers {
        let words = with_file(flow.words("sub", &topic), index);
        let host = remote.map(|_| NAMES[1]);
        listening.push(lab.start_on(host, who, flow.is_real_time, words)?);
    }
    // Who waits for a match may begin beside those that it waits for.
    if !flow.waits_for_match {
        for process in &mut listening {
            process.expect("ready", PATIENCE)?;
        }
    }
    let mut words = flow.words("pub", &topic);
    if let Some(remote) = remote {
        words.extend(["--settle".into(), remote.settle.as_millis().to_string()]);
    }
    let host = remote.map(|_| NAMES[0]);
    let mut publisher = lab.start_on(host, who, flow.is_real_time, words)?;
    let mut before = 0;
    if let Some(remote) = remote {
        publisher.expect("ready", PATIENCE)?;
        // They meet at once after that, and rest for the whole of the time.
        std::thread::sleep(remote.settle.saturating_sub(BEFORE_FIRST));
        before = (remote.count)()?;
    }
    let sent = publisher.expect("sent", patience)?;
    let mut all = Vec::new();
    for (index, process) in listening.iter_mut().enumerate() {
        let took = process.expect("took", patience)?;
        all.push(heard(&took, &file(index))?);
    }
    if let Some(remote) = remote {
        remote.grown.set((remote.count)()?.saturating_sub(before));
    }
    Ok(Flowed { heard: all, sent })
}

/// What a subscription says it heard, with the samples that it has left in a file.
pub(crate) fn heard(took: &str, file: &std::path::Path) -> anyhow::Result<Heard> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    fs::remove_file(file).with_context(|| format!("remove {}", file.display()))?;
    let of = |key: &str| -> anyhow::Result<f64> {
        value(took, key)
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("no {key} in {took}"))
    };
    Ok(Heard {
        messages: messages(&text).with_context(|| format!("read {}", file.display()))?,
        torn: of("torn")? as u64,
        load: of("cpu_ms")? / of("wall_ms")?.max(1e-3),
        wall_ms: of("wall_ms")?,
        path: value(took, "path").unwrap_or("").to_owned(),
    })
}

/// Reads what `--samples` writes: nanoseconds there, microseconds here.
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
        let heard = Heard {
            messages: messages(text).expect("samples"),
            torn: 0,
            load: 0.0,
            wall_ms: 0.0,
            path: String::new(),
        };
        heard.delivery(count, 100)
    }

    #[test]
    fn what_was_lost_repeated_late_or_out_of_order_is_counted() {
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
    fn who_heard_nothing_lost_all_of_it_at_the_beginning() {
        let nothing = delivery_of("sequence,latency_ns\n", 5);
        assert_eq!((nothing.lost(), nothing.initial_loss), (5, 5));
        assert!(messages("sequence,latency_ns\n1,x\n").is_err());
    }
}
