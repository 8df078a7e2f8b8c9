//! Services: a question to whoever serves it, and its answer.

mod call;
mod client;
mod dynamic;
mod introspection;
mod server;

pub use call::{Call, CallError};
pub use client::Client;
pub use dynamic::{DynamicClient, DynamicService, DynamicServiceType, ServiceTypeError};
pub use introspection::ServiceIntrospection;
pub(crate) use server::Handler;
pub use server::{Service, ServiceCall};

use client::ClientCore;

use std::sync::Arc;

use pteros_msg::cdr::Representation;
use pteros_msg::hash::TypeHash;
use pteros_msg::message::{Message, Service as ServiceType};
use pteros_rmw::names::{NameKind, dds_reply_topic, dds_request_topic};
use pteros_rmw::service::ServiceSpec;
use pteros_rmw::writer::Outgoing;

use crate::callback_group::CallbackGroup;
use crate::error::CreateError;
use crate::node::{Node, TypeFacts, spec};
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::publisher::Shared;
use crate::qos::QosProfile;
use crate::type_description::{Described, of_service};

/// Requests and replies that may wait for someone to look at them. ROS 2's
/// preset says 10, which loses calls when more clients ask at once; depths
/// are each side's own matter, so a deeper queue suits every peer.
const DEPTH: usize = 1_000;

/// What [`Node::create_service_with`](crate::Node::create_service_with) and
/// [`Node::create_client_with`](crate::Node::create_client_with) can be told.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The QoS of requests and replies: [`QosProfile::services`], but a thousand
    /// deep. What does not fit KEEP_LAST is lost, and its call times out.
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
    /// Options with a profile.
    pub fn new(qos: impl Into<QosProfile>) -> Self {
        Self {
            qos: qos.into(),
            callback_group: None,
            pending_max: None,
        }
    }

    /// Runs the callbacks in a group of the node's.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// How many requests of a service with an async callback, in a reentrant
    /// group, may wait for their answers at once: 16 by default, at least 1.
    pub fn pending_max(mut self, count: usize) -> Self {
        self.pending_max = Some(count);
        self
    }
}

impl Node {
    /// A service's full name, and both its topics as this node announces them.
    fn service_spec(
        &self,
        service: &str,
        types: Types<'_>,
        options: &ServiceOptions,
    ) -> Result<(String, ServiceSpec), CreateError> {
        let name = self.core().resolve_as(NameKind::Service, service)?;
        let known = &self.context().inner.types;
        types.request.note_in(known);
        types.response.note_in(known);
        if let Some((hash, described)) = types.own {
            known.note(Some(hash), || described);
        }
        let qos = &options.qos;
        let avoid = qos.avoid_ros_namespace_conventions;
        let mut requests = spec(&name, types.request, qos, |qos| qos.to_endpoint())?;
        requests.topic = dds_request_topic(&name, avoid);
        let mut replies = spec(&name, types.response, qos, |qos| qos.to_endpoint())?;
        replies.topic = dds_reply_topic(&name, avoid);
        requests.as_bytes = self.core().as_bytes;
        replies.as_bytes = self.core().as_bytes;
        Ok((name, ServiceSpec { requests, replies }))
    }
}

/// What a service's endpoints must know of their types.
struct Types<'a> {
    /// The service's.
    service: &'a str,
    request: TypeFacts<'a>,
    response: TypeFacts<'a>,
    /// The service's own, where it is known.
    own: Option<(TypeHash, Described)>,
}

impl Types<'static> {
    fn of<S: ServiceType>() -> Self {
        let described = Described::Service(of_service::<S>, S::Request::definitions);
        Self {
            service: S::TYPE_NAME,
            request: TypeFacts::of::<S::Request>(),
            response: TypeFacts::of::<S::Response>(),
            own: Some((S::TYPE_HASH, described)),
        }
    }
}

/// Hands a message on its way out to whoever sends it.
pub(crate) type Sender<'s> = &'s mut dyn FnMut(&mut dyn Outgoing);

/// Makes a value into a message on its way out.
pub(crate) type Encoder<T> =
    Box<dyn Fn(T, &PayloadMemory, Representation, Sender<'_>) + Send + Sync>;

/// The encoder of a Rust message type.
pub(crate) fn typed_encoder<T: Message>() -> Encoder<T> {
    Box::new(|message, memory, representation, send| {
        send(&mut Shared {
            message: Arc::new(message),
            payload: Payload::new(memory, representation),
        });
    })
}
