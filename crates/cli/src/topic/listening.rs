//! What `hz`, `bw` and `delay` share: waiting for a topic to be published,
//! hearing its raw messages, and a beat of one second for printing.

use super::known::only_type;
use super::mismatch::Mismatches;
use crate::outcome::Interrupted;
use crate::session::Session;
use crate::shared::Shared;
use anyhow::{Result, bail};
use bytes::Bytes;
use clap::Args;
use pteros::qos::QosProfile;
use pteros::{Sample, Subscription, SubscriptionOptions};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Flags of the measuring verbs.
#[derive(Clone, Copy, Debug, Args)]
pub struct ListeningFlags {
    /// Stop after this many seconds; nothing heard by then is an error
    #[arg(long, value_name = "SECONDS", value_parser = crate::values::positive_seconds)]
    timeout: Option<Duration>,
    /// Accepted for the sake of ros2 scripts: the graph is watched all the time
    #[arg(long, value_name = "SECONDS", value_parser = crate::values::positive_seconds)]
    spin_time: Option<Duration>,
}

/// One topic's raw messages.
pub struct Listening {
    /// The topic's full name.
    pub topic: String,
    /// Its type.
    pub type_name: String,
    /// Its messages, serialized, in order.
    pub samples: Receiver<Sample<Bytes>>,
    /// Ends the subscription when dropped.
    _subscription: Subscription<Bytes>,
}

impl ListeningFlags {
    /// When to stop, counted from now.
    pub fn end(self) -> Option<Instant> {
        self.timeout.map(|timeout| Instant::now() + timeout)
    }
}

/// Waits until the topic is published and subscribes to it, whether its type is
/// known here or not: messages are counted, not decoded. `None` if the time or
/// the user's patience ended first.
pub fn listen(
    session: &Session,
    shared: &Shared,
    name: &str,
    end: Option<Instant>,
) -> Result<Option<Listening>> {
    let topic = session.topic(name)?;
    let graph = session.context.graph();
    let mut warned = false;
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
                let way_out = format!(
                    "stop the publishers of the others; who they are says: pteros topic info -v {topic}"
                );
                break (only_type(&known, &way_out)?, publisher.type_hash);
            }
        }
        if session.context.is_shut_down() || is_over(end) {
            return Ok(None);
        }
        if !warned && started.elapsed() > GRACE {
            shared.console.remark(format!(
                "WARNING: topic [{topic}] does not appear to be published yet"
            ));
            warned = true;
        }
        graph.wait_for_change(revision, GRACE);
    };
    let (sender, samples) = channel();
    // Deeper than sensor_data's 5: what is measured must not be dropped here.
    let qos = QosProfile::sensor_data().keep_last(DEPTH);
    let subscription = session.node.create_raw_subscription(
        name,
        &type_name,
        type_hash,
        SubscriptionOptions::new(session.qos(qos)).callback(move |sample| {
            // The receiver lives as long as the subscription.
            let _ = sender.send(sample);
        }),
    )?;
    Ok(Some(Listening {
        topic,
        type_name,
        samples,
        _subscription: subscription,
    }))
}

/// Spins until the end or Ctrl-C; calls `take` whenever messages may have come
/// and `print` once a second, and for the rest when the time ends.
pub fn beat<T>(
    session: &Session,
    shared: &Shared,
    topics: &[String],
    end: Option<Instant>,
    state: &mut T,
    mut take: impl FnMut(&mut T) -> Result<()>,
    mut print: impl FnMut(&mut T) -> Result<()>,
) -> Result<()> {
    let graph = session.context.graph();
    let mut mismatches: Vec<Mismatches<'_>> = topics
        .iter()
        .map(|topic| Mismatches::new(&graph, topic))
        .collect();
    let mut next = Instant::now() + SECOND;
    while !session.context.is_shut_down() && !is_over(end) {
        let stop = end.map_or(next, |end| end.min(next));
        session.spin_once(stop.saturating_duration_since(Instant::now()));
        take(state)?;
        if Instant::now() >= next {
            next += SECOND;
            for mismatches in &mut mismatches {
                mismatches.report(shared.console);
            }
            print(state)?;
        }
    }
    if is_over(end) {
        print(state)?;
    }
    Ok(())
}

/// The error of a time that ended without a message, or was cut short.
pub fn nothing_heard(session: &Session, topics: &[String]) -> Result<()> {
    if session.context.is_shut_down() {
        return Err(Interrupted.into());
    }
    bail!(
        "nothing was heard on {} in the given time; to see what stands between: pteros topic why {}",
        topics.join(", "),
        topics.first().map_or("TOPIC", String::as_str)
    )
}

fn is_over(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

const SECOND: Duration = Duration::from_secs(1);
/// A tenth of a second of the fastest topics.
const DEPTH: usize = 10_000;
/// How long a topic may take to show up before the user is told.
const GRACE: Duration = Duration::from_millis(400);
