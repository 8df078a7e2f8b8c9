//! Pipeline: nodes in a row, each in a process. The first publishes, the others
//! forward in their callbacks, and the last measures the latency from the first
//! publish call.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::testbed::{Implementation, MeasurementFailure};
use pteros::trace::{ChainRun, Layer, Trace};

use crate::flow::{self, Flow, FlowResult};
use crate::lab::Lab;
use crate::measurement::Measurement;

/// Start time limit of each process.
const TIMEOUT: Duration = Duration::from_secs(25);

/// Environment variable with the folder of traces.
pub(crate) const TRACE: &str = "PTEROS_TRACE";

/// Layers of a message from the publish call to the callback, and the program's own
/// time, as values of a measurement in this order.
pub const LAYERS: [&str; 7] = [
    "publisher common",
    "publisher rmw",
    "wire",
    "subscriber rmw",
    "notification",
    "subscriber common",
    "benchmarking",
];

/// A pipeline and its flow.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Number of nodes, at least two.
    pub nodes: usize,
    /// The flow of the first node.
    pub flow: Flow,
}

impl Pipeline {
    /// Approximate duration in seconds.
    pub fn seconds(&self) -> f64 {
        self.flow.seconds() + 0.05 * self.nodes as f64
    }

    /// Runs the pipeline once.
    ///
    /// # Errors
    /// The stack does not have the feature, or a process failed.
    pub fn run(
        &self,
        lab: &Lab,
        implementation: &Implementation,
    ) -> Result<Measurement, MeasurementFailure> {
        Ok(self.send(lab, implementation)?.1.measured(&self.flow))
    }

    /// The same with tracing. The values are the layers of [`LAYERS`]: sums over
    /// all hops, as medians over messages, in microseconds.
    ///
    /// # Errors
    /// As [`Pipeline::run`], or no message in the trace came through.
    pub fn profile(
        &self,
        lab: &Lab,
        implementation: &Implementation,
    ) -> Result<Measurement, MeasurementFailure> {
        let folder = lab.scratch_file(&format!("{}.trace", lab.fresh_topic()));
        let mut traced = implementation.clone();
        let value = folder.to_string_lossy().into_owned();
        traced.environment.push((TRACE, value));
        let (topics, flowed) = self.send(lab, &traced)?;
        let mut measured = flowed.measured(&self.flow);
        measured.values = layer_medians(&folder, &topics, self.flow.warmup)?;
        fs::remove_dir_all(&folder).map_err(anyhow::Error::from)?;
        Ok(measured)
    }

    /// Runs the pipeline. Returns the topics of the hops and the result.
    fn send(
        &self,
        lab: &Lab,
        implementation: &Implementation,
    ) -> Result<(Vec<String>, FlowResult), MeasurementFailure> {
        let name = lab.fresh_topic();
        let hops: Vec<String> = (1..self.nodes.max(2))
            .map(|hop| format!("{name}h{hop}"))
            .collect();
        let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
            return Err(MeasurementFailure::Failed(
                "a pipeline without nodes".into(),
            ));
        };
        let timeout_seconds = (self.seconds() as u64 + 2 * TIMEOUT.as_secs()).to_string();
        let start = |verb, topic: &str, more: &[String]| {
            let mut arguments = self.flow.arguments(verb, topic);
            arguments.extend_from_slice(more);
            // The first process waits for all others.
            arguments.extend(["--timeout".to_owned(), timeout_seconds.clone()]);
            lab.start(implementation, self.flow.is_real_time, arguments)
        };
        let file: PathBuf = lab.scratch_file(&name);
        let samples = ["--samples".to_owned(), file.to_string_lossy().into_owned()];
        let mut end = start("sub", last, &samples)?;
        end.expect("ready", TIMEOUT)?;
        // In reverse order, so that every node has a matched subscription to forward to. All at once,
        // because many processes take long to start one by one.
        let mut forwarders = Vec::new();
        for pair in hops.windows(2).rev() {
            if let [input, output] = pair {
                let to = ["--to".to_owned(), output.clone()];
                forwarders.push(start("forward", input, &to)?);
            }
        }
        for process in &mut forwarders {
            process.expect("matched", TIMEOUT)?;
        }
        let timeout = TIMEOUT + Duration::from_secs_f64(2.0 * self.flow.seconds());
        let mut publisher = start("pub", first, &[])?;
        let sent = publisher.expect("sent", timeout)?;
        let took = end.expect("took", timeout)?;
        let results = vec![flow::read_subscription_result(&took, &file)?];
        let topics = hops.iter().map(|hop| format!("/{hop}/flow")).collect();
        Ok((topics, FlowResult { results, sent }))
    }
}

/// The layers of [`LAYERS`] in a trace, summed over the hops of each message, as
/// medians over the messages after `warmup`, in microseconds.
fn layer_medians(
    folder: &std::path::Path,
    topics: &[String],
    warmup: u64,
) -> Result<Vec<(&'static str, f64)>, MeasurementFailure> {
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
        return Err(MeasurementFailure::Failed(why));
    }
    let median = |of: &dyn Fn(&ChainRun<'_>) -> u64| {
        crate::stats::median(runs.iter().map(|run| of(run) as f64 / 1e3))
    };
    let of_layer = |layer: Layer| median(&|run| run.hops.iter().map(|hop| hop.layer(layer)).sum());
    let mut layer_medians: Vec<(&str, f64)> = LAYERS
        .iter()
        .zip(Layer::ALL)
        .map(|(name, layer)| (*name, of_layer(layer)))
        .collect();
    let programs = median(&|run| (0..run.hops.len()).map(|hop| run.processing(hop)).sum());
    layer_medians.push((LAYERS[6], programs));
    Ok(layer_medians)
}
