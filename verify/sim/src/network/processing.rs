//! Processing time: a process has one CPU, and each datagram takes some of it.
//!
//! A datagram that arrives while an earlier one is processed waits in the socket's
//! buffer, in order. So a flood delays or displaces the datagrams behind it, unless each
//! of its datagrams costs little. The time of a datagram is known when the process asks
//! for the next one: a constant for the system call, and one for each step of work that
//! the engine counts (`work-steps` of the seeded bugs; none where those are not inserted).

use std::collections::VecDeque;

use bytes::Bytes;
use pteros_rtps::locator::Locator;

use super::Network;
use super::shared_memory::InFlightContent;

/// What datagrams cost, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct ProcessingCost {
    /// Each datagram.
    pub datagram: u64,
    /// Each step of work for it.
    pub step: u64,
}

/// The processor of a socket's process.
#[derive(Debug, Default)]
pub struct Processor {
    /// The datagrams handed to the process so far take until then.
    busy_until: u64,
    /// Those that wait, the oldest first.
    waiting: VecDeque<(Bytes, Locator)>,
    /// An event is in flight that hands the next one over.
    is_scheduled: bool,
}

impl Processor {
    /// Whether the next datagram has to wait.
    fn is_busy(&self, now: u64) -> bool {
        now < self.busy_until || !self.waiting.is_empty()
    }

    /// Forgets what waits.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

impl Network {
    /// Charges the process of a socket for the steps since it last asked.
    pub fn charge_steps(&mut self, now: u64, number: usize, steps: u64) {
        let Some(cost) = self.processing_cost else {
            return;
        };
        let processor = &mut self.sockets[number].processor;
        let begin = processor.busy_until.max(now);
        processor.busy_until = begin.saturating_add(steps.saturating_mul(cost.step));
    }

    /// Whether an arrived datagram has to wait. Then it is kept.
    pub(super) fn keep_while_busy(
        &mut self,
        now: u64,
        number: usize,
        datagram: &(Bytes, Locator),
    ) -> bool {
        let processor = &mut self.sockets[number].processor;
        if self.processing_cost.is_none() || !processor.is_busy(now) {
            return false;
        }
        processor.waiting.push_back(datagram.clone());
        self.schedule_next(number);
        true
    }

    /// The next waiting datagram, if the process is done with the others.
    pub(super) fn next_waiting(&mut self, now: u64, number: usize) -> Option<(Bytes, Locator)> {
        let processor = &mut self.sockets[number].processor;
        processor.is_scheduled = false;
        let next = match processor.busy_until <= now {
            true => processor.waiting.pop_front(),
            false => None,
        };
        self.begin_processing(now, number, next.is_some());
        next
    }

    /// Charges the process for a datagram that it gets now, if it gets one.
    pub(super) fn begin_processing(&mut self, now: u64, number: usize, gets_one: bool) {
        let Some(cost) = self.processing_cost else {
            return;
        };
        if gets_one {
            self.sockets[number].processor.busy_until = now.saturating_add(cost.datagram);
        }
        self.schedule_next(number);
    }

    fn schedule_next(&mut self, number: usize) {
        let processor = &mut self.sockets[number].processor;
        if processor.waiting.is_empty() || processor.is_scheduled {
            return;
        }
        processor.is_scheduled = true;
        let at = processor.busy_until;
        self.push_in_order(at, number, InFlightContent::ProcessorFree);
    }
}
