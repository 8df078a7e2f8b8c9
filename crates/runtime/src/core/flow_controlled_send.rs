//! Flow-controlled send: the driver sends for asynchronous publishers.
//!
//! [`Core::publish`] leaves the sample with its writer and queues the writer at its flow
//! controller. The timeout of the controller wakes the driver, or the background I/O
//! thread if no thread spins.

use std::sync::Arc;

use pteros_rtps::outbox::Outbox;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::Burst;

use crate::core::Core;
use crate::core::driver::Driver;
use crate::core::matching::EndpointSpec;
use crate::core::publish_path::PublishPath;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::error::EndpointError;
use crate::lock::{MutexGuard, rank};
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::back_pressure::{BlockingBudget, next_send_retry};
use crate::send::flow_controller::{AsyncPublishMode, FlowMembership};

/// Datagrams of one run; other timeouts are handled in between.
const DATAGRAMS_PER_RUN: usize = 64;

/// How many datagrams are sent between two checks of the socket's space.
const DATAGRAMS_PER_SOCKET_CHECK: usize = 32;

/// One fragment at a time, so that other writers may send in between.
const ONE_DATAGRAM: Burst = Burst {
    datagrams: 1,
    bytes: usize::MAX,
};

impl PublishPath {
    /// Queues a writer at its flow controller. Releases the writer's state.
    pub(crate) fn enqueue_for_flow_control(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        membership: FlowMembership,
        state: MutexGuard<'_, WriterState, rank::WriterState>,
    ) {
        self.finish_linger_if_acknowledged(now, writer, &state);
        let next = state.next_timeout();
        self.scheduler
            .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
        let has_output = state.machine.has_output();
        drop(state);
        if has_output {
            self.flow_controllers.enqueue(now, &membership);
        }
    }

    /// Removes a writer that is being deleted, and logs its unsent messages.
    pub(crate) fn leave_flow_controller(&self, writer: &WriterEndpoint) {
        let Some(membership) = writer.flow_membership() else {
            return;
        };
        self.flow_controllers
            .remove(membership.controller, membership.writer);
        let unsent = writer.unsent_count();
        if unsent > 0 {
            tracing::warn!(
                "topic {}: the publisher was removed with {unsent} messages that its flow controller \
                 had not sent; call wait_for_all_acked before dropping it",
                writer.data.topic
            );
        }
    }

    /// Applies a changed TRANSPORT_PRIORITY from the writer's next send on.
    pub(crate) fn update_flow_priority(&self, writer: &WriterEndpoint) {
        let Some(membership) = writer.flow_membership() else {
            return;
        };
        self.flow_controllers
            .remove(membership.controller, membership.writer);
    }

    /// Liveliness assertions are sent at once but count against the allowance.
    pub(crate) fn count_liveliness_assertion(&self, writer: &WriterEndpoint) {
        let Some(membership) = writer.flow_membership() else {
            return;
        };
        let mut bytes = 0;
        self.send.transmit_with_dscp(
            writer.code_point(),
            &BlockingBudget::non_blocking(),
            |outbox| {
                writer
                    .state
                    .lock()
                    .machine
                    .poll_liveliness_assertions(outbox);
                bytes = sent_bytes(outbox);
                false
            },
        );
        self.flow_controllers.note_sent(&membership, bytes, false);
    }

    fn send_one(&self, now: Instant, writer: &WriterEndpoint) {
        let Some(membership) = writer.flow_membership() else {
            return;
        };
        let (mut more, mut bytes) = (false, 0);
        let budget = BlockingBudget::non_blocking();
        let taken = self
            .send
            .transmit_with_dscp(writer.code_point(), &budget, |outbox| {
                let mut state = writer.state.lock();
                more = state.machine.poll_transmit_up_to(now, ONE_DATAGRAM, outbox);
                writer.collect(&mut state.machine);
                self.finish_linger_if_acknowledged(now, writer, &state);
                // Under the lock: a later timeout must not be overwritten.
                let next = state.next_timeout();
                self.scheduler
                    .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
                bytes = sent_bytes(outbox);
                false
            });
        if !taken {
            self.note_send_refused(now, writer);
        }
        self.flow_controllers.note_sent(&membership, bytes, more);
    }
}

impl Driver {
    /// Sends as far as the allowance permits. Called only by the driver.
    pub(crate) fn run_flow_controller(&self, now: Instant, controller: usize) {
        let mut resume = now;
        for sent in 1.. {
            if sent % DATAGRAMS_PER_SOCKET_CHECK == 1 {
                self.send.recheck_socket_space();
            }
            if !self.send.has_socket_space() {
                resume = next_send_retry(now);
                break;
            }
            let Some(id) = self
                .discovery()
                .publishing
                .flow_controllers
                .next(now, controller)
            else {
                break;
            };
            let Some(writer) = self.discovery().endpoints.writer(id) else {
                // Queued by a run that overlapped its removal.
                self.discovery()
                    .publishing
                    .flow_controllers
                    .remove(controller, id);
                continue;
            };
            self.discovery().publishing.send_one(now, &writer);
            if sent == DATAGRAMS_PER_RUN {
                // No more at this instant: due timeouts take precedence.
                resume = now.after(Duration::from_nanos(1));
                break;
            }
        }
        self.discovery()
            .publishing
            .flow_controllers
            .resume_at(resume, controller);
    }
}

impl Core {
    /// Creates an asynchronous writer, whose samples a flow controller sends.
    ///
    /// Announces it and matches it with local readers.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_flow_controlled_writer(
        &self,
        spec: EndpointSpec,
        publish_mode: &AsyncPublishMode,
    ) -> Result<Arc<WriterEndpoint>, EndpointError> {
        let controllers = &self.options.flow_controllers;
        let named = controllers
            .iter()
            .position(|c| c.name() == publish_mode.controller);
        let Some(controller) = named else {
            let known = controllers.iter().map(|c| format!("\"{}\"", c.name()));
            return Err(EndpointError::NoSuchFlowController {
                name: publish_mode.controller.clone(),
                known: if controllers.is_empty() {
                    "none".into()
                } else {
                    known.collect::<Vec<_>>().join(", ")
                },
            });
        };
        self.create_writer_with_flow(spec, Some((controller, publish_mode.priority)))
    }
}

/// Bytes of all datagrams, counted per destination.
fn sent_bytes(outbox: &Outbox) -> u64 {
    let datagrams = outbox.iter();
    datagrams
        .map(|d| (d.size_bytes() * d.to.len()) as u64)
        .sum()
}
