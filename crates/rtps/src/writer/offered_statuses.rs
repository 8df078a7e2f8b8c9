//! Offered statuses of a writer: deadlines it missed and liveliness it lost (DDS 1.4
//! §2.2.4.1, OFFERED_DEADLINE_MISSED and LIVELINESS_LOST).

use super::event::WriterEvent;
use crate::stats::Tally;

/// The totals of both statuses.
#[derive(Debug, Default)]
pub(super) struct OfferedStatuses {
    is_liveliness_lost: bool,
    deadlines_missed: u64,
    liveliness_lost: u64,
}

impl OfferedStatuses {
    /// Counts a missed deadline.
    pub fn miss_deadline(&mut self) -> WriterEvent {
        self.deadlines_missed.tally();
        WriterEvent::DeadlineMissed {
            total: self.deadlines_missed,
        }
    }

    /// Counts a loss of liveliness, once until it is asserted again.
    pub fn lose_liveliness(&mut self) -> Option<WriterEvent> {
        if core::mem::replace(&mut self.is_liveliness_lost, true) {
            return None;
        }
        self.liveliness_lost.tally();
        Some(WriterEvent::LivelinessLost {
            total: self.liveliness_lost,
        })
    }

    /// Notes that liveliness is asserted.
    pub fn assert_liveliness(&mut self) {
        self.is_liveliness_lost = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveliness_is_lost_once_until_it_is_asserted() {
        let mut statuses = OfferedStatuses::default();
        let total = |event| match event {
            Some(WriterEvent::LivelinessLost { total }) => total,
            _ => 0,
        };
        assert_eq!(total(statuses.lose_liveliness()), 1);
        assert_eq!(total(statuses.lose_liveliness()), 0);
        statuses.assert_liveliness();
        assert_eq!(total(statuses.lose_liveliness()), 2);
    }
}
