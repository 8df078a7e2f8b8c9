//! Graph queries: nodes, topics, services, endpoints and their counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_void};

use pteros_msg::hash::TypeHash;
use pteros_runtime::graph::{GraphEndpoint, GraphNode};
use pteros_runtime::names::{
    DdsTopic, NameKind, from_dds_topic, validate_full, validate_namespace, validate_node,
};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::user_data::user_data_value;

use crate::abi::{
    self, Allocator, NamesAndTypes, Node, Ret, StringArray, TopicEndpointInfo,
    TopicEndpointInfoArray, ret,
};
use crate::error::{Failure, Outcome, non_null, non_null_mut, run, text};
use crate::node::{self, NodeState};
use crate::qos;

/// Converts `pkg::msg::dds_::Name_` to `pkg/msg/Name`; other names are unchanged.
fn ros_type(dds_name: &str) -> String {
    match dds_name.split_once("::dds_::") {
        Some((namespace, name)) => {
            let name = name.strip_suffix('_').unwrap_or(name);
            format!("{}/{name}", namespace.replace("::", "/"))
        }
        None => dds_name.into(),
    }
}

/// The service type of a request or reply type.
fn ros_service_type(dds_name: &str) -> String {
    let name = ros_type(dds_name);
    let service = name
        .strip_suffix("_Request")
        .or_else(|| name.strip_suffix("_Response"));
    service.map_or(name.clone(), Into::into)
}

/// Kind of the listed names.
#[derive(Clone, Copy)]
enum Listed {
    /// Topics of ROS.
    Topics,
    /// All DDS topics under their own names.
    DdsTopics,
    /// Services of servers and clients.
    Services,
}

/// Sorted names of endpoints, with their types.
fn names_and_types(endpoints: &[GraphEndpoint], listed: Listed) -> Vec<(String, Vec<String>)> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for endpoint in endpoints {
        let data = &endpoint.data;
        let named = match (listed, from_dds_topic(&data.topic)) {
            (Listed::DdsTopics, _) => Some((data.topic.clone(), data.type_name.clone())),
            (Listed::Topics, DdsTopic::Topic(name)) => Some((name, ros_type(&data.type_name))),
            (Listed::Services, DdsTopic::ServiceRequest(name) | DdsTopic::ServiceReply(name)) => {
                Some((name, ros_service_type(&data.type_name)))
            }
            _ => None,
        };
        if let Some((name, ty)) = named {
            found.entry(name).or_default().insert(ty);
        }
    }
    let found = found.into_iter();
    found
        .map(|(name, types)| (name, types.into_iter().collect()))
        .collect()
}

/// Checked arguments of a query for names and types.
struct Query<'a> {
    node: &'a NodeState,
    allocator: &'a Allocator,
    out: &'a mut NamesAndTypes,
}

impl<'a> Query<'a> {
    /// # Safety
    /// By contract of rmw.
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

