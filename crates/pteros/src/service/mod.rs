//! Services: request and response between clients and servers.
//!
//! The protocol is DDS-RPC as ROS 2 uses it: one topic for requests, one for
//! responses, matched by request id (service correlation). This folder has the
//! typed and the dynamic client and server, and service introspection.

mod call;
mod client;
mod dynamic;
mod introspection;
mod server;

pub use call::{CallError, ResponseFuture};
pub use client::Client;
pub use dynamic::{DynamicClient, DynamicService, DynamicServiceType, ServiceTypeError};
pub use introspection::ServiceIntrospectionState;
pub(crate) use server::RequestHandler;
pub use server::{PendingRequest, Service};

use client::ClientCore;

use std::sync::Arc;

use pteros_msg::cdr::Representation;
use pteros_msg::hash::TypeHash;
use pteros_msg::message::{Message, Service as ServiceType};
use pteros_runtime::names::{NameKind, dds_reply_topic, dds_request_topic};
use pteros_runtime::service::ServiceSpec;
use pteros_runtime::writer::OutboundMessage;

use crate::callback_group::CallbackGroup;
use crate::error::CreateError;
use crate::node::{MessageTypeInfo, Node, endpoint_spec};
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::publisher::SharedMessage;
use crate::qos::QosProfile;
use crate::subscription::BodyDecoder;
use crate::type_description::{TypeDescriptionSource, service_type_description};

/// Default history depth of requests and responses. ROS 2's preset of 10 loses
/// calls when more clients call at once. Depth is local to each side, so a deeper
/// queue works with every peer.
const DEPTH: usize = 1_000;

/// Options for services and clients.
///
/// See [`Node::create_service_with`](crate::Node::create_service_with) and
/// [`Node::create_client_with`](crate::Node::create_client_with).
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The QoS of requests and responses: [`QosProfile::services`] with depth 1000.
    ///
    /// Requests beyond KEEP_LAST are lost, and their calls time out.
    pub qos: QosProfile,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) pending_max: Option<usize>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            qos: QosProfile::services().keep_last(DEPTH),
            callback_group: None,
            pending_max: None,
        }
    }
}

impl ServiceOptions {
    /// Options with a QoS profile.
    pub fn new(qos: impl Into<QosProfile>) -> Self {
        Self {
            qos: qos.into(),
            callback_group: None,
            pending_max: None,
        }
    }

    /// Runs the callbacks in this callback group of the node.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// The most requests in progress at once, for a service with an async callback
    /// in a reentrant group.
    ///
    /// 16 by default, at least 1.
    pub fn pending_max(mut self, count: usize) -> Self {
        self.pending_max = Some(count);
        self
    }
}

impl Node {
    /// The service's full name, and both topics as this node announces them.
    fn service_spec(
        &self,
        service: &str,
        types: ServiceTypes<'_>,
        options: &ServiceOptions,
    ) -> Result<(String, ServiceSpec), CreateError> {
        let name = self.core().resolve_name(NameKind::Service, service)?;
        let known = &self.context().inner.known_types;
        types.request.register_in(known);
        types.response.register_in(known);
        if let Some((hash, description)) = types.service_type {
            known.register(Some(hash), || description);
        }
        let qos = &options.qos;
        let avoid = qos.avoid_ros_namespace_conventions;
        let mut requests = endpoint_spec(&name, types.request, qos, |qos| qos.to_endpoint())?;
        requests.topic = dds_request_topic(&name, avoid);
        let mut replies = endpoint_spec(&name, types.response, qos, |qos| qos.to_endpoint())?;
        replies.topic = dds_reply_topic(&name, avoid);
        requests.serialize_only = self.core().as_bytes;
        replies.serialize_only = self.core().as_bytes;
        Ok((name, ServiceSpec { requests, replies }))
    }
}

/// The properties of a service type that its endpoints need.
struct ServiceTypes<'a> {
    /// The service type's name.
    service: &'a str,
    request: MessageTypeInfo<'a>,
    response: MessageTypeInfo<'a>,
    /// Hash and description of the service type itself, if known.
    service_type: Option<(TypeHash, TypeDescriptionSource)>,
}

impl ServiceTypes<'static> {
    fn of<S: ServiceType>() -> Self {
        let description =
            TypeDescriptionSource::Service(service_type_description::<S>, S::Request::definitions);
        Self {
            service: S::TYPE_NAME,
            request: MessageTypeInfo::of::<S::Request>(),
            response: MessageTypeInfo::of::<S::Response>(),
            service_type: Some((S::TYPE_HASH, description)),
        }
    }
}

/// Function that sends an outbound message.
pub(crate) type ResponseSink<'s> = &'s mut dyn FnMut(&mut dyn OutboundMessage);

/// Turns a value into an outbound message.
pub(crate) type ResponseEncoder<T> =
    Box<dyn Fn(T, &PayloadMemory, Representation, ResponseSink<'_>) + Send + Sync>;

/// How a server decodes requests and encodes responses.
pub(crate) struct ServerCodec<Q, R> {
    pub(crate) decode: BodyDecoder<Q>,
    pub(crate) encode: ResponseEncoder<R>,
}

/// Encoder of a Rust message type.
pub(crate) fn typed_encoder<T: Message>() -> ResponseEncoder<T> {
    Box::new(|message, memory, representation, send| {
        send(&mut SharedMessage {
            message: Arc::new(message),
            payload: Payload::new(memory, representation),
        });
    })
}
