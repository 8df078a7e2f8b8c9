//! Service clients: `rmw_create_client`, requests, responses and their QoS.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use pteros_runtime::names::{NameKind, dds_reply_topic, dds_request_topic, validate_full};
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::service::{SendRequestError, ServiceClient, ServiceSpec};
use pteros_runtime::{EndpointSpec, qos::QosProfile, user_data};

use crate::abi::{
    self, EventCallback, Gid, Node, Ret, ServiceHandle, ServiceInfo, ServiceTypeSupport,
};
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, create, non_null, non_null_mut, received, run,
    run_end, run_set_callback, text,
};
use crate::handle::{Handle, c_name};
use crate::listener::{DataWaiter, set_data_callback};
use crate::node::{self, NodeState};
use crate::publisher::type_hash_entry;
use crate::qos;
use crate::subscription::payload;
use crate::typesupport::{self, ServiceType};
use crate::user_message::UserMessage;

/// State behind a client handle.
pub(crate) struct ClientState {
    node: Arc<NodeState>,
    client: ServiceClient,
    waiter: Arc<DataWaiter>,
    ty: ServiceType,
    avoids_conventions: bool,
}

/// The state of a client handle.
///
/// # Safety
/// `client` is null or a client handle.
unsafe fn state<'c>(client: *const ServiceHandle) -> Outcome<&'c Arc<ClientState>> {
    // SAFETY: as for this function.
    unsafe {
        let client = non_null(client, "client")?;
        check_identifier(client.implementation_identifier, "client")?;
        Handle::<ServiceHandle, ClientState>::state(client)
    }
}

/// Endpoint parameters of one side: topics, types and QoS.
pub(crate) fn service_spec(name: &str, ty: &ServiceType, profile: &QosProfile) -> ServiceSpec {
    let avoid = profile.avoid_ros_namespace_conventions;
    let spec = |topic: String, message: &typesupport::MessageType| {
        let mut qos = profile.to_endpoint();
        // As in rmw_cyclonedds and rmw_fastrtps, both topics have the hash of the
        // service.
        qos.user_data = type_hash_entry(ty.hash.as_ref());
        if cfg!(distribution = "lyrical") {
            let entry = ty.hash.map(user_data::service_type_hash_entry);
            qos.user_data.extend(entry.unwrap_or_default());
        }
        EndpointSpec {
            topic,
            type_name: message.dds_name.clone(),
            qos,
            serialize_only: true,
            ..EndpointSpec::default()
        }
    };
    ServiceSpec {
        requests: spec(dds_request_topic(name, avoid), &ty.request),
        replies: spec(dds_reply_topic(name, avoid), &ty.response),
        type_hash: ty.hash,
    }
}

