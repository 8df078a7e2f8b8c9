//! Counters of the endpoint machines: every drop and every repair is counted
//! somewhere here. Plain numbers that only grow.

/// Counts on a number; at its end it stays.
pub(crate) trait Tally: From<bool> {
    /// So many more.
    fn tally_by(&mut self, more: Self);

    /// One more.
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

/// What a writer did and what it refused.
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
    /// Whole samples sent again.
    pub samples_resent: u64,
    /// Fragments sent again.
    pub fragments_resent: u64,
    /// Heartbeats sent.
    pub heartbeats: u64,
    /// Gaps sent.
    pub gaps: u64,
    /// Acknowledgements taken in.
    pub acknacks: u64,
    /// Requests for fragments taken in.
    pub nack_frags: u64,
    /// Acknowledgements that repeat an earlier count.
    pub duplicates: u64,
    /// Requests that came so soon after their answer that they crossed it.
    pub suppressed: u64,
    /// Submessages of readers that are not matched.
    pub unknown_readers: u64,
    /// Samples that KEEP_LAST replaced before every reliable reader had
    /// acknowledged them; most often they had arrived.
    pub overwritten: u64,
    /// Samples that KEEP_LAST replaced before they were sent; paced writers.
    pub replaced_unsent: u64,
    /// Samples whose lifespan ended.
    pub expired: u64,
    /// Writes refused for want of room.
    pub blocked: u64,
    /// Samples kept back from readers whose content filter does not want them,
    /// once per reader.
    pub filtered: u64,
}

/// What a reader did and what it dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReaderStats {
    /// Samples handed to the application.
    pub delivered: u64,
    /// Samples received again, or below what best effort has moved past.
    pub duplicates: u64,
    /// Samples that the writer no longer had, or that best effort missed.
    pub lost: u64,
    /// Samples kept for later because an earlier one was missing.
    pub reordered: u64,
    /// Samples refused for want of room; reliable ones come again.
    pub no_room: u64,
    /// Best-effort samples dropped from a full queue, oldest first.
    pub overflowed: u64,
    /// Samples whose lifespan ended before they were taken.
    pub expired: u64,
    /// Samples that its content filter did not let pass. Those that a writer
    /// kept back do not arrive and are not known here.
    pub filtered: u64,
    /// Fragments taken in.
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
    /// Acknowledgements sent, negative ones included.
    pub acknacks: u64,
    /// Requests for fragments sent.
    pub nack_frags: u64,
}
