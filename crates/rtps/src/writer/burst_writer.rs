//! Output of one burst: the outbox, what remains of the burst, and the counters.

use super::config::{Burst, WriterConfig};
use super::proxy::Destination;
use crate::id::EntityId;
use crate::interval::NumberRun;
use crate::outbox::{MessageBuilder, Outbox};
use crate::seq::SequenceNumber;
use crate::stats::{Tally, WriterStats};
use crate::wire::{Gap, Heartbeat};

/// The remaining datagrams and bytes of a burst.
pub(super) struct BurstBudget {
    pub datagrams: usize,
    pub bytes: usize,
    /// A further limit on the bytes of one request, and what it used.
    limit: usize,
    used: usize,
}

impl BurstBudget {
    pub fn new(burst: Burst) -> Self {
        Self {
            datagrams: burst.datagrams.max(1),
            bytes: burst.bytes.max(1),
            limit: usize::MAX,
            used: 0,
        }
    }

    /// Begins a request that may take at most this many bytes, exceeded by less
    /// than a datagram.
    pub fn begin_limit(&mut self, bytes: usize) {
        self.limit = bytes;
        self.used = 0;
    }

    /// Ends it. Returns the bytes it used.
    pub fn end_limit(&mut self) -> usize {
        self.limit = usize::MAX;
        core::mem::take(&mut self.used)
    }

    /// Reserves all but `bytes` for later. Returns the reserved amount.
    pub fn reserve_beyond(&mut self, bytes: usize) -> usize {
        let reserved = self.bytes.saturating_sub(bytes.max(1));
        self.bytes = self.bytes.saturating_sub(reserved);
        reserved
    }

    pub fn is_exhausted(&self, out: &Outbox) -> bool {
        self.datagrams == 0 || self.bytes == 0 || self.used >= self.limit || out.is_full()
    }

    /// Finishes a datagram. A payload that shared memory does not copy is free.
    pub fn finish(&mut self, message: MessageBuilder<'_>, stats: &mut WriterStats) {
        let bytes = message.copied_bytes();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.used = self.used.saturating_add(bytes);
        if message.finish() {
            self.datagrams = self.datagrams.saturating_sub(1);
            stats.datagrams.tally();
        }
    }
}

/// Where a writer's submessages go.
pub(super) struct BurstWriter<'a> {
    pub config: &'a WriterConfig,
    pub out: &'a mut Outbox,
    pub budget: &'a mut BurstBudget,
    pub stats: &'a mut WriterStats,
}

impl BurstWriter<'_> {
    /// Whether the burst is over.
    pub fn is_exhausted(&self) -> bool {
        self.budget.is_exhausted(self.out)
    }

    /// Sends a heartbeat, behind a GAP. False when the burst is over.
    pub fn send_heartbeat(
        &mut self,
        destination: &Destination,
        gap: Option<NumberRun>,
        heartbeat: &Heartbeat,
    ) -> bool {
        if self.is_exhausted() {
            return false;
        }
        let mut message = begin(self.config, self.out, destination);
        if let Some(run) = gap {
            message.gap(&Gap::range(
                heartbeat.reader,
                heartbeat.writer,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            self.stats.gaps.tally();
        }
        message.heartbeat(heartbeat);
        self.budget.finish(message, self.stats);
        self.stats.heartbeats.tally();
        true
    }

    /// Declares numbers irrelevant to one reader. False when the burst is over.
    pub fn send_gap(
        &mut self,
        destination: Option<&Destination>,
        reader: EntityId,
        gap: Option<NumberRun>,
    ) -> bool {
        let Some(run) = gap else { return true };
        if self.is_exhausted() {
            return false;
        }
        if let Some(destination) = destination {
            let (first, last) = (SequenceNumber(run.first), SequenceNumber(run.last));
            let gap = Gap::range(reader, self.config.guid.entity, first, last);
            self.write_gap(destination, &gap);
        }
        true
    }

    /// Sends a GAP.
    pub fn write_gap(&mut self, destination: &Destination, gap: &Gap) {
        let mut message = begin(self.config, self.out, destination);
        message.gap(gap);
        self.budget.finish(message, self.stats);
        self.stats.gaps.tally();
    }
}

fn begin<'a>(
    config: &WriterConfig,
    out: &'a mut Outbox,
    destination: &Destination,
) -> MessageBuilder<'a> {
    let locators = &destination.route.locators;
    let mut message = out.begin(config.guid.prefix, locators, config.datagram_bytes_max);
    message.info_destination(destination.prefix);
    message
}
