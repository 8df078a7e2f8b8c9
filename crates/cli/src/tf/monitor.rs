//! `pteros tf monitor`: how often and how late transforms come, as `tf2_monitor`,
//! which cannot say by whom.

use crate::outcome::Interrupted;
use crate::session::Session;
use crate::shared::Shared;
use crate::topic::Window;
use crate::values::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::clock::Time;
use pteros::interfaces::tf2_msgs::msg::TFMessage;
use pteros::qos::QosProfile;
use pteros::tf::{LATEST, TransformListener};
use pteros::{EndpointInfo, Guid, Sample};
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
    /// Stop after this many seconds; nothing heard by then is an error
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// Only the frames between this one …
    #[arg(requires = "frame_b")]
    frame_a: Option<String>,
    /// … and this one
    frame_b: Option<String>,
}

/// Seconds between stamp and arrival, and between two messages.
struct Told {
    by: Guid,
    delays: Window,
    intervals: Window,
    last: Time,
}

/// What came so far: by frame and by publisher.
#[derive(Default)]
struct Heard {
    frames: BTreeMap<String, Told>,
    publishers: BTreeMap<Guid, Told>,
}

/// As many as `tf2_monitor` looks back.
const WINDOW: usize = 1_000;

impl Told {
    fn new(by: Guid) -> Self {
        Self {
            by,
            delays: Window::new(WINDOW),
            intervals: Window::new(WINDOW),
            last: LATEST,
        }
    }

    fn note(&mut self, now: Time, delay: f64) {
        self.delays.push_or_drop_oldest(delay);
        if self.last != LATEST {
            let passed = now.since(self.last).as_secs_f64();
            self.intervals.push_or_drop_oldest(passed);
        }
        self.last = now;
    }

    /// Average and greatest delay, and the rate.
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

impl Heard {
    fn note(&mut self, now: Time, sample: &Sample<TFMessage>) {
        let by = sample.info().publisher;
        let delay = |stamp: Time| (now.as_secs_f64() - stamp.as_secs_f64()).max(0.0);
        let mut sum = 0.0;
        for transform in &sample.transforms {
            let delay = delay(Time::from(&transform.header.stamp));
            sum += delay;
            let name = transform.child_frame_id.trim_start_matches('/').to_string();
            let told = self.frames.entry(name).or_insert_with(|| Told::new(by));
            told.by = by;
            told.note(now, delay);
        }
        let count = u32::try_from(sample.transforms.len()).unwrap_or(u32::MAX);
        let told = self.publishers.entry(by).or_insert_with(|| Told::new(by));
        told.note(now, sum / f64::from(count.max(1)));
    }
}

impl Monitor {
    /// Prints a report in each period until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let heard = Arc::<Mutex<Heard>>::default();
        let subscribe = |topic, qos: QosProfile| {
            let (heard, node) = (heard.clone(), session.node.clone());
            session
                .node
                .create_subscription::<TFMessage>(topic, qos, move |sample| {
                    if let Ok(mut heard) = heard.lock() {
                        heard.note(node.now(), &sample);
                    }
                })
        };
        let _moving = subscribe("/tf", QosProfile::tf())?;
        let _static = subscribe("/tf_static", QosProfile::tf_static_listener())?;
        let transforms = TransformListener::new(&session.node)?;
        let end = self.timeout.map(|timeout| Instant::now() + timeout);
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        let mut next = Instant::now() + self.period;
        let mut reported = false;
        while !session.context.is_shut_down() && !is_over() {
            let stop = end.map_or(next, |end| end.min(next));
            session.spin_once(stop.saturating_duration_since(Instant::now()));
            if Instant::now() >= next || is_over() {
                next += self.period;
                reported |= self.report(shared, &session, &heard, &transforms)?;
            }
        }
        match (reported, end) {
            (true, _) => Ok(()),
            _ if session.context.is_shut_down() => Err(Interrupted.into()),
            _ => bail!(
                "no transform came in the given time; to see what stands between: pteros topic why /tf"
            ),
        }
    }

