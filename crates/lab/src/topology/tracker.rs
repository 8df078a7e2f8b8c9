//! What a receiver makes of the messages that come: late, too late, lost, as
//! `ros2-performance` defines them; and, beyond it, twice or in wrong order.
//!
//! Late is a latency above a fifth of the period or 5 ms, too late one above the
//! period or 50 ms, whichever is less. What is too late counts as received but not
//! in mean, deviation and extremes. A gap in a publisher's numbers is as many lost.

use std::collections::BTreeMap;

const LATE: (u64, u64) = (20, 5_000);
const TOO_LATE: (u64, u64) = (100, 50_000);
/// Latencies that a tracker keeps one by one; later ones are only summed up.
const SAMPLES_MAX: usize = 200_000;
/// Publishers of one topic that are told apart; gaps of further ones are not seen.
const PUBLISHERS_MAX: usize = 1_024;

/// One entity's messages so far. Times in nanoseconds, latencies in microseconds.
#[derive(Clone, Debug)]
pub struct Tracker {
    /// The node's name.
    pub node: String,
    /// The topic's or service's name.
    pub entity: String,
    /// Payload of the messages, bytes, as the first one says.
    pub bytes: u64,
    /// How often they come, Hz, as the first one says.
    pub frequency: f64,
    /// Messages received (publishers: published), those too late included.
    pub received: u64,
    /// Late ones.
    pub late: u64,
    /// Too late ones.
    pub too_late: u64,
    /// Numbers that were skipped and did not come later.
    pub lost: u64,
    /// Numbers that came twice.
    pub duplicates: u64,
    /// Messages that came after a later one.
    pub reordered: u64,
    /// Messages with a latency that counts.
    pub counted: u64,
    mean: f64,
    squares: f64,
    min: u64,
    max: u64,
    first_ns: i64,
    last_ns: i64,
    of: BTreeMap<u128, Numbers>,
    samples: Vec<(u64, u64)>,
}

/// The numbers of one publisher.
#[derive(Clone, Debug, Default)]
struct Numbers {
    next: u64,
    /// The last ones that were skipped.
    missing: Vec<u64>,
}

/// Skipped numbers that are remembered, to tell who comes late from who comes twice.
const MISSING_MAX: usize = 256;

/// What one message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Messages that the sender numbered and that this one shows to be missing.
    pub lost: u64,
    /// Above the first threshold, given here in microseconds.
    pub late_over_us: Option<u64>,
    /// Above the second one.
    pub too_late_over_us: Option<u64>,
}

