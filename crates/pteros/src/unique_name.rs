//! Node names that nobody else has. ROS 2 lets several nodes have one name; what
//! asks for a node by it then means all of them, or any.

use std::time::Duration;

use pteros_rmw::names::node_path;

use crate::context::Context;
use crate::error::NodeError;

/// Whose name counts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rival {
    /// Anybody's: we are not there yet.
    Any,
    /// Of two that came at the same time the one with the smaller identity stays.
    Elder,
}

/// Looks for so long whether another node has the name. Blocks; drives the
/// network and runs no callbacks.
pub(crate) fn refuse_twin(
    context: &Context,
    name: &str,
    namespace: &str,
    span: Duration,
    rival: Rival,
) -> Result<(), NodeError> {
    let path = node_path(namespace, name);
    let mut holder = None;
    context.graph().wait_until(span, || {
        holder = holder.take().or_else(|| holder_of(context, &path, rival));
        holder.is_some()
    });
    match holder {
        None => Ok(()),
        Some(holder) => Err(NodeError::NameTaken { node: path, holder }),
    }
}

/// Who has the name, in words.
fn holder_of(context: &Context, path: &str, rival: Rival) -> Option<String> {
    let graph = context.core().graph();
    let own = context.guid().prefix;
    let nodes = graph.nodes();
    let twin = nodes.iter().find(|node| {
        node_path(&node.namespace, &node.name) == path
            && (rival == Rival::Any || node.participant < own)
    })?;
    if twin.participant == own {
        return Some("another node of this process".into());
    }
    let known = graph.participants();
    let participant = known.iter().find(|p| p.prefix == twin.participant);
    let address =
        participant.and_then(|p| p.default_unicast.first().or(p.metatraffic_unicast.first()));
    Some(match address {
        Some(address) => format!("a node at {address} (participant {})", twin.participant),
        None => format!("a node of participant {}", twin.participant),
    })
}
