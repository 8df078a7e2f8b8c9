//! What a run has measured, by cell, ready to be shown.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::exhibit::case_words;
use crate::experiment::{Delivery, Experiment, Extent, Metric, Published, Statistic};
use crate::stats::{self, Interval, Verdict};
use crate::store::{Entry, Store, delivery_json};

/// The contestant that others are compared with.
pub const OURS: &str = "pteros";

/// Where all samples of all repeats lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// How many samples.
    pub count: usize,
    /// The least.
    pub min: f64,
    /// A quarter is below.
    pub p25: f64,
    /// Half is below.
    pub p50: f64,
    /// Three quarters are below.
    pub p75: f64,
    /// All but one in twenty are below.
    pub p95: f64,
    /// All but one in a hundred are below.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Quantiles {
    /// Of samples; `None` of nothing.
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

/// One metric of one cell.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// One number per repeat.
    pub repeats: Vec<f64>,
    /// All samples together, where there were any.
    pub pooled: Option<Quantiles>,
}

impl Figures {
    /// The median of the repeats.
    pub fn median(&self) -> f64 {
        stats::median(self.repeats.iter().copied())
    }

    /// Where that lies.
    pub fn interval(&self) -> Option<Interval> {
        stats::interval(&self.repeats)
    }
}

/// One cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// Parameters by name.
    pub case: Vec<(String, String)>,
    /// The contestant's name.
    pub contestant: String,
    /// By the metric's name.
    pub metrics: BTreeMap<String, Figures>,
    /// Summed over repeats.
    pub delivery: Option<Delivery>,
    /// The path that the stack told last.
    pub path: Option<String>,
    /// What else was said, each once.
    pub notes: Vec<String>,
    /// Why there is nothing, or not all: whether the stack has no such thing, and the reason.
    pub failure: Option<(bool, String)>,
    /// The greatest share of CPU time that others used, 0 to 1.
    pub others: f64,
}

impl CellResult {
    /// A parameter's value; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.case.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Whether all of these parameters have these values.
    pub fn is(&self, wanted: &[(&str, &str)]) -> bool {
        wanted.iter().all(|(name, value)| self.get(name) == *value)
    }

    /// A metric's figures, if there are any.
    pub fn figures(&self, metric: &str) -> Option<&Figures> {
        self.metrics.get(metric).filter(|f| !f.repeats.is_empty())
    }
}

/// All of an experiment that a run has measured.
#[derive(Clone, Debug)]
pub struct View {
    /// Which one.
    pub experiment: &'static Experiment,
    /// How much was wanted.
    pub extent: Extent,
    /// In the order of measuring, each once.
    pub cells: Vec<CellResult>,
}

impl View {
    /// Reads what a run has left of an experiment; `None` if that is nothing.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn load(store: &Store, experiment: &'static Experiment) -> Result<Option<Self>> {
        let entries = store.entries(experiment.id)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut samples: BTreeMap<String, Vec<(usize, String, f64)>> = BTreeMap::new();
        for sample in store.samples(experiment.id)? {
            let of_cell = samples.entry(sample.cell).or_default();
            of_cell.push((sample.repeat, sample.metric, sample.value));
        }
        let mut cells: Vec<CellResult> = Vec::new();
        for entry in &entries {
            let known = |c: &CellResult| c.contestant == entry.contestant && c.case == entry.case;
            if !cells.iter().any(known) {
                let mut words: Vec<&str> = entry.case.iter().map(|(_, v)| v.as_str()).collect();
                words.push(&entry.contestant);
                let none = Vec::new();
                let of_cell = samples.get(&words.join(",")).unwrap_or(&none);
                let of_it: Vec<&Entry> = entries
                    .iter()
                    .filter(|e| e.contestant == entry.contestant && e.case == entry.case)
                    .collect();
                cells.push(cell_result(experiment, &of_it, of_cell));
            }
        }
        Ok(Some(Self {
            experiment,
            extent: store.extent()?,
            cells,
        }))
    }

    /// The first metric.
    pub fn metric(&self) -> &'static Metric {
        &self.experiment.metrics[0]
    }

    /// Whether a cell's repeats lie too far apart to say much.
    pub fn is_noisy(&self, cell: &CellResult) -> bool {
        let figures = cell.figures(self.metric().name);
        figures.is_some_and(|f| stats::spread(&f.repeats) > stats::NOISY)
    }

    /// Contestants in the order of measuring, ours first.
    pub fn contestants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !names.contains(&cell.contestant.as_str()) {
                names.push(&cell.contestant);
            }
        }
        names.sort_by_key(|name| !name.starts_with(OURS));
        names
    }

    /// The cases in the order of measuring.
    pub fn cases(&self) -> Vec<&[(String, String)]> {
        let mut cases: Vec<&[(String, String)]> = Vec::new();
        for cell in &self.cells {
            if !cases.contains(&cell.case.as_slice()) {
                cases.push(&cell.case);
            }
        }
        cases
    }

    /// The values of a parameter in the order of measuring.
    pub fn values(&self, parameter: &str) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let value = cell.get(parameter);
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// The cell of a case and a contestant.
    pub fn cell(&self, case: &[(String, String)], contestant: &str) -> Option<&CellResult> {
        self.cells
            .iter()
            .find(|c| c.contestant == contestant && c.case == case)
    }

    /// What the paper printed for a case.
    pub fn published(&self, case: &[(String, String)]) -> Vec<&'static Published> {
        let has = |name: &str, value: &str| case.iter().any(|(k, v)| k == name && v == value);
        self.experiment
            .published
            .iter()
            .filter(|p| p.case.iter().all(|(name, value)| has(name, value)))
            .collect()
    }

    /// Ours against another contestant in a case.
    pub fn verdict(&self, case: &[(String, String)], other: &str, metric: &Metric) -> Verdict {
        let of = |name| self.cell(case, name).and_then(|c| c.figures(metric.name));
        match (of(OURS), of(other)) {
            (Some(ours), Some(theirs)) => {
                stats::compare(&ours.repeats, &theirs.repeats, metric.better)
            }
            _ => Verdict::Unclear,
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(|cell| self.cell_json(cell)).collect();
        json!({
            "experiment": self.experiment.id,
            "title": self.experiment.title,
            "cells": cells,
        })
    }

    fn cell_json(&self, cell: &CellResult) -> Value {
        let case: serde_json::Map<String, Value> = cell
            .case
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let metrics: serde_json::Map<String, Value> = cell
            .metrics
            .iter()
            .map(|(name, figures)| {
                let unit = self.experiment.metric(name).map_or("", |m| m.unit);
                let q = figures.pooled.map(|q| {
                    json!({
                        "count": q.count, "min": q.min, "p25": q.p25, "p50": q.p50,
                        "p75": q.p75, "p95": q.p95, "p99": q.p99, "max": q.max,
                    })
                });
                let i = figures.interval();
                let figures = json!({
                    "unit": unit,
                    "median_of_repeats": figures.median(),
                    "low": i.map(|i| i.low),
                    "high": i.map(|i| i.high),
                    "confidence": i.map(|i| i.confidence),
                    "repeats": figures.repeats,
                    "samples": q,
                });
                (name.clone(), figures)
            })
            .collect();
        json!({
            "case": case,
            "contestant": cell.contestant,
            "metrics": metrics,
            "delivery": cell.delivery.map(delivery_json),
            "path": cell.path,
            "notes": cell.notes,
            "failure": cell.failure.as_ref().map(|f| &f.1),
            "unsupported": cell.failure.as_ref().map(|f| f.0),
            "cpu_used_by_others": cell.others,
        })
    }
}