    fn report(
        &self,
        shared: &Shared,
        session: &Session,
        heard: &Mutex<Heard>,
        transforms: &TransformListener,
    ) -> Result<bool> {
        let Ok(heard) = heard.lock() else {
            return Ok(false);
        };
        if heard.publishers.is_empty() {
            shared.console.remark("no transform has come yet");
            return Ok(false);
        }
        let names = Names::of(session);
        let pair = self.frame_a.as_deref().zip(self.frame_b.as_deref());
        let chain = pair.map(|(a, b)| chain(transforms, a, b)).transpose();
        let chain = match chain {
            Ok(chain) => chain,
            Err(error) => {
                shared.console.remark(format!("{error:#}"));
                return Ok(true);
            }
        };
        let shown = |frame: &str| {
            let chain = chain.as_ref();
            chain.is_none_or(|(chain, _)| chain.iter().any(|known| known == frame))
        };
        let frames = heard.frames.iter().filter(|(frame, _)| shown(frame));
        if shared.console.json {
            shared.console.json_line(&json!({
                "chain": chain.as_ref().map(|(chain, _)| chain),
                "net_delay": chain.as_ref().map(|(_, time)| delay(session, *time)),
                "frames": frames.map(|(frame, told)| row("frame", frame, &names.of_gid(told.by), told)).collect::<Value>(),
                "broadcasters": heard.publishers.values().map(|told| row("node", &names.of_gid(told.by), "", told)).collect::<Value>(),
            }))?;
            return Ok(true);
        }
        let mut text = match (&chain, pair) {
            (Some((chain, time)), Some((a, b))) => format!(
                "RESULTS: for {a} to {b}\nChain is: {}\nNet delay: {:.6}\n\nFrames:\n",
                chain.join(" -> "),
                delay(session, *time)
            ),
            _ => "RESULTS: for all Frames\n\nFrames:\n".to_string(),
        };
        for (frame, told) in frames {
            let (average, most, _) = told.summary();
            let by = names.of_gid(told.by);
            text += &format!(
                "Frame: {frame}, published by {by}, Average Delay: {average:.6}, Max Delay: {most:.6}\n"
            );
        }
        text += "\nAll Broadcasters:\n";
        for told in heard.publishers.values() {
            let (average, most, rate) = told.summary();
            let by = names.of_gid(told.by);
            text += &format!(
                "Node: {by} {rate:.3} Hz, Average Delay: {average:.6} Max Delay: {most:.6}\n"
            );
        }
        shared.console.line(text)?;
        Ok(true)
    }
}

fn row(what: &str, name: &str, by: &str, told: &Told) -> Value {
    let (average, most, rate) = told.summary();
    let mut row = json!({ what: name, "rate": rate, "average_delay": average, "max_delay": most });
    if !by.is_empty() {
        row["published_by"] = by.into();
    }
    row
}

fn delay(session: &Session, time: Time) -> f64 {
    session.node.now().since(time).as_secs_f64()
}

/// The frames from `b` up and down to `a`, and the latest time at which all are
/// known.
fn chain(transforms: &TransformListener, a: &str, b: &str) -> Result<(Vec<String>, Time)> {
    let found = transforms.lookup(a, b, LATEST)?;
    let frames = transforms.buffer().frames();
    let up = |from: &str| {
        let mut way = vec![from.trim_start_matches('/').to_string()];
        while let Some(parent) = way.last().and_then(|name| {
            let frame = frames.iter().find(|frame| frame.link.frame == *name);
            frame.and_then(|frame| frame.link.parent.clone())
        }) {
            if way.contains(&parent) {
                break;
            }
            way.push(parent);
        }
        way
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

/// What publishers are called.
struct Names(Vec<EndpointInfo>);

impl Names {
    fn of(session: &Session) -> Self {
        let graph = session.context.graph();
        let mut known = graph.publishers("/tf");
        known.extend(graph.publishers("/tf_static"));
        Self(known)
    }

    fn of_gid(&self, gid: Guid) -> String {
        let found = self.0.iter().find(|info| info.gid == gid);
        let named = found.and_then(|info| {
            let name = info.node_name.as_deref()?;
            let namespace = info.node_namespace.as_deref().unwrap_or("/");
            Some(pteros::names::node_path(namespace, name))
        });
        named.unwrap_or_else(|| gid.to_string())
    }
}
