//! `pteros trace show`: latencies per topic, layer and chain.

use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros::subscription::DeliveryPath as Way;
use pteros::trace::{ChainRun, Hop, LatencyStats, Layer, Trace};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `trace show`.
#[derive(Debug, Args)]
pub struct Show {
    /// A .ptrace file, or the folder that `trace record` or PTEROS_TRACE named
    trace: PathBuf,
    /// Only the runs of this chain of topics, hop by hop: /scan,/map,/plan
    #[arg(long, value_name = "TOPICS", value_delimiter = ',')]
    chain: Vec<String>,
}

impl Show {
    /// Reads the trace and shows it.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let trace = Trace::load(&self.trace)?;
        let report = if self.chain.is_empty() {
            all_topics_report(&trace)
        } else {
            chain_report(&trace, &self.chain)?
        };
        if cli.console.json {
            cli.console.json(&report.json)?
        } else {
            cli.console.text(&report.text)?
        }
        Ok(())
    }
}

/// A report as text and as JSON.
struct TraceReport {
    text: String,
    json: Value,
}

fn all_topics_report(trace: &Trace) -> TraceReport {
    let mut topics: BTreeMap<(&str, &str), Vec<Hop<'_>>> = BTreeMap::new();
    for hop in trace.hops() {
        topics
            .entry((hop.topic, hop.delivery_path.name()))
            .or_default()
            .push(hop);
    }
    let hops: usize = topics.values().map(Vec::len).sum();
    let contexts = trace.recordings().len();
    let lost = trace.overwritten_records();
    let mut text = format!("{hops} messages to callbacks in {contexts} contexts");
    if lost > 0 {
        text += &format!(
            "; {lost} records were overwritten by newer ones, so the beginning is missing"
        );
    }
    if hops == 0 {
        text += "; publisher and subscription must both run below `pteros trace record`";
    }
    text += "\n\n";
    text += &table_heading("TOPIC");
    let mut rows = Vec::new();
    for ((topic, _), hops) in &topics {
        let refs: Vec<&Hop<'_>> = hops.iter().collect();
        text += &topic_row(topic, &refs);
        rows.push(hops_json(topic, &refs));
    }
    text += "\nLayers, median in µs\n";
    text += &layers_heading();
    for ((topic, _), hops) in &topics {
        text += &layers_row(topic, &hops.iter().collect::<Vec<_>>());
    }
    let chains = trace.chains();
    let mut report = Vec::new();
    if !chains.is_empty() {
        text += "\nChains of causally related messages, from publish call to last callback; --chain shows one hop by hop\n";
    }
    for (topics, runs) in &chains {
        let latency = LatencyStats::of(trace.runs(topics).iter().map(ChainRun::latency));
        text += &format!(
            "  {} ({runs} runs)  p50 {}  p95 {}  p99 {}  max {}\n",
            topics.join(","),
            microseconds_text(latency.median),
            microseconds_text(latency.p95),
            microseconds_text(latency.p99),
            microseconds_text(latency.max),
        );
        report.push(json!({ "topics": topics, "runs": runs, "latency_ns": latency_json(latency) }));
    }
    TraceReport {
        text,
        json: json!({ "contexts": contexts, "lost": lost, "topics": rows, "chains": report }),
    }
}

