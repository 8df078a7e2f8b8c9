//! Service introspection: who asked what, and what was answered, on
//! `<service>/_service_event` (rcl `service_event_publisher.c`).
//!
//! Off, a client or service looks at one atomic. On, each request and reply is one more
//! message at each end that is watched: its number, its client and the time, and with
//! contents itself once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::builtin_interfaces::msg::Time;
use pteros_interfaces::service_msgs::msg::ServiceEventInfo;
use pteros_msg::cdr::{Encoder, to_payload};
use pteros_msg::dynamic::DynamicMessage;
use pteros_msg::message::{Encode, Service as ServiceType};
use pteros_rmw::rtps::id::Guid;

use super::{Client, DynamicClient, DynamicService, Service};
use crate::dynamic::Ready;
use crate::error::CreateError;
use crate::node::{NodeCore, TypeFacts};
use crate::publisher::{PublisherOptions, RawPublisher};
use crate::qos::QosProfile;

/// How much of its requests and replies a client or a service tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServiceIntrospection {
    /// Nothing.
    #[default]
    Off,
    /// What happened when, by whom, with its number.
    Metadata,
    /// And the request or the reply itself.
    Contents,
}

/// What happened to a request or a reply; the numbers of
/// `service_msgs/msg/ServiceEventInfo`.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum EventKind {
    RequestSent = 0,
    RequestReceived = 1,
    ResponseSent = 2,
    ResponseReceived = 3,
}

/// Of one client or service, whose requests are `Q` and replies `R`.
pub(super) struct Introspection<Q: 'static, R: 'static> {
    is_on: AtomicBool,
    topic: Mutex<Option<Arc<Topic<Q, R>>>>,
}

impl<Q: 'static, R: 'static> Default for Introspection<Q, R> {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            topic: Mutex::new(None),
        }
    }
}

struct Topic<Q: 'static, R: 'static> {
    raw: Arc<RawPublisher>,
    with_contents: bool,
    parts: Parts<Q, R>,
}

/// How requests and replies are written; a client's requests are not kept as values.
type Parts<Q, R> = (Option<fn(&Q) -> &dyn Encode>, fn(&R) -> &dyn Encode);

fn written<T: Encode + 'static>(value: &T) -> &dyn Encode {
    value
}

/// One that is to be told.
pub(super) struct Event {
    raw: Arc<RawPublisher>,
    payload: Vec<u8>,
}

impl Event {
    pub(super) fn tell(self) {
        let topic = self.raw.topic.clone();
        if let Err(error) = self.raw.send(&mut Ready(self.payload.into())) {
            tracing::warn!("{topic}: {error}");
        }
    }
}

impl<Q: 'static, R: 'static> Introspection<Q, R> {
    /// Of a request, if somebody is to hear of it.
    pub(super) fn of_request(
        &self,
        kind: EventKind,
        client: Guid,
        sequence: i64,
        request: &Q,
    ) -> Option<Event> {
        let topic = self.topic()?;
        let request = topic.parts.0.map(|written| written(request));
        Some(topic.event(kind, client, sequence, (request, None)))
    }

    /// Of a request that a client sends.
    pub(super) fn of_sent_request(
        &self,
        client: Guid,
        sequence: i64,
        request: &dyn Encode,
    ) -> Option<Event> {
        let contents = (Some(request), None);
        let topic = self.topic()?;
        Some(topic.event(EventKind::RequestSent, client, sequence, contents))
    }

    /// Of a reply.
    pub(super) fn of_response(
        &self,
        kind: EventKind,
        client: Guid,
        sequence: i64,
        response: &R,
    ) -> Option<Event> {
        let topic = self.topic()?;
        let response = (topic.parts.1)(response);
        Some(topic.event(kind, client, sequence, (None, Some(response))))
    }

    fn topic(&self) -> Option<Arc<Topic<Q, R>>> {
        match self.is_on.load(Ordering::Relaxed) {
            true => self.topic.lock().clone(),
            false => None,
        }
    }