/// Checks the common arguments of clients and services.
///
/// # Safety
/// As for `rmw_create_client`.
pub(crate) unsafe fn check_service<'a>(
    node: *const Node,
    type_support: *const ServiceTypeSupport,
    name: *const c_char,
    profile: *const abi::QosProfile,
) -> Outcome<(&'a Arc<NodeState>, &'a str, QosProfile, ServiceType)> {
    // SAFETY: as for this function.
    unsafe {
        let node = node::state(node)?;
        non_null(type_support, "type_support")?;
        let name = text(name, "service_name")?;
        let profile = qos::profile(non_null(profile, "qos_profile")?)?;
        if !profile.avoid_ros_namespace_conventions || name.is_empty() {
            validate_full(NameKind::Service, name)
                .map_err(|error| Failure::argument(error.to_string()))?;
        }
        Ok((
            node,
            name,
            profile,
            typesupport::service_type(type_support)?,
        ))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_client(
    node: *const Node,
    type_support: *const ServiceTypeSupport,
    service_name: *const c_char,
    qos: *const abi::QosProfile,
) -> *mut ServiceHandle {
    create("rmw_create_client", || {
        // SAFETY: the contract of rmw (lib.rs).
        let (node, name, profile, ty) =
            unsafe { check_service(node, type_support, service_name, qos) }?;
        let core = &node.context.core;
        let client =
            core.create_service_client(service_spec(name, &ty, &profile), DeliveryForm::Bytes)?;
        core.discovery()
            .attach_endpoint(node.key, &client.requests.announced());
        core.discovery()
            .attach_endpoint(node.key, &client.replies.announced());
        let state = Arc::new(ClientState {
            node: node.clone(),
            waiter: DataWaiter::new(core, client.replies.clone()),
            client,
            ty,
            avoids_conventions: profile.avoid_ros_namespace_conventions,
        });
        let data = Arc::as_ptr(&state.waiter).cast_mut().cast();
        Ok(service_handle(name, state, data)?.into_raw())
    })
}

/// Builds the handle of a client or service; `data` is passed to wait sets.
pub(crate) fn service_handle<S>(
    name: &str,
    state: Arc<S>,
    data: *mut c_void,
) -> Outcome<Handle<ServiceHandle, S>> {
    let names = [c_name(name)?, Default::default()];
    let abi = ServiceHandle {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data,
        service_name: names[0].as_ptr(),
    };
    Ok(Handle::new(abi, state, names))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_client(node: *mut Node, client: *mut ServiceHandle) -> Ret {
    run_end("rmw_destroy_client", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(node, "node")?;
            non_null(client, "client")?;
            node::state(node)?;
            state(client)?;
            let client = Handle::<ServiceHandle, ClientState>::destroy(client);
            let core = &client.node.context.core;
            core.discovery()
                .detach_endpoint(client.node.key, client.client.requests.guid());
            core.discovery()
                .detach_endpoint(client.node.key, client.client.replies.data.guid);
            core.remove_service_client(&client.client);
        }
        Ok(())
    })
}

impl ClientState {
    /// Sends a request. Without a server it is lost, as with other middlewares. Returns
    /// its sequence number, as servers receive it.
    fn send(&self, message: &mut UserMessage<'_>) -> Outcome<i64> {
        let core = &self.node.context.core;
        let source = core.platform.wall_clock();
        loop {
            let call = match self.client.send(core, message, source) {
                Ok(call) => call,
                Err(SendRequestError::NoServer) => {
                    self.client.send_to_nobody(core, message, source)?
                }
                // rcl does not report abandoned calls.
                Err(SendRequestError::TooManyCalls { .. }) => {
                    self.client.close_oldest();
                    continue;
                }
                Err(error) => return Err(Failure::error(error)),
            };
            return Ok(call.number());
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_send_request(
    client: *const ServiceHandle,
    request: *const c_void,
    sequence_id: *mut i64,
) -> Ret {
    run("rmw_send_request", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(client)?;
            if request.is_null() {
                return Err(Failure::argument("argument ros_request is null"));
            }
            let sequence_id = non_null_mut(sequence_id, "sequence_id")?;
            let mut message = UserMessage::new(&state.ty.request.program, request)?;
            let send = || state.send(&mut message);
            let listener = &state.node.context.listener;
            *sequence_id = listener.call_back_after(&state.client.requests, send)?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_response(
    client: *const ServiceHandle,
    info: *mut ServiceInfo,
    response: *mut c_void,
    taken: *mut bool,
) -> Ret {
    run("rmw_take_response", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(client)?;
            let info = non_null_mut(info, "request_header")?;
            if response.is_null() {
                return Err(Failure::argument("argument ros_response is null"));
            }
            let taken = non_null_mut(taken, "taken")?;
            *taken = false;
            let program = &state.ty.response.program;
            let mut decode = |item: QueuedSample| {
                let Some(payload) = payload(&item) else {
                    return Ok(None);
                };
                let decoded = received(program.decode(payload, response))?;
                Ok::<_, String>(Some(decoded.map(|()| item.meta)))
            };
            let core = &state.node.context.core;
            while let Some(reply) = state.client.take_decoded_reply(core, &mut decode) {
                // rmw has no error for a single call: after a dropped response it remains
                // open.
                let Ok(Some(meta)) = reply.message else {
                    continue;
                };
                let meta = meta?;
                info.source_timestamp = meta.source.unwrap_or(meta.reception).as_nanos();
                info.received_timestamp = meta.reception.as_nanos();
                info.request_id.sequence_number = reply.call.number();
                info.request_id.writer_guid = state.client.requests.guid().to_bytes();
                *taken = true;
                break;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_request_publisher_get_actual_qos(
    client: *const ServiceHandle,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_client_request_publisher_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(client)?;
            let announced = state.client.requests.announced();
            *non_null_mut(qos, "qos")? = qos::actual(&announced.qos, state.avoids_conventions);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_response_subscription_get_actual_qos(
    client: *const ServiceHandle,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_client_response_subscription_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(client)?;
            let announced = state.client.replies.announced();
            *non_null_mut(qos, "qos")? = qos::actual(&announced.qos, state.avoids_conventions);
        }
        Ok(())
    })
}

/// The GUID of the client's request writer, as servers receive it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_gid_for_client(
    client: *const ServiceHandle,
    gid: *mut Gid,
) -> Ret {
    run("rmw_get_gid_for_client", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(client)?;
            *non_null_mut(gid, "gid")? = Gid::new(state.client.requests.guid().to_bytes());
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_server_is_available(
    node: *const Node,
    client: *const ServiceHandle,
    is_available: *mut bool,
) -> Ret {
    run("rmw_service_server_is_available", || {
        // Null is RMW_RET_ERROR here, as upstream's tests require.
        let as_error = |failure: Failure| match failure.code {
            abi::ret::INVALID_ARGUMENT => Failure::error(failure.text),
            _ => failure,
        };
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            node::state(node).map_err(as_error)?;
            let state = state(client).map_err(as_error)?;
            let is_available = non_null_mut(is_available, "is_available").map_err(as_error)?;
            *is_available = state.client.server_count(&state.node.context.core) > 0;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_set_on_new_response_callback(
    client: *mut ServiceHandle,
    callback: EventCallback,
    user_data: *const c_void,
) -> Ret {
    run_set_callback("rmw_client_set_on_new_response_callback", callback, || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(client) }?;
        set_data_callback(&state.waiter, &state.node.context, callback, user_data)
    })
}