fn chain_report(trace: &Trace, topics: &[String]) -> Result<TraceReport> {
    let names: Vec<String> = topics
        .iter()
        .map(|topic| {
            if topic.starts_with('/') {
                topic.clone()
            } else {
                format!("/{topic}")
            }
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs = trace.runs(&names);
    if runs.is_empty() {
        let known: Vec<String> = trace.chains().iter().map(|(t, _)| t.join(",")).collect();
        let known = if known.is_empty() {
            "no callback has published anything".to_owned()
        } else {
            format!("there are: {}", known.join("  "))
        };
        bail!(
            "no message passed through the chain {}; {known}",
            names.join(",")
        );
    }
    let latency = LatencyStats::of(runs.iter().map(ChainRun::latency));
    let mut text = format!("{} runs of {}\n\n", runs.len(), names.join(","));
    text += &table_heading("HOP");
    let mut hop_rows = Vec::new();
    for (at, topic) in names.iter().enumerate() {
        let hops: Vec<&Hop<'_>> = runs.iter().filter_map(|run| run.hops.get(at)).collect();
        text += &topic_row(topic, &hops);
        let mut report = hops_json(topic, &hops);
        if at + 1 < names.len() {
            let processing = LatencyStats::of(runs.iter().map(|run| run.processing(at)));
            text += &table_row("  its callback", "", None, processing);
            report["processing_ns"] = latency_json(processing);
        }
        hop_rows.push(report);
    }
    text += &table_row("end to end", "", None, latency);
    text += "\nLayers, median in µs\n";
    text += &layers_heading();
    for (at, topic) in names.iter().enumerate() {
        let hops: Vec<&Hop<'_>> = runs.iter().filter_map(|run| run.hops.get(at)).collect();
        text += &layers_row(topic, &hops);
    }
    Ok(TraceReport {
        text,
        json: json!({
            "topics": names,
            "runs": runs.len(),
            "latency_ns": latency_json(latency),
            "hops": hop_rows,
            "lost": trace.overwritten_records(),
        }),
    })
}

fn table_heading(what: &str) -> String {
    format!(
        "{what:<32} {:<14} {:>8} {:>9} {:>10} {:>10} {:>10} {:>10}\n",
        "PATH", "COUNT", "BYTES", "P50 µs", "P95 µs", "P99 µs", "MAX µs"
    )
}

fn topic_row(topic: &str, hops: &[&Hop<'_>]) -> String {
    let latency = LatencyStats::of(hops.iter().map(|hop| hop.latency()));
    let path = hops.first().map_or(Way::Network, |hop| hop.delivery_path);
    let bytes = hops.iter().map(|hop| hop.bytes).max();
    table_row(topic, path.name(), bytes, latency)
}

fn table_row(what: &str, path: &str, bytes: Option<u32>, spread: LatencyStats) -> String {
    let bytes = bytes.map_or(String::new(), |bytes| bytes.to_string());
    format!(
        "{what:<32} {path:<14} {:>8} {bytes:>9} {:>10} {:>10} {:>10} {:>10}\n",
        spread.count,
        microseconds_text(spread.median),
        microseconds_text(spread.p95),
        microseconds_text(spread.p99),
        microseconds_text(spread.max)
    )
}

fn layers_heading() -> String {
    let mut text = format!("{:<32}", "");
    for layer in Layer::ALL {
        text += &format!(" {:>17}", layer.name());
    }
    text + &format!(" {:>11} {:>8} {:>8}\n", "serializing", "decoding", "stamps")
}

fn layers_row(topic: &str, hops: &[&Hop<'_>]) -> String {
    let median = |of: &dyn Fn(&Hop<'_>) -> u64| {
        microseconds_text(LatencyStats::of(hops.iter().map(|h| of(h))).median)
    };
    let mut text = format!("{topic:<32}");
    for layer in Layer::ALL {
        text += &format!(" {:>17}", median(&|hop| hop.layer(layer)));
    }
    text + &format!(
        " {:>11} {:>8} {:>8}\n",
        median(&|hop| hop.serializing),
        median(&|hop| hop.decoding),
        median(&|hop| hop.stamping)
    )
}

fn hops_json(topic: &str, hops: &[&Hop<'_>]) -> Value {
    let of =
        |f: &dyn Fn(&Hop<'_>) -> u64| latency_json(LatencyStats::of(hops.iter().map(|hop| f(hop))));
    let layers: Map<String, Value> = Layer::ALL
        .iter()
        .map(|layer| (layer.name().replace(' ', "_"), of(&|hop| hop.layer(*layer))))
        .collect();
    json!({
        "topic": topic,
        "path": hops.first().map(|hop| hop.delivery_path.name()),
        "bytes": hops.iter().map(|hop| hop.bytes).max(),
        "latency_ns": of(&|hop| hop.latency()),
        "layers_ns": layers,
        "serializing_ns": of(&|hop| hop.serializing),
        "decoding_ns": of(&|hop| hop.decoding),
        "stamps_ns": of(&|hop| hop.stamping),
    })
}

fn latency_json(spread: LatencyStats) -> Value {
    json!({
        "count": spread.count,
        "min": spread.min,
        "p50": spread.median,
        "p95": spread.p95,
        "p99": spread.p99,
        "max": spread.max,
    })
}

/// Nanoseconds as microseconds, with the significant digits.
fn microseconds_text(nanos: u64) -> String {
    let micros = nanos as f64 / 1000.0;
    match nanos {
        0..100_000 => format!("{micros:.2}"),
        _ => format!("{micros:.0}"),
    }
}
