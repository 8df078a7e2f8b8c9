//! Clients and servers of services whose type is known at run time only.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::library::{InterfaceLibrary, LibraryError};
use pteros_rmw::error::PublishError;
use pteros_rmw::reader::Wants;
use thiserror::Error;

use super::server::{Handler, ServerCore, ServiceCall};
use super::{Call, CallError, ClientCore, Encoder, ServiceOptions, Types};
use crate::dynamic::{Outbound, dynamic_decoder};
use crate::error::CreateError;
use crate::node::{Node, TypeFacts};
use crate::payload::Payload;
use crate::sample::Sample;

/// The types of a service: what is asked and what is answered.
#[derive(Clone, Debug)]
pub struct DynamicServiceType {
    name: String,
    request: DynamicType,
    response: DynamicType,
    /// Of introspection, where the library has what it is made of.
    event: Option<DynamicType>,
}

/// Why a service's types are not known.
#[derive(Debug, Error)]
pub enum ServiceTypeError {
    /// There is no such definition, or it cannot be read.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A definition asks for something that messages do not have.
    #[error("service type {name}: {reason}")]
    Type {
        /// The service type.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl DynamicServiceType {
    /// The types of a service that `library` knows, by its full name.
    ///
    /// # Errors
    /// See [`ServiceTypeError`].
    pub fn new(library: &InterfaceLibrary, name: &str) -> Result<Self, ServiceTypeError> {
        let part = |suffix: &str| {
            let described = library.describe(&format!("{name}{suffix}"))?;
            DynamicType::new(&described).map_err(|error| ServiceTypeError::Type {
                name: name.into(),
                reason: error.to_string(),
            })
        };
        Ok(Self {
            name: name.into(),
            request: part("_Request")?,
            response: part("_Response")?,
            event: part("_Event").ok(),
        })
    }

    /// The types of a service, by its full name, from those of its two messages.
    pub fn from_parts(
        name: impl Into<String>,
        request: DynamicType,
        response: DynamicType,
    ) -> Self {
        Self {
            name: name.into(),
            request,
            response,
            event: None,
        }
    }

    /// For example `example_interfaces/srv/AddTwoInts`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is asked.
    pub fn request(&self) -> &DynamicType {
        &self.request
    }

    /// What is answered.
    pub fn response(&self) -> &DynamicType {
        &self.response
    }

    /// What introspection of a service tells.
    pub(super) fn event(&self, service: &str) -> Result<&DynamicType, CreateError> {
        self.event.as_ref().ok_or_else(|| CreateError::NoEventType {
            service: service.into(),
            service_type: self.name.clone(),
        })
    }
}

/// Calls a service whose type is known at run time; otherwise as
/// [`Client`](crate::Client).
#[derive(Clone)]
pub struct DynamicClient {
    pub(super) core: Arc<ClientCore<DynamicMessage>>,
    pub(super) ty: DynamicServiceType,
}

impl DynamicClient {
    /// As [`Client::call`](crate::Client::call).
    ///
    /// # Errors
    /// See [`CallError`]; a request of another type is [`CallError::Publish`].
    pub fn call(
        &self,
        request: &DynamicMessage,
        timeout: Duration,
    ) -> Result<Sample<DynamicMessage>, CallError> {
        self.core.call(timeout, |core| self.start(core, request))
    }

    /// As [`Client::call_async`](crate::Client::call_async).
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_async(&self, request: &DynamicMessage) -> Result<Call<DynamicMessage>, CallError> {
        self.start(&self.core, request)
    }

