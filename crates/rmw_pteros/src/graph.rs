//! Graph queries: nodes, topics, services, endpoints and their counts.

use std::ffi::{c_char, c_void};

use pteros_rcl::graph::{
    self, EndpointRole, NamesOf, NodeQueryError, endpoint_infos, names_and_types,
    names_and_types_of_node,
};
use pteros_runtime::graph::GraphNode;
use pteros_runtime::names::validate_full;

use crate::abi::{
    Allocator, NamesAndTypes, Node, Ret, StringArray, TopicEndpointInfo, TopicEndpointInfoArray,
    ret,
};
use crate::distribution;
use crate::error::{Failure, Outcome, non_null, non_null_mut, run, text};
use crate::identity::gid_bytes;
use crate::node::{self, NodeState};

/// Checked arguments of a query for names and types.
struct Query<'a> {
    node: &'a NodeState,
    allocator: &'a Allocator,
    out: &'a mut NamesAndTypes,
}

impl<'a> Query<'a> {
    /// # Safety
    /// The contract of rmw (lib.rs).
    unsafe fn check(
        node: *const Node,
        allocator: *const Allocator,
        out: *mut NamesAndTypes,
    ) -> Outcome<Self> {
        // SAFETY: as for this function.
        unsafe {
            let node = node::state(node)?;
            let allocator = non_null(allocator, "allocator")?;
            allocator.check()?;
            let out = zeroed(out)?;
            Ok(Self {
                node,
                allocator,
                out,
            })
        }
    }

