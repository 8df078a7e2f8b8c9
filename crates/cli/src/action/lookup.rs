//! Actions in the graph: names that have a feedback topic, as in rcl_action.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::Graph;

/// An action of the graph.
pub struct ActionEntry {
    /// Fully qualified name.
    pub name: String,
    /// Its types; more than one if its endpoints disagree.
    pub types: Vec<String>,
}

const FEEDBACK_SUFFIX: &str = "/_action/feedback";
const FEEDBACK_TYPE: &str = "_FeedbackMessage";

/// All actions, sorted by name.
pub fn all_actions(graph: &Graph) -> Vec<ActionEntry> {
    let of = |topic: pteros::graph::TopicInfo| {
        let name = topic.name.strip_suffix(FEEDBACK_SUFFIX)?.to_owned();
        let types = topic.types.iter();
        let types: Vec<String> = types
            .filter_map(|ty| ty.strip_suffix(FEEDBACK_TYPE))
            .map(str::to_owned)
            .collect();
        (!types.is_empty()).then_some(ActionEntry { name, types })
    };
    graph.topics().into_iter().filter_map(of).collect()
}

/// The feedback topic of an action.
pub fn feedback_topic(action: &str) -> String {
    format!("{action}{FEEDBACK_SUFFIX}")
}

/// The action of that full name.
pub fn find_action(session: &Session, graph: &Graph, name: &str) -> Result<ActionEntry> {
    let mut all = all_actions(graph);
    if let Some(at) = all.iter().position(|action| action.name == name) {
        return Ok(all.swap_remove(at));
    }
    bail!(
        "unknown action '{name}': it has no server or client in domain {}{} See all of them with: pteros action list",
        session.context.domain_id(),
        did_you_mean(name, all.iter().map(|action| action.name.as_str()))
    )
}
