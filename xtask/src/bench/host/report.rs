//! The results as text, row by row as they come, and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::aims::AIMS;
use super::rows::{Kind, Row};
use super::{Cell, Results};
use pteros_testbed::contestant::{FLOOR, PTEROS};

/// The unit of a row's figures, for its head.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Memcpy { .. } => "µs: hot (p50) and cold",
        Kind::Wake { .. } => "µs one way",
        Kind::RoundTrip { .. } => "µs one way, half of a round trip",
        Kind::Intra { .. } => "µs from publish to callback",
        Kind::FanOut { .. } => "µs from publish to callback, 20 Hz",
        Kind::Goodput { .. } => "MB/s of payload at the slowest subscriber",
        Kind::Cpu { .. } => "CPU ms per second of both ends, 50 Hz",
        Kind::Memory { .. } => "all processes at rest, each node one publisher and subscription",
        Kind::Growth { .. } => "kB that a process keeps of an endpoint elsewhere",
        Kind::Discovery { .. } => "from the first start until all have met",
    }
}

/// The figure that ratios are of.
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

/// One row: a line per contestant, then the aims that can be judged by now.
pub fn row(row: &Row, results: &Results) -> String {
    let mut out = format!("\n{}  ({})\n", row.name, unit(&row.kind));
    let cells: Vec<&Cell> = results.cells.iter().filter(|c| c.row == row.name).collect();
    let mut columns: Vec<&str> = Vec::new();
    for name in cells.iter().flat_map(|cell| cell.names()) {
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
    let of = |who: &str| results.figure(&row.name, who, figure);
    for cell in &cells {
        let _ = write!(out, "  {:<16}", cell.contestant);
        if cell.repeats.is_empty() {
            let why = cell.why_not.as_deref().unwrap_or("no result");
            let _ = writeln!(out, "  – {why}");
            continue;
        }
        for name in &columns {
            let text = cell.figure(name).map_or("–".into(), digits);
            let _ = write!(out, "{text:>13}");
        }
        let own = of(cell.contestant);
        let ratio = |a: Option<f64>, b: Option<f64>| {
            let ratio = a.zip(b).map(|(a, b)| a / b).filter(|r| r.is_finite());
            ratio.map_or("–".to_owned(), |r| format!("{r:.2}"))
        };
        let _ = write!(out, "{:>14}", ratio(of(PTEROS), own));
        let _ = write!(out, "{:>10}", ratio(own, of(FLOOR)));
        let _ = writeln!(out, "  {}", cell.path.as_deref().unwrap_or(""));
        if let Some(why) = &cell.why_not {
            let _ = writeln!(out, "  {:<16}  ! {why}", "");
        }
    }
    for aim in AIMS.iter().filter(|aim| aim.applies(row)) {
        if let Some(verdict) = aim.judge(row, results) {
            let _ = writeln!(out, "    {}", verdict.text);
        }
    }
    out
}

/// How many digits a figure deserves.
fn digits(figure: f64) -> String {
    match figure.abs() {
        f if f >= 1000.0 => format!("{figure:.0}"),
        f if f >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// Which aims are met, at the end.
pub fn aims(rows: &[Row], results: &Results) -> String {
    let mut out = String::from("\nAims (docs/bench-host.md)\n");
    let (mut met, mut judged) = (0, 0);
    for aim in AIMS {
        for row in rows.iter().filter(|row| aim.applies(row)) {
            if let Some(verdict) = aim.judge(row, results) {
                judged += 1;
                met += usize::from(verdict.met);
                let _ = writeln!(out, "  {:<28}{}", row.name, verdict.text);
            }
        }
    }
    let _ = writeln!(out, "{met} of {judged} that this run could judge are met");
    out
}

/// For programs: every repeat.
pub fn json(rows: &[Row], results: &Results) -> Value {
    let cells = |row: &Row| -> Vec<Value> {
        let of_row = results.cells.iter().filter(|cell| cell.row == row.name);
        let cell = |cell: &Cell| {
            let medians: serde_json::Map<String, Value> = cell
                .names()
                .map(|name| (name.to_owned(), json!(cell.figure(name))))
                .collect();
            let repeats: Vec<Value> = cell
                .repeats
                .iter()
                .map(|figures| {
                    let pairs = figures.iter().map(|(name, v)| ((*name).into(), json!(v)));
                    Value::Object(pairs.collect())
                })
                .collect();
            json!({
                "name": cell.contestant,
                "median": medians,
                "repeats": repeats,
                "path": cell.path,
                "why_not": cell.why_not,
            })
        };
        of_row.map(cell).collect()
    };
    let verdicts = |row: &Row| -> Vec<Value> {
        let aims = AIMS.iter().filter(|aim| aim.applies(row));
        let verdict = |aim: &super::aims::Aim| {
            let v = aim.judge(row, results)?;
            Some(json!({ "aim": aim.id, "figure": aim.figure, "ratio": v.ratio, "met": v.met }))
        };
        aims.filter_map(verdict).collect()
    };
    let row =
        |row: &Row| json!({ "row": row.name, "contestants": cells(row), "aims": verdicts(row) });
    Value::Array(rows.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    #[test]
    fn a_row_shows_ratios_to_each_and_to_the_floor_and_whether_aims_are_met() {
        let rows = rows::all();
        let blocked = rows.iter().find(|r| r.name == "inter-64B-blocked");
        let blocked = blocked.expect("the row");
        let mut results = Results::default();
        for (who, p50) in [(FLOOR, 2.0), ("cyclone", 10.0), (PTEROS, 4.0)] {
            results.add(&blocked.name, who, &[("p50", p50)]);
        }
        results.why_not(&blocked.name, "iceoryx2", "not built");
        let text = row(blocked, &results);
        let line = |name: &str| {
            text.lines()
                .find(|l| l.trim().starts_with(name))
                .expect("it")
        };
        assert!(line("cyclone").contains("0.40") && line("cyclone").contains("5.00"));
        assert!(line("iceoryx2").contains("not built"));
        assert!(line("aim 2b").contains("0.40  met"), "{text}");
        assert!(aims(&rows, &results).contains("1 of 1"));
        assert_eq!(json(&rows, &results)[0]["row"], rows[0].name);
    }
}
