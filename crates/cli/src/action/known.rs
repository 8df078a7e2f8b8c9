//! What the graph knows of actions: those with a feedback topic, as rcl_action
//! tells them.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::Graph;

/// An action of the graph.
pub struct Known {
    /// Fully qualified name.
    pub name: String,
    /// Its types; more than one means that its ends disagree.
    pub types: Vec<String>,
}

const FEEDBACK: &str = "/_action/feedback";
const FEEDBACK_TYPE: &str = "_FeedbackMessage";

/// All actions, sorted by name.
pub fn actions(graph: &Graph) -> Vec<Known> {
    let of = |topic: pteros::TopicInfo| {
        let name = topic.name.strip_suffix(FEEDBACK)?.to_owned();
        let types = topic.types.iter();
        let types: Vec<String> = types
            .filter_map(|ty| ty.strip_suffix(FEEDBACK_TYPE))
            .map(str::to_owned)
            .collect();
        (!types.is_empty()).then_some(Known { name, types })
    };
    graph.topics().into_iter().filter_map(of).collect()
}

/// The feedback topic of an action.
pub fn feedback_topic(action: &str) -> String {
    format!("{action}{FEEDBACK}")
}

/// The action of that full name.
pub fn known_action(session: &Session, graph: &Graph, name: &str) -> Result<Known> {
    let mut all = actions(graph);
    if let Some(at) = all.iter().position(|action| action.name == name) {
        return Ok(all.swap_remove(at));
    }
    bail!(
        "unknown action '{name}': nobody in domain {} serves or asks for it{} See all of them with: pteros action list",
        session.context.domain_id(),
        did_you_mean(name, all.iter().map(|action| action.name.as_str()))
    )
}
