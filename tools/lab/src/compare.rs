//! Comparison of two runs: what became worse, what became better.

use anyhow::Result;

use crate::experiments;
use crate::report_items::{Table, TableEntry, Tone, case_label, number};
use crate::results::{OURS, View};
use crate::stats::{self, Significance};
use crate::store::Store;

/// Result of a comparison.
#[derive(Debug)]
pub struct Comparison {
    /// Significant differences of Pteros, one row each.
    pub table: Table,
    /// Number of values that became worse.
    pub worse: usize,
    /// Number of values that became better.
    pub better: usize,
    /// Number of values in both runs.
    pub configurations: usize,
}

/// Compares Pteros in a later run with Pteros in an earlier one.
///
/// # Errors
/// A folder has no run.
pub fn compare(before: &Store, after: &Store) -> Result<Comparison> {
    let mut found = Comparison {
        table: Table {
            title: "Pteros in two runs".into(),
            columns: ["case", "metric", "before", "after", "ratio"]
                .map(str::to_owned)
                .to_vec(),
            ..Table::default()
        },
        worse: 0,
        better: 0,
        configurations: 0,
    };
    before.extent()?;
    after.extent()?;
    for experiment in experiments::ALL {
        let (Some(old), Some(new)) = (
            View::load(before, experiment)?,
            View::load(after, experiment)?,
        ) else {
            continue;
        };
        for case in new.cases() {
            let (Some(a), Some(b)) = (old.configuration(case, OURS), new.configuration(case, OURS))
            else {
                continue;
            };
            for metric in experiment.metrics {
                let (Some(a), Some(b)) =
                    (a.metric_values(metric.name), b.metric_values(metric.name))
                else {
                    continue;
                };
                found.configurations += 1;
                let tone = match stats::compare(&b.repeats, &a.repeats, metric.better) {
                    Significance::Worse => Tone::Bad,
                    Significance::Better => Tone::Good,
                    Significance::Equal | Significance::Unclear => continue,
                };
                match tone {
                    Tone::Bad => found.worse += 1,
                    _ => found.better += 1,
                }
                found.table.rows.push(vec![
                    TableEntry::plain(format!("{} {}", experiment.id, case_label(case))),
                    TableEntry::plain(format!("{} ({})", metric.name, metric.unit)),
                    TableEntry::plain(number(a.median())),
                    TableEntry::plain(number(b.median())),
                    TableEntry::with_tone(number(b.median() / a.median()), tone),
                ]);
            }
        }
    }
    Ok(found)
}
