//! Nodes.

use std::ffi::{CString, c_char};

use pteros::{Node, NodeOptions};

use crate::argument::{c_text, optional_text, required, text};
use crate::context::PterosContext;
use crate::error::{self, Outcome};

/// `pteros_node_t`.
pub struct PterosNode {
    pub(crate) node: Node,
    name: CString,
    namespace: CString,
    full_name: CString,
}

impl PterosNode {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            name: c_text(node.name()),
            namespace: c_text(node.namespace()),
            full_name: c_text(&node.fully_qualified_name()),
            node,
        }
    }
}

/// Options of a node that C names.
pub(crate) fn options(name: *const c_char, namespace: *const c_char) -> Outcome<NodeOptions> {
    let options = NodeOptions::new(text(name, "name")?);
    Ok(match optional_text(namespace, "namespace")? {
        Some(namespace) => options.namespace(namespace),
        None => options,
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_new(
    context: Option<&PterosContext>,
    name: *const c_char,
    namespace: *const c_char,
) -> Option<Box<PterosNode>> {
    error::create("pteros_node_new", || {
        let context = &required(context, "context")?.0;
        Ok(PterosNode::new(
            context.create_node(options(name, namespace)?)?,
        ))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_free(node: Option<Box<PterosNode>>) {
    error::free("pteros_node_free", node);
}

fn name_of(
    function: &str,
    node: Option<&PterosNode>,
    of: fn(&PterosNode) -> &CString,
) -> *const c_char {
    error::value(function, c"".as_ptr(), || {
        Ok(of(required(node, "node")?).as_ptr())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_name(node: Option<&PterosNode>) -> *const c_char {
    name_of("pteros_node_name", node, |node| &node.name)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_namespace(node: Option<&PterosNode>) -> *const c_char {
    name_of("pteros_node_namespace", node, |node| &node.namespace)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_fully_qualified_name(node: Option<&PterosNode>) -> *const c_char {
    name_of("pteros_node_fully_qualified_name", node, |node| {
        &node.full_name
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_now(node: Option<&PterosNode>) -> i64 {
    error::value("pteros_node_now", 0, || {
        Ok(required(node, "node")?.node.clock().now().as_nanos())
    })
}
