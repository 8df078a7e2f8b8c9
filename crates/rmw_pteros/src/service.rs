//! Service servers: requests, responses and their QoS.

use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::service::{ReceivedRequest, RequestId, ServiceServer};

use crate::abi::{self, EventCallback, Node, Ret, ServiceHandle, ServiceInfo, ServiceTypeSupport};
use crate::client::{check_service, service_handle, service_spec};
use crate::error::{
    Failure, Outcome, check_identifier, create, non_null, non_null_mut, received, run, run_end,
    run_set_callback,
};
use crate::handle::Handle;
use crate::listener::{DataWaiter, set_data_callback};
use crate::node::{self, NodeState};
use crate::qos;
use crate::subscription::payload;
use crate::typesupport::ServiceType;
use crate::user_message::UserMessage;

/// Open requests. rcl does not report abandoned ones, so above the limit the oldest is
/// dropped and its response is not sent.
const OPEN_REQUESTS_MAX: usize = 4096;

/// Answered requests that can be answered again, 3 kB per server. Other middlewares send
/// every response. A second one usually follows the first, and its client ignores it.
const ANSWERED_REQUESTS_MAX: usize = 64;

/// State behind a service handle.
pub(crate) struct ServiceState {
    node: Arc<NodeState>,
    server: Arc<ServiceServer>,
    waiter: Arc<DataWaiter>,
    ty: ServiceType,
    taken: Mutex<TakenRequests>,
    avoids_conventions: bool,
}

