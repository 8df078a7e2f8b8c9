//! Summary for the terminal: per experiment its tables, sentences and the command
//! to run it again, and all findings.

use std::fmt::Write;

use super::{Report, rerun, sentences, warnings};
use crate::report_items::{ReportItem, Table, TableEntry, Tone, number};

/// Maximum characters of an entry.
const WIDTH_MAX: usize = 72;

/// The summary as text with colours, which the caller may strip.
pub fn summary(report: &Report) -> String {
    let mut out = String::new();
    for view in &report.views {
        let experiment = view.experiment;
        let _ = writeln!(
            out,
            "\n\x1b[1m{}  {}\x1b[0m  ({}, {})\n{}",
            experiment.id,
            experiment.title,
            experiment.reproduces,
            view.extent,
            experiment.question
        );
        for item in (experiment.report_items)(view) {
            if let ReportItem::Table(shown) = item {
                out += &table(&shown);
            }
        }
        for sentence in sentences(view) {
            let _ = writeln!(out, "{sentence}");
        }
        for warning in warnings(view) {
            let _ = writeln!(out, "\x1b[33m{warning}\x1b[0m");
        }
        let _ = writeln!(out, "Again: {}", rerun(experiment, view));
    }
    out += &findings(report);
    for (key, head) in [("missing", "Missing"), ("denied", "Not allowed here")] {
        for environment_texts in report.environment_texts(key) {
            let _ = writeln!(out, "{head}: {environment_texts}");
        }
    }
    out
}

fn findings(report: &Report) -> String {
    let mut out = String::from("\n");
    for (is_judged, head) in [
        (true, "Worse than a peer"),
        (false, "Behind a peer by the medians, not judged"),
    ] {
        let list = report.findings.iter().filter(|f| f.is_judged == is_judged);
        let list: Vec<_> = list.collect();
        if list.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\x1b[1m{head}: {}\x1b[0m", list.len());
        for f in list {
            let _ = writeln!(
                out,
                "  {} {}: {} {} {}, {} {} (ratio {})",
                f.experiment,
                f.label,
                f.metric,
                number(f.ours),
                f.unit,
                f.peer,
                number(f.theirs),
                number(f.ours / f.theirs)
            );
        }
    }
    let _ = writeln!(out, "{}", report.verdict());
    out
}

/// A table as text.
pub fn table(table: &Table) -> String {
    let rows: Vec<Vec<TableEntry>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(shortened).collect())
        .collect();
    let mut widths: Vec<usize> = table.columns.iter().map(|c| c.chars().count()).collect();
    for row in &rows {
        for (width, entry) in widths.iter_mut().zip(row) {
            *width = (*width).max(entry.text.chars().count());
        }
    }
    let mut out = format!("\n{}\n", table.title);
    let head: Vec<TableEntry> = table.columns.iter().map(TableEntry::plain).collect();
    for row in std::iter::once(&head).chain(&rows) {
        for (index, (entry, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(entry.text.chars().count()));
            let text = match entry.tone {
                Tone::Plain => entry.text.clone(),
                Tone::Good => format!("\x1b[32m{}\x1b[0m", entry.text),
                Tone::Bad => format!("\x1b[31m{}\x1b[0m", entry.text),
                Tone::Faint => format!("\x1b[2m{}\x1b[0m", entry.text),
            };
            let _ = match index {
                0 => write!(out, "{text}{pad}"),
                _ => write!(out, "  {pad}{text}"),
            };
        }
        out.push('\n');
    }
    out
}

/// The entry, shortened if it is too wide. The HTML report has all of it.
fn shortened(entry: &TableEntry) -> TableEntry {
    let mut short = entry.clone();
    if entry.text.chars().count() > WIDTH_MAX {
        short.text = entry.text.chars().take(WIDTH_MAX - 1).collect();
        short.text.push('…');
    }
    short
}
