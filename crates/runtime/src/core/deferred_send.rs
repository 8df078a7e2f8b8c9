//! Deferred remote send: pending callbacks run before a message leaves the process.
//!
//! A callback may publish while other callbacks of its executor are pending, among them
//! that of its own local reader. The remote send follows those callbacks, because
//! serialization and waking another process take longer than they do.
//!
//! The delay is measured. After a long one, the writer's next messages are sent at once,
//! and more of them after each further long delay. Operations that may take long first
//! send deferred messages: a wait, a nested spin, the end of a spin, a writer's second
//! message. While a callback does not return, the background I/O thread sends.
//! Order is kept: the writer's next message, match or removal first writes the deferred
//! message.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::NewChange;

use crate::core::driver::Driver;
use crate::core::publish_path::PublishPath;
use crate::endpoints::reader::DeliveryForm;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::outbound::OutboundMessage;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::send::back_pressure::BlockingBudget;
use crate::send::deferred::DeferredMessage;
use crate::shm_transport::CHUNK_MIN_BYTES;

thread_local! {
    /// The queue that this thread spins, the innermost one.
    static SPINNING_QUEUE: RefCell<Option<SpinningQueue>> = const { RefCell::new(None) };
}

struct SpinningQueue {
    /// The address of its context's driver.
    driver: usize,
    queue: Arc<ReadyQueue>,
}

/// Marks the thread as spinning a queue of callbacks until it is dropped.
pub struct SpinScope<'c> {
    driver: &'c Driver,
    outer: Option<SpinningQueue>,
    /// It belongs to this thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for SpinScope<'_> {
    fn drop(&mut self) {
        SPINNING_QUEUE.set(self.outer.take());
        self.driver.send_deferred();
    }
}

impl PublishPath {
    /// Writes the deferred message, so that order is kept. Call under the writer's
    /// lock, before it writes or is matched.
    pub(crate) fn write_deferred(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
    ) {
        let Some(held) = state.deferred.take(now) else {
            return;
        };
        writer.note_serialized();
        let representation = writer.representation();
        let shm = self.send.shm();
        let shm = shm.filter(|_| writer.connected_count() > 0 && held.bytes > CHUNK_MIN_BYTES);
        let memory = shm.and_then(|shm| shm.chunk(held.bytes).ok());
        let in_chunk = memory.and_then(|mut memory| {
            let filled = held.value.payload_into(representation, &mut memory);
            filled.then(|| memory.freeze())
        });
        let payload = in_chunk.unwrap_or_else(|| held.value.payload(representation));
        let written = state.machine.write(
            now,
            NewChange {
                payload,
                source_timestamp: held.source,
                ..NewChange::default()
            },
        );
        debug_assert!(written.is_ok(), "its size was checked: {written:?}");
    }
}

impl Driver {
    /// Declares that this thread runs the callbacks of `queue` from now on.
    ///
    /// It calls [`Driver::end_round`] after each round of them.
    pub fn begin_spin(&self, queue: &Arc<ReadyQueue>) -> SpinScope<'_> {
        self.send_deferred();
        let spinning = SpinningQueue {
            driver: std::ptr::from_ref(self).addr(),
            queue: queue.clone(),
        };
        SpinScope {
            driver: self,
            outer: SPINNING_QUEUE.replace(Some(spinning)),
            _not_send: PhantomData,
        }
    }

    /// Sends deferred messages, except those of this round if callbacks are ready.
    ///
    /// Returns true if the ready callbacks must run at once.
    pub fn end_round(&self, queue: &ReadyQueue) -> bool {
        let Some(was_aged) = self.deferred.end_round() else {
            return false;
        };
        if was_aged || queue.is_empty() {
            self.send_deferred();
            return false;
        }
        true
    }

    /// Sends the deferred messages. Call without locks, on a thread that may block.
    pub(crate) fn send_deferred(&self) {
        self.send_all_deferred(true);
    }

    /// The same for any thread; it blocks for a full socket only if `may_wait`.
    pub(crate) fn send_all_deferred(&self, may_wait: bool) {
        while let Some(id) = self.deferred.pop() {
            if let Some(writer) = self.discovery().endpoints.writer(id) {
                let now = self.platform.now();
                let mut state = writer.state.lock();
                self.discovery()
                    .publishing
                    .write_deferred(now, &writer, &mut state);
                let budget = if may_wait {
                    writer.blocking_budget()
                } else {
                    BlockingBudget::non_blocking()
                };
                self.discovery()
                    .publishing
                    .send_new_within(&writer, state, now, budget);
            }
        }
    }

    /// Defers the remote send if a callback waits in this thread's executor and no
    /// other thread drives. Call after local delivery.
    pub(crate) fn defer_send(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        message: &mut dyn OutboundMessage,
        source: Option<Timestamp>,
        bytes: usize,
    ) -> bool {
        if state.local.is_empty() || !writer.may_defer_send {
            return false;
        }
        let value_form = DeliveryForm::Type(message.message_type());
        let is_value = state
            .local
            .iter()
            .any(|route| route.reader.delivery_form == value_form);
        let has_waiting_callback = || {
            // Without its thread-local values, a thread does not spin a queue.
            let is_waiting = SPINNING_QUEUE.try_with(|spinning| {
                let spinning = spinning.borrow();
                spinning.as_ref().is_some_and(|spinning| {
                    spinning.driver == std::ptr::from_ref(self).addr() && !spinning.queue.is_empty()
                })
            });
            is_waiting.unwrap_or(false)
        };
        let fits = is_value
            && writer.flow_membership.is_none()
            && !state.machine.readers().is_empty()
            && state.transports.is_empty()
            && has_waiting_callback()
            && !self.role.is_locked()
            && state.deferred.is_open();
        if !fits {
            return false;
        }
        let Some(value) = message.shared() else {
            return false;
        };
        if !self.deferred.push(writer.guid().entity) {
            return false;
        }
        state.deferred.keep(DeferredMessage {
            value,
            source,
            bytes,
            since: now,
        });
        true
    }
}