/// The state of a service handle.
///
/// # Safety
/// `service` is null or a service handle.
unsafe fn state<'s>(service: *const ServiceHandle) -> Outcome<&'s Arc<ServiceState>> {
    // SAFETY: as for this function.
    unsafe {
        let service = non_null(service, "service")?;
        check_identifier(service.implementation_identifier, "service")?;
        Handle::<ServiceHandle, ServiceState>::state(service)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_service(
    node: *const Node,
    type_support: *const ServiceTypeSupport,
    service_name: *const c_char,
    qos: *const abi::QosProfile,
) -> *mut ServiceHandle {
    create("rmw_create_service", || {
        // SAFETY: the contract of rmw (lib.rs).
        let (node, name, profile, ty) =
            unsafe { check_service(node, type_support, service_name, qos) }?;
        let core = &node.context.core;
        let server =
            core.create_service_server(service_spec(name, &ty, &profile), DeliveryForm::Bytes)?;
        let server = Arc::new(server);
        core.discovery()
            .attach_endpoint(node.key, &server.requests.announced());
        core.discovery()
            .attach_endpoint(node.key, &server.replies.announced());
        let state = Arc::new(ServiceState {
            node: node.clone(),
            waiter: DataWaiter::of_server(core, &server),
            server,
            ty,
            taken: Mutex::default(),
            avoids_conventions: profile.avoid_ros_namespace_conventions,
        });
        let data = Arc::as_ptr(&state.waiter).cast_mut().cast();
        Ok(service_handle(name, state, data)?.into_raw())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_service(node: *mut Node, service: *mut ServiceHandle) -> Ret {
    run_end("rmw_destroy_service", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(node, "node")?;
            non_null(service, "service")?;
            node::state(node)?;
            state(service)?;
            let service = Handle::<ServiceHandle, ServiceState>::destroy(service);
            let core = &service.node.context.core;
            core.discovery()
                .detach_endpoint(service.node.key, service.server.requests.data.guid);
            core.discovery()
                .detach_endpoint(service.node.key, service.server.replies.guid());
            core.remove_service_server(&service.server);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_request(
    service: *const ServiceHandle,
    info: *mut ServiceInfo,
    request: *mut c_void,
    taken: *mut bool,
) -> Ret {
    run("rmw_take_request", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(service)?;
            let info = non_null_mut(info, "request_header")?;
            if request.is_null() {
                return Err(Failure::argument("argument ros_request is null"));
            }
            let taken = non_null_mut(taken, "taken")?;
            *taken = false;
            let core = &state.node.context.core;
            let program = &state.ty.request.program;
            let mut decode = |arrived: ReceivedRequest| {
                let Some(payload) = payload(&arrived.item) else {
                    return Ok(None);
                };
                let decoded = received(program.decode(payload, request))?;
                Ok::<_, String>(Some(decoded.map(|()| (arrived.id, arrived.item.meta))))
            };
            while let Some(arrived) = state.server.take_decoded_request(core, &mut decode) {
                let Some(arrived) = arrived else {
                    continue;
                };
                let (id, meta) = arrived?;
                info.source_timestamp = meta.source.unwrap_or(meta.reception).as_nanos();
                info.received_timestamp = meta.reception.as_nanos();
                info.request_id.writer_guid = id.client.to_bytes();
                info.request_id.sequence_number = id.sequence;
                push_bounded(&mut state.taken.lock().open, id, OPEN_REQUESTS_MAX);
                *taken = true;
                break;
            }
        }
        Ok(())
    })
}

/// Taken requests, because rmw identifies them by client and number only.
#[derive(Default)]
struct TakenRequests {
    open: VecDeque<RequestId>,
    answered: VecDeque<RequestId>,
}

impl TakenRequests {
    /// Finds the request of an id and marks it as answered.
    fn answer(&mut self, id: &abi::RequestId) -> Option<RequestId> {
        let is_asked = |one: &RequestId| {
            one.sequence == id.sequence_number && one.client.to_bytes() == id.writer_guid
        };
        if let Some(at) = self.open.iter().position(is_asked) {
            let id = self.open.remove(at)?;
            push_bounded(&mut self.answered, id, ANSWERED_REQUESTS_MAX);
            return Some(id);
        }
        self.answered.iter().rev().copied().find(is_asked)
    }
}

/// Appends to a queue of at most `max` entries, and drops the oldest.
fn push_bounded(queue: &mut VecDeque<RequestId>, id: RequestId, max: usize) {
    if queue.len() >= max {
        queue.pop_front();
    }
    queue.push_back(id);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_send_response(
    service: *const ServiceHandle,
    request_id: *mut abi::RequestId,
    response: *mut c_void,
) -> Ret {
    run("rmw_send_response", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(service)?;
            let request_id = non_null(request_id, "request_header")?;
            if response.is_null() {
                return Err(Failure::argument("argument ros_response is null"));
            }
            let mut message = UserMessage::new(&state.ty.response.program, response)?;
            let context = &state.node.context;
            let known = state.taken.lock().answer(request_id);
            // A dropped request, or one never taken: other middlewares send the response
            // as well.
            let by_name = || {
                let client = Guid::from_bytes(request_id.writer_guid);
                let number = request_id.sequence_number;
                state.server.request_by_name(&context.core, client, number)
            };
            let Some(id) = known.or_else(by_name) else {
                return Ok(());
            };
            let reply = || state.server.reply(&context.core, &id, &mut message);
            let listener = &context.listener;
            listener.call_back_after(&state.server.replies, reply)?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_request_subscription_get_actual_qos(
    service: *const ServiceHandle,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_service_request_subscription_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(service)?;
            let announced = state.server.requests.announced();
            *non_null_mut(qos, "qos")? = qos::actual(&announced.qos, state.avoids_conventions);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_response_publisher_get_actual_qos(
    service: *const ServiceHandle,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_service_response_publisher_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(service)?;
            let announced = state.server.replies.announced();
            *non_null_mut(qos, "qos")? = qos::actual(&announced.qos, state.avoids_conventions);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_set_on_new_request_callback(
    service: *mut ServiceHandle,
    callback: EventCallback,
    user_data: *const c_void,
) -> Ret {
    run_set_callback("rmw_service_set_on_new_request_callback", callback, || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(service) }?;
        set_data_callback(&state.waiter, &state.node.context, callback, user_data)
    })
}
