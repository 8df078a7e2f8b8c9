//! Resynchronisation of a reader with a writer whose messages contradict what was
//! received in its name. [`super::plausibility`] decides when.

use super::Reader;
use crate::id::Guid;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;

impl Reader {
    /// Requests everything that a writer has, again, and reports it as
    /// [`ReaderEvent::Resynchronised`](super::ReaderEvent::Resynchronised). For a transient-local reader.
    pub fn reread(&mut self, now: Instant, guid: Guid) {
        self.clock = now;
        let Some(proxy) = self.writers.get_mut(&guid).filter(|proxy| proxy.synced) else {
            return;
        };
        let last = proxy.announced;
        proxy.resynchronise(now, (1, last), true, &self.config.nack);
        let events_max = self.config.limits.events_max;
        self.events
            .resynchronised(guid, &mut self.stats, events_max);
        self.schedule_response(guid);
    }

    /// Whether it requests the whole history again after a resynchronisation.
    pub(crate) fn rereads_history(&self) -> bool {
        self.config.rereads_history
    }

    /// Whether everything that a writer has announced was received or is irrelevant, and a
    /// HEARTBEAT says so since the history was last requested again.
    pub fn has_everything_of(&self, guid: Guid) -> bool {
        let proxy = self.writers.get(&guid);
        proxy.is_some_and(|proxy| {
            proxy.synced
                && proxy.first_missing() > proxy.announced
                && proxy.sent_through >= proxy.announced
        })
    }

    /// Does not believe a number far ahead, and asks its writer.
    pub(super) fn refuse_jump(&mut self, guid: Guid) {
        self.stats.unconfirmed_jumps.tally();
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.request_confirmation(self.clock);
        }
        self.schedule_response(guid);
    }

    /// As [`WriterProxy::follows_late_samples`], and reports it.
    pub(super) fn follows_late_samples(&mut self, guid: Guid, sequence: SequenceNumber) -> bool {
        let now = self.clock;
        let proxy = self.writers.get_mut(&guid);
        let follows = proxy.is_some_and(|proxy| proxy.follows_late_samples(now, sequence));
        if follows {
            let events_max = self.config.limits.events_max;
            self.events
                .resynchronised(guid, &mut self.stats, events_max);
        }
        follows
    }

    /// Resets the state of a writer that has numbers from `first` to `last`.
    pub(super) fn resynchronise(&mut self, guid: Guid, range: (i64, i64)) {
        let (now, from_start) = (self.clock, self.config.rereads_history);
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.resynchronise(now, range, from_start, &self.config.nack);
        }
        let events_max = self.config.limits.events_max;
        self.events
            .resynchronised(guid, &mut self.stats, events_max);
        self.schedule_response(guid);
    }
}
