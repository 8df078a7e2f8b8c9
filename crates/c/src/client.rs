//! Service clients.

use std::ffi::{CString, c_char, c_void};

use pteros::{Client, ClientOptions, Sample};

use crate::argument::{c_text, null, required, text, timeout};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Error, Outcome, Status};
use crate::message::{CMessage, CService, ServiceSupport};
use crate::node::PterosNode;
use crate::qos::{self, CQos};
use crate::types::{self, ServiceTable};

/// `pteros_client_t`.
pub struct PterosClient {
    client: Client<CService>,
    ty: ServiceSupport,
    name: CString,
}

/// `pteros_response_callback_t`.
type ResponseCallback = Option<
    extern "C" fn(status: Status, error: *const c_char, response: *const c_void, user: *mut c_void),
>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_new(
    node: Option<&PterosNode>,
    table: Option<&ServiceTable>,
    name: *const c_char,
    qos: Option<&CQos>,
) -> Option<Box<PterosClient>> {
    error::create("pteros_client_new", || {
        let node = &required(node, "node")?.node;
        let ty = types::service(table)?;
        let mut options = ClientOptions::<CService>::of_type(&ty, text(name, "name")?);
        options.qos = qos::profile(qos, options.qos)?;
        let client = node.create_client::<CService>(options)?;
        Ok(PterosClient {
            name: c_text(client.service_name()),
            client,
            ty,
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_free(client: Option<Box<PterosClient>>) {
    error::free("pteros_client_free", client);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_service_name(client: Option<&PterosClient>) -> *const c_char {
    error::value("pteros_client_service_name", c"".as_ptr(), || {
        Ok(required(client, "client")?.name.as_ptr())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_service_is_ready(client: Option<&PterosClient>) -> bool {
    error::value("pteros_client_service_is_ready", false, || {
        Ok(required(client, "client")?.client.service_is_ready())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_wait_for_service(
    client: Option<&PterosClient>,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_client_wait_for_service", || {
        let client = &required(client, "client")?.client;
        if client.wait_for_service(timeout(timeout_ns)) {
            return Ok(());
        }
        Err(Error::new(
            Status::Timeout,
            format!(
                "service {:?}: no server is available; start one, or compare names and types",
                client.service_name()
            ),
        ))
    })
}

impl PterosClient {
    fn request(&self, request: *const c_void) -> Outcome<CMessage> {
        if request.is_null() {
            return Err(null("request"));
        }
        // SAFETY: the contract of C (lib.rs).
        Ok(unsafe { CMessage::borrowed(&self.ty.request, request) })
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_call(
    client: Option<&PterosClient>,
    request: *const c_void,
    response: *mut c_void,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_client_call", || {
        let client = required(client, "client")?;
        if response.is_null() {
            return Err(null("response"));
        }
        let request = client.request(request)?;
        let answer = client.client.call(&request, timeout(timeout_ns))?;
        // SAFETY: the contract of C (lib.rs).
        unsafe { answer.copy_to(response) }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_call_async(
    client: Option<&PterosClient>,
    request: *const c_void,
    callback: ResponseCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = UserData::new(user, free_user);
    error::run("pteros_client_call_async", || {
        let client = required(client, "client")?;
        let callback = callback.ok_or_else(|| null("callback"))?;
        let request = client.request(request)?;
        let then = move |answer: Result<Sample<CMessage>, pteros::service::CallError>| match answer
        {
            Ok(answer) => callback(Status::Ok, c"".as_ptr(), answer.address(), user.pointer()),
            Err(failure) => {
                let failure = Error::from(failure);
                let text = c_text(failure.text());
                let none = std::ptr::null();
                callback(failure.status(), text.as_ptr(), none, user.pointer());
            }
        };
        Ok(client.client.call_then(&request, then)?)
    })
}
