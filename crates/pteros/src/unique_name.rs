//! Unique node names: refuses a node whose name is taken.
//!
//! ROS 2 lets several nodes share a name; what addresses a node by that name then
//! reaches all of them, or any.

use std::time::Duration;

use pteros_runtime::names::node_path;

use crate::context::Context;
use crate::error::CreateError;

/// Which nodes of the same name conflict.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NameConflict {
    /// Every other node: this one does not exist yet.
    Any,
    /// Of two nodes that started at the same time, the one with the smaller GUID
    /// stays.
    Elder,
}

/// Observes discovery for that span for another node of the name. Blocks; drives
/// the network and runs no callbacks.
pub(crate) fn ensure_unique_name(
    context: &Context,
    name: &str,
    namespace: &str,
    span: Duration,
    rival: NameConflict,
) -> Result<(), CreateError> {
    let path = node_path(namespace, name);
    let mut holder = None;
    context.graph().wait_until(span, || {
        holder = holder
            .take()
            .or_else(|| conflicting_participant(context, &path, rival));
        holder.is_some()
    });
    match holder {
        None => Ok(()),
        Some(holder) => Err(CreateError::NameTaken { node: path, holder }),
    }
}

/// Describes the node that has the name.
fn conflicting_participant(context: &Context, path: &str, rival: NameConflict) -> Option<String> {
    let graph = context.core().graph();
    let own = context.guid().prefix;
    let nodes = graph.nodes();
    let twin = nodes.iter().find(|node| {
        node_path(&node.namespace, &node.name) == path
            && (rival == NameConflict::Any || node.participant < own)
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
