//! Service servers: with a callback that answers at once, or with requests that the
//! program answers later.

use std::ffi::{CString, c_char, c_void};

use pteros::service::PendingRequest;
use pteros::{Sample, Service, ServiceOptions};
use pteros_msg::type_support::MessageTypeSupport;

use crate::argument::{c_text, null, required, text};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Status};
use crate::message::{CMessage, CService, MessageSupport};
use crate::node::PterosNode;
use crate::qos::{self, CQos};
use crate::types::{self, ServiceTable};

/// `pteros_service_t`.
pub struct PterosService {
    service: Service<CService>,
    name: CString,
}

/// `pteros_request_t`: a request that waits for its response.
pub struct PterosRequest {
    pending: PendingRequest<CMessage, CMessage>,
    response: MessageSupport,
}

/// `pteros_service_callback_t`.
type ServiceCallback =
    Option<extern "C" fn(request: *const c_void, response: *mut c_void, user: *mut c_void)>;

/// `pteros_request_callback_t`.
type RequestCallback = Option<extern "C" fn(request: Box<PterosRequest>, user: *mut c_void)>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_service_new(
    node: Option<&PterosNode>,
    table: Option<&ServiceTable>,
    name: *const c_char,
    qos: Option<&CQos>,
    callback: ServiceCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosService>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_service_new", || {
        let node = &required(node, "node")?.node;
        let callback = callback.ok_or_else(|| null("callback"))?;
        let ty = types::service(table)?;
        let mut options = ServiceOptions::<CService>::of_type(&ty, text(name, "name")?);
        options.qos = qos::profile(qos, options.qos)?;
        let answer = move |request: Sample<CMessage>| {
            let mut response = CMessage::default_message(&ty.response);
            if let Some(address) = response.address_mut() {
                callback(request.address(), address, user.pointer());
            }
            response
        };
        let service = node.create_service::<CService>(options, answer)?;
        Ok(PterosService {
            name: c_text(service.service_name()),
            service,
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_service_new_deferred(
    node: Option<&PterosNode>,
    table: Option<&ServiceTable>,
    name: *const c_char,
    qos: Option<&CQos>,
    callback: RequestCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosService>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_service_new_deferred", || {
        let node = &required(node, "node")?.node;
        let callback = callback.ok_or_else(|| null("callback"))?;
        let ty = types::service(table)?;
        let mut options = ServiceOptions::<CService>::of_type(&ty, text(name, "name")?);
        options.qos = qos::profile(qos, options.qos)?;
        let take = move |pending: PendingRequest<CMessage, CMessage>| {
            let response = ty.response.clone();
            callback(
                Box::new(PterosRequest { pending, response }),
                user.pointer(),
            );
        };
        let service = Service::<CService>::deferred(node, options, take)?;
        Ok(PterosService {
            name: c_text(service.service_name()),
            service,
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_service_free(service: Option<Box<PterosService>>) {
    error::free("pteros_service_free", service);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_service_name(service: Option<&PterosService>) -> *const c_char {
    error::value("pteros_service_name", c"".as_ptr(), || {
        Ok(required(service, "service")?.name.as_ptr())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_service_client_count(service: Option<&PterosService>) -> usize {
    error::value("pteros_service_client_count", 0, || {
        Ok(required(service, "service")?.service.client_count())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_request_message(request: Option<&PterosRequest>) -> *const c_void {
    error::value("pteros_request_message", std::ptr::null(), || {
        Ok(required(request, "request")?.pending.request().address())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_request_respond(
    request: Option<Box<PterosRequest>>,
    response: *const c_void,
) -> Status {
    error::run("pteros_request_respond", || {
        let request = request.ok_or_else(|| null("request"))?;
        if response.is_null() {
            return Err(null("response"));
        }
        // SAFETY: the contract of C (lib.rs).
        let response = unsafe { CMessage::copy_of(&request.response, response) }?;
        Ok(request.pending.respond(response)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_request_free(request: Option<Box<PterosRequest>>) {
    error::free("pteros_request_free", request);
}
