//! The RTPS transport: one participant (SPDP, SEDP, liveliness) behind the [`Transport`] trait.
//!
//! Samples do not pass here: RTPS writers and readers live in the endpoints and send
//! through [`SendPath`]. Security, same-host discovery and shared-memory connections
//! use the participant directly, because they are parts of this transport.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::Participant;
use pteros_rtps::qos::Liveliness;
use pteros_rtps::time::Instant;

use super::{RemoteEndpointRecord, Transport, TransportEvent, TransportScheduler};
use crate::lock::{Mutex, rank};
use crate::send::SendPath;
use crate::send::back_pressure::{BlockingBudget, GOODBYE_WAIT};

/// See the module documentation.
pub struct RtpsTransport {
    pub(crate) participant: Arc<Mutex<Participant, rank::Participant>>,
    pub(crate) send: Arc<SendPath>,
    pub(crate) scheduler: TransportScheduler,
}

impl Transport for RtpsTransport {
    fn name(&self) -> &str {
        "rtps"
    }

    fn announce(&self, now: Instant, endpoint: &Arc<EndpointData>) {
        let mut participant = self.participant.lock();
        if endpoint.is_writer() {
            participant.add_writer(now, endpoint.clone());
        } else {
            participant.add_reader(now, endpoint.clone());
        }
    }

    fn withdraw(&self, now: Instant, endpoint: Guid) {
        self.participant.lock().remove_endpoint(now, endpoint);
    }

    fn assert_liveliness(&self, now: Instant, kind: Liveliness) {
        self.participant.lock().assert_liveliness(now, kind);
    }

    fn poll(&self, now: Instant, events: &mut Vec<TransportEvent>) {
        self.send.transmit(|outbox| {
            let mut participant = self.participant.lock();
            while let Some(event) = participant.poll_event() {
                events.push(TransportEvent::Discovery(event));
            }
            let more = participant.poll_transmit(now, outbox);
            // Under the lock: a later timeout must not be overwritten.
            self.scheduler.schedule(participant.next_timeout());
            more
        });
    }

    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        for known in self.participant.lock().endpoints().remotes() {
            see(&known);
        }
    }

    fn for_each_endpoint_on(&self, topic: &str, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        for known in self.participant.lock().endpoints().remotes_on(topic) {
            see(&known);
        }
    }

    fn with_endpoint(&self, guid: Guid, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) -> bool {
        let participant = self.participant.lock();
        let known = participant.endpoints().remote(guid);
        if let Some(known) = &known {
            see(known);
        }
        known.is_some()
    }

    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        self.participant.lock().exceeded_limit()
    }

    fn close(&self, now: Instant) {
        let mut outbox = Outbox::new();
        self.participant.lock().shut_down(now, &mut outbox);
        // A peer that misses it keeps the participant until its lease expires.
        self.send
            .send(&outbox, 0, &BlockingBudget::for_publish(GOODBYE_WAIT));
    }
}
