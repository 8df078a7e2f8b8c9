//! The findings as a table and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Findings;
use super::contestant::Pinning;
use super::round_trip::Row;

/// The pairs whose medians are divided.
const RATIOS: [(&str, &str); 4] = [
    ("pteros", "cyclone"),
    ("pteros", "cyclone-tuned"),
    ("pteros", "floor"),
    ("cyclone", "floor"),
];

/// For people.
pub fn text(findings: &Findings) -> String {
    let mut out = format!(
        "\nRound trip in microseconds, two processes, loopback UDP, reliable, keep last 10;\n\
         median of {} repeats, contestants in turns; spread: least and greatest median.\n",
        findings.repeats
    );
    for (pinning, rows) in &findings.tables {
        table(&mut out, *pinning, rows);
        ratios(&mut out, findings, rows);
    }
    footprints(&mut out, findings);
    out
}

fn table(out: &mut String, pinning: Pinning, rows: &[Row]) {
    let _ = writeln!(
        out,
        "\n{pinning:<21} {:>10} {:>10} {:>10}   {:>19}",
        "p50", "p95", "min", "spread of p50"
    );
    for row in rows {
        for (index, cell) in row.cells.iter().enumerate() {
            let (least, greatest) = cell.spread();
            let _ = writeln!(
                out,
                "{:<6} {:<14} {:>10.1} {:>10.1} {:>10.1}   {least:>9.1} {greatest:>9.1}",
                if index == 0 { row.size } else { "" },
                cell.contestant,
                cell.p50(),
                cell.p95(),
                cell.min(),
            );
        }
    }
}

fn ratios(out: &mut String, findings: &Findings, rows: &[Row]) {
    let _ = write!(out, "\n{:<24}", "ratio of p50");
    for row in rows {
        let _ = write!(out, " {:>7}", row.size);
    }
    for (of, to) in RATIOS {
        let known = |name| findings.contestants.contains(&name);
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

fn footprints(out: &mut String, findings: &Findings) {
    if !findings.footprints.is_empty() {
        let _ = writeln!(
            out,
            "\n{:<21} {:>9} {:>9} {:>9} {:>8} {:>9}",
            "an idle process", "PSS", "anonymous", "RSS", "threads", "CPU"
        );
    }
    for f in &findings.footprints {
        let _ = writeln!(
            out,
            "{:<21} {:>6} kB {:>6} kB {:>6} kB {:>8} {:>4.1} ms/s",
            f.contestant, f.pss_kb, f.pss_anonymous_kb, f.rss_kb, f.threads, f.cpu_ms_per_s
        );
    }
    if let Some(binary) = &findings.binary {
        let stripped = binary.stripped_bytes.map_or_else(
            || "no strip here".into(),
            |b| format!("{} kB stripped", b / 1024),
        );
        let _ = writeln!(
            out,
            "\npteros binary: {} kB, {stripped}",
            binary.bytes / 1024
        );
    }
}

/// For programs: the same numbers, repeats included.
pub fn json(findings: &Findings) -> Value {
    let tables: Vec<Value> = findings
        .tables
        .iter()
        .map(|(pinning, rows)| {
            let sizes: Vec<Value> = rows.iter().map(row_json).collect();
            json!({ "pinning": pinning.to_string(), "sizes": sizes })
        })
        .collect();
    let idle: Vec<Value> = findings
        .footprints
        .iter()
        .map(|f| {
            json!({
                "name": f.contestant,
                "pss_kb": f.pss_kb,
                "pss_anonymous_kb": f.pss_anonymous_kb,
                "rss_kb": f.rss_kb,
                "threads": f.threads,
                "cpu_ms_per_s": f.cpu_ms_per_s,
            })
        })
        .collect();
    json!({
        "repeats": findings.repeats,
        "round_trips": tables,
        "idle": idle,
        "binary_bytes": findings.binary.as_ref().map(|b| b.bytes),
        "binary_stripped_bytes": findings.binary.as_ref().and_then(|b| b.stripped_bytes),
    })
}

fn row_json(row: &Row) -> Value {
    let cells: Vec<Value> = row
        .cells
        .iter()
        .map(|cell| {
            json!({
                "name": cell.contestant,
                "p50_us": cell.p50(),
                "p95_us": cell.p95(),
                "min_us": cell.min(),
                "repeats_p50_us": cell.repeats.iter().map(|r| r.p50).collect::<Vec<_>>(),
            })
        })
        .collect();
    let ratios: serde_json::Map<String, Value> = RATIOS
        .iter()
        .map(|(of, to)| (format!("{of}/{to}"), json!(row.ratio(of, to))))
        .collect();
    json!({ "bytes": row.bytes, "contestants": cells, "ratios_p50": ratios })
}
