//! Output of the results: as text, row by row, and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::rows::{Kind, Row};
use super::targets::TARGETS;
use super::{Results, RowResult};
use pteros_testbed::implementation::{FLOOR, PTEROS};

/// Unit of a row's values, for its heading.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Memcpy { .. } => "µs: hot (p50) and cold",
        Kind::Wake { .. } => "µs one way",
        Kind::RoundTrip { .. } => "µs one way, half of a round trip",
        Kind::Intra { .. } => "µs from publish to callback",
        Kind::FanOut { .. } => "µs from publish to callback, 20 Hz",
        Kind::Goodput { .. } => "MB/s of payload at the slowest subscriber",
        Kind::Cpu { .. } => "CPU ms per second of both ends, 50 Hz",
        Kind::Memory { .. } => "all processes idle, each node one publisher and subscription",
        Kind::Growth { .. } => "kB that a process stores per remote endpoint",
        Kind::Discovery { .. } => {
            "from the first start until all processes have discovered each other"
        }
    }
}

/// Name of the value that ratios compare.
pub fn main_figure(kind: &Kind) -> &'static str {
    match kind {
        Kind::Goodput { .. } => "MB/s",
        Kind::Cpu { .. } => "cpu ms/s",
        Kind::Memory { .. } => "PSS kB",
        Kind::Growth { .. } => "kB/endpoint",
        Kind::Discovery { .. } => "ms",
        _ => "p50",
    }
}

/// Formats one row: a line per implementation, then the targets that can be
/// evaluated.
pub fn row(row: &Row, results: &Results) -> String {
    let mut out = format!("\n{}  ({})\n", row.name, unit(&row.kind));
    let row_results: Vec<&RowResult> = results
        .row_results
        .iter()
        .filter(|c| c.row == row.name)
        .collect();
    let mut columns: Vec<&str> = Vec::new();
    for name in row_results.iter().flat_map(|row_result| row_result.names()) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let _ = write!(out, "  {:<16}", "");
    for name in &columns {
        let _ = write!(out, "{name:>13}");
    }
    let _ = writeln!(out, "{:>14}{:>10}  path", "pteros/it", "it/floor");
    let figure = main_figure(&row.kind);
    let of = |name: &str| results.figure(&row.name, name, figure);
    for row_result in &row_results {
        let _ = write!(out, "  {:<16}", row_result.implementation);
        if row_result.repeats.is_empty() {
            let why = row_result.failure.as_deref().unwrap_or("no result");
            let _ = writeln!(out, "  – {why}");
            continue;
        }
        for name in &columns {
            let text = row_result.figure(name).map_or("–".into(), digits);
            let _ = write!(out, "{text:>13}");
        }
        let own = of(row_result.implementation);
        let ratio = |a: Option<f64>, b: Option<f64>| {
            let ratio = a.zip(b).map(|(a, b)| a / b).filter(|r| r.is_finite());
            ratio.map_or("–".to_owned(), |r| format!("{r:.2}"))
        };
        let _ = write!(out, "{:>14}", ratio(of(PTEROS), own));
        let _ = write!(out, "{:>10}", ratio(own, of(FLOOR)));
        let _ = writeln!(out, "  {}", row_result.path.as_deref().unwrap_or(""));
        if let Some(why) = &row_result.failure {
            let _ = writeln!(out, "  {:<16}  ! {why}", "");
        }
    }
    for target in TARGETS.iter().filter(|target| target.applies(row)) {
        if let Some(evaluation) = target.evaluate(row, results) {
            let _ = writeln!(out, "    {}", evaluation.text);
        }
    }
    out
}

/// Formats a value with as many digits as are significant.
fn digits(figure: f64) -> String {
    match figure.abs() {
        f if f >= 1000.0 => format!("{figure:.0}"),
        f if f >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// Formats the list of targets, met or not, for the end of a run.
pub fn targets(rows: &[Row], results: &Results) -> String {
    let mut out = String::from("\nTargets (docs/measurements/host.md)\n");
    let (mut met, mut evaluated) = (0, 0);
    for target in TARGETS {
        for row in rows.iter().filter(|row| target.applies(row)) {
            if let Some(evaluation) = target.evaluate(row, results) {
                evaluated += 1;
                met += usize::from(evaluation.met);
                let _ = writeln!(out, "  {:<28}{}", row.name, evaluation.text);
            }
        }
    }
    let _ = writeln!(out, "{met} of {evaluated} evaluated targets are met");
    out
}

/// Returns the results as JSON, with every repeat.
pub fn json(rows: &[Row], results: &Results) -> Value {
    let row_results = |row: &Row| -> Vec<Value> {
        let of_row = results
            .row_results
            .iter()
            .filter(|row_result| row_result.row == row.name);
        let row_result = |row_result: &RowResult| {
            let medians: serde_json::Map<String, Value> = row_result
                .names()
                .map(|name| (name.to_owned(), json!(row_result.figure(name))))
                .collect();
            let repeats: Vec<Value> = row_result
                .repeats
                .iter()
                .map(|figures| {
                    let pairs = figures.iter().map(|(name, v)| ((*name).into(), json!(v)));
                    Value::Object(pairs.collect())
                })
                .collect();
            json!({
                "name": row_result.implementation,
                "median": medians,
                "repeats": repeats,
                "path": row_result.path,
                "failure": row_result.failure,
            })
        };
        of_row.map(row_result).collect()
    };
    let evaluations = |row: &Row| -> Vec<Value> {
        let targets = TARGETS.iter().filter(|target| target.applies(row));
        let evaluation = |target: &super::targets::PerformanceTarget| {
            let v = target.evaluate(row, results)?;
            Some(
                json!({ "target": target.id, "figure": target.figure, "ratio": v.ratio, "met": v.met }),
            )
        };
        targets.filter_map(evaluation).collect()
    };
    let row = |row: &Row| json!({ "row": row.name, "implementations": row_results(row), "targets": evaluations(row) });
    Value::Array(rows.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    #[test]
    fn a_row_shows_ratios_and_met_targets() {
        let rows = rows::all();
        let blocked = rows.iter().find(|r| r.name == "inter-64B-blocked");
        let blocked = blocked.expect("the row");
        let mut results = Results::default();
        for (name, p50) in [(FLOOR, 2.0), ("cyclone", 10.0), (PTEROS, 4.0)] {
            results.add(&blocked.name, name, &[("p50", p50)]);
        }
        results.record_failure(&blocked.name, "iceoryx2", "not built");
        let text = row(blocked, &results);
        let line = |name: &str| {
            text.lines()
                .find(|l| l.trim().starts_with(name))
                .expect("it")
        };
        assert!(line("cyclone").contains("0.40") && line("cyclone").contains("5.00"));
        assert!(line("iceoryx2").contains("not built"));
        assert!(line("target 2b").contains("0.40  met"), "{text}");
        assert!(targets(&rows, &results).contains("1 of 1"));
        assert_eq!(json(&rows, &results)[0]["row"], rows[0].name);
    }
}
