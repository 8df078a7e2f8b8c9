//! Tracker of received messages: late, too late and lost as `ros2-performance`
//! defines them, and in addition duplicates and reordering.
//!
//! Late is a latency above a fifth of the period or 5 ms, too late one above the
//! period or 50 ms, whichever is less. A message that is too late counts as
//! received, but not in the mean, deviation and extremes. A gap in a publisher's
//! numbers counts as lost messages.

use std::collections::BTreeMap;

const LATE: (u64, u64) = (20, 5_000);
const TOO_LATE: (u64, u64) = (100, 50_000);
/// Maximum latencies that a tracker keeps. Later ones only count in sums.
const SAMPLES_MAX: usize = 200_000;
/// Maximum publishers of a topic with their own gap detection.
const PUBLISHERS_MAX: usize = 1_024;

/// Statistics of one entity. Times in nanoseconds, latencies in microseconds.
#[derive(Clone, Debug)]
pub struct Tracker {
    /// Name of the node.
    pub node: String,
    /// Name of the topic or service.
    pub entity: String,
    /// Payload bytes of the first message.
    pub bytes: u64,
    /// Frequency in Hz of the first message.
    pub frequency: f64,
    /// Messages received, including those too late. For publishers published ones.
    pub received: u64,
    /// Number of late messages.
    pub late: u64,
    /// Number of messages that were too late.
    pub too_late: u64,
    /// Skipped numbers that did not arrive later.
    pub lost: u64,
    /// Numbers that arrived twice.
    pub duplicates: u64,
    /// Messages that arrived after a later one.
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

/// Numbers of one publisher.
#[derive(Clone, Debug, Default)]
struct Numbers {
    next: u64,
    /// The last skipped numbers.
    missing: Vec<u64>,
}

/// Maximum skipped numbers to remember, to distinguish late messages from
/// duplicates.
const MISSING_MAX: usize = 256;

/// Size and frequency of a topic's messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicLoad {
    /// Payload bytes of a message.
    pub bytes: u64,
    /// Frequency in Hz.
    pub frequency: f64,
}

/// Assessment of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleAssessment {
    /// Missing messages that this message reveals.
    pub lost: u64,
    /// The exceeded threshold of late messages in microseconds.
    pub late_over_us: Option<u64>,
    /// The exceeded threshold of messages that are too late.
    pub too_late_over_us: Option<u64>,
}

impl Tracker {
    /// A tracker without messages.
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

    /// Records message `number` (from 0) of `publisher`, received `latency_us`
    /// after it was sent.
    pub fn scan(
        &mut self,
        publisher: u128,
        number: u64,
        now_ns: i64,
        latency_us: u64,
        load: TopicLoad,
    ) -> SampleAssessment {
        let lost = self.count(publisher, number);
        let mut assessment = SampleAssessment {
            lost,
            late_over_us: None,
            too_late_over_us: None,
        };
        if load.frequency > 0.0 {
            let period_us = (1e6 / load.frequency) as u64;
            let over = |(percent, most): (u64, u64)| most.min(period_us * percent / 100);
            if latency_us > over(TOO_LATE) {
                assessment.too_late_over_us = Some(over(TOO_LATE));
                self.too_late += 1;
            } else if latency_us > over(LATE) {
                assessment.late_over_us = Some(over(LATE));
                self.late += 1;
            }
        }
        self.received += 1;
        if assessment.too_late_over_us.is_none() {
            self.add(now_ns, latency_us, load);
        }
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push((number, latency_us));
        }
        assessment
    }

    /// Records a published message. The call took `took_us`.
    pub fn published(&mut self, now_ns: i64, took_us: u64, load: TopicLoad) {
        self.received += 1;
        self.add(now_ns, took_us, load);
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

    /// Welford's recurrence in doubles, in which no sum of squares grows.
    fn add(&mut self, now_ns: i64, us: u64, load: TopicLoad) {
        if self.counted == 0 {
            (self.bytes, self.frequency) = (load.bytes, load.frequency);
            (self.min, self.max, self.first_ns) = (us, us, now_ns);
        }
        self.counted += 1;
        self.last_ns = now_ns;
        (self.min, self.max) = (self.min.min(us), self.max.max(us));
        let from_mean = us as f64 - self.mean;
        self.mean += from_mean / self.counted as f64;
        self.squares += from_mean * (us as f64 - self.mean);
    }

    /// Mean latency in microseconds. NaN without messages, as the framework prints.
    pub fn mean_us(&self) -> f64 {
        self.of_something(self.mean)
    }

    /// Standard deviation (of the whole population) in microseconds.
    pub fn sd_us(&self) -> f64 {
        self.of_something((self.squares / self.counted.max(1) as f64).sqrt())
    }

    /// Minimum latency in microseconds.
    pub fn min_us(&self) -> f64 {
        self.of_something(self.min as f64)
    }

    /// Maximum latency in microseconds.
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

    /// Numbers and latencies in microseconds of the first 200 000 messages,
    /// including those too late.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: TopicLoad = TopicLoad {
        bytes: 10,
        frequency: 100.0,
    };

    #[test]
    fn messages_are_judged_against_their_period_and_the_absolute_limits() {
        let mut tracker = Tracker::new("n", "t");
        // 10 ms: late above 2 ms, too late above 10 ms.
        assert_eq!(tracker.scan(1, 0, 0, 2_000, LOAD).late_over_us, None);
        assert_eq!(tracker.scan(1, 1, 1, 2_001, LOAD).late_over_us, Some(2_000));
        let assessment = tracker.scan(1, 2, 2, 10_001, LOAD);
        assert_eq!(
            (assessment.late_over_us, assessment.too_late_over_us),
            (None, Some(10_000))
        );
        // A period of 1 s: 5 ms and 50 ms.
        let slow = TopicLoad {
            frequency: 1.0,
            ..LOAD
        };
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
        let mut scan = |publisher, number| tracker.scan(publisher, number, 0, 1, LOAD).lost;
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
        let load = TopicLoad {
            bytes: 100,
            frequency: 1.0,
        };
        for (number, us) in [2, 4, 4, 4, 5, 5, 7, 9].into_iter().enumerate() {
            let number = number as u64;
            tracker.scan(1, number, number as i64 * 1_000_000_000, us, load);
        }
        assert!((tracker.mean_us() - 5.0).abs() < 1e-9);
        assert!((tracker.sd_us() - 2.0).abs() < 1e-9);
        assert!((tracker.bytes_per_second() - 100.0).abs() < 1e-9);
        assert!(Tracker::new("n", "t").mean_us().is_nan());
    }
}