    /// Lists all endpoints of the graph.
    fn answer(self, listed: NamesOf) -> Outcome {
        let endpoints = self.node.context.core.graph().endpoints();
        self.out
            .fill(self.allocator, &names_and_types(&endpoints, listed))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_topic_names_and_types(
    node: *const Node,
    allocator: *mut Allocator,
    no_demangle: bool,
    out: *mut NamesAndTypes,
) -> Ret {
    run("rmw_get_topic_names_and_types", || {
        // SAFETY: the contract of rmw (lib.rs).
        let query = unsafe { Query::check(node, allocator, out) }?;
        query.answer(NamesOf::topics(no_demangle))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_service_names_and_types(
    node: *const Node,
    allocator: *mut Allocator,
    out: *mut NamesAndTypes,
) -> Ret {
    run("rmw_get_service_names_and_types", || {
        // SAFETY: the contract of rmw (lib.rs).
        let query = unsafe { Query::check(node, allocator, out) }?;
        query.answer(NamesOf::Services)
    })
}

unsafe fn by_node(
    (node, allocator, out): (*const Node, *const Allocator, *mut NamesAndTypes),
    (name, namespace): (*const c_char, *const c_char),
    role: EndpointRole,
    listed: NamesOf,
) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    let (query, name, namespace) = unsafe {
        let node = node::state(node)?;
        let allocator = non_null(allocator, "allocator")?;
        allocator.check()?;
        let (name, namespace) = (text(name, "node_name")?, text(namespace, "node_namespace")?);
        let out = zeroed(out)?;
        (
            Query {
                node,
                allocator,
                out,
            },
            name,
            namespace,
        )
    };
    let graph = query.node.context.core.graph();
    let found = names_and_types_of_node(graph, (name, namespace), role, listed);
    let found = found.map_err(|error| match error {
        NodeQueryError::Name(_) => Failure::argument(error.to_string()),
        NodeQueryError::NoSuchNode { .. } => {
            Failure::new(ret::NODE_NAME_NON_EXISTENT, error.to_string())
        }
    })?;
    query.out.fill(query.allocator, &found)
}

/// # Safety
/// The contract of rmw (lib.rs).
unsafe fn zeroed<'a>(out: *mut NamesAndTypes) -> Outcome<&'a mut NamesAndTypes> {
    // SAFETY: as for this function.
    let out = unsafe { non_null_mut(out, "names_and_types") }?;
    if out.is_zero() {
        Ok(out)
    } else {
        Err(Failure::argument("names_and_types is not zero-initialized"))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_subscriber_names_and_types_by_node(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    namespace: *const c_char,
    no_demangle: bool,
    out: *mut NamesAndTypes,
) -> Ret {
    let listed = NamesOf::topics(no_demangle);
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_subscriber_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            EndpointRole::Subscription,
            listed,
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_publisher_names_and_types_by_node(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    namespace: *const c_char,
    no_demangle: bool,
    out: *mut NamesAndTypes,
) -> Ret {
    let listed = NamesOf::topics(no_demangle);
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_publisher_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            EndpointRole::Publisher,
            listed,
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_service_names_and_types_by_node(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    namespace: *const c_char,
    out: *mut NamesAndTypes,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_service_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            EndpointRole::Service,
            NamesOf::Services,
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_client_names_and_types_by_node(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    namespace: *const c_char,
    out: *mut NamesAndTypes,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_client_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            EndpointRole::Client,
            NamesOf::Services,
        )
    })
}

/// # Safety
/// The contract of rmw (lib.rs).
unsafe fn node_names(node: *const Node, outputs: &[*mut StringArray]) -> Outcome {
    // SAFETY: as for this function.
    let (state, allocator) = unsafe {
        let state = node::state(node)?;
        (state, (*(*node).context).options.allocator)
    };
    for output in outputs {
        // SAFETY: as for this function.
        if !unsafe { non_null(*output, "output array") }?.is_zero() {
            return Err(Failure::argument("an output array is not zero-initialized"));
        }
    }
    let nodes = state.context.core.graph().nodes();
    let columns: [fn(&GraphNode) -> &str; 3] = [
        |node| &node.name,
        |node| &node.namespace,
        |node| node.enclave.as_deref().unwrap_or(""),
    ];
    for (at, (output, column)) in outputs.iter().zip(columns).enumerate() {
        // SAFETY: checked above.
        let output = unsafe { &mut **output };
        if let Err(failure) = output.fill(&allocator, nodes.iter().map(column)) {
            for filled in outputs.iter().take(at) {
                // SAFETY: filled before.
                unsafe { (**filled).clear() };
            }
            return Err(failure);
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_node_names(
    node: *const Node,
    names: *mut StringArray,
    namespaces: *mut StringArray,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_node_names", || unsafe {
        node_names(node, &[names, namespaces])
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_node_names_with_enclaves(
    node: *const Node,
    names: *mut StringArray,
    namespaces: *mut StringArray,
    enclaves: *mut StringArray,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_node_names_with_enclaves", || unsafe {
        node_names(node, &[names, namespaces, enclaves])
    })
}

/// A DDS topic name without an allocation, which upstream's tests forbid.
struct TopicBuffer {
    bytes: [u8; 512],
    len: usize,
}

impl TopicBuffer {
    fn join(parts: [&str; 3]) -> Self {
        let mut buffer = Self {
            bytes: [0; 512],
            len: 0,
        };
        for byte in parts.iter().flat_map(|part| part.bytes()) {
            if let Some(place) = buffer.bytes.get_mut(buffer.len) {
                *place = byte;
                buffer.len += 1;
            }
        }
        buffer
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or("")
    }
}

/// # Safety
/// The contract of rmw (lib.rs).
unsafe fn count(
    node: *const Node,
    name: *const c_char,
    count: *mut usize,
    role: EndpointRole,
) -> Outcome {
    // SAFETY: as for this function.
    unsafe {
        let state = node::state(node)?;
        let name = text(name, "name")?;
        let (kind, prefix, suffix, counts_writers) = role.counted();
        validate_full(kind, name).map_err(|error| Failure::argument(error.to_string()))?;
        let count = non_null_mut(count, "count")?;
        let topic = TopicBuffer::join([prefix, name, suffix]);
        *count = state
            .context
            .core
            .graph()
            .count_endpoints(topic.as_str(), counts_writers);
    }
    Ok(())
}

macro_rules! count_functions {
    ($($name:ident counts $role:ident;)*) => {$(
        /// Does not allocate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            node: *const Node,
            name: *const c_char,
            out: *mut usize,
        ) -> Ret {
            // SAFETY: the contract of rmw (lib.rs).
            run(stringify!($name), || unsafe {
                count(node, name, out, EndpointRole::$role)
            })
        }
    )*};
}

// Clients are counted by their writers of requests, services by their readers.
count_functions! {
    rmw_count_publishers counts Publisher;
    rmw_count_subscribers counts Subscription;
    rmw_count_clients counts Client;
    rmw_count_services counts Service;
}

/// # Safety
/// The contract of rmw (lib.rs).
unsafe fn info_by_topic(
    node: *const Node,
    allocator: *const Allocator,
    name: *const c_char,
    no_mangle: bool,
    out: *mut TopicEndpointInfoArray,
    wants_writers: bool,
) -> Outcome {
    // SAFETY: as for this function.
    let (state, allocator, name, out) = unsafe {
        let state = node::state(node)?;
        let allocator = non_null(allocator, "allocator")?;
        allocator.check()?;
        (
            state,
            allocator,
            text(name, "topic_name")?,
            non_null_mut(out, "info_array")?,
        )
    };
    if out.size != 0 || !out.info_array.is_null() {
        return Err(Failure::argument("the info array is not zero-initialized"));
    }
    let infos = endpoint_infos(state.context.core.graph(), name, no_mangle, wants_writers);
    if infos.is_empty() {
        return Ok(());
    }
    let array: *mut TopicEndpointInfo = allocator.array(infos.len())?;
    out.info_array = array;
    out.size = infos.len();
    for (at, info) in infos.iter().enumerate() {
        // SAFETY: the array has a place for each.
        let place = unsafe { array.add(at) };
        match endpoint_info(info, allocator) {
            // SAFETY: as above.
            Ok(info) => unsafe { place.write(info) },
            Err(failure) => {
                // SAFETY: those before were written; the array is of this allocator.
                unsafe {
                    for before in 0..at {
                        free_info(&*array.add(before), allocator);
                    }
                    allocator.free(array);
                }
                out.info_array = std::ptr::null_mut();
                out.size = 0;
                return Err(failure);
            }
        }
    }
    Ok(())
}

unsafe fn free_info(info: &TopicEndpointInfo, allocator: &Allocator) {
    for text in [info.node_name, info.node_namespace, info.topic_type] {
        // SAFETY: strings of this allocator, or null.
        unsafe { allocator.free(text.cast_mut().cast::<c_void>()) };
    }
}

fn endpoint_info(
    endpoint: &graph::TopicEndpointInfo,
    allocator: &Allocator,
) -> Outcome<TopicEndpointInfo> {
    let mut info = TopicEndpointInfo {
        node_name: std::ptr::null(),
        node_namespace: std::ptr::null(),
        topic_type: std::ptr::null(),
        topic_type_hash: distribution::topic_type_hash(endpoint.type_hash.as_ref()),
        endpoint_type: if endpoint.is_publisher { 1 } else { 2 },
        endpoint_gid: gid_bytes(endpoint.gid),
        qos_profile: endpoint.qos.into(),
    };
    let mut fill = || {
        info.node_name = allocator.string(&endpoint.node_name)?;
        info.node_namespace = allocator.string(&endpoint.node_namespace)?;
        info.topic_type = allocator.string(&endpoint.topic_type)?;
        Ok(())
    };
    match fill() {
        Ok(()) => Ok(info),
        Err(failure) => {
            // SAFETY: what was filled is of this allocator.
            unsafe { free_info(&info, allocator) };
            Err(failure)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_publishers_info_by_topic(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    no_mangle: bool,
    out: *mut TopicEndpointInfoArray,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_publishers_info_by_topic", || unsafe {
        info_by_topic(node, allocator, name, no_mangle, out, true)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_subscriptions_info_by_topic(
    node: *const Node,
    allocator: *mut Allocator,
    name: *const c_char,
    no_mangle: bool,
    out: *mut TopicEndpointInfoArray,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_get_subscriptions_info_by_topic", || unsafe {
        info_by_topic(node, allocator, name, no_mangle, out, false)
    })
}
