//! Writer cache (RTPS 2.5 §8.2.9, `writer_cache` of a Writer): the changes that a writer
//! keeps, its sequence numbers, and which changes make room for others.
//!
//! KEEP_LAST replaces the oldest sample. KEEP_ALL refuses a change while a reader still
//! needs the oldest one. A change goes when no reader needs it any more, or when its
//! lifespan ends.

use alloc::vec::Vec;

use super::config::{NewChange, WriterConfig};
use super::matched_readers::MatchedReaders;
use super::retention::Retention;
use super::retransmission_credit::SAMPLE_HEAD_BYTES;
use super::timers::{TIMER_LIFESPAN, WriterTimers};
use super::transmission::Transmission;
use super::write_error::WriteError;
use crate::change::WriterChange;
use crate::history::HistoryCache;
use crate::seq::SequenceNumber;
use crate::stats::{Tally, WriterStats};
use crate::time::Instant;

/// Ends of coherent sets kept beside the samples. Beyond this the oldest is
/// dropped; the next change then ends its set.
const SET_ENDS_MAX: usize = 1_024;

/// The changes of one writer.
#[derive(Debug)]
pub(super) struct WriterCache {
    pub history: HistoryCache,
    pub retention: Retention,
    /// The last sequence number assigned.
    pub last: SequenceNumber,
    /// The mean size of the last few samples on the wire, bytes.
    pub sample_bytes_mean: usize,
}

/// What decides whether a change is still needed.
#[derive(Clone, Copy)]
pub(super) struct ChangeNeeds<'a> {
    pub config: &'a WriterConfig,
    pub matched: &'a MatchedReaders,
    pub transmission: &'a Transmission,
}

impl ChangeNeeds<'_> {
    /// Whether no matched reader needs the change any more.
    fn is_fully_acked(self, change: &WriterChange) -> bool {
        let sent_below = self.transmission.cursor.number;
        self.matched.is_fully_acked(change, sent_below)
    }

    fn is_partly_sent(self, sequence: SequenceNumber) -> bool {
        self.transmission.is_partly_sent(sequence, self.config)
    }

    /// Counts a change that is removed before it was sent, and returns whether it
    /// was unsent.
    fn note_unsent(self, sequence: SequenceNumber, stats: &mut WriterStats) -> bool {
        let is_unsent = self.transmission.is_unsent(sequence, self.config);
        stats.replaced_unsent.tally_by(u64::from(is_unsent));
        is_unsent
    }
}

impl WriterCache {
    /// No changes.
    pub fn new(config: &WriterConfig) -> Self {
        Self {
            history: HistoryCache::default(),
            retention: Retention::of(config),
            last: SequenceNumber::ZERO,
            sample_bytes_mean: 0,
        }
    }

    /// Adds a change. `expires_at` is the end of its lifespan.
    pub fn push(&mut self, change: WriterChange, bytes: usize, timers: &mut WriterTimers) {
        if change.expires_at != Instant::FAR_FUTURE {
            timers.set_no_later(TIMER_LIFESPAN, change.expires_at);
        }
        let bytes = bytes.saturating_add(SAMPLE_HEAD_BYTES);
        let old = match self.sample_bytes_mean {
            0 => bytes,
            mean => mean,
        };
        self.sample_bytes_mean = old.saturating_sub(old / 4).saturating_add(bytes / 4);
        self.history.push(change);
    }

    /// Frees space for `change`, or returns why it cannot.
    pub fn free_space(
        &mut self,
        change: &NewChange,
        needs: ChangeNeeds<'_>,
        stats: &mut WriterStats,
    ) -> Result<(), WriteError> {
        if change.is_set_end() {
            if let Some(oldest) = self.history.excess_set_end(SET_ENDS_MAX) {
                self.history.remove(oldest);
            }
            return Ok(());
        }
        let bytes_max = needs.config.limits.history_bytes_max;
        let size_bytes = change
            .payload_bytes()
            .saturating_add(WriterChange::OVERHEAD_BYTES);
        if let Some(key) = &change.key_hash {
            while let Some((oldest, samples)) =
                self.history.instance(key).filter(|(oldest, count)| {
                    *count
                        >= self
                            .retention
                            .depth
                            .saturating_add(needs.is_partly_sent(*oldest).into())
                })
            {
                self.check_blocked(oldest, (samples, self.retention.depth), needs, stats)?;
                let oldest = if needs.is_partly_sent(oldest) {
                    self.history.next_of_instance(key, oldest)
                } else {
                    Some(oldest)
                };
                let Some(oldest) = oldest else { break };
                // Superseded, so irrelevant rather than lost: earlier changes of
                // other instances are still available.
                needs.note_unsent(oldest, stats);
                self.history.remove(oldest);
            }
        }
        let samples_max = self.retention.samples_max_of(change.key_hash.is_some());
        while let Some(first) = self.history.first()
            && (self.history.samples()
                >= samples_max.saturating_add(needs.is_partly_sent(first.sequence).into())
                || self.history.bytes().saturating_add(size_bytes) > bytes_max)
        {
            let sequence = first.sequence;
            let samples = self.history.samples();
            self.check_blocked(sequence, (samples, samples_max), needs, stats)?;
            let victim = if needs.is_partly_sent(sequence) {
                self.history.from(sequence.next()).map(|next| next.sequence)
            } else {
                Some(sequence)
            };
            let Some(victim) = victim else { break };
            self.overwrite(victim, needs, stats);
        }
        Ok(())
    }

