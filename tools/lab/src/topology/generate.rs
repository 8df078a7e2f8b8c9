//! Generator of topology files with common shapes, also for `ros2-performance`.

use serde_json::{Value, json};

/// Shape of a generated graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each node publishes to the next. The first has no subscription, the last no
    /// publisher.
    Chain,
    /// The first publishes to all others.
    Star,
    /// All others publish, each on its topic, to the first.
    FanIn,
    /// Each publishes on its topic to all others.
    AllToAll,
}

impl Shape {
    /// All shapes and their names on the command line.
    pub const ALL: [(&str, Self); 4] = [
        ("chain", Self::Chain),
        ("star", Self::Star),
        ("fan-in", Self::FanIn),
        ("all-to-all", Self::AllToAll),
    ];
}

/// A file with `nodes` nodes, each with its own executor. Publishers send messages
/// of type `ty` at `hz`, with `bytes` if the type has a variable size.
pub fn generate(shape: Shape, nodes: usize, ty: &str, hz: f64, bytes: Option<u64>) -> Value {
    let list: Vec<Value> = (1..=nodes)
        .map(|node| {
            let (published, subscribed) = topics(shape, node, nodes);
            let mut value = json!({ "node_name": format!("node_{node}") });
            if !published.is_empty() {
                let publishers = published.iter().map(|topic| {
                    let mut value = json!({ "topic_name": topic, "msg_type": ty, "freq_hz": hz });
                    if let Some(bytes) = bytes {
                        value["msg_size"] = json!(bytes);
                    }
                    value
                });
                value["publishers"] = publishers.collect();
            }
            if !subscribed.is_empty() {
                let subscribers = subscribed.iter();
                let subscribers =
                    subscribers.map(|topic| json!({ "topic_name": topic, "msg_type": ty }));
                value["subscribers"] = subscribers.collect();
            }
            value["executor_id"] = json!(node);
            value
        })
        .collect();
    json!({ "nodes": list })
}

/// Published and subscribed topics of a node.
fn topics(shape: Shape, node: usize, nodes: usize) -> (Vec<String>, Vec<String>) {
    let topic = |of: usize| format!("topic_{of}");
    let others = || {
        (1..=nodes)
            .filter(|other| *other != node)
            .map(topic)
            .collect()
    };
    let own = || vec![topic(node)];
    match shape {
        Shape::Chain => (
            if node < nodes { own() } else { Vec::new() },
            if node > 1 {
                vec![topic(node - 1)]
            } else {
                Vec::new()
            },
        ),
        Shape::Star if node == 1 => (own(), Vec::new()),
        Shape::Star => (Vec::new(), vec![topic(1)]),
        Shape::FanIn if node == 1 => (Vec::new(), others()),
        Shape::FanIn => (own(), Vec::new()),
        Shape::AllToAll => (own(), others()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::document::Topology;
    use super::super::types::library;
    use super::*;

    #[test]
    fn a_generated_topology_parses_and_has_the_connections_of_its_shape() {
        let library = library();
        for (shape, publishers, subscriptions) in [
            (Shape::Chain, 4, 4),
            (Shape::Star, 1, 4),
            (Shape::FanIn, 4, 4),
            (Shape::AllToAll, 5, 20),
        ] {
            let text = generate(shape, 5, "stamped_vector", 50.0, Some(1000)).to_string();
            let topology = Topology::parse(Path::new("x.json"), &text, &library).expect("right");
            assert_eq!(topology.warnings, []);
            let count = |of: fn(&super::super::NodeSpec) -> usize| -> usize {
                topology.nodes.iter().map(of).sum()
            };
            assert_eq!(count(|n| n.publishers.len()), publishers, "{shape:?}");
            assert_eq!(count(|n| n.subscriptions.len()), subscriptions, "{shape:?}");
            let first = topology.nodes.iter().flat_map(|n| &n.publishers).next();
            let first = first.expect("a node publishes");
            assert_eq!((first.bytes, first.period.as_millis()), (1000, 20));
        }
    }
}
