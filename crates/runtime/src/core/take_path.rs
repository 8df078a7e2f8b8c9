//! The take path: from a reader's protocol machine to the user, with the
//! acknowledgements that follow.
//!
//! It never waits and never changes a match.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::time::Instant;

use crate::core::shared_parts::SharedParts;
use crate::endpoints::reader::ReaderEndpoint;
use crate::platform::Platform;
use crate::sample::{PoppedSample, QueuedSample};
use crate::scheduler::Scheduler;
use crate::send::SendPath;
use crate::trace::current_context::SpanGuard;

/// See the module documentation. Thread-safe.
pub struct TakePath {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) send: Arc<SendPath>,
}

impl TakePath {
    pub(crate) fn new(parts: &SharedParts) -> Self {
        Self {
            platform: parts.platform.clone(),
            scheduler: parts.scheduler.clone(),
            send: parts.send.clone(),
        }
    }

    /// Takes a reader's oldest sample. Never blocks on I/O.
    ///
    /// If that makes space, held-back samples are requested from writers, or the writers
    /// are woken.
    pub fn take(&self, reader: &ReaderEndpoint) -> Option<QueuedSample> {
        let item = self.take_untraced(reader);
        if let (Some(tracer), Some(item)) = (&reader.tracer, &item) {
            tracer.note_taken(reader.data.guid.entity, &item.meta, item.weight());
        }
        item
    }

    /// As [`TakePath::take`], for a caller that passes the sample on. The trace records it
    /// when the final receiver notes it.
    pub(crate) fn take_untraced(&self, reader: &ReaderEndpoint) -> Option<QueuedSample> {
        if reader.group.is_none() {
            let popped = reader.pop(|| self.platform.now());
            return self.note_popped(reader, popped);
        }
        // A filter may reject samples of a group when they are taken.
        while let Some(popped) = reader.pop_of_group(|| self.platform.now()) {
            let item = self.note_popped(reader, popped);
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// Handles the outcome of taking a sample.
    pub(crate) fn note_popped(
        &self,
        reader: &ReaderEndpoint,
        mut popped: PoppedSample,
    ) -> Option<QueuedSample> {
        if let Some(item) = &mut popped.item {
            // The application owns it now.
            item.charge = SampleCharge::default();
        }
        if popped.resume {
            self.serve_reader(self.platform.now(), reader);
            let of_group = reader.group.as_ref().map(|m| m.group.take_resumed());
            for reader in of_group.into_iter().flatten() {
                self.serve_reader(self.platform.now(), &reader);
            }
        }
        // Held-back samples enter first, then later ones.
        if popped.freed_space || popped.resume {
            self.scheduler.wake_waiters();
        }
        popped.item
    }

    /// Advances a reader's samples and events, and sends its acknowledgements.
    pub(crate) fn serve_reader(&self, now: Instant, reader: &ReaderEndpoint) {
        self.serve_reader_ordered(now, reader, false);
    }

    /// As [`TakePath::serve_reader`], after a message. User code takes precedence. The next
    /// poll sends a mere acknowledgement, because the system call costs time and wakes
    /// the writer.
    pub(crate) fn serve_reader_after_message(&self, now: Instant, reader: &ReaderEndpoint) {
        self.serve_reader_ordered(now, reader, true);
    }

    fn serve_reader_ordered(&self, now: Instant, reader: &ReaderEndpoint, user_first: bool) {
        self.send.transmit(|outbox| {
            let mut machine = reader.machine.lock();
            let before = reader.received.load(Ordering::Relaxed);
            reader.collect(now, &mut machine, self.platform.wall_clock());
            let has_new_samples = user_first && reader.received.load(Ordering::Relaxed) > before;
            let may_delay = has_new_samples && machine.has_only_positive_acks();
            let more = !may_delay && machine.poll_transmit(now, outbox);
            reader.schedule(&self.scheduler, &machine);
            reader.transport_holds.release_if(|| machine.has_space());
            more
        });
        if let Some(listener) = &reader.listener {
            let _apart = reader.tracer.as_ref().map(|_| SpanGuard::detached());
            let listen = |item: QueuedSample| listener(&item);
            while self.take_decoded(reader, listen).is_some() {}
        }
    }
}
