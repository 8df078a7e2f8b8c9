//! Output of one burst: the outbox, what remains of the burst, and the counters.

use super::config::WriterConfig;
use super::data_encoder::BurstBudget;
use super::proxy::Destination;
use crate::id::EntityId;
use crate::interval::NumberRun;
use crate::outbox::{MessageBuilder, Outbox};
use crate::seq::SequenceNumber;
use crate::stats::{Tally, WriterStats};
use crate::wire::{Gap, Heartbeat};

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
