//! Clients and servers of a service with their endpoints, which rmw lists since Lyrical.

use std::ffi::c_char;
use std::ptr::null_mut;

use pteros_rcl::graph::{TopicEndpointInfo, service_endpoint_infos};
use pteros_runtime::names::{NameKind, validate_full};

use crate::abi::{Allocator, Node, QosProfile, Ret, ServiceEndpointInfo, ServiceEndpointInfoArray};
use crate::distribution;
use crate::error::{Failure, Outcome, non_null, non_null_mut, run, text};
use crate::identity::gid_bytes;
use crate::node;

/// `RMW_ENDPOINT_CLIENT`.
const CLIENT: u32 = 3;
/// `RMW_ENDPOINT_SERVER`.
const SERVER: u32 = 4;

/// # Safety
/// The contract of rmw (lib.rs).
unsafe fn info_by_service(
    (node, allocator, out): (*const Node, *const Allocator, *mut ServiceEndpointInfoArray),
    name: *const c_char,
    no_mangle: bool,
    endpoint_type: u32,
) -> Outcome {
    // SAFETY: as for this function.
    let (state, allocator, name, out) = unsafe {
        let state = node::state(node)?;
        let allocator = non_null(allocator, "allocator")?;
        allocator.check()?;
        let name = text(name, "service_name")?;
        (state, allocator, name, non_null_mut(out, "info_array")?)
    };
    if no_mangle {
        return Err(Failure::argument(
            "no_mangle: a service is two DDS topics, which have no common name; ask for them by \
             rmw_get_publishers_info_by_topic and rmw_get_subscriptions_info_by_topic",
        ));
    }
    if out.size != 0 || !out.info_array.is_null() {
        return Err(Failure::argument("the info array is not zero-initialized"));
    }
    let invalid = |error: pteros_runtime::names::NameError| Failure::argument(error.to_string());
    validate_full(NameKind::Service, name).map_err(invalid)?;
    let pairs = service_endpoint_infos(state.context.core.graph(), name, endpoint_type == CLIENT);
    if pairs.is_empty() {
        return Ok(());
    }
    let array: *mut ServiceEndpointInfo = allocator.array(pairs.len())?;
    out.info_array = array;
    for pair in &pairs {
        match endpoint_info(pair, endpoint_type, allocator) {
            // SAFETY: the array has a place for each.
            Ok(info) => unsafe { array.add(out.size).write(info) },
            Err(failure) => {
                // SAFETY: those before were written; all is of this allocator.
                unsafe {
                    for before in 0..out.size {
                        free_info(&*array.add(before), allocator);
                    }
                    allocator.free(array);
                }
                (out.info_array, out.size) = (null_mut(), 0);
                return Err(failure);
            }
        }
        out.size += 1;
    }
    Ok(())
}

/// # Safety
/// Its memory is of this allocator, or null.
unsafe fn free_info(info: &ServiceEndpointInfo, allocator: &Allocator) {
    // SAFETY: as for this function.
    unsafe {
        for text in [info.node_name, info.node_namespace, info.service_type] {
            allocator.free(text.cast_mut());
        }
        allocator.free(info.endpoint_gids);
        allocator.free(info.qos_profiles);
    }
}

fn endpoint_info(
    pair: &[TopicEndpointInfo; 2],
    endpoint_type: u32,
    allocator: &Allocator,
) -> Outcome<ServiceEndpointInfo> {
    let [reader, _] = pair;
    let mut info = ServiceEndpointInfo {
        node_name: null_mut(),
        node_namespace: null_mut(),
        service_type: null_mut(),
        service_type_hash: distribution::topic_type_hash(reader.type_hash.as_ref()),
        endpoint_type,
        endpoint_count: pair.len(),
        endpoint_gids: null_mut(),
        qos_profiles: null_mut(),
    };
    let mut fill = || {
        info.node_name = allocator.string(&reader.node_name)?;
        info.node_namespace = allocator.string(&reader.node_namespace)?;
        info.service_type = allocator.string(&reader.topic_type)?;
        info.endpoint_gids = allocator.array(pair.len())?;
        info.qos_profiles = allocator.array(pair.len())?;
        for (at, endpoint) in pair.iter().enumerate() {
            // SAFETY: both arrays have a place for each.
            unsafe {
                let qos: QosProfile = endpoint.qos.into();
                info.endpoint_gids.add(at).write(gid_bytes(endpoint.gid));
                info.qos_profiles.add(at).write(qos);
            }
        }
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

macro_rules! info_functions {
    ($($name:ident lists $role:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            node: *const Node,
            allocator: *mut Allocator,
            name: *const c_char,
            no_mangle: bool,
            out: *mut ServiceEndpointInfoArray,
        ) -> Ret {
            // SAFETY: the contract of rmw (lib.rs).
            run(stringify!($name), || unsafe {
                info_by_service((node, allocator, out), name, no_mangle, $role)
            })
        }
    )*};
}

info_functions! {
    rmw_get_clients_info_by_service lists CLIENT;
    rmw_get_servers_info_by_service lists SERVER;
}
