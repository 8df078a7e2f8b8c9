//! Early data: arrivals of endpoints whose token has not arrived, or whose session waits
//! for RTPS.

use std::collections::VecDeque;

use pteros_rtps::time::{Duration, Instant};

use crate::inbox::Arrival;

/// Early arrivals. When full, the oldest is dropped and counted.
pub const EARLY_MAX: usize = 256;
/// Bytes of early data. The newest is kept whatever its size.
const EARLY_BYTES_MAX: usize = 64 << 20;
/// Wait of early data for the token.
const EARLY_WAIT: Duration = Duration::from_millis(2_500);

/// Early arrivals, the oldest first, each with the end of its wait.
#[derive(Default)]
pub struct EarlyData {
    pub(super) queue: VecDeque<(Instant, Arrival)>,
    pub(super) bytes: usize,
}

impl EarlyData {
    /// Adds an arrival. Returns whether the data exceeds a limit, until
    /// [`Self::drop_above_limits`].
    pub fn push(&mut self, now: Instant, arrival: Arrival) -> bool {
        self.bytes = self.bytes.saturating_add(arrival.bytes());
        self.queue.push_back((now.after(EARLY_WAIT), arrival));
        self.queue.len() > EARLY_MAX || self.bytes > EARLY_BYTES_MAX
    }

    /// Drops the oldest arrivals above the limits. Returns how many.
    pub fn drop_above_limits(&mut self) -> u64 {
        self.drop_while(|early| {
            let len = early.queue.len();
            len > EARLY_MAX || (early.bytes > EARLY_BYTES_MAX && len > 1)
        })
    }

    /// Drops the arrivals whose wait has ended. Returns how many.
    pub fn drop_expired(&mut self, now: Instant) -> u64 {
        self.drop_while(|early| early.next_expiry().is_some_and(|until| until <= now))
    }

    fn drop_while(&mut self, is_due: impl Fn(&Self) -> bool) -> u64 {
        let mut count = 0;
        while is_due(self)
            && let Some((_, arrival)) = self.queue.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(arrival.bytes());
            count += 1;
        }
        count
    }

    /// When the wait of the oldest arrival ends.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.queue.front().map(|(until, _)| *until)
    }

    /// Removes some arrivals, in their order.
    pub fn take(&mut self, is_taken: impl Fn(&Arrival) -> bool) -> Vec<Arrival> {
        let mut taken = Vec::new();
        for (until, arrival) in std::mem::take(&mut self.queue) {
            if is_taken(&arrival) {
                self.bytes = self.bytes.saturating_sub(arrival.bytes());
                taken.push(arrival);
            } else {
                self.queue.push_back((until, arrival));
            }
        }
        taken
    }
}
