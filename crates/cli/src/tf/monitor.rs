//! `pteros tf monitor`: rates and delays of transforms, as `tf2_monitor`, with the
//! names of the publishers.

use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::pace::Pace;
use crate::session::Session;
use crate::topic::SlidingWindow;
use crate::value_parsers::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::NamedQosExt;
use pteros::clock::Time;
use pteros::interfaces::tf2_msgs::msg::TFMessage;
use pteros::log::escape_line;
use pteros::qos::QosProfile;
use pteros::tf::{LATEST, TransformListener};
use pteros::{
    Sample,
    graph::{EndpointInfo, Guid},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Arguments of `tf monitor`.
#[derive(Debug, Args)]
pub struct Monitor {
    /// Seconds between two reports
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    period: Duration,
    /// Stop after this many seconds; it is an error if no transform was received
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// First frame of a chain; only frames between it and the second are shown
    #[arg(requires = "frame_b")]
    frame_a: Option<String>,
    /// Second frame of the chain
    frame_b: Option<String>,
}

/// Delays between stamp and reception, and intervals between messages, in seconds.
struct TransformStatistics {
    publisher: Guid,
    delays: SlidingWindow,
    intervals: SlidingWindow,
    last: Time,
}

/// Statistics by frame and by publisher.
#[derive(Default)]
struct MonitorState {
    frames: BTreeMap<String, TransformStatistics>,
    publishers: BTreeMap<Guid, TransformStatistics>,
}

/// Window size of `tf2_monitor`.
const WINDOW: usize = 1_000;

impl TransformStatistics {
    fn new(publisher: Guid) -> Self {
        Self {
            publisher,
            delays: SlidingWindow::new(WINDOW),
            intervals: SlidingWindow::new(WINDOW),
            last: LATEST,
        }
    }

    fn record(&mut self, now: Time, delay: f64) {
        self.delays.push_or_drop_oldest(delay);
        if self.last != LATEST {
            let passed = now.since(self.last).as_secs_f64();
            self.intervals.push_or_drop_oldest(passed);
        }
        self.last = now;
    }

    /// Mean delay, largest delay, and rate.
    fn summary(&self) -> (f64, f64, f64) {
        let delays = self.delays.summary();
        let (average, most) = delays.map_or((0.0, 0.0), |delays| (delays.mean, delays.max));
        let interval = self.intervals.summary().map_or(0.0, |gaps| gaps.mean);
        (
            average,
            most,
            if interval > 0.0 { 1.0 / interval } else { 0.0 },
        )
    }
}

impl MonitorState {
    fn record(&mut self, now: Time, sample: &Sample<TFMessage>) {
        let publisher = sample.info().publisher_gid;
        let delay = |stamp: Time| (now.as_secs_f64() - stamp.as_secs_f64()).max(0.0);
        let mut sum = 0.0;
        for transform in &sample.transforms {
            let delay = delay(Time::from(&transform.header.stamp));
            sum += delay;
            let name = transform.child_frame_id.trim_start_matches('/').to_string();
            let statistics = self
                .frames
                .entry(name)
                .or_insert_with(|| TransformStatistics::new(publisher));
            statistics.publisher = publisher;
            statistics.record(now, delay);
        }
        let count = u32::try_from(sample.transforms.len()).unwrap_or(u32::MAX);
        let statistics = self
            .publishers
            .entry(publisher)
            .or_insert_with(|| TransformStatistics::new(publisher));
        statistics.record(now, sum / f64::from(count.max(1)));
    }
}

impl Monitor {
    /// Prints a report in each period until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let state = Arc::<Mutex<MonitorState>>::default();
        let subscribe = |topic: &str, qos: QosProfile| {
            let (state, node) = (state.clone(), session.node.clone());
            session
                .node
                .create_subscription::<TFMessage>(topic.qos(qos), move |sample| {
                    if let Ok(mut state) = state.lock() {
                        state.record(node.now(), &sample);
                    }
                })
        };
        let _moving = subscribe("/tf", QosProfile::tf())?;
        let _static = subscribe("/tf_static", QosProfile::tf_static_listener())?;
        let transforms = TransformListener::new(&session.node)?;
        let end = self.timeout.map(|timeout| Instant::now() + timeout);
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        let mut pace = Pace::new(self.period, Instant::now());
        let mut reported = false;
        while !session.context.is_shut_down() && !is_over() {
            let stop = end.map_or(pace.next(), |end| end.min(pace.next()));
            session.spin_once(stop.saturating_duration_since(Instant::now()));
            if pace.take(Instant::now()) || is_over() {
                reported |= self.report(cli, &session, &state, &transforms)?;
            }
        }
        match (reported, end) {
            (true, _) => Ok(()),
            _ if session.context.is_shut_down() => Err(Interrupted::now().into()),
            _ => bail!("no transform received in time; to find the reason: pteros topic why /tf"),
        }
    }

    fn report(
        &self,
        cli: &CliContext,
        session: &Session,
        state: &Mutex<MonitorState>,
        transforms: &TransformListener,
    ) -> Result<bool> {
        let Ok(state) = state.lock() else {
            return Ok(false);
        };
        if state.publishers.is_empty() {
            cli.console.note("no transform received yet");
            return Ok(false);
        }
        let names = PublisherNames::from_graph(session);
        let pair = self.frame_a.as_deref().zip(self.frame_b.as_deref());
        let chain = pair.map(|(a, b)| chain(transforms, a, b)).transpose();
        let chain = match chain {
            Ok(chain) => chain,
            Err(error) => {
                cli.console.note(format!("{error:#}"));
                return Ok(true);
            }
        };
        let shown = |frame: &str| {
            let chain = chain.as_ref();
            chain.is_none_or(|(chain, _)| chain.iter().any(|known| known == frame))
        };
        let frames = state.frames.iter().filter(|(frame, _)| shown(frame));
        if cli.console.json {
            cli.console.json_line(&json!({
                "chain": chain.as_ref().map(|(chain, _)| chain),
                "net_delay": chain.as_ref().map(|(_, time)| delay(session, *time)),
                "frames": frames.map(|(frame, statistics)| row("frame", frame, &names.name_of(statistics.publisher), statistics)).collect::<Value>(),
                "broadcasters": state.publishers.values().map(|statistics| row("node", &names.name_of(statistics.publisher), "", statistics)).collect::<Value>(),
            }))?;
            return Ok(true);
        }
        let mut text = match (&chain, pair) {
            (Some((chain, time)), Some((a, b))) => format!(
                "RESULTS: for {a} to {b}\nChain is: {}\nNet delay: {:.6}\n\nFrames:\n",
                escape_line(&chain.join(" -> ")),
                delay(session, *time)
            ),
            _ => "RESULTS: for all Frames\n\nFrames:\n".to_string(),
        };
        for (frame, statistics) in frames {
            let (average, most, _) = statistics.summary();
            let publisher = names.name_of(statistics.publisher);
            text += &escape_line(&format!(
                "Frame: {frame}, published by {publisher}, Average Delay: {average:.6}, Max Delay: {most:.6}"
            ));
            text.push('\n');
        }
        text += "\nAll Broadcasters:\n";
        for statistics in state.publishers.values() {
            let (average, most, rate) = statistics.summary();
            let publisher = names.name_of(statistics.publisher);
            text += &escape_line(&format!(
                "Node: {publisher} {rate:.3} Hz, Average Delay: {average:.6} Max Delay: {most:.6}"
            ));
            text.push('\n');
        }
        cli.console.line(text)?;
        Ok(true)
    }
}

