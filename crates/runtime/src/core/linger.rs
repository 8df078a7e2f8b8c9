//! Linger of removed publishers with unacknowledged disposes of keyed topics.
//!
//! A removed writer exists until remote readers have acknowledged its last changes, or
//! until its flow controller has sent them, for at most [`LINGER_MAX`]. No thread waits
//! for it: it is served like any other writer, and the driver removes it. It is invisible
//! within the process.

use std::sync::Arc;

use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::core::discovery::Discovery;
use crate::core::publish_path::PublishPath;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::scheduler::timeout_queue::TimeoutOwner;

/// Longest linger of a removed writer: a dozen retransmissions at the slowest. Readers
/// that missed the disposes then see instances without writers.
const LINGER_MAX: Duration = Duration::from_secs(2);

impl PublishPath {
    /// Removes a lingering writer once its last changes are acknowledged. Call
    /// under the writer's lock.
    pub(crate) fn finish_linger_if_acknowledged(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &WriterState,
    ) {
        if state.is_lingering && writer.is_fully_acknowledged(state) {
            self.scheduler.schedule(
                TimeoutOwner::LingeringWriter(writer.guid().entity),
                Some(now),
            );
        }
    }

    /// Starts the linger of a removed writer if its last changes are unacknowledged.
    /// Returns whether it does.
    fn begin_linger(&self, now: Instant, writer: &WriterEndpoint) -> bool {
        // In a group with a common order, other members are waited for as well.
        let group = writer.group.as_ref();
        let is_alone = group.is_none_or(|group| !group.presentation().is_of_group());
        if self.scheduler.is_closed() || !is_alone || writer.remote_count() == 0 {
            return false;
        }
        let mut state = writer.state.lock();
        state.is_lingering = !writer.is_fully_acknowledged(&state);
        if state.is_lingering {
            let latest = now.after(LINGER_MAX);
            self.scheduler.schedule(
                TimeoutOwner::LingeringWriter(writer.guid().entity),
                Some(latest),
            );
            state.machine.request_acks_by(now);
            let next = state.next_timeout();
            self.scheduler
                .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
        }
        state.is_lingering
    }
}

impl Discovery {
    pub(crate) fn finish_removal(&self, now: Instant, writer: &WriterEndpoint) {
        let guid = writer.guid();
        let order = self.endpoints.begin_match();
        self.endpoints.write().writers.remove(&guid.entity);
        self.publishing.leave_flow_controller(writer);
        self.publishing.intra_process.end_matches_of(now, writer);
        self.scheduler.remove(TimeoutOwner::Writer(guid.entity));
        self.scheduler
            .remove(TimeoutOwner::LingeringWriter(guid.entity));
        self.transports.withdraw_endpoint(now, guid);
        drop(order);
        self.serve_participant(now);
        // Its last changes were delivered.
        self.security.forget_endpoint(guid);
        self.scheduler.wake_waiters();
        writer.close_store();
    }

    /// Removes a lingering writer.
    pub(crate) fn end_linger(&self, now: Instant, writer: &Arc<WriterEndpoint>) {
        if writer.is_lingering() {
            self.finish_removal(now, writer);
        }
    }
}

impl Core {
    /// Removes a writer and informs peers and local readers.
    ///
    /// Closes its store, which blocks for disk I/O. A writer that has just disposed of
    /// its instances lingers until remote readers acknowledge, at most two seconds.
    /// Closing the context ends that.
    pub fn remove_writer(&self, writer: &WriterEndpoint) {
        let disposed = self.dispose_all(writer);
        self.flush(writer);
        let now = self.platform.now();
        if let Some(group) = &writer.group {
            group.remove(writer);
        }
        if !disposed || !self.discovery().publishing.begin_linger(now, writer) {
            return self.discovery().finish_removal(now, writer);
        }
        let order = self.discovery().endpoints.begin_match();
        self.discovery()
            .publishing
            .intra_process
            .end_matches_of(now, writer);
        drop(order);
        self.scheduler.wake_waiters();
    }
}

impl WriterEndpoint {
    /// Whether its user has removed it.
    pub(crate) fn is_lingering(&self) -> bool {
        self.state.lock().is_lingering
    }
}
