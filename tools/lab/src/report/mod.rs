//! Reports: a summary for the terminal, and one HTML file.

mod html;
mod svg;
mod terminal;

pub use html::page;
pub use terminal::{summary, table};

use anyhow::Result;
use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::experiments;
use crate::measurement::Better;
use crate::report_items::ReportItem;
use crate::results::{Finding, OURS, View, findings, has_few_repeats};
use crate::stats::{self, REPEATS_MIN, Significance};
use crate::store::Store;

/// The contents of a run's folder.
#[derive(Debug)]
pub struct Report {
    /// Results by experiment.
    pub views: Vec<View>,
    /// Configurations in which Pteros is worse.
    pub findings: Vec<Finding>,
    /// Machine, versions, missing implementations.
    pub environment: Value,
    /// Name of the folder as given.
    pub folder: String,
}

impl Report {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// A file cannot be read, or there are no results.
    pub fn load(store: &Store) -> Result<Self> {
        let mut views = Vec::new();
        for experiment in experiments::ALL {
            views.extend(View::load(store, experiment)?);
        }
        if views.is_empty() {
            anyhow::bail!(
                "{}: nothing has been measured yet",
                store.folder().display()
            );
        }
        let text = store.read("environment.json").unwrap_or_default();
        Ok(Self {
            findings: views.iter().flat_map(findings).collect(),
            views,
            environment: serde_json::from_str(&text).unwrap_or(Value::Null),
            folder: store.folder().to_string_lossy().into_owned(),
        })
    }

    /// Writes `results.json` and `report.html`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, store: &Store) -> Result<()> {
        let results: Vec<Value> = self.views.iter().map(View::json).collect();
        let text = json!({ "format": 1, "experiments": results, "findings": self.findings_json() });
        store.write("results.json", &format!("{text:#}\n"))?;
        store.write("report.html", &page(self))
    }

    fn findings_json(&self) -> Vec<Value> {
        let of = |f: &Finding| {
            json!({
                "experiment": f.experiment, "case": f.case, "metric": f.metric, "unit": f.unit,
                "peer": f.peer, "ours": f.ours, "theirs": f.theirs, "judged": f.is_judged,
            })
        };
        self.findings.iter().map(of).collect()
    }

    /// The verdict in a sentence: how many values are behind a peer, whether they are
    /// judged, and how many aims are missed.
    pub fn verdict(&self) -> String {
        let worse = self.findings.iter().filter(|f| f.is_judged).count();
        let behind = self.findings.len() - worse;
        let mut text = match worse {
            0 => "No value is significantly worse than a peer's".to_owned(),
            count => format!("Values significantly worse than a peer's: {count}"),
        };
        if self.views.iter().any(has_few_repeats) {
            text += &format!(
                "; not judged, with fewer than {REPEATS_MIN} repeats: {behind} behind by the medians"
            );
        }
        let aims = self.missed_aims();
        text + &format!("; aims missed: {aims}.")
    }

    fn missed_aims(&self) -> usize {
        let items = self.views.iter();
        let items = items.flat_map(|view| (view.experiment.report_items)(view));
        let count = |item| match item {
            ReportItem::Table(table) => {
                let entries = table.rows.iter().flatten();
                entries.filter(|entry| entry.is_missed_aim()).count()
            }
            ReportItem::Figure(_) => 0,
        };
        items.map(count).sum()
    }

    /// Texts under a key of the environment.
    pub fn environment_texts(&self, key: &str) -> Vec<String> {
        let list = self.environment[key].as_array();
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }
}

/// A sentence per other implementation, and one about losses.
pub fn sentences(view: &View) -> Vec<String> {
    let metric = view.metric();
    let mut all = Vec::new();
    let is_compared = metric.better != Better::Neither;
    for other in view
        .implementations()
        .into_iter()
        .filter(|n| is_compared && !n.starts_with(OURS))
    {
        let (mut better, mut equal, mut worse, mut unclear) = (0, 0, 0, 0);
        let mut ratios = Vec::new();
        for case in view.cases() {
            let of = |name| {
                view.configuration(case, name)
                    .and_then(|c| c.metric_values(metric.name))
            };
            let (Some(a), Some(b)) = (of(OURS), of(other)) else {
                continue;
            };
            ratios.push(a.median() / b.median());
            match view.significance(case, other, metric) {
                Significance::Better => better += 1,
                Significance::Equal => equal += 1,
                Significance::Worse => worse += 1,
                Significance::Unclear => unclear += 1,
            }
        }
        if ratios.is_empty() {
            continue;
        }
        all.push(format!(
            "Against {other} Pteros's {} is better in {better} of {} configurations, equal in {equal}, worse in {worse}, within noise in {unclear}; the median ratio is {:.2}.",
            metric.name,
            ratios.len(),
            stats::median(ratios)
        ));
    }
    all.extend(loss_summary(view));
    all
}

fn loss_summary(view: &View) -> Option<String> {
    let mut words = Vec::new();
    for name in view.implementations() {
        let of_it = view
            .configurations
            .iter()
            .filter(|c| c.implementation == name);
        let sum = of_it
            .filter_map(|c| c.delivery)
            .reduce(crate::measurement::Delivery::and);
        if let Some(sum) = sum {
            let strange = match sum.duplicates + sum.disordered {
                0 => String::new(),
                _ => format!(
                    ", {} duplicates, {} out of order",
                    sum.duplicates, sum.disordered
                ),
            };
            words.push(format!(
                "{name} {} of {}{strange}",
                sum.lost(),
                sum.expected
            ));
        }
    }
    (!words.is_empty()).then(|| format!("Messages lost: {}.", words.join("; ")))
}

/// Limits of an experiment's results.
pub fn warnings(view: &View) -> Vec<String> {
    let mut all = Vec::new();
    let measured: Vec<_> = view
        .configurations
        .iter()
        .filter(|c| c.failure.is_none())
        .collect();
    let noisy = measured.iter().filter(|c| view.is_noisy(c)).count();
    if noisy * 4 > measured.len() {
        all.push(format!(
            "The machine was too noisy: in {noisy} of {} configurations repeats differ by more than {:.0} %.",
            measured.len(),
            stats::NOISY * 100.0
        ));
    }
    let other_load = stats::median(measured.iter().map(|c| c.other_load));
    if other_load > 0.1 {
        all.push(format!(
            "Other processes used {:.0} % of the machine's CPU time meanwhile.",
            other_load * 100.0
        ));
    }
    let repeats = measured
        .iter()
        .filter_map(|c| c.metrics.values().map(|f| f.repeats.len()).max());
    if repeats.max() == Some(1) {
        all.push("One repeat of each configuration: differences are not significant.".into());
    }
    all
}

/// The command that runs an experiment again.
pub fn rerun(experiment: &Experiment, view: &View) -> String {
    format!("pteros lab run {} --{}", experiment.id, view.extent)
}
