//! Counters of readers and writers. Every drop and every retransmission is counted;
//! counters only grow.

/// Saturating addition for counters.
pub(crate) trait Tally: From<bool> {
    /// Adds `more`.
    fn tally_by(&mut self, more: Self);

    /// Adds one.
    fn tally(&mut self) {
        self.tally_by(true.into());
    }
}

impl Tally for u64 {
    fn tally_by(&mut self, more: Self) {
        *self = self.saturating_add(more);
    }
}

impl Tally for usize {
    fn tally_by(&mut self, more: Self) {
        *self = self.saturating_add(more);
    }
}

/// Counters of a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriterStats {
    /// Changes written.
    pub written: u64,
    /// Datagrams put into the outbox.
    pub datagrams: u64,
    /// Samples sent for the first time, once per destination.
    pub samples_sent: u64,
    /// Fragments sent for the first time, once per destination.
    pub fragments_sent: u64,
    /// Whole samples retransmitted.
    pub samples_retransmitted: u64,
    /// Fragments sent again on request of a reader.
    pub fragments_retransmitted: u64,
    /// Heartbeats sent.
    pub heartbeats: u64,
    /// Gaps sent.
    pub gaps: u64,
    /// ACKNACKs received.
    pub acknacks: u64,
    /// NACK_FRAGs received.
    pub nack_frags: u64,
    /// ACKNACKs and NACK_FRAGs that repeat an earlier count.
    pub duplicates: u64,
    /// ACKNACKs that acknowledge what was not sent, or whose count jumps, and that
    /// were not confirmed yet. Most often forged.
    pub unconfirmed_acks: u64,
    /// Requests delayed by NACK suppression, since they crossed the retransmission.
    pub requests_suppressed: u64,
    /// Requests delayed because the destination was sent three times what it proved
    /// to receive.
    pub requests_limited: u64,
    /// Submessages of readers that are not matched.
    pub unknown_readers: u64,
    /// Samples that KEEP_LAST replaced before every reliable reader had
    /// acknowledged them; most often they had arrived.
    pub overwritten: u64,
    /// Samples that KEEP_LAST replaced before they were sent, with flow control.
    pub replaced_unsent: u64,
    /// Samples whose lifespan ended.
    pub expired: u64,
    /// Writes refused because the history was full.
    pub writes_refused: u64,
    /// Samples rejected by content filters of readers, once per reader.
    pub filtered: u64,
}

/// Counters of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReaderStats {
    /// Samples delivered to the application.
    pub delivered: u64,
    /// Samples received again, or below what best effort has moved past.
    pub duplicates: u64,
    /// Samples that the writer no longer had, or that best effort missed.
    pub lost: u64,
    /// Samples kept in the reorder buffer because an earlier one was missing.
    pub reordered: u64,
    /// Samples refused because a buffer was full; reliable ones are retransmitted.
    pub buffer_full: u64,
    /// Fragments refused because the memory of their participant was used up;
    /// reliable ones are retransmitted.
    pub memory_refused: u64,
    /// Whole samples rejected for the same reason; best-effort ones are lost.
    pub samples_rejected: u64,
    /// Best-effort samples dropped from a full queue, oldest first.
    pub overflowed: u64,
    /// Samples whose lifespan ended before they were taken.
    pub expired: u64,
    /// Samples rejected by its content filter. Samples rejected on the writer side
    /// do not arrive and are not counted here.
    pub filtered: u64,
    /// Fragments stored.
    pub fragments: u64,
    /// Fragments received again.
    pub duplicate_fragments: u64,
    /// Fragments that contradict their sample.
    pub invalid_fragments: u64,
    /// Samples larger than the limit.
    pub too_large: u64,
    /// Submessages of writers that are not matched.
    pub unknown_writers: u64,
    /// Heartbeats that repeat an earlier count.
    pub duplicate_heartbeats: u64,
    /// Claims of a writer far beyond its known numbers that were not confirmed yet,
    /// and so not believed. Most often forged.
    pub unconfirmed_jumps: u64,
    /// Writers whose state was reset, because their messages contradict what was
    /// received in their name before.
    pub resynchronised: u64,
    /// ACKNACKs sent, positive and negative.
    pub acknacks: u64,
    /// NACK_FRAGs sent.
    pub nack_frags: u64,
}
