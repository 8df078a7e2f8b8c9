//! From a topic's name to what the graph knows about it, or an error that
//! helps.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::names::is_hidden;
use pteros::{Graph, TopicInfo};

/// The topics to show, sorted by name.
pub fn shown_topics(session: &Session, graph: &Graph, include_hidden: bool) -> Vec<TopicInfo> {
    let mut topics = session.topics(graph);
    topics.retain(|topic| include_hidden || !is_hidden(&topic.name));
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    topics
}

/// The topic of that full name.
pub fn known_topic(session: &Session, graph: &Graph, name: &str) -> Result<TopicInfo> {
    let topics = session.topics(graph);
    if let Some(topic) = topics.iter().find(|topic| topic.name == name) {
        return Ok(topic.clone());
    }
    let similar = did_you_mean(name, topics.iter().map(|topic| topic.name.as_str()));
    bail!(
        "{}{similar} {}",
        unknown(session, name),
        way_out(topics.len())
    )
}

fn unknown(session: &Session, name: &str) -> String {
    let domain = session.context.domain_id();
    format!("unknown topic '{name}': nobody in domain {domain} publishes or subscribes to it")
}

fn way_out(topic_count: usize) -> &'static str {
    if topic_count == 0 {
        "No other topic was found either: check that the nodes run, and that ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE are the same for them and here"
    } else {
        "See all of them with: pteros topic list"
    }
}

/// The one type of a topic; `way_out` tells what to do where there are several.
pub fn only_type(topic: &TopicInfo, way_out: &str) -> Result<String> {
    match topic.types.as_slice() {
        [only] => Ok(only.clone()),
        [] => bail!("topic '{}' has no type yet: try again", topic.name),
        several => bail!(
            "topic '{}' has more than one type: {}; {way_out}",
            topic.name,
            several.join(", ")
        ),
    }
}
