//! Output of the wire benchmark's results as a table and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::WireResults;
use super::round_trip::Row;
use super::wire_peer::Pinning;

/// Pairs whose medians are divided.
const RATIOS: [(&str, &str); 4] = [
    ("pteros", "cyclone"),
    ("pteros", "cyclone-tuned"),
    ("pteros", "floor"),
    ("cyclone", "floor"),
];

/// Returns the results as a table.
pub fn text(results: &WireResults) -> String {
    let mut out = format!(
        "\nRound trip in microseconds, two processes, loopback UDP, reliable, keep last 10;\n\
         median of {} repeats, implementations take turns; spread: smallest and largest median.\n",
        results.repeats
    );
    for (pinning, rows) in &results.tables {
        table(&mut out, *pinning, rows);
        ratios(&mut out, results, rows);
    }
    footprints(&mut out, results);
    out
}

fn table(out: &mut String, pinning: Pinning, rows: &[Row]) {
    let _ = writeln!(
        out,
        "\n{pinning:<21} {:>10} {:>10} {:>10}   {:>19}",
        "p50", "p95", "min", "spread of p50"
    );
    for row in rows {
        for (index, result) in row.results.iter().enumerate() {
            let (least, greatest) = result.spread();
            let _ = writeln!(
                out,
                "{:<6} {:<14} {:>10.1} {:>10.1} {:>10.1}   {least:>9.1} {greatest:>9.1}",
                if index == 0 { row.size } else { "" },
                result.implementation,
                result.p50(),
                result.p95(),
                result.min(),
            );
        }
    }
}

fn ratios(out: &mut String, results: &WireResults, rows: &[Row]) {
    let _ = write!(out, "\n{:<24}", "ratio of p50");
    for row in rows {
        let _ = write!(out, " {:>7}", row.size);
    }
    for (of, to) in RATIOS {
        let known = |name| results.implementations.contains(&name);
        if !known(of) || !known(to) {
            continue;
        }
        let _ = write!(out, "\n{:<24}", format!("{of} / {to}"));
        for row in rows {
            let _ = match row.ratio(of, to) {
                Some(ratio) => write!(out, " {ratio:>7.2}"),
                None => write!(out, " {:>7}", "-"),
            };
        }
    }
    out.push('\n');
}

fn footprints(out: &mut String, results: &WireResults) {
    if !results.footprints.is_empty() {
        let _ = writeln!(
            out,
            "\n{:<21} {:>9} {:>9} {:>9} {:>8} {:>9}",
            "an idle process", "PSS", "anonymous", "RSS", "threads", "CPU"
        );
    }
    for f in &results.footprints {
        let _ = writeln!(
            out,
            "{:<21} {:>6} kB {:>6} kB {:>6} kB {:>8} {:>4.1} ms/s",
            f.implementation, f.pss_kb, f.pss_anonymous_kb, f.rss_kb, f.threads, f.cpu_ms_per_s
        );
    }
    if let Some(binary) = &results.binary {
        let stripped = binary.stripped_bytes.map_or_else(
            || "strip is not installed".into(),
            |b| format!("{} kB stripped", b / 1024),
        );
        let _ = writeln!(
            out,
            "\npteros binary: {} kB, {stripped}",
            binary.bytes / 1024
        );
    }
}

/// Returns the same numbers as JSON, with every repeat.
pub fn json(results: &WireResults) -> Value {
    let tables: Vec<Value> = results
        .tables
        .iter()
        .map(|(pinning, rows)| {
            let sizes: Vec<Value> = rows.iter().map(row_json).collect();
            json!({ "pinning": pinning.to_string(), "sizes": sizes })
        })
        .collect();
    let idle: Vec<Value> = results
        .footprints
        .iter()
        .map(|f| {
            json!({
                "name": f.implementation,
                "pss_kb": f.pss_kb,
                "pss_anonymous_kb": f.pss_anonymous_kb,
                "rss_kb": f.rss_kb,
                "threads": f.threads,
                "cpu_ms_per_s": f.cpu_ms_per_s,
            })
        })
        .collect();
    json!({
        "repeats": results.repeats,
        "round_trips": tables,
        "idle": idle,
        "binary_bytes": results.binary.as_ref().map(|b| b.bytes),
        "binary_stripped_bytes": results.binary.as_ref().and_then(|b| b.stripped_bytes),
    })
}

fn row_json(row: &Row) -> Value {
    let results: Vec<Value> = row
        .results
        .iter()
        .map(|result| {
            json!({
                "name": result.implementation,
                "p50_us": result.p50(),
                "p95_us": result.p95(),
                "min_us": result.min(),
                "repeats_p50_us": result.repeats.iter().map(|r| r.p50).collect::<Vec<_>>(),
            })
        })
        .collect();
    let ratios: serde_json::Map<String, Value> = RATIOS
        .iter()
        .map(|(of, to)| (format!("{of}/{to}"), json!(row.ratio(of, to))))
        .collect();
    json!({ "bytes": row.bytes, "implementations": results, "ratios_p50": ratios })
}