    fn answer(self, endpoints: &[GraphEndpoint], listed: Listed) -> Outcome {
        self.out
            .fill(self.allocator, &names_and_types(endpoints, listed))
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
        // SAFETY: by contract of rmw.
        let query = unsafe { Query::check(node, allocator, out) }?;
        let endpoints = query.node.context.core.graph().endpoints();
        query.answer(
            &endpoints,
            if no_demangle {
                Listed::DdsTopics
            } else {
                Listed::Topics
            },
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_service_names_and_types(
    node: *const Node,
    allocator: *mut Allocator,
    out: *mut NamesAndTypes,
) -> Ret {
    run("rmw_get_service_names_and_types", || {
        // SAFETY: by contract of rmw.
        let query = unsafe { Query::check(node, allocator, out) }?;
        let endpoints = query.node.context.core.graph().endpoints();
        query.answer(&endpoints, Listed::Services)
    })
}

/// Kind of a node's endpoints: subscriptions, publishers, servers or clients.
#[derive(Clone, Copy)]
enum Side {
    Subscriptions,
    Publishers,
    Services,
    Clients,
}

impl Side {
    /// Servers read requests, clients write them.
    fn includes(self, guid: Guid, topic: &str) -> bool {
        let is_request = matches!(from_dds_topic(topic), DdsTopic::ServiceRequest(_));
        match self {
            Self::Subscriptions => guid.entity.is_reader(),
            Self::Publishers => guid.entity.is_writer(),
            Self::Services => is_request && guid.entity.is_reader(),
            Self::Clients => is_request && guid.entity.is_writer(),
        }
    }
}

unsafe fn by_node(
    (node, allocator, out): (*const Node, *const Allocator, *mut NamesAndTypes),
    (name, namespace): (*const c_char, *const c_char),
    side: Side,
    listed: Listed,
) -> Outcome {
    // SAFETY: by contract of rmw.
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
    validate_node(name).map_err(|error| Failure::argument(error.to_string()))?;
    validate_namespace(namespace).map_err(|error| Failure::argument(error.to_string()))?;
    let graph = query.node.context.core.graph();
    let nodes = graph.nodes();
    let is_asked = |node: &&GraphNode| node.name == name && node.namespace == namespace;
    let Some(found) = nodes.iter().find(is_asked) else {
        return Err(Failure::new(
            ret::NODE_NAME_NON_EXISTENT,
            format!("there is no node {name:?} in namespace {namespace:?}"),
        ));
    };
    let owned: BTreeSet<Guid> = found
        .readers
        .iter()
        .chain(&found.writers)
        .copied()
        .collect();
    let endpoints =
        graph.endpoints_if(|guid, topic| owned.contains(&guid) && side.includes(guid, topic));
    query.answer(&endpoints, listed)
}

/// # Safety
/// By contract of rmw.
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
    let listed = if no_demangle {
        Listed::DdsTopics
    } else {
        Listed::Topics
    };
    // SAFETY: by contract of rmw.
    run("rmw_get_subscriber_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            Side::Subscriptions,
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
    let listed = if no_demangle {
        Listed::DdsTopics
    } else {
        Listed::Topics
    };
    // SAFETY: by contract of rmw.
    run("rmw_get_publisher_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            Side::Publishers,
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
    // SAFETY: by contract of rmw.
    run("rmw_get_service_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            Side::Services,
            Listed::Services,
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
    // SAFETY: by contract of rmw.
    run("rmw_get_client_names_and_types_by_node", || unsafe {
        by_node(
            (node, allocator, out),
            (name, namespace),
            Side::Clients,
            Listed::Services,
        )
    })
}

/// # Safety
/// By contract of rmw.
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
    // SAFETY: by contract of rmw.
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
    // SAFETY: by contract of rmw.
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
/// By contract of rmw.
unsafe fn count(
    node: *const Node,
    name: *const c_char,
    count: *mut usize,
    kind: NameKind,
    (prefix, suffix, counts_writers): (&str, &str, bool),
) -> Outcome {
    // SAFETY: as for this function.
    unsafe {
        let state = node::state(node)?;
        let name = text(name, "name")?;
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

/// Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_publishers(
    node: *const Node,
    name: *const c_char,
    out: *mut usize,
) -> Ret {
    // SAFETY: by contract of rmw.
    run("rmw_count_publishers", || unsafe {
        count(node, name, out, NameKind::Topic, ("rt", "", true))
    })
}

/// Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_subscribers(
    node: *const Node,
    name: *const c_char,
    out: *mut usize,
) -> Ret {
    // SAFETY: by contract of rmw.
    run("rmw_count_subscribers", || unsafe {
        count(node, name, out, NameKind::Topic, ("rt", "", false))
    })
}

/// Counts writers of requests. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_clients(
    node: *const Node,
    name: *const c_char,
    out: *mut usize,
) -> Ret {
    // SAFETY: by contract of rmw.
    run("rmw_count_clients", || unsafe {
        count(node, name, out, NameKind::Service, ("rq", "Request", true))
    })
}

/// Counts readers of requests. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_services(
    node: *const Node,
    name: *const c_char,
    out: *mut usize,
) -> Ret {
    // SAFETY: by contract of rmw.
    run("rmw_count_services", || unsafe {
        count(node, name, out, NameKind::Service, ("rq", "Request", false))
    })
}

/// # Safety
/// By contract of rmw.
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
    let topic = pteros_runtime::names::dds_topic(name, no_mangle);
    let graph = state.context.core.graph();
    let mut endpoints = graph.endpoints_on(&topic);
    endpoints.retain(|one| one.data.guid.entity.is_writer() == wants_writers);
    if endpoints.is_empty() {
        return Ok(());
    }
    let nodes = graph.nodes();
    let array: *mut TopicEndpointInfo = allocator.array(endpoints.len())?;
    out.info_array = array;
    out.size = endpoints.len();
    for (at, endpoint) in endpoints.iter().enumerate() {
        // SAFETY: the array has a place for each.
        let place = unsafe { array.add(at) };
        match endpoint_info(endpoint, &nodes, allocator, no_mangle) {
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
    endpoint: &GraphEndpoint,
    nodes: &[GraphNode],
    allocator: &Allocator,
    no_mangle: bool,
) -> Outcome<TopicEndpointInfo> {
    let data = &endpoint.data;
    let owns = |node: &&GraphNode| {
        let list = if data.guid.entity.is_writer() {
            &node.writers
        } else {
            &node.readers
        };
        list.contains(&data.guid)
    };
    let owner = nodes.iter().find(owns);
    let (name, namespace) = owner.map_or(
        ("_NODE_NAME_UNKNOWN_", "_NODE_NAMESPACE_UNKNOWN_"),
        |node| (node.name.as_str(), node.namespace.as_str()),
    );
    let ty = if no_mangle {
        data.type_name.clone()
    } else {
        ros_type(&data.type_name)
    };
    let hash: Option<TypeHash> =
        user_data_value(&data.qos.user_data, "typehash").and_then(|hash| hash.parse().ok());
    let mut info = TopicEndpointInfo {
        node_name: std::ptr::null(),
        node_namespace: std::ptr::null(),
        topic_type: std::ptr::null(),
        topic_type_hash: hash.map_or(
            abi::TypeHash {
                version: 0,
                value: [0; 32],
            },
            |hash| abi::TypeHash {
                version: 1,
                value: *hash.value(),
            },
        ),
        endpoint_type: if data.guid.entity.is_writer() { 1 } else { 2 },
        endpoint_gid: data.guid.to_bytes(),
        qos_profile: qos::announced(&data.qos, endpoint.local),
    };
    let mut fill = || {
        info.node_name = allocator.string(name)?;
        info.node_namespace = allocator.string(namespace)?;
        info.topic_type = allocator.string(&ty)?;
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
    // SAFETY: by contract of rmw.
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
    // SAFETY: by contract of rmw.
    run("rmw_get_subscriptions_info_by_topic", || unsafe {
        info_by_topic(node, allocator, name, no_mangle, out, false)
    })
}
