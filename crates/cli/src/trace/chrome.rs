//! Export of traces to Chrome's trace event format. Publish calls, callbacks and
//! timers are slices; flow arrows lead from publish calls to the callbacks that
//! took the message. An arrow that begins within a slice shows causality.

use pteros::trace::{Hop, Layer, Trace, TracedEndpoint};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The events as one JSON document, one event per line.
pub fn to_chrome_json(trace: &Trace) -> String {
    let mut lines = Vec::new();
    let mut processes: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    let mut note = |owner: &TracedEndpoint| {
        processes
            .entry(owner.process)
            .or_default()
            .insert(owner.node.clone());
    };
    let mut written = BTreeSet::new();
    for (number, hop) in trace.hops().enumerate() {
        let (Some(publisher), Some(subscriber)) = (hop.publisher, hop.subscriber) else {
            continue;
        };
        note(publisher);
        note(subscriber);
        // Several subscriptions share one publish call.
        if written.insert((hop.writer, hop.sequence)) {
            lines.push(publish_event(&hop, publisher));
        }
        lines.push(callback_event(&hop, subscriber));
        let arrow = |phase: &str, process: u32, thread: u32, at: u64| {
            json!({
                "ph": phase, "cat": "message", "name": hop.topic, "id": number, "bp": "e",
                "pid": process, "tid": thread, "ts": micros(at),
            })
        };
        lines.push(arrow("s", publisher.process, hop.thread, hop.began));
        let callback = hop.callback;
        lines.push(arrow(
            "f",
            subscriber.process,
            callback.thread,
            callback.began,
        ));
    }
    for (owner, tick) in trace.ticks() {
        note(&owner);
        lines.push(json!({
            "ph": "X", "cat": "timer", "name": format!("timer of {}", owner.node),
            "pid": owner.process, "tid": tick.thread,
            "ts": micros(tick.began), "dur": micros(tick.ended.saturating_sub(tick.began)),
        }));
    }
    for (process, nodes) in processes {
        let nodes: Vec<String> = nodes.into_iter().filter(|node| !node.is_empty()).collect();
        lines.push(json!({
            "ph": "M", "name": "process_name", "pid": process, "args": { "name": nodes.join(" ") },
        }));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}

fn publish_event(hop: &Hop<'_>, owner: &TracedEndpoint) -> Value {
    json!({
        "ph": "X", "cat": "publish", "name": format!("publish {}", hop.topic),
        "pid": owner.process, "tid": hop.thread,
        "ts": micros(hop.began), "dur": micros(hop.handed_over.saturating_sub(hop.began)),
        "args": { "node": owner.node, "number": hop.sequence, "bytes": hop.bytes },
    })
}

fn callback_event(hop: &Hop<'_>, owner: &TracedEndpoint) -> Value {
    let layers: BTreeMap<String, u64> = Layer::ALL
        .iter()
        .map(|layer| (format!("{} ns", layer.name()), hop.layer(*layer)))
        .collect();
    let callback = hop.callback;
    json!({
        "ph": "X", "cat": "callback", "name": format!("callback {}", hop.topic),
        "pid": owner.process, "tid": callback.thread,
        "ts": micros(callback.began),
        "dur": micros(callback.ended.saturating_sub(callback.began)),
        "args": {
            "node": owner.node, "number": hop.sequence, "path": hop.delivery_path.name(),
            "latency ns": hop.latency(), "layers": layers,
        },
    })
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}