impl Tracker {
    /// Nothing has come yet.
    pub fn new(node: &str, entity: &str) -> Self {
        Self {
            node: node.into(),
            entity: entity.into(),
            bytes: 0,
            frequency: 0.0,
            received: 0,
            late: 0,
            too_late: 0,
            lost: 0,
            duplicates: 0,
            reordered: 0,
            counted: 0,
            mean: 0.0,
            squares: 0.0,
            min: 0,
            max: 0,
            first_ns: 0,
            last_ns: 0,
            of: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// Message `number` (from 0) of `publisher` is there `latency_us` after it was sent.
    pub fn scan(
        &mut self,
        publisher: u128,
        number: u64,
        now_ns: i64,
        latency_us: u64,
        (bytes, frequency): (u64, f64),
    ) -> Judged {
        let lost = self.count(publisher, number);
        let mut judged = Judged {
            lost,
            late_over_us: None,
            too_late_over_us: None,
        };
        if frequency > 0.0 {
            let period_us = (1e6 / frequency) as u64;
            let over = |(percent, most): (u64, u64)| most.min(period_us * percent / 100);
            if latency_us > over(TOO_LATE) {
                judged.too_late_over_us = Some(over(TOO_LATE));
                self.too_late += 1;
            } else if latency_us > over(LATE) {
                judged.late_over_us = Some(over(LATE));
                self.late += 1;
            }
        }
        self.received += 1;
        if judged.too_late_over_us.is_none() {
            self.add(now_ns, latency_us, (bytes, frequency));
        }
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push((number, latency_us));
        }
        judged
    }

    /// A message was published, which took `took_us`.
    pub fn published(&mut self, now_ns: i64, took_us: u64, of: (u64, f64)) {
        self.received += 1;
        self.add(now_ns, took_us, of);
    }

    fn count(&mut self, publisher: u128, number: u64) -> u64 {
        if self.of.len() >= PUBLISHERS_MAX && !self.of.contains_key(&publisher) {
            return 0;
        }
        let numbers = self.of.entry(publisher).or_default();
        if number >= numbers.next {
            let gap = number - numbers.next;
            let first = number - gap.min(MISSING_MAX as u64);
            numbers.missing.extend(first..number);
            let excess = numbers.missing.len().saturating_sub(MISSING_MAX);
            numbers.missing.drain(..excess);
            numbers.next = number + 1;
            self.lost += gap;
            return gap;
        }
        match numbers
            .missing
            .iter()
            .position(|missing| *missing == number)
        {
            Some(at) => {
                numbers.missing.remove(at);
                self.lost -= 1;
                self.reordered += 1;
            }
            None => self.duplicates += 1,
        }
        0
    }

    /// Welford's recurrence, in doubles: no sum grows with the square of a latency.
    fn add(&mut self, now_ns: i64, us: u64, (bytes, frequency): (u64, f64)) {
        if self.counted == 0 {
            (self.bytes, self.frequency) = (bytes, frequency);
            (self.min, self.max, self.first_ns) = (us, us, now_ns);
        }
        self.counted += 1;
        self.last_ns = now_ns;
        (self.min, self.max) = (self.min.min(us), self.max.max(us));
        let from_mean = us as f64 - self.mean;
        self.mean += from_mean / self.counted as f64;
        self.squares += from_mean * (us as f64 - self.mean);
    }

    /// Mean latency in microseconds; NaN of nothing, as the framework prints it.
    pub fn mean_us(&self) -> f64 {
        self.of_something(self.mean)
    }

    /// Standard deviation (of the whole population) in microseconds.
    pub fn sd_us(&self) -> f64 {
        self.of_something((self.squares / self.counted.max(1) as f64).sqrt())
    }

    /// The least latency in microseconds.
    pub fn min_us(&self) -> f64 {
        self.of_something(self.min as f64)
    }

    /// The greatest latency in microseconds.
    pub fn max_us(&self) -> f64 {
        self.of_something(self.max as f64)
    }

    fn of_something(&self, value: f64) -> f64 {
        match self.counted {
            0 => f64::NAN,
            _ => value,
        }
    }

    /// Payload bytes per second between the first and the last message.
    pub fn bytes_per_second(&self) -> f64 {
        let count = self.counted.max(self.received);
        let seconds = (self.last_ns - self.first_ns) as f64 / 1e9;
        if count < 2 || seconds <= 0.0 {
            return 0.0;
        }
        (count - 1) as f64 / seconds * self.bytes as f64
    }

    /// Numbers and latencies in microseconds of the first messages, too late ones
    /// included; at most 200 000.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: (u64, f64) = (10, 100.0);

    #[test]
    fn messages_are_judged_against_their_period_and_the_absolute_limits() {
        let mut tracker = Tracker::new("n", "t");
        // 10 ms: late above 2 ms, too late above 10 ms.
        assert_eq!(tracker.scan(1, 0, 0, 2_000, OF).late_over_us, None);
        assert_eq!(tracker.scan(1, 1, 1, 2_001, OF).late_over_us, Some(2_000));
        let judged = tracker.scan(1, 2, 2, 10_001, OF);
        assert_eq!(
            (judged.late_over_us, judged.too_late_over_us),
            (None, Some(10_000))
        );
        // 1 s: 5 ms and 50 ms.
        let slow = (10, 1.0);
        assert_eq!(tracker.scan(1, 3, 3, 5_001, slow).late_over_us, Some(5_000));
        assert_eq!(
            tracker.scan(1, 4, 4, 50_001, slow).too_late_over_us,
            Some(50_000)
        );
        assert_eq!(
            (tracker.received, tracker.late, tracker.too_late),
            (5, 2, 2)
        );
        assert_eq!((tracker.counted, tracker.max_us()), (3, 5_001.0));
    }

    #[test]
    fn gaps_are_lost_until_they_come_and_each_publisher_has_its_own() {
        let mut tracker = Tracker::new("n", "t");
        let mut scan = |publisher, number| tracker.scan(publisher, number, 0, 1, OF).lost;
        assert_eq!(scan(1, 0), 0);
        assert_eq!(scan(1, 4), 3);
        assert_eq!(scan(2, 0), 0);
        assert_eq!(scan(1, 2), 0); // late
        assert_eq!(scan(1, 2), 0); // twice
        assert_eq!(
            (tracker.lost, tracker.reordered, tracker.duplicates),
            (2, 1, 1)
        );
    }

    #[test]
    fn mean_deviation_and_throughput_are_those_of_the_textbook() {
        let mut tracker = Tracker::new("n", "t");
        for (number, us) in [2, 4, 4, 4, 5, 5, 7, 9].into_iter().enumerate() {
            let number = number as u64;
            tracker.scan(1, number, number as i64 * 1_000_000_000, us, (100, 1.0));
        }
        assert!((tracker.mean_us() - 5.0).abs() < 1e-9);
        assert!((tracker.sd_us() - 2.0).abs() < 1e-9);
        assert!((tracker.bytes_per_second() - 100.0).abs() < 1e-9);
        assert!(Tracker::new("n", "t").mean_us().is_nan());
    }
}
