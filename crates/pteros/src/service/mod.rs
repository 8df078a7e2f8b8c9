//! Services: request and response between clients and servers.
//!
//! The protocol is DDS-RPC as ROS 2 uses it: one topic for requests, one for
//! responses, matched by request id (service correlation). This folder has
//! client, server and service introspection.

mod call;
mod client;
mod introspection;
mod server;

pub use call::{CallError, ResponseFuture};
pub use client::Client;
pub use introspection::ServiceIntrospectionState;
pub use pteros_runtime::service::ServiceServerCounts;
pub use server::{DeferredCallback, PendingRequest, Service};

use std::sync::Arc;

use pteros_msg::cdr::Representation;
use pteros_msg::type_support::{MessageTypeSupport, ServiceTypeSupport};
use pteros_runtime::names::{NameKind, dds_reply_topic, dds_request_topic};
use pteros_runtime::service::ServiceSpec;
use pteros_runtime::writer::OutboundMessage;

use crate::callback_groups::CallbackGroup;
use crate::error::CreateError;
use crate::known_types::TypeDescriptionSource;
use crate::message_type_info::{MessageTypeInfo, endpoint_spec};
use crate::named_qos::{NamedQos, options_from_names};
use crate::node::Node;
use crate::outbound_message::SharedMessage;
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;

use crate::qos::QosProfile;
use crate::subscription::BodyDecoder;

/// Default history depth of requests and responses. ROS 2's preset of 10 loses
/// calls when more clients call at once. Depth is local to each side, so a deeper
/// queue works with every peer.
const DEPTH: usize = 1_000;

/// Options of [`Node::create_client`](crate::Node::create_client).
///
/// A name, with or without QoS words ([`NamedQosExt`](crate::NamedQosExt)),
/// converts into them.
pub struct ClientOptions<S: ServiceTypeSupport> {
    pub(crate) service: String,
    pub(crate) support: S::Support,
    /// The QoS of requests and responses: [`QosProfile::services`] with depth 1000.
    ///
    /// Requests beyond KEEP_LAST are lost, and their calls time out.
    pub qos: QosProfile,
    pub(crate) callback_group: Option<CallbackGroup>,
}

options_from_names!(ClientOptions<S: ServiceTypeSupport>);

impl<S: ServiceTypeSupport> ClientOptions<S> {
    /// Options for a service, whose name the node expands and remaps.
    pub fn new(service: impl Into<NamedQos>) -> Self
    where
        S::Support: Default,
    {
        Self::of_type(&S::Support::default(), service)
    }

    /// Options for a service whose type is known at run time only: a
    /// [`DynamicService`](crate::msg::dynamic::DynamicService).
    pub fn of_type(support: &S::Support, service: impl Into<NamedQos>) -> Self {
        let NamedQos { name, qos } = service.into();
        Self {
            service: name,
            support: support.clone(),
            qos: qos.unwrap_or_else(default_qos),
            callback_group: None,
        }
    }

    /// Runs the callbacks in this callback group of the node.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }
}

/// Options of [`Node::create_service`](crate::Node::create_service).
///
/// A name, with or without QoS words ([`NamedQosExt`](crate::NamedQosExt)),
/// converts into them.
pub struct ServiceOptions<S: ServiceTypeSupport> {
    pub(crate) service: String,
    pub(crate) support: S::Support,
    /// The QoS of requests and responses, see [`ClientOptions::qos`].
    pub qos: QosProfile,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) pending_max: Option<usize>,
    pub(crate) refuse: Option<RequestLimit<S::Response>>,
}

/// Answers a serialized request that is too large to be decoded, else `None`.
pub(crate) type RequestLimit<R> = Box<dyn Fn(&[u8]) -> Option<R> + Send + Sync>;

options_from_names!(ServiceOptions<S: ServiceTypeSupport>);

impl<S: ServiceTypeSupport> ServiceOptions<S> {
    /// Options for a service, whose name the node expands and remaps.
    pub fn new(service: impl Into<NamedQos>) -> Self
    where
        S::Support: Default,
    {
        Self::of_type(&S::Support::default(), service)
    }

    /// Options for a service whose type is known at run time only: a
    /// [`DynamicService`](crate::msg::dynamic::DynamicService).
    pub fn of_type(support: &S::Support, service: impl Into<NamedQos>) -> Self {
        let NamedQos { name, qos } = service.into();
        Self {
            service: name,
            support: support.clone(),
            qos: qos.unwrap_or_else(default_qos),
            callback_group: None,
            pending_max: None,
            refuse: None,
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

fn default_qos() -> QosProfile {
    QosProfile::services().keep_last(DEPTH)
}

impl Node {
    /// The service's full name, and both topics as this node announces them.
    fn service_spec<S: ServiceTypeSupport>(
        &self,
        service: &str,
        support: &S::Support,
        qos: &QosProfile,
    ) -> Result<(String, ServiceSpec), CreateError> {
        let name = self.core().resolve_name(NameKind::Service, service)?;
        let mut request = MessageTypeInfo::of::<S::Request>(S::request(support));
        let mut response = MessageTypeInfo::of::<S::Response>(S::response(support));
        let known = &self.context().inner.known_types;
        request.register_in(known);
        response.register_in(known);
        let type_hash = S::type_hash(support);
        // As rmw_cyclonedds and rmw_fastrtps, both topics carry the hash of the service,
        // or none: with that of a message they would not match.
        request.hash = type_hash;
        response.hash = type_hash;
        if let Some(of) = S::description(support) {
            known.register(Some(of.hash), || {
                TypeDescriptionSource::Service(of.describe, of.definitions)
            });
        } else if let Some(ty) = S::dynamic(support) {
            known.register(ty.hash(), || {
                TypeDescriptionSource::DynamicService(Box::new(ty.clone()))
            });
        }
        let avoid = qos.avoid_ros_namespace_conventions;
        let mut requests = endpoint_spec(&name, request, qos, |qos| qos.to_endpoint())?;
        requests.topic = dds_request_topic(&name, avoid);
        let mut replies = endpoint_spec(&name, response, qos, |qos| qos.to_endpoint())?;
        replies.topic = dds_reply_topic(&name, avoid);
        requests.serialize_only = self.core().as_bytes;
        replies.serialize_only = self.core().as_bytes;
        let spec = ServiceSpec {
            requests,
            replies,
            type_hash,
        };
        Ok((name, spec))
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
    /// Looks at a request before it is decoded.
    pub(crate) refuse: Option<RequestLimit<R>>,
}

/// Encoder of a message type. A response of another type is not sent.
pub(crate) fn typed_encoder<T: MessageTypeSupport>(support: &T::Support) -> ResponseEncoder<T> {
    let support = support.clone();
    Box::new(move |message, memory, representation, send| {
        if !message.is_of(&support) {
            let reason = message.validate(&support).err().unwrap_or_default();
            tracing::warn!("a response is not sent: {reason}");
            return;
        }
        send(&mut SharedMessage {
            message: Arc::new(message),
            payload: Payload::new(memory, representation),
        });
    })
}
