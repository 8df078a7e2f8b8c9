//! Graph cache: prints the nodes and topics of the graph whenever they change.
//! There is no daemon, since every context has the graph. Ctrl-C ends it.

use std::error::Error;
use std::time::Duration;

use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let _node = context.create_node("watch")?;
    let graph = context.graph();
    while !context.is_shut_down() {
        // Before the look: a change during it is news.
        let seen = graph.revision();
        let nodes: Vec<String> = graph
            .nodes()
            .iter()
            .map(|node| node.fully_qualified_name())
            .collect();
        let topics: Vec<String> = graph
            .topics()
            .iter()
            .map(|topic| format!("{} [{}]", topic.name, topic.types.join(", ")))
            .collect();
        println!("nodes: {}; topics: {}", nodes.join(" "), topics.join(" "));
        while !context.is_shut_down() {
            if graph.wait_for_change(seen, Duration::from_secs(1)) > seen {
                break;
            }
        }
    }
    Ok(())
}
