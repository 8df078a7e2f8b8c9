//! `pteros trace show`: latencies per topic, layer and chain.

use crate::shared::Shared;
use anyhow::{Result, bail};
use clap::Args;
use pteros::Path as Way;
use pteros::trace::{Hop, Layer, Run, Spread, Trace};
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
    pub fn run(self, shared: &Shared) -> Result<()> {
        let trace = Trace::load(&self.trace)?;
        let told = match self.chain.is_empty() {
            true => all(&trace),
            false => chain(&trace, &self.chain)?,
        };
        match shared.console.json {
            true => shared.console.json(&told.json)?,
            false => shared.console.text(&told.text)?,
        }
        Ok(())
    }
}

/// The same for people and for programs.
struct Told {
    text: String,
    json: Value,
}

fn all(trace: &Trace) -> Told {
    let mut topics: BTreeMap<(&str, &str), Vec<Hop<'_>>> = BTreeMap::new();
    for hop in trace.hops() {
        topics
            .entry((hop.topic, hop.path.name()))
            .or_default()
            .push(hop);
    }
    let hops: usize = topics.values().map(Vec::len).sum();
    let contexts = trace.recordings().len();
    let lost = trace.lost();
    let mut text = format!("{hops} messages to callbacks in {contexts} contexts");
    if lost > 0 {
        text +=
            &format!("; {lost} records had made room for newer ones, so the beginning is missing");
    }
    text += "\n\n";
    text += &head("TOPIC");
    let mut rows = Vec::new();
    for ((topic, _), hops) in &topics {
        let refs: Vec<&Hop<'_>> = hops.iter().collect();
        text += &row(topic, &refs);
        rows.push(hops_json(topic, &refs));
    }
    text += "\nLayers, median in µs\n";
    text += &layers_head();
    for ((topic, _), hops) in &topics {
        text += &layers_row(topic, &hops.iter().collect::<Vec<_>>());
    }
    let chains = trace.chains();
    let mut told = Vec::new();
    if !chains.is_empty() {
        text += "\nChains: what came of what, publish call to last callback; --chain shows one hop by hop\n";
    }
    for (topics, runs) in &chains {
        let latency = Spread::of(trace.runs(topics).iter().map(Run::latency));
        text += &format!(
            "  {} ({runs} runs)  p50 {}  p95 {}  p99 {}  max {}\n",
            topics.join(","),
            micros(latency.median),
            micros(latency.p95),
            micros(latency.p99),
            micros(latency.max),
        );
        told.push(json!({ "topics": topics, "runs": runs, "latency_ns": spread(latency) }));
    }
    Told {
        text,
        json: json!({ "contexts": contexts, "lost": lost, "topics": rows, "chains": told }),
    }
}

fn chain(trace: &Trace, topics: &[String]) -> Result<Told> {
    let names: Vec<String> = topics
        .iter()
        .map(|topic| match topic.starts_with('/') {
            true => topic.clone(),
            false => format!("/{topic}"),
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs = trace.runs(&names);
    if runs.is_empty() {
        let known: Vec<String> = trace.chains().iter().map(|(t, _)| t.join(",")).collect();
        let known = match known.is_empty() {
            true => "no callback published anything".to_owned(),
            false => format!("there are: {}", known.join("  ")),
        };
        bail!(
            "no message ran through the chain {}; {known}",
            names.join(",")
        );
    }
    let latency = Spread::of(runs.iter().map(Run::latency));
    let mut text = format!("{} runs of {}\n\n", runs.len(), names.join(","));
    text += &head("HOP");
    let mut hops_told = Vec::new();
    for (at, topic) in names.iter().enumerate() {
        let hops: Vec<&Hop<'_>> = runs.iter().filter_map(|run| run.hops.get(at)).collect();
        text += &row(topic, &hops);
        let mut told = hops_json(topic, &hops);
        if at + 1 < names.len() {
            let processing = Spread::of(runs.iter().map(|run| run.processing(at)));
            text += &line("  its callback", "", None, processing);
            told["processing_ns"] = spread(processing);
        }
        hops_told.push(told);
    }
    text += &line("end to end", "", None, latency);
    text += "\nLayers, median in µs\n";
    text += &layers_head();
    for (at, topic) in names.iter().enumerate() {
        let hops: Vec<&Hop<'_>> = runs.iter().filter_map(|run| run.hops.get(at)).collect();
        text += &layers_row(topic, &hops);
    }
    Ok(Told {
        text,
        json: json!({
            "topics": names,
            "runs": runs.len(),
            "latency_ns": spread(latency),
            "hops": hops_told,
            "lost": trace.lost(),
        }),
    })
}

fn head(what: &str) -> String {
    format!(
        "{what:<32} {:<14} {:>8} {:>9} {:>10} {:>10} {:>10} {:>10}\n",
        "PATH", "COUNT", "BYTES", "P50 µs", "P95 µs", "P99 µs", "MAX µs"
    )
}

fn row(topic: &str, hops: &[&Hop<'_>]) -> String {
    let latency = Spread::of(hops.iter().map(|hop| hop.latency()));
    let path = hops.first().map_or(Way::Network, |hop| hop.path);
    let bytes = hops.iter().map(|hop| hop.bytes).max();
    line(topic, path.name(), bytes, latency)
}

fn line(what: &str, path: &str, bytes: Option<u32>, spread: Spread) -> String {
    let bytes = bytes.map_or(String::new(), |bytes| bytes.to_string());
    format!(
        "{what:<32} {path:<14} {:>8} {bytes:>9} {:>10} {:>10} {:>10} {:>10}\n",
        spread.count,
        micros(spread.median),
        micros(spread.p95),
        micros(spread.p99),
        micros(spread.max)
    )
}

fn layers_head() -> String {
    let mut text = format!("{:<32}", "");
    for layer in Layer::ALL {
        text += &format!(" {:>17}", layer.name());
    }
    text + &format!(" {:>11} {:>8} {:>8}\n", "serializing", "decoding", "stamps")
}

fn layers_row(topic: &str, hops: &[&Hop<'_>]) -> String {
    let median =
        |of: &dyn Fn(&Hop<'_>) -> u64| micros(Spread::of(hops.iter().map(|h| of(h))).median);
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
    let of = |f: &dyn Fn(&Hop<'_>) -> u64| spread(Spread::of(hops.iter().map(|hop| f(hop))));
    let layers: Map<String, Value> = Layer::ALL
        .iter()
        .map(|layer| (layer.name().replace(' ', "_"), of(&|hop| hop.layer(*layer))))
        .collect();
    json!({
        "topic": topic,
        "path": hops.first().map(|hop| hop.path.name()),
        "bytes": hops.iter().map(|hop| hop.bytes).max(),
        "latency_ns": of(&|hop| hop.latency()),
        "layers_ns": layers,
        "serializing_ns": of(&|hop| hop.serializing),
        "decoding_ns": of(&|hop| hop.decoding),
        "stamps_ns": of(&|hop| hop.stamping),
    })
}

fn spread(spread: Spread) -> Value {
    json!({
        "count": spread.count,
        "min": spread.min,
        "p50": spread.median,
        "p95": spread.p95,
        "p99": spread.p99,
        "max": spread.max,
    })
}

/// Nanoseconds as microseconds, with as many digits as tell something.
fn micros(nanos: u64) -> String {
    let micros = nanos as f64 / 1000.0;
    match nanos {
        0..100_000 => format!("{micros:.2}"),
        _ => format!("{micros:.0}"),
    }
}
