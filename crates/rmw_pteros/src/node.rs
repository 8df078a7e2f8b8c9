//! Nodes: creation, destruction and the graph guard condition.

use std::ffi::c_char;
use std::sync::Arc;

use pteros_rcl::guard_condition::GuardCondition as GuardState;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::names::{validate_namespace, validate_node};

use crate::abi::{Context, GuardCondition, Node, Ret};
use crate::context::{self, ContextState};
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, create, non_null, run_end, text,
};
use crate::guard_condition;
use crate::handle::{Handle, c_name};

/// State behind a node handle.
pub(crate) struct NodeState {
    pub(crate) context: Arc<ContextState>,
    pub(crate) key: NodeKey,
    /// Guard condition for changes of the graph; freed with the node.
    graph_guard: GuardPointer,
}

/// C structure of the graph guard condition. Threads never change it.
struct GuardPointer(*mut GuardCondition);

// SAFETY: the pointer is only handed out and freed.
unsafe impl Send for GuardPointer {}
// SAFETY: as above.
unsafe impl Sync for GuardPointer {}

impl Drop for GuardPointer {
    fn drop(&mut self) {
        // SAFETY: from `into_raw` in `rmw_create_node`.
        unsafe { Handle::<GuardCondition, GuardState>::destroy(self.0) };
    }
}

/// The state of a node handle.
///
/// # Safety
/// `node` is null or a node handle.
pub(crate) unsafe fn state<'n>(node: *const Node) -> Outcome<&'n Arc<NodeState>> {
    // SAFETY: as for this function.
    unsafe {
        let node = non_null(node, "node")?;
        check_identifier(node.implementation_identifier, "node")?;
        Handle::<Node, NodeState>::state(node)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_node(
    context: *mut Context,
    name: *const c_char,
    namespace: *const c_char,
) -> *mut Node {
    create("rmw_create_node", || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { context::state(context) }?;
        if state.is_shut_down() {
            return Err(Failure::argument("the context is shut down"));
        }
        // SAFETY: the contract of rmw (lib.rs).
        let (name, namespace) = unsafe { (text(name, "name")?, text(namespace, "namespace")?) };
        validate_node(name).map_err(|error| Failure::argument(error.to_string()))?;
        validate_namespace(namespace).map_err(|error| Failure::argument(error.to_string()))?;
        let names = [c_name(name)?, c_name(namespace)?];
        let guard = guard_condition::handle_of(state.waits.create_graph_guard(), context);
        let node = Arc::new(NodeState {
            context: state.clone(),
            key: state.core.discovery().add_node(name, namespace),
            graph_guard: GuardPointer(guard.into_raw()),
        });
        let abi = Node {
            implementation_identifier: IDENTIFIER.as_ptr(),
            data: Arc::as_ptr(&node).cast_mut().cast(),
            name: names[0].as_ptr(),
            namespace: names[1].as_ptr(),
            context,
        };
        Ok(Handle::new(abi, node, names).into_raw())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_node(node: *mut Node) -> Ret {
    run_end("rmw_destroy_node", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            state(node)?;
            let node = Handle::<Node, NodeState>::destroy(node);
            node.context.core.discovery().remove_node(node.key);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_node_get_graph_guard_condition(
    node: *const Node,
) -> *const GuardCondition {
    create("rmw_node_get_graph_guard_condition", || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(node) }?;
        Ok(state.graph_guard.0)
    })
}