    /// KEEP_ALL back-pressure: refuses while some reliable reader still needs a
    /// change, or a flow-controlled writer has not sent it.
    pub fn check_blocked(
        &mut self,
        sequence: SequenceNumber,
        (samples, samples_max): (usize, usize),
        needs: ChangeNeeds<'_>,
        stats: &mut WriterStats,
    ) -> Result<(), WriteError> {
        let needed = self.history.find(sequence);
        let is_unsent = needs.transmission.is_unsent(sequence, needs.config);
        if !needs.config.is_keep_all()
            || (needs.matched.counts.reliable == 0 && !is_unsent)
            || needed.is_none_or(|change| needs.is_fully_acked(change))
        {
            return Ok(());
        }
        self.retention.blocked = true;
        stats.writes_refused.tally();
        Err(WriteError::WouldBlock {
            samples,
            samples_max,
            bytes: self.history.bytes(),
            bytes_max: needs.config.limits.history_bytes_max,
        })
    }

    /// Removes a change to free space.
    fn overwrite(
        &mut self,
        sequence: SequenceNumber,
        needs: ChangeNeeds<'_>,
        stats: &mut WriterStats,
    ) {
        let settled = self
            .history
            .find(sequence)
            .is_none_or(|change| needs.is_fully_acked(change));
        if !settled {
            stats.overwritten.tally();
            if !needs.note_unsent(sequence, stats) {
                self.retention.lost_through = self.retention.lost_through.max(sequence.0);
            }
        }
        self.history.remove(sequence);
    }

    /// Drops what was kept beyond the history depth while `sent` was partly sent. Its
    /// replacement may have been the last write, so no later one does it.
    pub fn drop_surplus(
        &mut self,
        sent: SequenceNumber,
        needs: ChangeNeeds<'_>,
        stats: &mut WriterStats,
    ) {
        // Nothing is left of it: it expired, or there was none.
        let sent = self.history.find(sent);
        let Some(sent) = sent.filter(|_| !needs.config.is_keep_all()) else {
            return;
        };
        let key = sent.key_hash;
        if let Some(key) = key {
            let depth = self.retention.depth;
            while let Some((oldest, count)) = self.history.instance(&key)
                && count > depth
            {
                self.history.remove(oldest);
            }
        }
        let samples_max = self.retention.samples_max_of(key.is_some());
        while self.history.samples() > samples_max
            && let Some(oldest) = self.history.first().map(|change| change.sequence)
        {
            self.overwrite(oldest, needs, stats);
        }
    }

    /// Removes changes that no reader needs any more. True if a refused write may be
    /// tried again.
    pub fn prune(&mut self, needs: ChangeNeeds<'_>) -> bool {
        if !needs.config.keeps_for_late_joiners() {
            while let Some(first) = self.history.first()
                && needs.is_fully_acked(first)
            {
                self.history.pop_first();
            }
        } else if self.history.has_unregistrations() && !self.retention.retains_disposed {
            // A late joiner does not need unregistered instances, but it needs
            // disposed ones.
            let left: Vec<_> = self
                .history
                .iter()
                .filter(|change| change.kind.is_unregistered() && needs.is_fully_acked(change))
                .map(|change| (change.sequence, change.key_hash))
                .collect();
            for (sequence, key) in left {
                match key {
                    Some(key) => self.history.remove_instance(&key, sequence),
                    None => drop(self.history.remove(sequence)),
                }
            }
        }
        let freed = match self.history.first() {
            None => true,
            Some(first) => {
                (self.history.samples() < self.retention.samples_max
                    && self.history.bytes() < needs.config.limits.history_bytes_max)
                    || needs.is_fully_acked(first)
            }
        };
        freed && core::mem::take(&mut self.retention.blocked)
    }

    /// Removes the changes whose lifespan has ended.
    pub fn expire(&mut self, now: Instant, stats: &mut WriterStats, timers: &mut WriterTimers) {
        if self.retention.lifespans_differ {
            let expired = |change: &&WriterChange| change.expires_at <= now;
            let expired = self.history.iter().filter(expired);
            let expired: Vec<_> = expired.map(|change| change.sequence).collect();
            for sequence in expired {
                self.history.remove(sequence);
                stats.expired.tally();
            }
            let next = self.history.iter().map(|change| change.expires_at).min();
            timers.set(TIMER_LIFESPAN, next.unwrap_or(Instant::FAR_FUTURE));
            return;
        }
        while let Some(first) = self.history.first() {
            if first.expires_at > now {
                timers.set(TIMER_LIFESPAN, first.expires_at);
                break;
            }
            self.history.pop_first();
            stats.expired.tally();
        }
    }

    /// Fixes the fragment size of a change, at its first transmission.
    pub fn fix_fragment_size(
        &mut self,
        sequence: SequenceNumber,
        config: &WriterConfig,
        is_same_host_only: bool,
    ) {
        let sizes = config.fragment_size;
        if let Some(change) = self.history.find_mut(sequence)
            && change.fragment_size == 0
        {
            change.fragment_size = if is_same_host_only {
                sizes.same_host
            } else {
                sizes.network
            };
        }
    }
}
