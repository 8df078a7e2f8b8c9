//! Results of a run by configuration, ready for the report.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::measurement::{Delivery, Extent, Metric, Published, Statistic};
use crate::report_items::case_label;
use crate::stats::{self, Interval, REPEATS_MIN, Significance};
use crate::store::{JournalEntry, Store, delivery_json};
use crate::testbed::implementation::FLOOR;

/// The implementation that the others are compared with.
pub const OURS: &str = "pteros";
/// How the names of our plug-in below a client library end.
const PLUG_IN: &str = "/pteros";
/// The Python wheel, which is compared with rclpy.
const WHEEL: &str = "pteros-wheel";

/// Quantiles of the samples of all repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// Number of samples.
    pub count: usize,
    /// Minimum.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// Upper quartile.
    pub p75: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Quantiles {
    /// Quantiles of samples. `None` without samples.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = stats::sorted(values.iter().copied());
        let at = |share| stats::quantile(&sorted, share);
        (!sorted.is_empty()).then(|| Self {
            count: sorted.len(),
            min: at(0.0),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

/// Values of one metric of one configuration.
#[derive(Clone, Debug, Default)]
pub struct MetricValues {
    /// One value per repeat.
    pub repeats: Vec<f64>,
    /// Quantiles of all samples, if there are any.
    pub pooled: Option<Quantiles>,
}

impl MetricValues {
    /// The median of the repeats.
    pub fn median(&self) -> f64 {
        stats::median(self.repeats.iter().copied())
    }

    /// The confidence interval of the median.
    pub fn interval(&self) -> Option<Interval> {
        stats::interval(&self.repeats)
    }
}

/// Results of one configuration.
#[derive(Clone, Debug)]
pub struct ConfigurationResult {
    /// Parameters by name.
    pub case: Vec<(String, String)>,
    /// Name of the implementation.
    pub implementation: String,
    /// Values by metric.
    pub metrics: BTreeMap<String, MetricValues>,
    /// Summed over repeats.
    pub delivery: Option<Delivery>,
    /// The last reported transport.
    pub path: Option<String>,
    /// Remarks, each once.
    pub notes: Vec<String>,
    /// Why results are missing: whether the stack lacks the feature, and the
    /// reason.
    pub failure: Option<(bool, String)>,
    /// Maximum share of CPU time that other processes used, from 0 to 1.
    pub other_load: f64,
}

impl ConfigurationResult {
    /// The value of a parameter. Empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.case.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Whether all these parameters have these values.
    pub fn is(&self, wanted: &[(&str, &str)]) -> bool {
        wanted.iter().all(|(name, value)| self.get(name) == *value)
    }

    /// The values of a metric, if any.
    pub fn metric_values(&self, metric: &str) -> Option<&MetricValues> {
        self.metrics.get(metric).filter(|f| !f.repeats.is_empty())
    }
}

/// Results of an experiment.
#[derive(Clone, Debug)]
pub struct View {
    pub experiment: &'static Experiment,
    pub extent: Extent,
    /// Configurations in the order of measuring.
    pub configurations: Vec<ConfigurationResult>,
}

impl View {
    /// Reads the results of an experiment. `None` if there are none.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn load(store: &Store, experiment: &'static Experiment) -> Result<Option<Self>> {
        let entries = store.entries(experiment.id)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut samples: BTreeMap<String, Vec<(usize, String, f64)>> = BTreeMap::new();
        for sample in store.samples(experiment.id)? {
            let of_configuration = samples.entry(sample.configuration).or_default();
            of_configuration.push((sample.repeat, sample.metric, sample.value));
        }
        let mut configurations: Vec<ConfigurationResult> = Vec::new();
        for entry in &entries {
            let known = |c: &ConfigurationResult| {
                c.implementation == entry.implementation && c.case == entry.case
            };
            if !configurations.iter().any(known) {
                let mut words: Vec<&str> = entry.case.iter().map(|(_, v)| v.as_str()).collect();
                words.push(&entry.implementation);
                let none = Vec::new();
                let of_configuration = samples.get(&words.join(",")).unwrap_or(&none);
                let of_it: Vec<&JournalEntry> = entries
                    .iter()
                    .filter(|e| e.implementation == entry.implementation && e.case == entry.case)
                    .collect();
                configurations.push(configuration_result(experiment, &of_it, of_configuration));
            }
        }
        Ok(Some(Self {
            experiment,
            extent: store.extent()?,
            configurations,
        }))
    }

    /// The first metric.
    pub fn metric(&self) -> &'static Metric {
        &self.experiment.metrics[0]
    }

    /// Whether the repeats of a configuration differ too much.
    pub fn is_noisy(&self, configuration: &ConfigurationResult) -> bool {
        let values = configuration.metric_values(self.metric().name);
        values.is_some_and(|f| stats::spread(&f.repeats) > stats::NOISY)
    }

    /// Implementations in the order of measuring, Pteros first.
    pub fn implementations(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for configuration in &self.configurations {
            if !names.contains(&configuration.implementation.as_str()) {
                names.push(&configuration.implementation);
            }
        }
        names.sort_by_key(|name| !name.starts_with(OURS));
        names
    }

    /// Cases in the order of measuring.
    pub fn cases(&self) -> Vec<&[(String, String)]> {
        let mut cases: Vec<&[(String, String)]> = Vec::new();
        for configuration in &self.configurations {
            if !cases.contains(&configuration.case.as_slice()) {
                cases.push(&configuration.case);
            }
        }
        cases
    }

    /// Values of a parameter in the order of measuring.
    pub fn values(&self, parameter: &str) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for configuration in &self.configurations {
            let value = configuration.get(parameter);
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// The configuration of a case and an implementation.
    pub fn configuration(
        &self,
        case: &[(String, String)],
        implementation: &str,
    ) -> Option<&ConfigurationResult> {
        self.configurations
            .iter()
            .find(|c| c.implementation == implementation && c.case == case)
    }

    /// The median of a metric where an implementation has these parameters.
    pub fn value(
        &self,
        implementation: &str,
        wanted: &[(&str, &str)],
        metric: &str,
    ) -> Option<f64> {
        let mut all = self.configurations.iter();
        let found = all.find(|c| c.implementation == implementation && c.is(wanted))?;
        Some(found.metric_values(metric)?.median())
    }

    /// The published values of a case.
    pub fn published(&self, case: &[(String, String)]) -> Vec<&'static Published> {
        let has = |name: &str, value: &str| case.iter().any(|(k, v)| k == name && v == value);
        self.experiment
            .published
            .iter()
            .filter(|p| p.case.iter().all(|(name, value)| has(name, value)))
            .collect()
    }

    /// The significance of Pteros against another implementation in a case.
    pub fn significance(
        &self,
        case: &[(String, String)],
        other: &str,
        metric: &Metric,
    ) -> Significance {
        let of = |name| {
            self.configuration(case, name)
                .and_then(|c| c.metric_values(metric.name))
        };
        match (of(OURS), of(other)) {
            (Some(ours), Some(theirs)) => {
                stats::compare(&ours.repeats, &theirs.repeats, metric.better)
            }
            _ => Significance::Unclear,
        }
    }

    /// The results as JSON.
    pub fn json(&self) -> Value {
        let configurations: Vec<Value> = self
            .configurations
            .iter()
            .map(|configuration| self.configuration_json(configuration))
            .collect();
        json!({
            "experiment": self.experiment.id,
            "title": self.experiment.title,
            "configurations": configurations,
        })
    }

    fn configuration_json(&self, configuration: &ConfigurationResult) -> Value {
        let case: serde_json::Map<String, Value> = configuration
            .case
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let metrics: serde_json::Map<String, Value> = configuration
            .metrics
            .iter()
            .map(|(name, values)| {
                let unit = self.experiment.metric(name).map_or("", |m| m.unit);
                let q = values.pooled.map(|q| {
                    json!({
                        "count": q.count, "min": q.min, "p25": q.p25, "p50": q.p50,
                        "p75": q.p75, "p95": q.p95, "p99": q.p99, "max": q.max,
                    })
                });
                let i = values.interval();
                let values = json!({
                    "unit": unit,
                    "median_of_repeats": values.median(),
                    "low": i.map(|i| i.low),
                    "high": i.map(|i| i.high),
                    "confidence": i.map(|i| i.confidence),
                    "repeats": values.repeats,
                    "samples": q,
                });
                (name.clone(), values)
            })
            .collect();
        json!({
            "case": case,
            "implementation": configuration.implementation,
            "metrics": metrics,
            "delivery": configuration.delivery.map(delivery_json),
            "path": configuration.path,
            "notes": configuration.notes,
            "failure": configuration.failure.as_ref().map(|f| &f.1),
            "unsupported": configuration.failure.as_ref().map(|f| f.0),
            "cpu_used_by_others": configuration.other_load,
        })
    }
}

fn configuration_result(
    experiment: &Experiment,
    entries: &[&JournalEntry],
    samples: &[(usize, String, f64)],
) -> ConfigurationResult {
    let mut metrics: BTreeMap<String, MetricValues> = BTreeMap::new();
    for entry in entries.iter().filter(|e| e.failure.is_none()) {
        for (name, value) in &entry.values {
            metrics
                .entry(name.clone())
                .or_default()
                .repeats
                .push(*value);
        }
    }
    for metric in experiment.metrics {
        let of_metric = || samples.iter().filter(|(_, name, _)| name == metric.name);
        let all: Vec<f64> = of_metric().map(|s| s.2).collect();
        let Some(pooled) = Quantiles::of(&all) else {
            continue;
        };
        let mut repeats = Vec::new();
        for entry in entries {
            let of_repeat: Vec<f64> = of_metric()
                .filter(|(repeat, ..)| *repeat == entry.repeat)
                .map(|s| s.2)
                .collect();
            if !of_repeat.is_empty() {
                repeats.push(stats::statistic(metric.statistic, &of_repeat));
            }
        }
        let values = MetricValues {
            repeats,
            pooled: Some(pooled),
        };
        metrics.insert(metric.name.to_owned(), values);
    }
    let mut notes: Vec<String> = entries.iter().flat_map(|e| e.notes.clone()).collect();
    notes.sort();
    notes.dedup();
    let deliveries = entries.iter().filter_map(|e| e.delivery);
    let first = entries.first();
    ConfigurationResult {
        case: first.map(|e| e.case.clone()).unwrap_or_default(),
        implementation: first.map(|e| e.implementation.clone()).unwrap_or_default(),
        metrics,
        delivery: deliveries.reduce(Delivery::and),
        path: entries.iter().rev().find_map(|e| e.path.clone()),
        notes,
        failure: entries.iter().rev().find_map(|e| e.failure.clone()),
        other_load: entries.iter().map(|e| e.other_load).fold(0.0, f64::max),
    }
}

/// A configuration in which Pteros is worse than a peer.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the experiment.
    pub experiment: &'static str,
    /// The case as `qos=reliable size=1024`.
    pub case: String,
    /// The case as text, for example `reliable 1 KB`.
    pub label: String,
    /// Name of the metric, or `lost`.
    pub metric: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// The better implementation.
    pub peer: String,
    /// Pteros.
    pub ours: f64,
    /// Value of the peer.
    pub theirs: f64,
    /// Whether the difference is significant. Otherwise there are fewer than
    /// [`REPEATS_MIN`] repeats, and the medians alone differ.
    pub is_judged: bool,
}