    /// As [`Client::call_then`](crate::Client::call_then).
    ///
    /// # Errors
    /// As [`Self::call`]; `answered` is not called then.
    pub fn call_then(
        &self,
        request: &DynamicMessage,
        answered: impl FnOnce(Result<Sample<DynamicMessage>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let core = &self.core;
        let mut outgoing = self.outgoing(core, request)?;
        core.start(&mut outgoing, request, Some(Box::new(answered)))
            .map(drop)
    }

    fn start(
        &self,
        core: &Arc<ClientCore<DynamicMessage>>,
        request: &DynamicMessage,
    ) -> Result<Call<DynamicMessage>, CallError> {
        core.start_call(&mut self.outgoing(core, request)?, request)
    }

    fn outgoing<'m>(
        &self,
        core: &'m ClientCore<DynamicMessage>,
        request: &'m DynamicMessage,
    ) -> Result<Outbound<'m>, CallError> {
        let invalid = |reason: String| CallError::Publish {
            service: core.service.clone(),
            source: PublishError::Invalid {
                topic: core.service.clone(),
                reason,
            },
        };
        if request.ty() != &self.ty.request {
            return Err(invalid(format!(
                "the request is of type {}, the client asks {}; make it from DynamicServiceType::request",
                request.ty().name(),
                self.ty.request.name()
            )));
        }
        request
            .check_bounds()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Outbound {
            message: request,
            shared: None,
            payload: core.payload(),
        })
    }

    /// As [`Client::is_ready`](crate::Client::is_ready).
    pub fn is_ready(&self) -> bool {
        self.core.is_ready()
    }

    /// As [`Client::wait_for_service`](crate::Client::wait_for_service).
    pub fn wait_for_service(&self, timeout: Duration) -> bool {
        self.core.wait_for_service(timeout)
    }

    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }
}

impl fmt::Debug for DynamicClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicClient")
            .field("service", &self.core.service)
            .field("type", &self.ty.name)
            .finish()
    }
}

/// Serves a service whose type is known at run time; otherwise as
/// [`Service`](crate::Service).
#[derive(Clone)]
pub struct DynamicService {
    pub(super) core: Arc<ServerCore<DynamicMessage, DynamicMessage>>,
    pub(super) ty: DynamicServiceType,
}

impl DynamicService {
    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }

    /// As [`Service::client_count`](crate::Service::client_count).
    pub fn client_count(&self) -> usize {
        self.core.runtime.client_count(self.core.node.core())
    }
}

impl fmt::Debug for DynamicService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicService")
            .field("service", &self.core.service)
            .finish()
    }
}

impl Node {
    /// A client of a service whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_client(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
    ) -> Result<DynamicClient, CreateError> {
        let wants = Wants::Type(std::any::TypeId::of::<DynamicMessage>());
        let decode = dynamic_decoder(&ty.response);
        let core = self.client_core(service, dynamic_types(ty), &options, wants, decode)?;
        Ok(DynamicClient {
            core,
            ty: ty.clone(),
        })
    }

    /// Serves a service whose type is known at run time. An answer of another
    /// type than the service's is not sent, with a warning.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_service(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
        answer: impl FnMut(Sample<DynamicMessage>) -> DynamicMessage + Send + 'static,
    ) -> Result<DynamicService, CreateError> {
        self.serve_dynamic(service, ty, options, Handler::Answer(Box::new(answer)))
    }

    /// Serves a service whose type is known at run time and whose answers may come
    /// later, from any thread; `take` runs in the node's executor.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_deferred_dynamic_service(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
        take: impl FnMut(ServiceCall<DynamicMessage, DynamicMessage>) + Send + 'static,
    ) -> Result<DynamicService, CreateError> {
        self.serve_dynamic(service, ty, options, Handler::Defer(Box::new(take), None))
    }

    fn serve_dynamic(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
        handler: Handler<DynamicMessage, DynamicMessage>,
    ) -> Result<DynamicService, CreateError> {
        let wants = Wants::Type(std::any::TypeId::of::<DynamicMessage>());
        let core = self.server_core(
            service,
            dynamic_types(ty),
            &options,
            wants,
            (dynamic_decoder(&ty.request), dynamic_encoder(&ty.response)),
            handler,
        )?;
        Ok(DynamicService {
            core,
            ty: ty.clone(),
        })
    }
}

fn dynamic_types(ty: &DynamicServiceType) -> Types<'_> {
    Types {
        service: &ty.name,
        request: TypeFacts::of_dynamic(&ty.request),
        response: TypeFacts::of_dynamic(&ty.response),
        own: None,
    }
}

fn dynamic_encoder(ty: &DynamicType) -> Encoder<DynamicMessage> {
    let ty = ty.clone();
    Box::new(move |message, memory, representation, send| {
        if *message.ty() != ty {
            tracing::warn!(
                "an answer is of type {}, the service's is {}; it is not sent",
                message.ty().name(),
                ty.name()
            );
            return;
        }
        send(&mut Outbound {
            message: &message,
            shared: None,
            payload: Payload::new(memory, representation),
        });
    })
}