fn cell_result(
    experiment: &Experiment,
    entries: &[&Entry],
    samples: &[(usize, String, f64)],
) -> CellResult {
    let mut metrics: BTreeMap<String, Figures> = BTreeMap::new();
    for entry in entries.iter().filter(|e| e.failure.is_none()) {
        for (name, value) in &entry.figures {
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
        let figures = Figures {
            repeats,
            pooled: Some(pooled),
        };
        metrics.insert(metric.name.to_owned(), figures);
    }
    let mut notes: Vec<String> = entries.iter().flat_map(|e| e.notes.clone()).collect();
    notes.sort();
    notes.dedup();
    let deliveries = entries.iter().filter_map(|e| e.delivery);
    let first = entries.first();
    CellResult {
        case: first.map(|e| e.case.clone()).unwrap_or_default(),
        contestant: first.map(|e| e.contestant.clone()).unwrap_or_default(),
        metrics,
        delivery: deliveries.reduce(Delivery::and),
        path: entries.iter().rev().find_map(|e| e.path.clone()),
        notes,
        failure: entries.iter().rev().find_map(|e| e.failure.clone()),
        others: entries.iter().map(|e| e.others).fold(0.0, f64::max),
    }
}

/// A cell where ours is worse than a peer, beyond noise.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The experiment's id.
    pub experiment: &'static str,
    /// `qos=reliable size=1024`.
    pub case: String,
    /// The same for people: `reliable 1 KB`.
    pub words: String,
    /// The metric's name and unit, or `lost`.
    pub metric: &'static str,
    /// The metric's unit.
    pub unit: &'static str,
    /// The contestant that is better.
    pub peer: String,
    /// Ours.
    pub ours: f64,
    /// The peer's.
    pub theirs: f64,
}

/// All cells where ours is worse than a peer: a metric beyond noise, or a reliable
/// message lost that the peer did not lose.
pub fn findings(view: &View) -> Vec<Finding> {
    let mut found = Vec::new();
    for case in view.cases() {
        let Some(ours) = view.cell(case, OURS) else {
            continue;
        };
        let peers = view.cells.iter().filter(|c| c.case == case);
        for peer in peers.filter(|c| !c.contestant.starts_with(OURS)) {
            let words: Vec<String> = case.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let mut add = |metric, unit, ours, theirs| {
                found.push(Finding {
                    experiment: view.experiment.id,
                    case: words.join(" "),
                    words: case_words(case),
                    metric,
                    unit,
                    peer: peer.contestant.clone(),
                    ours,
                    theirs,
                });
            };
            for metric in view.experiment.metrics {
                if view.verdict(case, &peer.contestant, metric) == Verdict::Worse {
                    let of =
                        |c: &CellResult| c.figures(metric.name).map_or(f64::NAN, Figures::median);
                    add(metric.name, metric.unit, of(ours), of(peer));
                }
            }
            if let (Some(a), Some(b)) = (ours.delivery, peer.delivery) {
                let share = |d: Delivery| d.lost() as f64 / d.expected.max(1) as f64;
                if share(a) > share(b) {
                    add("lost", "of expected", share(a), share(b));
                }
            }
        }
    }
    found
}

/// What one number of a repeat is called.
pub fn statistic_name(metric: &Metric) -> &'static str {
    match metric.statistic {
        Statistic::Median => "median",
        Statistic::P95 => "95th percentile",
        Statistic::Mean => "mean",
    }
}
