//! Graph queries: a visitor is called for each entry, so that nothing has to be freed.

use std::ffi::{c_char, c_void};

use pteros::names::{NameKind, expand};

use crate::argument::{c_text, null, required, text};
use crate::context::PterosContext;
use crate::error::{self, Error, Outcome, Status};
use crate::node::PterosNode;

/// `pteros_pair_visitor_t`: a name, with a namespace or a type.
type PairVisitor =
    Option<extern "C" fn(name: *const c_char, other: *const c_char, user: *mut c_void)>;

fn visit<'p>(
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
    visitor: PairVisitor,
    user: *mut c_void,
) -> Outcome {
    let visitor = visitor.ok_or_else(|| null("visitor"))?;
    for (name, other) in pairs {
        visitor(c_text(name).as_ptr(), c_text(other).as_ptr(), user);
    }
    Ok(())
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_graph_visit_nodes(
    context: Option<&PterosContext>,
    visitor: PairVisitor,
    user: *mut c_void,
) -> Status {
    error::run("pteros_graph_visit_nodes", || {
        let nodes = required(context, "context")?.0.graph().nodes();
        let pairs = nodes.iter().map(|node| (&*node.name, &*node.namespace));
        visit(pairs, visitor, user)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_graph_visit_topics(
    context: Option<&PterosContext>,
    visitor: PairVisitor,
    user: *mut c_void,
) -> Status {
    error::run("pteros_graph_visit_topics", || {
        let topics = required(context, "context")?.0.graph().topics();
        let pairs = topics.iter().flat_map(|topic| {
            let types = topic.types.iter();
            types.map(|ty| (topic.name.as_str(), ty.as_str()))
        });
        visit(pairs, visitor, user)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_graph_visit_services(
    context: Option<&PterosContext>,
    visitor: PairVisitor,
    user: *mut c_void,
) -> Status {
    error::run("pteros_graph_visit_services", || {
        let services = required(context, "context")?.0.graph().services();
        let pairs = services.iter().flat_map(|service| {
            let types = service.types.iter();
            types.map(|ty| (service.name.as_str(), ty.as_str()))
        });
        visit(pairs, visitor, user)
    })
}

fn count(node: Option<&PterosNode>, topic: *const c_char, of_publishers: bool) -> Outcome<usize> {
    let node = &required(node, "node")?.node;
    let topic = text(topic, "topic")?;
    let topic = expand(NameKind::Topic, topic, node.name(), node.namespace());
    let topic = topic.map_err(Error::argument)?;
    let graph = node.context().graph();
    Ok(if of_publishers {
        graph.publishers(&topic).len()
    } else {
        graph.subscriptions(&topic).len()
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_count_publishers(
    node: Option<&PterosNode>,
    topic: *const c_char,
) -> usize {
    error::value("pteros_node_count_publishers", 0, || {
        count(node, topic, true)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_count_subscriptions(
    node: Option<&PterosNode>,
    topic: *const c_char,
) -> usize {
    error::value("pteros_node_count_subscriptions", 0, || {
        count(node, topic, false)
    })
}
