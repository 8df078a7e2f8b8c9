//! Send cursor: the position of the transmission of new changes.

/// The position of the transmission of new changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendCursor {
    /// The next number to send.
    pub number: i64,
    /// The number of destinations that got it.
    pub destinations_done: usize,
    /// The number of destinations at the start, or 0 before.
    pub destinations_total: usize,
    /// The next fragment for that destination, from 0.
    pub fragment: u32,
    /// Whether its heartbeat requests acknowledgements; decided once.
    pub requests_ack: Option<bool>,
    /// The last number of the current batch, or 0.
    pub batch: i64,
}

impl SendCursor {
    pub const fn at(number: i64) -> Self {
        Self {
            number,
            destinations_done: 0,
            destinations_total: 0,
            fragment: 0,
            requests_ack: None,
            batch: 0,
        }
    }

    /// The next destination. Each change begins with another one, so that none is
    /// always the last. Destinations added meanwhile are.
    pub fn destination_index(&self) -> usize {
        let first = usize::try_from(self.number).unwrap_or(0);
        match first.checked_rem(self.destinations_total) {
            Some(first) if self.destinations_done < self.destinations_total => {
                let at = self.destinations_done.saturating_add(first);
                at.checked_sub(self.destinations_total).unwrap_or(at)
            }
            _ => self.destinations_done,
        }
    }

    /// Whether part of the change has been sent.
    pub const fn is_partly_sent(&self) -> bool {
        self.destinations_done > 0 || self.fragment > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_begins_with_another_destination() {
        let order = |number| -> alloc::vec::Vec<usize> {
            let mut cursor = SendCursor::at(number);
            cursor.destinations_total = 3;
            let steps = 0..3;
            let next = steps.map(|done| {
                cursor.destinations_done = done;
                cursor.destination_index()
            });
            next.collect()
        };
        assert_eq!(order(3), [0, 1, 2]);
        assert_eq!(order(4), [1, 2, 0]);
        assert_eq!(order(5), [2, 0, 1]);
    }

    #[test]
    fn a_destination_added_meanwhile_comes_last() {
        let mut cursor = SendCursor::at(4);
        cursor.destinations_total = 3;
        cursor.destinations_done = 3;
        assert_eq!(cursor.destination_index(), 3);
    }
}
