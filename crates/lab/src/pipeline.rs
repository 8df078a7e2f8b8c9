//! Nodes in a row, a process each: the first publishes, each passes on what it
//! hears in the callback, the last one measures from the first publish call on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pteros::trace::{Layer, Run, Trace};
use pteros_testbed::{Contestant, Failure};

use crate::experiment::Measured;
use crate::flow::{self, Flow, Flowed};
use crate::lab::Lab;

/// How long each process may take to begin.
const PATIENCE: Duration = Duration::from_secs(25);

/// The variable that names the folder of traces.
pub(crate) const TRACE: &str = "PTEROS_TRACE";

/// Layers of a message from publish call to callback, and what the program does
/// with it there, as figures of a measurement in this order.
pub const PARTS: [&str; 7] = [
    "publisher common",
    "publisher rmw",
    "wire",
    "subscriber rmw",
    "notification",
    "subscriber common",
    "benchmarking",
];

/// What is sent through it, and through how many.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Nodes, both ends included; at least two.
    pub nodes: usize,
    /// What the first one publishes.
    pub flow: Flow,
}

impl Pipeline {
    /// About how long it takes.
    pub fn seconds(&self) -> f64 {
        self.flow.seconds() + 0.05 * self.nodes as f64
    }

    /// Sends everything through it, once.
    ///
    /// # Errors
    /// The stack has no such thing, or a process failed.
    pub fn run(&self, lab: &Lab, who: &Contestant) -> Result<Measured, Failure> {
        Ok(self.send(lab, who)?.1.measured(&self.flow))
    }

    /// The same with stamps: the parts of [`PARTS`] as figures, each the median over
    /// messages of its sum over all hops, microseconds.
    ///
    /// # Errors
    /// As [`Pipeline::run`], or the trace holds no message that came through.
    pub fn profile(&self, lab: &Lab, who: &Contestant) -> Result<Measured, Failure> {
        let folder = lab.scratch_file(&format!("{}.trace", lab.fresh_topic()));
        let mut traced = who.clone();
        let value = folder.to_string_lossy().into_owned();
        traced.environment.push((TRACE, value));
        let (topics, flowed) = self.send(lab, &traced)?;
        let mut measured = flowed.measured(&self.flow);
        measured.figures = parts(&folder, &topics, self.flow.warmup)?;
        fs::remove_dir_all(&folder).map_err(anyhow::Error::from)?;
        Ok(measured)
    }

    /// The hops' topics, and what the last node heard.
    fn send(&self, lab: &Lab, who: &Contestant) -> Result<(Vec<String>, Flowed), Failure> {
        let name = lab.fresh_topic();
        let hops: Vec<String> = (1..self.nodes.max(2))
            .map(|hop| format!("{name}h{hop}"))
            .collect();
        let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
            return Err(Failure::Failed("a pipeline of no nodes".into()));
        };
        let timeout = (self.seconds() as u64 + 2 * PATIENCE.as_secs()).to_string();
        let start = |verb, topic: &str, more: &[String]| {
            let mut words = self.flow.words(verb, topic);
            words.extend_from_slice(more);
            // The first to begin waits for all the others.
            words.extend(["--timeout".to_owned(), timeout.clone()]);
            lab.start(who, self.flow.is_real_time, words)
        };
        let file: PathBuf = lab.scratch_file(&name);
        let samples = ["--samples".to_owned(), file.to_string_lossy().into_owned()];
        let mut end = start("sub", last, &samples)?;
        end.expect("ready", PATIENCE)?;
        // From the end on, so that nobody passes on to nobody; all at once, since
        // many processes take long to begin one by one.
        let mut between = Vec::new();
        for pair in hops.windows(2).rev() {
            if let [hears, tells] = pair {
                let to = ["--to".to_owned(), tells.clone()];
                between.push(start("forward", hears, &to)?);
            }
        }
        for process in &mut between {
            process.expect("matched", PATIENCE)?;
        }
        let patience = PATIENCE + Duration::from_secs_f64(2.0 * self.flow.seconds());
        let mut publisher = start("pub", first, &[])?;
        let sent = publisher.expect("sent", patience)?;
        let took = end.expect("took", patience)?;
        let heard = vec![flow::heard(&took, &file)?];
        let topics = hops.iter().map(|hop| format!("/{hop}/flow")).collect();
        Ok((topics, Flowed { heard, sent }))
    }
}

/// What the layers of a chain's runs take: [`PARTS`], summed over the hops of each
/// message, medians over messages after the first `warmup`. Microseconds.
fn parts(
    folder: &std::path::Path,
    topics: &[String],
    warmup: u64,
) -> Result<Vec<(&'static str, f64)>, Failure> {
    let trace = Trace::load(folder).map_err(anyhow::Error::from)?;
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let mut runs = trace.runs(&topics);
    runs.retain(|run| {
        run.hops
            .first()
            .is_some_and(|hop| hop.sequence.unsigned_abs() > warmup)
    });
    if runs.is_empty() {
        let why = format!("no message in the trace came through {}", topics.join(", "));
        return Err(Failure::Failed(why));
    }
    let median = |of: &dyn Fn(&Run<'_>) -> u64| {
        crate::stats::median(runs.iter().map(|run| of(run) as f64 / 1e3))
    };
    let of_layer = |layer: Layer| median(&|run| run.hops.iter().map(|hop| hop.layer(layer)).sum());
    let mut parts: Vec<(&str, f64)> = PARTS
        .iter()
        .zip(Layer::ALL)
        .map(|(name, layer)| (*name, of_layer(layer)))
        .collect();
    let programs = median(&|run| (0..run.hops.len()).map(|hop| run.processing(hop)).sum());
    parts.push((PARTS[6], programs));
    Ok(parts)
}