fn row(what: &str, name: &str, publisher: &str, statistics: &TransformStatistics) -> Value {
    let (average, most, rate) = statistics.summary();
    let mut row = json!({ what: name, "rate": rate, "average_delay": average, "max_delay": most });
    if !publisher.is_empty() {
        row["published_by"] = publisher.into();
    }
    row
}

fn delay(session: &Session, time: Time) -> f64 {
    session.node.now().since(time).as_secs_f64()
}

/// The chain of frames from `b` to `a`, and the latest time at which all of them
/// are known.
fn chain(transforms: &TransformListener, a: &str, b: &str) -> Result<(Vec<String>, Time)> {
    let found = transforms.lookup_transform(a, b, LATEST)?;
    let frames = transforms.buffer().frames();
    let up = |from: &str| {
        let mut ancestors = vec![from.trim_start_matches('/').to_string()];
        while let Some(parent) = ancestors.last().and_then(|name| {
            let frame = frames.iter().find(|frame| frame.edge.frame == *name);
            frame.and_then(|frame| frame.edge.parent.clone())
        }) {
            if ancestors.contains(&parent) {
                break;
            }
            ancestors.push(parent);
        }
        ancestors
    };
    let (mut up_b, mut up_a) = (up(b), up(a));
    if let Some(meeting) = up_b.iter().position(|frame| up_a.contains(frame)) {
        up_b.truncate(meeting + 1);
        let end = up_a.iter().position(|frame| Some(frame) == up_b.last());
        up_a.truncate(end.unwrap_or(0));
    }
    up_b.extend(up_a.into_iter().rev());
    Ok((up_b, Time::from(&found.header.stamp)))
}

/// Node names of publishers.
struct PublisherNames(Vec<EndpointInfo>);

impl PublisherNames {
    fn from_graph(session: &Session) -> Self {
        let graph = session.context.graph();
        let mut known = graph.publishers("/tf");
        known.extend(graph.publishers("/tf_static"));
        Self(known)
    }

    fn name_of(&self, gid: Guid) -> String {
        let found = self.0.iter().find(|info| info.gid == gid);
        let named = found.and_then(|info| {
            let name = info.node_name.as_deref()?;
            let namespace = info.node_namespace.as_deref().unwrap_or("/");
            Some(pteros::names::node_path(namespace, name))
        });
        named.unwrap_or_else(|| gid.to_string())
    }
}
