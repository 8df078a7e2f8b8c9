//! What a run says: a summary for the terminal, one HTML file for everybody else.

mod html;
mod svg;
mod terminal;

pub use html::page;
pub use terminal::{summary, table};

use anyhow::Result;
use serde_json::{Value, json};

use crate::experiment::{Better, Experiment};
use crate::experiments;
use crate::results::{Finding, OURS, View, findings};
use crate::stats::{self, Verdict};
use crate::store::Store;

/// Everything that a run's folder holds.
#[derive(Debug)]
pub struct Report {
    /// What was measured.
    pub views: Vec<View>,
    /// Where ours is worse.
    pub findings: Vec<Finding>,
    /// The machine, versions, what is missing.
    pub environment: Value,
    /// The folder's name as given.
    pub folder: String,
}

impl Report {
    /// Reads a run's folder.
    ///
    /// # Errors
    /// Files that cannot be read, or nothing measured there.
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
    /// The system's, with the file.
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
                "peer": f.peer, "ours": f.ours, "theirs": f.theirs,
            })
        };
        self.findings.iter().map(of).collect()
    }

    /// Texts under a key of the environment.
    pub fn said(&self, key: &str) -> Vec<String> {
        let list = self.environment[key].as_array();
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }
}

/// A sentence about what was found, for each other contestant, and about losses.
pub fn sentences(view: &View) -> Vec<String> {
    let metric = view.metric();
    let mut all = Vec::new();
    let is_compared = metric.better != Better::Neither;
    for other in view
        .contestants()
        .into_iter()
        .filter(|n| is_compared && !n.starts_with(OURS))
    {
        let (mut better, mut equal, mut worse, mut unclear) = (0, 0, 0, 0);
        let mut ratios = Vec::new();
        for case in view.cases() {
            let of = |name| view.cell(case, name).and_then(|c| c.figures(metric.name));
            let (Some(a), Some(b)) = (of(OURS), of(other)) else {
                continue;
            };
            ratios.push(a.median() / b.median());
            match view.verdict(case, other, metric) {
                Verdict::Better => better += 1,
                Verdict::Equal => equal += 1,
                Verdict::Worse => worse += 1,
                Verdict::Unclear => unclear += 1,
            }
        }
        if ratios.is_empty() {
            continue;
        }
        all.push(format!(
            "Against {other} Pteros's {} is better in {better} of {} cells, equal in {equal}, worse in {worse}, not to be told from noise in {unclear}; the median ratio is {:.2}.",
            metric.name,
            ratios.len(),
            stats::median(ratios)
        ));
    }
    all.extend(losses(view));
    all
}

fn losses(view: &View) -> Option<String> {
    let mut words = Vec::new();
    for name in view.contestants() {
        let of_it = view.cells.iter().filter(|c| c.contestant == name);
        let sum = of_it
            .filter_map(|c| c.delivery)
            .reduce(crate::experiment::Delivery::and);
        if let Some(sum) = sum {
            let strange = match sum.duplicates + sum.disordered {
                0 => String::new(),
                _ => format!(
                    ", {} repeated, {} out of order",
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

/// What to be wary of in an experiment's figures.
pub fn warnings(view: &View) -> Vec<String> {
    let mut all = Vec::new();
    let measured: Vec<_> = view.cells.iter().filter(|c| c.failure.is_none()).collect();
    let noisy = measured.iter().filter(|c| view.is_noisy(c)).count();
    if noisy * 4 > measured.len() {
        all.push(format!(
            "The machine was too noisy: in {noisy} of {} cells repeats lie more than {:.0} % apart.",
            measured.len(),
            stats::NOISY * 100.0
        ));
    }
    let others = stats::median(measured.iter().map(|c| c.others));
    if others > 0.1 {
        all.push(format!(
            "Other processes used {:.0} % of the machine's CPU time meanwhile.",
            others * 100.0
        ));
    }
    let repeats = measured
        .iter()
        .filter_map(|c| c.metrics.values().map(|f| f.repeats.len()).max());
    if repeats.max() == Some(1) {
        all.push("One repeat of each cell: nothing can be concluded from differences.".into());
    }
    all
}

/// How an experiment is measured again.
pub fn rerun(experiment: &Experiment, view: &View) -> String {
    format!("pteros lab run {} --{}", experiment.id, view.extent)
}
