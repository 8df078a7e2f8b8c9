//! Services on two topics: requests one way, replies the other.
//!
//! A client has a writer of requests and a reader of replies, a server the reverse, all
//! reliable. A reply identifies its request ([`CorrelationStyle`]) and is sent to that
//! client's reader only (directed write). Within a process both are shared values. The
//! matches of the endpoints show whether a service is available, without a query.

mod client;
mod deferred_replies;
mod server;

use std::fmt::Write as _;

use pteros_msg::hash::TypeHash;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};

pub use client::{CALLS_MAX, CallId, ReceivedReply, SendRequestError, ServiceClient};
pub use deferred_replies::DeferredReplies;
pub use pteros_dcps::correlation::{CorrelationStyle, service_mismatch};
pub use server::{
    PENDING_REPLIES_MAX, ReceivedRequest, RequestId, ServiceServer, ServiceServerCounts,
};

use crate::core::Core;
use crate::core::matching::EndpointSpec;
use crate::graph::Graph;
use crate::user_data::user_data_value;

/// The two topics of a service, as one side announces them.
#[derive(Clone, Debug, Default)]
pub struct ServiceSpec {
    /// The topic of requests.
    pub requests: EndpointSpec,
    /// The topic of replies.
    pub replies: EndpointSpec,
    /// Type hash of the service, if known. Some transports need it.
    pub type_hash: Option<TypeHash>,
}

/// USER_DATA keys of client and server endpoints, which associate the two endpoints
/// of one side (rmw_cyclonedds).
const CLIENT_ID: &str = "clientid";
const SERVICE_ID: &str = "serviceid";

impl ServiceSpec {
    /// Marks both endpoints as one pair.
    fn set_pair_id(&mut self, key: &str, id: &str) {
        let entry = format!("{key}={id};").into_bytes();
        self.requests.qos.user_data.extend_from_slice(&entry);
        self.replies.qos.user_data.extend_from_slice(&entry);
    }
}

/// The unique id of a pair: the participant and a number, as 16 bytes in the format
/// of rmw_cyclonedds, which pads only the first.
fn pair_id(prefix: GuidPrefix, number: [u8; 4]) -> String {
    let mut id = String::new();
    for (at, byte) in prefix.0.iter().chain(&number).enumerate() {
        let _ = match at {
            0 => write!(id, "{byte:2x}"),
            _ => write!(id, ".{byte:x}"),
        };
    }
    id
}

impl Graph {
    /// The correlation style of the participant with that prefix.
    fn correlation_style_of(&self, prefix: GuidPrefix) -> CorrelationStyle {
        if prefix == self.own_prefix {
            return CorrelationStyle::InlineQos;
        }
        let vendor = self.vendor_of(prefix);
        let style = vendor.and_then(CorrelationStyle::of_vendor);
        style.unwrap_or(CorrelationStyle::InlineQos)
    }

    /// Why services of a participant may not understand ours, by its vendor. Peers of
    /// other transports have no vendor.
    fn service_mismatch_of(&self, prefix: GuidPrefix) -> Option<String> {
        service_mismatch(VendorId::PTEROS, self.vendor_of(prefix)?)
    }

