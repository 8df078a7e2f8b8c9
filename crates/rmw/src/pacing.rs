//! Who sends for asynchronous publishers: the driver, a turn of a flow
//! controller at a time.
//!
//! [`Core::publish`] leaves the sample with its writer and the writer with its
//! controller; the controller's deadline wakes the driver, or the helper while
//! nobody spins.

use std::sync::Arc;

use parking_lot::MutexGuard;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::Burst;

use crate::core::Core;
use crate::deadline::Machine;
use crate::error::EndpointError;
use crate::flow::{Flow, Pace, Place};
use crate::matching::EndpointSpec;
use crate::publish::transmit_marked;
use crate::room::{Patience, next_look};
use crate::writer::{WriterEndpoint, WriterState};

/// Datagrams of one turn: other machines get theirs in between.
const DATAGRAMS_PER_TURN: usize = 64;

/// So often it is asked whether the socket has room.
const DATAGRAMS_PER_LOOK: usize = 32;

/// A fragment at a time, so that others may come between two.
const ONE_DATAGRAM: Burst = Burst {
    datagrams: 1,
    bytes: usize::MAX,
};

impl Core {
    /// Creates a writer whose samples are sent at the pace of a flow
    /// controller, announces it and matches it with local readers.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_paced_writer(
        &self,
        spec: EndpointSpec,
        pace: &Pace,
    ) -> Result<Arc<WriterEndpoint>, EndpointError> {
        let controllers = &self.options.flow_controllers;
        let named = controllers.iter().position(|c| c.name() == pace.controller);
        let Some(controller) = named else {
            let known = controllers.iter().map(|c| format!("\"{}\"", c.name()));
            return Err(EndpointError::NoSuchFlowController {
                name: pace.controller.clone(),
                known: match controllers.is_empty() {
                    true => "none".into(),
                    false => known.collect::<Vec<_>>().join(", "),
                },
            });
        };
        self.create_writer_at(spec, Some((controller, pace.priority)))
    }

    /// Leaves what a writer has to send to its controller. The state is the
    /// writer's; it is let go.
    pub(crate) fn leave_to_flow(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        place: Place,
        state: MutexGuard<'_, WriterState>,
    ) {
        self.note_arrival(now, writer, &state);
        let next = state.next_timeout();
        self.schedule(Machine::Writer(writer.guid().entity), next);
        let has_output = state.machine.has_output();
        drop(state);
        if let Some(flow) = self.flows.get(place.controller).filter(|_| has_output) {
            let mut flow = flow.lock();
            flow.enrol(&place);
            self.schedule_flow(now, place.controller, &flow);
        }
    }

    /// Forgets a writer that is going, and says what goes with it.
    pub(crate) fn leave_flow(&self, writer: &WriterEndpoint) {
        let Some(place) = writer.place() else { return };
        if let Some(flow) = self.flows.get(place.controller) {
            flow.lock().leave(place.writer);
        }
        let unsent = writer.unsent_count();
        if unsent > 0 {
            tracing::warn!(
                "topic {}: the publisher is gone with {unsent} messages that its flow controller \
                 has not sent; wait_for_all_acked before it is dropped",
                writer.data.topic
            );
        }
    }

    /// A writer's TRANSPORT_PRIORITY has changed: it waits among others from its
    /// next turn on.
    pub(crate) fn leave_rank(&self, writer: &WriterEndpoint) {
        let Some(place) = writer.place() else { return };
        if let Some(flow) = self.flows.get(place.controller) {
            flow.lock().leave(place.writer);
        }
    }

    /// Assertions of liveliness do not wait for their turn, but they count.
    pub(crate) fn assert_beside_flow(&self, writer: &WriterEndpoint) {
        let Some(place) = writer.place() else { return };
        let mut bytes = 0;
        transmit_marked(self, writer.code_point(), &Patience::none(), |outbox| {
            writer.state.lock().machine.poll_assertions(outbox);
            bytes = sent_bytes(outbox);
            false
        });
        if let Some(flow) = self.flows.get(place.controller).filter(|_| bytes > 0) {
            flow.lock().charge(&place, bytes);
        }
    }

    /// Sends as far as the allowance goes. Called by the driver alone.
    pub(crate) fn turn_flow(&self, now: Instant, controller: usize) {
        let Some(flow) = self.flows.get(controller) else {
            return;
        };
        let mut resume = now;
        for sent in 1.. {
            if sent % DATAGRAMS_PER_LOOK == 1 {
                self.doubt_room();
            }
            if !self.has_room() {
                resume = next_look(now);
                break;
            }
            let next = flow.lock().next(now);
            let Some(id) = next else { break };
            let Some(writer) = self.writer(id) else {
                // Enrolled by a turn that its end overtook.
                flow.lock().leave(id);
                continue;
            };
            self.send_one(now, &writer, flow);
            if sent == DATAGRAMS_PER_TURN {
                // At this instant no more: deadlines that are due go on.
                resume = now.after(Duration::from_nanos(1));
                break;
            }
        }
        self.schedule_flow(resume, controller, &flow.lock());
    }

    fn send_one(&self, now: Instant, writer: &WriterEndpoint, flow: &parking_lot::Mutex<Flow>) {
        let Some(place) = writer.place() else { return };
        let (mut more, mut bytes) = (false, 0);
        let patience = Patience::none();
        let taken = transmit_marked(self, writer.code_point(), &patience, |outbox| {
            let mut state = writer.state.lock();
            more = state.machine.poll_transmit_up_to(now, ONE_DATAGRAM, outbox);
            writer.collect(&mut state.machine);
            self.note_arrival(now, writer, &state);
            // Under the lock: a later deadline must not be written over.
            let next = state.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
            bytes = sent_bytes(outbox);
            false
        });
        if !taken {
            self.note_refused(now, writer);
        }
        let mut flow = flow.lock();
        flow.charge(&place, bytes);
        if more {
            flow.enrol(&place);
        }
    }

    /// Under the flow's lock: a later word must not be written over.
    fn schedule_flow(&self, now: Instant, controller: usize, flow: &Flow) {
        self.schedule(Machine::Flow(controller), flow.next_turn(now));
    }
}

/// Bytes of all datagrams, once per destination.
fn sent_bytes(outbox: &Outbox) -> u64 {
    let datagrams = outbox.iter();
    datagrams
        .map(|d| (d.size_bytes() * d.to.len()) as u64)
        .sum()
}
