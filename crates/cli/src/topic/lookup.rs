//! Topics in the graph, by name.

use crate::cli_context::{CliContext, MORE_INTERFACES};
use crate::interface::type_names::{find_message_type, full_or_as_written};
use crate::remote_types::TYPE_TIMEOUT;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Error, Result, anyhow, bail};
use pteros::msg::dynamic::DynamicType;
use pteros::names::is_hidden;
use pteros::{Graph, graph::TopicInfo};

/// The topics to show, sorted by name. Hidden ones are optional.
pub fn shown_topics(session: &Session, graph: &Graph, include_hidden: bool) -> Vec<TopicInfo> {
    let mut topics = session.topics(graph);
    topics.retain(|topic| include_hidden || !is_hidden(&topic.name));
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    topics
}

/// The topic with this full name.
pub fn find_topic(session: &Session, graph: &Graph, name: &str) -> Result<TopicInfo> {
    let topics = session.topics(graph);
    if let Some(topic) = topics.iter().find(|topic| topic.name == name) {
        return Ok(topic.clone());
    }
    let similar = did_you_mean(name, topics.iter().map(|topic| topic.name.as_str()));
    bail!(
        "{}{similar} {}",
        unknown_topic(session, name),
        list_hint(topics.len())
    )
}

fn unknown_topic(session: &Session, name: &str) -> String {
    let domain = session.context.domain_id();
    format!("unknown topic '{name}': it has no publisher or subscription in domain {domain}")
}

fn list_hint(topic_count: usize) -> &'static str {
    if topic_count == 0 {
        "No other topic was found either: check that the nodes run, and that ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE are the same for them and here"
    } else {
        "See all of them with: pteros topic list"
    }
}

/// The full name of the type of a topic: the one that the user names, else the only one
/// in the graph.
pub fn type_name(
    cli: &CliContext,
    session: &Session,
    graph: &Graph,
    topic: &str,
    named: Option<&str>,
) -> Result<String> {
    if let Some(name) = named {
        return find_message_type(&cli.library()?, name);
    }
    let known = find_topic(session, graph, topic)
        .map_err(|unknown| anyhow!("{unknown}. To wait for the topic, give its type too"))?;
    only_type(&known, TYPE_HINT)
}

/// Advice for a topic or service with several types.
pub const TYPE_HINT: &str = "append one of them to the command";

/// The type from its definition, else from the topic's endpoints. The error ends with
/// `hint`.
pub fn message_type(
    cli: &CliContext,
    session: &Session,
    topic: &str,
    type_name: &str,
    hint: &str,
) -> Result<DynamicType> {
    let library = cli.library()?;
    let known = full_or_as_written(&library, type_name);
    let problem = match library.describe(&known) {
        Ok(description) => return Ok(DynamicType::new(&description)?),
        Err(problem) => problem,
    };
    session.node.fetch_topic_type(topic, TYPE_TIMEOUT).map_err(|reason| {
        Error::from(problem).context(format!(
            "topic '{topic}' is of type {type_name}, which has no definition here, and {reason}: {MORE_INTERFACES}{hint}"
        ))
    })
}

/// The only type of a topic. If there are several, the error ends with `hint`.
pub fn only_type(topic: &TopicInfo, hint: &str) -> Result<String> {
    match topic.types.as_slice() {
        [only] => Ok(only.clone()),
        [] => bail!("topic '{}' has no type yet: try again", topic.name),
        several => bail!(
            "topic '{}' has more than one type: {}; {hint}",
            topic.name,
            several.join(", ")
        ),
    }
}
