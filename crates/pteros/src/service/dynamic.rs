//! Dynamic services: clients and servers whose type is known at run time only.
//!
//! They share the core of the typed ones; requests and responses are
//! [`DynamicMessage`]s, whose type is checked on each call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::library::{InterfaceLibrary, LibraryError};
use pteros_runtime::error::PublishError;
use pteros_runtime::reader::DeliveryForm;
use thiserror::Error;

use super::server::{PendingRequest, RequestHandler, ServerCore};
use super::{
    CallError, ClientCore, ResponseEncoder, ResponseFuture, ServerCodec, ServiceOptions,
    ServiceTypes,
};
use crate::dynamic::{OutboundDynamicMessage, dynamic_decoder};
use crate::error::CreateError;
use crate::node::{MessageTypeInfo, Node};
use crate::payload::Payload;
use crate::sample::Sample;

/// The request and response types of a service.
#[derive(Clone, Debug)]
pub struct DynamicServiceType {
    name: String,
    request: DynamicType,
    response: DynamicType,
    /// The introspection event type, if the library defines its parts.
    event: Option<DynamicType>,
}

/// Why a service's types could not be loaded.
#[derive(Debug, Error)]
pub enum ServiceTypeError {
    /// The definition does not exist or cannot be read.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A definition uses something that messages do not support.
    #[error("service type {name}: {reason}")]
    Type {
        /// The service type.
        name: String,
        /// The problem.
        reason: String,
    },
}

impl DynamicServiceType {
    /// Loads the types of a service, by its full name, from `library`.
    ///
    /// # Errors
    /// See [`ServiceTypeError`].
    pub fn new(library: &InterfaceLibrary, name: &str) -> Result<Self, ServiceTypeError> {
        let part = |suffix: &str| {
            let description = library.describe(&format!("{name}{suffix}"))?;
            DynamicType::new(&description).map_err(|error| ServiceTypeError::Type {
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

    /// The types of a service, by its full name, from its two message types.
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

    /// The request's type.
    pub fn request(&self) -> &DynamicType {
        &self.request
    }

    /// The response's type.
    pub fn response(&self) -> &DynamicType {
        &self.response
    }

    /// The type of the service's introspection events.
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
    pub fn call_async(
        &self,
        request: &DynamicMessage,
    ) -> Result<ResponseFuture<DynamicMessage>, CallError> {
        self.start(&self.core, request)
    }

    /// As [`Client::call_then`](crate::Client::call_then).
    ///
    /// # Errors
    /// As [`Self::call`]; `callback` is not called then.
    pub fn call_then(
        &self,
        request: &DynamicMessage,
        answered: impl FnOnce(Result<Sample<DynamicMessage>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let core = &self.core;
        let mut outgoing = self.outgoing(core, request)?;
        core.send_request(&mut outgoing, request, Some(Box::new(answered)))
            .map(drop)
    }

    fn start(
        &self,
        core: &Arc<ClientCore<DynamicMessage>>,
        request: &DynamicMessage,
    ) -> Result<ResponseFuture<DynamicMessage>, CallError> {
        core.start_call(&mut self.outgoing(core, request)?, request)
    }

    fn outgoing<'m>(
        &self,
        core: &'m ClientCore<DynamicMessage>,
        request: &'m DynamicMessage,
    ) -> Result<OutboundDynamicMessage<'m>, CallError> {
        let invalid = |reason: String| CallError::Publish {
            service: core.service.clone(),
            source: PublishError::Invalid {
                topic: core.service.clone(),
                reason,
            },
        };
        if request.ty() != &self.ty.request {
            return Err(invalid(format!(
                "the request is of type {}, the client requires {}; create it from DynamicServiceType::request",
                request.ty().name(),
                self.ty.request.name()
            )));
        }
        request
            .check_bounds()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(OutboundDynamicMessage {
            message: request,
            shared: None,
            payload: core.payload(),
        })
    }

    /// As [`Client::service_is_ready`](crate::Client::service_is_ready).
    pub fn service_is_ready(&self) -> bool {
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
    /// Creates a client of a service whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_client(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
    ) -> Result<DynamicClient, CreateError> {
        let form = DeliveryForm::Type(std::any::TypeId::of::<DynamicMessage>());
        let decode = dynamic_decoder(&ty.response);
        let core = self.client_core(service, dynamic_types(ty), &options, form, decode)?;
        Ok(DynamicClient {
            core,
            ty: ty.clone(),
        })
    }

    /// Creates a service whose type is known at run time.
    ///
    /// A response of another type is not sent and logged as a warning.
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
        self.serve_dynamic(
            service,
            ty,
            options,
            RequestHandler::Immediate(Box::new(answer)),
        )
    }

    /// Creates a deferred service whose type is known at run time.
    ///
    /// Responses may be sent later, from any thread. `take` runs in the node's
    /// executor.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_deferred_dynamic_service(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
        take: impl FnMut(PendingRequest<DynamicMessage, DynamicMessage>) + Send + 'static,
    ) -> Result<DynamicService, CreateError> {
        self.serve_dynamic(
            service,
            ty,
            options,
            RequestHandler::Deferred(Box::new(take), None),
        )
    }

    fn serve_dynamic(
        &self,
        service: &str,
        ty: &DynamicServiceType,
        options: ServiceOptions,
        handler: RequestHandler<DynamicMessage, DynamicMessage>,
    ) -> Result<DynamicService, CreateError> {
        let form = DeliveryForm::Type(std::any::TypeId::of::<DynamicMessage>());
        let core = self.server_core(
            service,
            dynamic_types(ty),
            &options,
            form,
            ServerCodec {
                decode: dynamic_decoder(&ty.request),
                encode: dynamic_encoder(&ty.response),
            },
            handler,
        )?;
        Ok(DynamicService {
            core,
            ty: ty.clone(),
        })
    }
}

fn dynamic_types(ty: &DynamicServiceType) -> ServiceTypes<'_> {
    ServiceTypes {
        service: &ty.name,
        request: MessageTypeInfo::of_dynamic(&ty.request),
        response: MessageTypeInfo::of_dynamic(&ty.response),
        service_type: None,
    }
}

fn dynamic_encoder(ty: &DynamicType) -> ResponseEncoder<DynamicMessage> {
    let ty = ty.clone();
    Box::new(move |message, memory, representation, send| {
        if *message.ty() != ty {
            tracing::warn!(
                "a response is of type {}, the service requires {}; it is not sent",
                message.ty().name(),
                ty.name()
            );
            return;
        }
        send(&mut OutboundDynamicMessage {
            message: &message,
            shared: None,
            payload: Payload::new(memory, representation),
        });
    })
}