    fn configure<'t>(
        &self,
        node: &Arc<NodeCore>,
        service: &str,
        ty: impl FnOnce() -> Result<TypeFacts<'t>, CreateError>,
        (qos, how): (QosProfile, ServiceIntrospection),
        parts: Parts<Q, R>,
    ) -> Result<(), CreateError> {
        let topic = match how {
            ServiceIntrospection::Off => None,
            ServiceIntrospection::Metadata | ServiceIntrospection::Contents => {
                let name = format!("{service}/_service_event");
                let raw = node.raw_publisher(&name, ty()?, PublisherOptions::new(qos))?;
                Some(Arc::new(Topic {
                    raw,
                    with_contents: how == ServiceIntrospection::Contents,
                    parts,
                }))
            }
        };
        self.is_on.store(topic.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *self.topic.lock(), topic);
        // After the lock: the publisher leaves the graph.
        drop(before);
        Ok(())
    }
}

type Contents<'m> = (Option<&'m dyn Encode>, Option<&'m dyn Encode>);

impl<Q: 'static, R: 'static> Topic<Q, R> {
    fn event(&self, kind: EventKind, client: Guid, sequence: i64, contents: Contents<'_>) -> Event {
        let message = EventMessage {
            info: ServiceEventInfo {
                event_type: kind as u8,
                stamp: Time::from(self.raw.node.time.now()),
                client_gid: client.to_bytes(),
                sequence_number: sequence,
            },
            contents: match self.with_contents {
                true => contents,
                false => (None, None),
            },
        };
        Event {
            raw: self.raw.clone(),
            payload: to_payload(&message, self.raw.representation),
        }
    }
}

/// `<Service>_Event`: the info, then request and response, each a sequence of at most
/// one.
struct EventMessage<'m> {
    info: ServiceEventInfo,
    contents: Contents<'m>,
}

impl Encode for EventMessage<'_> {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.info.encode(out);
        for part in [self.contents.0, self.contents.1] {
            let part: Vec<Part<'_>> = part.into_iter().map(Part).collect();
            out.message_sequence(&part);
        }
    }
}

struct Part<'m>(&'m dyn Encode);

impl Encode for Part<'_> {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.encode(out);
    }
}

impl<S: ServiceType> Client<S> {
    /// Tells of its requests and replies on `<service>/_service_event`, from now on;
    /// [`ServiceIntrospection::Off`] ends it. `qos` is that of the events, rclcpp's
    /// demos take the default. May be called again at any time.
    ///
    /// # Errors
    /// See [`CreateError`]; everything stays as it was then.
    pub fn configure_introspection(
        &self,
        qos: impl Into<QosProfile>,
        how: ServiceIntrospection,
    ) -> Result<(), CreateError> {
        let core = &self.core;
        core.introspection.configure(
            &core.node,
            &core.service,
            || Ok(TypeFacts::of::<S::Event>()),
            (qos.into(), how),
            (None, written::<S::Response>),
        )
    }
}

impl<S: ServiceType> Service<S> {
    /// As [`Client::configure_introspection`], for the requests that it gets and the
    /// replies that it sends.
    ///
    /// # Errors
    /// See [`CreateError`]; everything stays as it was then.
    pub fn configure_introspection(
        &self,
        qos: impl Into<QosProfile>,
        how: ServiceIntrospection,
    ) -> Result<(), CreateError> {
        let core = &self.core;
        core.introspection.configure(
            &core.node,
            &core.service,
            || Ok(TypeFacts::of::<S::Event>()),
            (qos.into(), how),
            (Some(written::<S::Request>), written::<S::Response>),
        )
    }
}

impl DynamicClient {
    /// As [`Client::configure_introspection`].
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::NoEventType`] where the library that its
    /// types come from does not have those of events.
    pub fn configure_introspection(
        &self,
        qos: impl Into<QosProfile>,
        how: ServiceIntrospection,
    ) -> Result<(), CreateError> {
        let core = &self.core;
        core.introspection.configure(
            &core.node,
            &core.service,
            || Ok(TypeFacts::of_dynamic(self.ty.event(&core.service)?)),
            (qos.into(), how),
            (None, written::<DynamicMessage>),
        )
    }
}

impl DynamicService {
    /// As [`Client::configure_introspection`].
    ///
    /// # Errors
    /// As [`DynamicClient::configure_introspection`].
    pub fn configure_introspection(
        &self,
        qos: impl Into<QosProfile>,
        how: ServiceIntrospection,
    ) -> Result<(), CreateError> {
        let core = &self.core;
        core.introspection.configure(
            &core.node,
            &core.service,
            || Ok(TypeFacts::of_dynamic(self.ty.event(&core.service)?)),
            (qos.into(), how),
            (Some(written::<DynamicMessage>), written::<DynamicMessage>),
        )
    }
}
