//! Service introspection: publishes requests and responses as events on
//! `<service>/_service_event` (REP 2012, rcl `service_event_publisher.c`).
//!
//! When off, a client or service reads one atomic. When on, each request and
//! response costs one more message at each observed end: sequence number, client
//! GID, time and, with contents, the request or response itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::builtin_interfaces::msg::Time;
use pteros_interfaces::service_msgs::msg::ServiceEventInfo;
use pteros_msg::cdr::{Encoder, to_payload};
use pteros_msg::message::Encode;
use pteros_msg::type_support::{MessageTypeSupport, ServiceTypeSupport};
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::rtps::id::Guid;

use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::NodeCore;
use crate::publisher::{PublisherCore, PublisherOptions};
use crate::qos::QosProfile;

/// Level of service introspection of a client or a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServiceIntrospectionState {
    /// No events.
    #[default]
    Off,
    /// Event type, time, client GID and sequence number.
    Metadata,
    /// Metadata and the request or response itself.
    Contents,
}

/// Event types, with the numbers of `service_msgs/msg/ServiceEventInfo`.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum EventKind {
    RequestSent = 0,
    RequestReceived = 1,
    ResponseSent = 2,
    ResponseReceived = 3,
}

/// Introspection of one client or service with requests `Q` and responses `R`.
pub(super) struct Introspection<Q: 'static, R: 'static> {
    is_on: AtomicBool,
    topic: Mutex<Option<Arc<EventTopic<Q, R>>>>,
}

impl<Q: 'static, R: 'static> Default for Introspection<Q, R> {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            topic: Mutex::new(None),
        }
    }
}

struct EventTopic<Q: 'static, R: 'static> {
    raw: Arc<PublisherCore>,
    with_contents: bool,
    encoders: ContentEncoders<Q, R>,
}

/// Encoders of requests and responses. A client does not keep its requests as
/// values.
pub(super) struct ContentEncoders<Q: 'static, R: 'static> {
    pub(super) request: Option<fn(&Q) -> &dyn Encode>,
    pub(super) response: fn(&R) -> &dyn Encode,
}

pub(super) fn as_encode<T: Encode + 'static>(value: &T) -> &dyn Encode {
    value
}

/// An event to be published.
pub(super) struct PendingEvent {
    raw: Arc<PublisherCore>,
    payload: Vec<u8>,
}

impl PendingEvent {
    pub(super) fn publish_event(self) {
        let topic = self.raw.topic.clone();
        let mut event = SerializedPayload::new(self.payload.into());
        if let Err(error) = self.raw.send(&mut event) {
            tracing::warn!("{topic}: {error}");
        }
    }
}

impl<Q: 'static, R: 'static> Introspection<Q, R> {
    /// Event of a received request, if introspection is on.
    pub(super) fn of_request(
        &self,
        kind: EventKind,
        client: Guid,
        sequence: i64,
        request: &Q,
    ) -> Option<PendingEvent> {
        let topic = self.topic()?;
        let contents = EventContents {
            request: topic.encoders.request.map(|encode| encode(request)),
            response: None,
        };
        Some(topic.event(kind, client, sequence, contents))
    }

    /// Event of a request that a client sends.
    pub(super) fn of_sent_request(
        &self,
        client: Guid,
        sequence: i64,
        request: &dyn Encode,
    ) -> Option<PendingEvent> {
        let contents = EventContents {
            request: Some(request),
            response: None,
        };
        let topic = self.topic()?;
        Some(topic.event(EventKind::RequestSent, client, sequence, contents))
    }

    /// Event of a response.
    pub(super) fn of_response(
        &self,
        kind: EventKind,
        client: Guid,
        sequence: i64,
        response: &R,
    ) -> Option<PendingEvent> {
        let topic = self.topic()?;
        let contents = EventContents {
            request: None,
            response: Some((topic.encoders.response)(response)),
        };
        Some(topic.event(kind, client, sequence, contents))
    }

    fn topic(&self) -> Option<Arc<EventTopic<Q, R>>> {
        if self.is_on.load(Ordering::Relaxed) {
            self.topic.lock().clone()
        } else {
            None
        }
    }

    pub(super) fn configure<E: MessageTypeSupport>(
        &self,
        node: &Arc<NodeCore>,
        options: impl FnOnce() -> Result<PublisherOptions<E>, CreateError>,
        state: ServiceIntrospectionState,
        encoders: ContentEncoders<Q, R>,
    ) -> Result<(), CreateError> {
        let topic = match state {
            ServiceIntrospectionState::Off => None,
            ServiceIntrospectionState::Metadata | ServiceIntrospectionState::Contents => {
                Some(Arc::new(EventTopic {
                    raw: node.create_publisher(options()?)?.raw,
                    with_contents: state == ServiceIntrospectionState::Contents,
                    encoders,
                }))
            }
        };
        self.is_on.store(topic.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *self.topic.lock(), topic);
        // Dropped after the lock is released: the publisher leaves the graph.
        drop(before);
        Ok(())
    }
}

/// The request or the response that an event carries.
#[derive(Default)]
struct EventContents<'m> {
    request: Option<&'m dyn Encode>,
    response: Option<&'m dyn Encode>,
}

impl<Q: 'static, R: 'static> EventTopic<Q, R> {
    fn event(
        &self,
        kind: EventKind,
        client: Guid,
        sequence: i64,
        contents: EventContents<'_>,
    ) -> PendingEvent {
        let message = EventMessage {
            info: ServiceEventInfo {
                event_type: kind as u8,
                stamp: Time::from(self.raw.node.time.now()),
                client_gid: client.to_bytes(),
                sequence_number: sequence,
            },
            contents: if self.with_contents {
                contents
            } else {
                EventContents::default()
            },
        };
        PendingEvent {
            raw: self.raw.clone(),
            payload: to_payload(&message, self.raw.representation),
        }
    }
}

/// `<Service>_Event`: the info, then request and response, each a sequence of at
/// most one.
struct EventMessage<'m> {
    info: ServiceEventInfo,
    contents: EventContents<'m>,
}

impl Encode for EventMessage<'_> {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.info.encode(out);
        for part in [self.contents.request, self.contents.response] {
            let part: Vec<OptionalPart<'_>> = part.into_iter().map(OptionalPart).collect();
            out.message_sequence(&part);
        }
    }
}

struct OptionalPart<'m>(&'m dyn Encode);

impl Encode for OptionalPart<'_> {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.encode(out);
    }
}

/// Options of the publisher of events.
pub(super) fn event_options<S: ServiceTypeSupport>(
    support: &S::Support,
    service: &str,
    qos: QosProfile,
) -> Result<PublisherOptions<S::Event>, CreateError> {
    let ty = S::event(support).ok_or_else(|| CreateError::NoEventType {
        service: service.into(),
        service_type: S::service_name(support).into(),
    })?;
    let topic = format!("{service}/_service_event").qos(qos);
    Ok(PublisherOptions::of_type(ty, topic))
}
