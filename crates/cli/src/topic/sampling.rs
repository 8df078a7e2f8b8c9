//! Sampling of topics for `hz`, `bw` and `delay`: waits until a topic is published,
//! receives serialized messages, and prints every second.

use super::lookup::only_type;
use super::mismatch::MismatchReporter;
use crate::cli_context::CliContext;
use crate::misspelt::{not_published, refuse_misspelt};
use crate::pace::Pace;
use crate::session::{DiscoveryFlags, Session};
use crate::sim_time::{SessionClock, SimTimeFlag};
use anyhow::{Result, bail};
use clap::Args;
use pteros::NamedQosExt;
use pteros::qos::QosProfile;
use pteros::subscription::SerializedMessage;
use pteros::subscription::SerializedType;
use pteros::{Sample, Subscription, SubscriptionOptions};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Flags of the measuring verbs.
#[derive(Clone, Copy, Debug, Args)]
pub struct SamplingFlags {
    /// Stop after this many seconds; it is an error if no message was received
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    timeout: Option<Duration>,
    /// Accepted for compatibility with ros2: the graph is watched all the time
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    spin_time: Option<Duration>,
    #[command(flatten)]
    pub sim_time: SimTimeFlag,
}

/// A serialized message with its reception times.
pub struct TimedSample {
    /// The message.
    pub sample: Sample<SerializedMessage>,
    /// Reception in seconds since 1970, or in simulated time; `None` before the first
    /// `/clock` message.
    pub seconds: Option<f64>,
    /// The same by a clock that never jumps, unless the time is simulated.
    pub steady_seconds: Option<f64>,
}

/// Serialized messages of one topic.
pub struct TopicSamples {
    /// The topic's full name.
    pub topic: String,
    pub type_name: String,
    /// Its messages, serialized, in order.
    pub samples: Receiver<TimedSample>,
    /// Ends the subscription when dropped.
    _subscription: Subscription<SerializedMessage>,
}

impl SamplingFlags {
    /// The end time, counted from now.
    pub fn end(self) -> Option<Instant> {
        self.timeout.map(|timeout| Instant::now() + timeout)
    }
}

/// Waits until the topic is published, then subscribes to it. The type may be
/// unknown, since messages are counted and not decoded. `None` after the timeout or
/// Ctrl-C.
pub fn subscribe_when_published(
    session: &Session,
    clock: &SessionClock,
    cli: &CliContext,
    name: &str,
    end: Option<Instant>,
) -> Result<Option<TopicSamples>> {
    let topic = session.topic(name)?;
    let graph = session.context.graph();
    let (mut checked, mut warned) = (false, false);
    let started = Instant::now();
    let (type_name, type_hash) = loop {
        let revision = graph.revision();
        let publishers = graph.publishers(&topic);
        if let Some(publisher) = publishers.first() {
            let known = session
                .topics(&graph)
                .into_iter()
                .find(|known| known.name == topic);
            if let Some(known) = known {
                let hint = format!(
                    "stop the publishers of the other types; list them with: pteros topic info -v {topic}"
                );
                break (only_type(&known, &hint)?, publisher.type_hash);
            }
        }
        if session.context.is_shut_down() || is_over(end) {
            return Ok(None);
        }
        if !checked {
            checked = true;
            let graph = session.discover(&DiscoveryFlags::default());
            let known = session.topics(&graph);
            let names = known.iter().map(|known| known.name.as_str());
            refuse_misspelt("topic", &topic, names, "pteros topic list")?;
            continue;
        }
        if !warned && started.elapsed() > PUBLISHED_TIMEOUT {
            let known = session.topics(&graph);
            let names = known.iter().map(|known| known.name.as_str());
            cli.console.note(not_published(&topic, names));
            warned = true;
        }
        graph.wait_for_change(revision, PUBLISHED_TIMEOUT);
    };
    let (sender, samples) = channel();
    // Deeper than the 5 of sensor_data, so that no measured message is dropped
    // here.
    let qos = QosProfile::sensor_data().keep_last(DEPTH);
    let clock = clock.clone();
    let subscription = session.node.create_subscription::<SerializedMessage>(
        SubscriptionOptions::of_type(
            &SerializedType::new(&type_name, type_hash).any_version(),
            name.qos(session.qos(qos)),
        ),
        move |sample| {
            // The receiver lives as long as the subscription.
            let _ = sender.send(TimedSample {
                seconds: clock.seconds_at(sample.info().received_timestamp),
                steady_seconds: clock.steady_seconds(),
                sample,
            });
        },
    )?;
    Ok(Some(TopicSamples {
        topic,
        type_name,
        samples,
        _subscription: subscription,
    }))
}

/// Spins until the end time or Ctrl-C. Calls `take` whenever messages may have
/// arrived, `print` every second, and `print` at the end time.
#[allow(clippy::too_many_arguments, reason = "a loop and its three callbacks")]
pub fn run_every_second<T>(
    session: &Session,
    clock: &SessionClock,
    cli: &CliContext,
    topics: &[String],
    end: Option<Instant>,
    state: &mut T,
    mut take: impl FnMut(&mut T) -> Result<()>,
    mut print: impl FnMut(&mut T) -> Result<()>,
) -> Result<()> {
    let graph = session.context.graph();
    let mut mismatches: Vec<MismatchReporter<'_>> = topics
        .iter()
        .map(|topic| MismatchReporter::new(&graph, topic))
        .collect();
    let mut clock_warner = clock.warner();
    let mut pace = Pace::new(PRINT_PERIOD, Instant::now());
    while !session.context.is_shut_down() && !is_over(end) {
        let stop = end.map_or(pace.next(), |end| end.min(pace.next()));
        session.spin_once(stop.saturating_duration_since(Instant::now()));
        take(state)?;
        if pace.take(Instant::now()) {
            for mismatches in &mut mismatches {
                mismatches.report(cli.console);
            }
            print(state)?;
            clock_warner.check(cli);
        }
    }
    if is_over(end) {
        print(state)?;
    }
    Ok(())
}

/// The error of a measurement without messages, or of its interruption.
pub fn no_messages_error(session: &Session, topics: &[String]) -> Result<()> {
    session.check_interrupted()?;
    bail!(
        "no message received on {} in time; to find the reason: pteros topic why {}",
        topics.join(", "),
        topics.first().map_or("TOPIC", String::as_str)
    )
}

fn is_over(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

const PRINT_PERIOD: Duration = Duration::from_secs(1);
/// A tenth of a second of the fastest topics.
const DEPTH: usize = 10_000;
/// How long a topic may take to appear before a warning.
const PUBLISHED_TIMEOUT: Duration = Duration::from_millis(400);