    /// Whether two endpoints of another participant belong to one client or server,
    /// according to their ids, or if no id contradicts it.
    fn are_pair(&self, key: &str, one: Guid, other: Guid) -> bool {
        if one.prefix != other.prefix {
            return false;
        }
        if one.prefix == self.own_prefix {
            return true;
        }
        let id = |guid| {
            let user_data = self.user_data_of(guid)?;
            user_data_value(&user_data, key)
        };
        match (id(one), id(other)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

impl Core {
    fn new_pair_id(&self) -> String {
        let [a, b, c] = self.discovery().endpoints.next_key();
        pair_id(self.prefix, [0, a, b, c])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use pteros_rtps::discovery::data::ParticipantData;
    use pteros_rtps::participant::ParticipantEvent;
    use pteros_rtps::time::{Duration, Instant};

    use super::*;
    use crate::CoreOptions;
    use crate::endpoints::reader::DeliveryForm;
    use crate::outbound::SerializedPayload;
    use crate::platform::SystemPlatform;
    use crate::sample::{QueuedSample, SampleBody};

    /// A payload that the tests' decoder refuses.
    const WRONG: &[u8] = &[0, 1, 0, 0, 0xff, 0xff];
    const RIGHT: &[u8] = &[0, 1, 0, 0, 1, 0, 0, 0];

    fn message(bytes: &'static [u8]) -> SerializedPayload {
        SerializedPayload::new(Bytes::from_static(bytes))
    }

    fn decode(item: QueuedSample) -> Result<(), &'static str> {
        match item.body {
            SampleBody::Serialized(bytes) if bytes == RIGHT => Ok(()),
            _ => Err("wrong"),
        }
    }

    fn open() -> Arc<Core> {
        let options = CoreOptions {
            domain_id: 188,
            local_only: true,
            multicast: false,
            ..CoreOptions::default()
        };
        Core::open(Arc::new(SystemPlatform::new()), options).expect("open")
    }

    fn service(name: &str) -> ServiceSpec {
        let spec = |topic: String| EndpointSpec {
            topic,
            type_name: "Anything".into(),
            ..EndpointSpec::default()
        };
        ServiceSpec {
            requests: spec(format!("rq/{name}Request")),
            replies: spec(format!("rr/{name}Reply")),
            type_hash: None,
        }
    }

    fn soon(core: &Core) -> Instant {
        core.platform.now() + Duration::from_secs(20)
    }

    #[test]
    fn a_request_that_does_not_decode_is_dropped_and_the_next_one_taken() {
        let core = open();
        let form = DeliveryForm::Bytes;
        let server = core
            .create_service_server(service("one"), form)
            .expect("a server");
        let client = core
            .create_service_client(service("one"), form)
            .expect("a client");
        let now = core.platform.wall_clock();
        for bytes in [WRONG, RIGHT, WRONG] {
            client.send(&core, &mut message(bytes), now).expect("sent");
        }
        let take = || {
            server.take_decoded_request(&core, |request| decode(request.item).map(|()| request.id))
        };
        let id = take().expect("the second");
        assert_eq!(id.sequence, 2);
        assert_eq!(server.requests.counts().undecodable, 1);
        assert_eq!(take(), None);
        assert_eq!(server.requests.counts().undecodable, 2);
        // The only server's reply ends the call, with the reason.
        server
            .reply(&core, &id, &mut message(WRONG))
            .expect("replied");
        let reply = client.take_decoded_reply(&core, decode).expect("a reply");
        assert_eq!((reply.call.number(), reply.message), (2, Err("wrong")));
        assert_eq!(client.replies.counts().undecodable, 1);
        assert_eq!(client.open_count(), 2, "those without a reply");
        server
            .reply(&core, &id, &mut message(RIGHT))
            .expect("replied");
        assert!(client.take_decoded_reply(&core, decode).is_none());
        assert_eq!(client.unmatched_reply_count(), 1);
    }

    #[test]
    fn a_reply_that_does_not_decode_leaves_the_call_to_the_other_server() {
        let [at_client, first, second] = [(); 3].map(|()| open());
        let form = DeliveryForm::Bytes;
        let servers = [&first, &second].map(|core| {
            let server = core.create_service_server(service("two"), form);
            (core, server.expect("a server"))
        });
        let client = at_client.create_service_client(service("two"), form);
        let client = client.expect("a client");
        let are_there = || client.server_count(&at_client) == 2;
        assert!(at_client.driver.wait_until(soon(&at_client), are_there));
        let now = at_client.platform.wall_clock();
        let call = client
            .send(&at_client, &mut message(RIGHT), now)
            .expect("sent");
        for ((core, server), answer) in servers.iter().zip([WRONG, RIGHT]) {
            let mut request = None;
            core.driver.wait_until(soon(core), || {
                request = server.take_request(core);
                request.is_some()
            });
            let id = request.expect("the request").id;
            server
                .reply(core, &id, &mut message(answer))
                .expect("replied");
        }
        let mut reply = None;
        at_client.driver.wait_until(soon(&at_client), || {
            reply = client.take_decoded_reply(&at_client, decode);
            reply.is_some()
        });
        let reply = reply.expect("of the second server");
        assert_eq!((reply.call, reply.message), (call, Ok(())));
        assert_eq!(client.open_count(), 0);
    }

    #[test]
    fn a_server_whose_stack_may_not_understand_us_is_named_as_the_reason() {
        let [at_client, at_server] = [(); 2].map(|()| open());
        let form = DeliveryForm::Bytes;
        let _server = at_server
            .create_service_server(service("four"), form)
            .expect("a server");
        let client = at_client.create_service_client(service("four"), form);
        let client = client.expect("a client");
        let is_there = || client.server_count(&at_client) == 1;
        assert!(at_client.driver.wait_until(soon(&at_client), is_there));
        assert_eq!(client.unanswered_reason(&at_client), None);
        let announce = |vendor| {
            let data = ParticipantData {
                vendor,
                ..ParticipantData::new(at_server.prefix)
            };
            let event = ParticipantEvent::ParticipantChanged(Arc::new(data));
            at_client.discovery().graph.handle_participant_event(&event);
        };
        for (vendor, is_doubtful) in [
            (VendorId::RTI, true),
            (VendorId::OPENDDS, true),
            (VendorId::CYCLONE, false),
            (VendorId::FAST_DDS, false),
        ] {
            announce(vendor);
            let reason = client.unanswered_reason(&at_client).unwrap_or_default();
            let names_it = reason.contains(&format!("{vendor:?}"));
            assert_eq!(names_it, is_doubtful, "{vendor:?}: {reason}");
        }
    }

    #[test]
    fn a_pair_id_has_the_format_of_cyclone() {
        let prefix = GuidPrefix([1, 0x10, 0xab, 0, 5, 6, 7, 8, 9, 10, 11, 255]);
        assert_eq!(
            pair_id(prefix, [0, 0, 0, 4]),
            " 1.10.ab.0.5.6.7.8.9.a.b.ff.0.0.0.4"
        );
    }
}