/// Whether a report compares Pteros under the first name with the implementation of the
/// second one: plug-ins below the same client library, the wheel with rclpy.
fn is_compared(ours: &str, peer: &str) -> bool {
    let client = |name: &str| match name.split_once('/') {
        Some((client, _)) => client.to_owned(),
        None if name == WHEEL => "rclpy".to_owned(),
        None => String::new(),
    };
    let is_ours = |name: &str| name.starts_with(OURS) || name.ends_with(PLUG_IN);
    let is_reported = ours == OURS || ours == WHEEL || ours.ends_with(PLUG_IN);
    is_reported && !is_ours(peer) && peer != FLOOR && client(ours) == client(peer)
}

/// All findings: a metric that is significantly worse, or worse by more than 5 % where
/// repeats are too few to judge it, or a higher loss of reliable messages than the peer's.
pub fn findings(view: &View) -> Vec<Finding> {
    let mut found = Vec::new();
    for ours in &view.configurations {
        let is_peer = |peer: &&ConfigurationResult| {
            peer.case == ours.case && is_compared(&ours.implementation, &peer.implementation)
        };
        for peer in view.configurations.iter().filter(is_peer) {
            let case: Vec<String> = ours.case.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let mut label = case_label(&ours.case);
            if ours.implementation != OURS {
                label += &format!(" {}", ours.implementation);
            }
            let mut add = |metric, unit, ours, theirs, is_judged| {
                found.push(Finding {
                    experiment: view.experiment.id,
                    case: case.join(" "),
                    label: label.clone(),
                    metric,
                    unit,
                    peer: peer.implementation.clone(),
                    ours,
                    theirs,
                    is_judged,
                });
            };
            for metric in view.experiment.metrics {
                let values = |c: &ConfigurationResult| c.metric_values(metric.name).cloned();
                let Some((a, b)) = values(ours).zip(values(peer)) else {
                    continue;
                };
                let is_judged = a.repeats.len().min(b.repeats.len()) >= REPEATS_MIN;
                let is_worse = if is_judged {
                    stats::compare(&a.repeats, &b.repeats, metric.better) == Significance::Worse
                } else {
                    stats::is_behind(a.median(), b.median(), metric.better)
                };
                if is_worse {
                    add(metric.name, metric.unit, a.median(), b.median(), is_judged);
                }
            }
            if let (Some(a), Some(b)) = (ours.delivery, peer.delivery) {
                let share = |d: Delivery| d.lost() as f64 / d.expected.max(1) as f64;
                if share(a) > share(b) {
                    add("lost", "of expected", share(a), share(b), true);
                }
            }
        }
    }
    found
}

/// Whether a metric has too few repeats to be judged.
pub fn has_few_repeats(view: &View) -> bool {
    let mut values = view.configurations.iter().flat_map(|c| c.metrics.values());
    values.any(|values| values.repeats.len() < REPEATS_MIN)
}

/// Name of the statistic of a repeat.
pub fn statistic_name(metric: &Metric) -> &'static str {
    match metric.statistic {
        Statistic::Median => "median",
        Statistic::P95 => "95th percentile",
        Statistic::Mean => "mean",
    }
}
