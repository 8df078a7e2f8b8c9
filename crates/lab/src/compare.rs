//! Two runs side by side: what became worse, what became better.

use anyhow::Result;

use crate::exhibit::{Entry, Table, Tone, case_words, number};
use crate::experiments;
use crate::results::{OURS, View};
use crate::stats::{self, Verdict};
use crate::store::Store;

/// What comparing found.
#[derive(Debug)]
pub struct Comparison {
    /// Cells of ours that differ beyond noise, a row each.
    pub table: Table,
    /// How many became worse.
    pub worse: usize,
    /// How many became better.
    pub better: usize,
    /// How many were in both runs.
    pub cells: usize,
}

/// Compares ours in a later run with ours in an earlier one.
///
/// # Errors
/// A folder without a run.
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
        cells: 0,
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
            let (Some(a), Some(b)) = (old.cell(case, OURS), new.cell(case, OURS)) else {
                continue;
            };
            for metric in experiment.metrics {
                let (Some(a), Some(b)) = (a.figures(metric.name), b.figures(metric.name)) else {
                    continue;
                };
                found.cells += 1;
                let tone = match stats::compare(&b.repeats, &a.repeats, metric.better) {
                    Verdict::Worse => Tone::Bad,
                    Verdict::Better => Tone::Good,
                    Verdict::Equal | Verdict::Unclear => continue,
                };
                match tone {
                    Tone::Bad => found.worse += 1,
                    _ => found.better += 1,
                }
                found.table.rows.push(vec![
                    Entry::plain(format!("{} {}", experiment.id, case_words(case))),
                    Entry::plain(format!("{} ({})", metric.name, metric.unit)),
                    Entry::plain(number(a.median())),
                    Entry::plain(number(b.median())),
                    Entry::toned(number(b.median() / a.median()), tone),
                ]);
            }
        }
    }
    Ok(found)
}
