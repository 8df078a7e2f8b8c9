//! Publishers of keyed topics that are gone for their user, while readers of
//! other processes have not got their last word: that their instances are gone,
//! too.
//!
//! Such a writer stays for those readers until they have acknowledged it, or its
//! flow controller has sent it, but no longer than [`LINGER_MAX`]. Nobody waits
//! for it: it is served as any other, and goes in a turn of the driver. Nothing
//! within the process sees it any more.

use std::sync::Arc;

use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::deadline::Machine;
use crate::writer::{WriterEndpoint, WriterState};

/// How long a writer stays at most: a dozen repairs at the slowest. Then those
/// who did not hear that its instances are gone find them without writers.
const LINGER_MAX: Duration = Duration::from_secs(2);

impl Core {
    /// Removes a writer: peers and local readers are told. Its store is closed,
    /// which waits for the disk. One that has just disposed of its instances
    /// stays for peers until they know, two seconds at most; closing the
    /// context ends that.
    pub fn remove_writer(&self, writer: &WriterEndpoint) {
        let told = self.dispose_all(writer);
        self.flush(writer);
        let now = self.env.now();
        if let Some(group) = &writer.group {
            group.remove(writer);
        }
        if !told || !self.linger(now, writer) {
            return self.finish_removal(now, writer);
        }
        let order = self.match_order.lock();
        self.unmatch_local_writer(now, writer);
        drop(order);
        self.note_progress();
    }

    /// Lets a writer stay if its last word has not arrived; whether it does.
    fn linger(&self, now: Instant, writer: &WriterEndpoint) -> bool {
        // Others of a group are waited for where its order is kept.
        let group = writer.group.as_ref();
        let is_alone = group.is_none_or(|group| !group.presentation().is_of_group());
        if self.is_closed() || !is_alone || writer.remote_count() == 0 {
            return false;
        }
        let mut state = writer.state.lock();
        state.lingers = !writer.has_arrived(&state);
        if state.lingers {
            let latest = now.after(LINGER_MAX);
            self.schedule(Machine::Departure(writer.guid().entity), Some(latest));
            state.machine.hurry(now);
            let next = state.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
        }
        state.lingers
    }

    /// Under the writer's lock: ends its stay when its last word has arrived.
    pub(crate) fn note_arrival(&self, now: Instant, writer: &WriterEndpoint, state: &WriterState) {
        if state.lingers && writer.has_arrived(state) {
            self.schedule(Machine::Departure(writer.guid().entity), Some(now));
        }
    }

    /// A writer that stayed goes.
    pub(crate) fn depart(&self, now: Instant, writer: &Arc<WriterEndpoint>) {
        if writer.lingers() {
            self.finish_removal(now, writer);
        }
    }

    fn finish_removal(&self, now: Instant, writer: &WriterEndpoint) {
        let guid = writer.guid();
        let order = self.match_order.lock();
        self.table.write().writers.remove(&guid.entity);
        self.leave_flow(writer);
        self.unmatch_local_writer(now, writer);
        self.deadlines.forget(Machine::Writer(guid.entity));
        self.deadlines.forget(Machine::Departure(guid.entity));
        self.participant.lock().remove_endpoint(now, guid);
        drop(order);
        self.serve_participant(now);
        // It has had its last word.
        self.forget_endpoint(guid);
        self.note_progress();
        writer.close_store();
    }
}

impl WriterEndpoint {
    /// Whether it is gone for its user.
    pub(crate) fn lingers(&self) -> bool {
        self.state.lock().lingers
    }
}
