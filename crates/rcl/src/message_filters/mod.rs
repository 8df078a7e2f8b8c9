//! Message filters: synchronizers of several inputs by time stamps, caches and chains, for
//! messages of any type (ROS 2's package `message_filters`).
//!
//! | filter | sets or messages that it passes on |
//! |---|---|
//! | [`ExactTime`] | one message of each input, with equal stamps |
//! | [`ApproximateTime`] | one message of each input, the best fitting ones, each message in one set at most |
//! | [`SlopTime`] | one message of each input, closer together than a span |
//! | [`Cache`] | all, and keeps the last ones for look-ups by time |
//! | [`Chain`] | what all its filters pass on |
//!
//! `ApproximateTime` is the adaptive algorithm of rclcpp's policy of that name: it needs no
//! span, and waits for later messages until no better set can come. `SlopTime` is the rule
//! of Python's `ApproximateTimeSynchronizer`: it decides with each message, and its sets
//! depend on the span that the user chooses.
//!
//! Stamps are nanoseconds. Each queue has a limit; a full one drops its oldest message. A
//! message that is too old for its queue is late and is dropped. When more messages of an
//! input in a row are older than its newest than its queue holds, time has gone back: what is
//! newer than the last one is dropped from all queues. Where a clock reports the jump, `clear`
//! drops all at once.
//! Nothing here blocks, reads a clock or calls callbacks.

mod approximate_time;
mod cache;
mod chain;
mod exact_time;
mod slop_time;
mod stamp_queue;
mod stamped;

pub use approximate_time::ApproximateTime;
pub use cache::Cache;
pub use chain::{Chain, MessageFilter};
pub use exact_time::ExactTime;
pub use slop_time::SlopTime;
pub use stamped::Stamped;

/// Sets of messages: one of each input, in their order.
pub type MessageSets<M> = Vec<Vec<M>>;

/// A rule that joins the messages of several inputs to sets.
pub trait SyncPolicy<M>: Send {
    /// Adds a message of an input and returns the sets that are complete now. An input that
    /// does not exist is ignored.
    fn add(&mut self, input: usize, stamp: i64, message: M) -> MessageSets<M>;

    /// Calls `visit` with each message that waits, in any order.
    fn visit(&self, visit: &mut dyn FnMut(&M));

    /// Drops all messages that wait: time has gone back, or has another source.
    fn clear(&mut self);
}

/// Counts the messages in a row that are older than the newest of their queue.
#[derive(Clone, Copy, Debug, Default)]
struct LateRun(usize);

impl LateRun {
    /// A message is older. Returns whether time has gone back: more in a row than the queue
    /// holds are.
    fn has_time_gone_back(&mut self, queue_size: usize) -> bool {
        self.0 += 1;
        self.0 > queue_size
    }

    fn end(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays words such as `a1`: an input and a stamp.
    pub(super) fn play(policy: &mut dyn SyncPolicy<i64>, words: &[&str]) -> Vec<String> {
        let mut sets = Vec::new();
        for word in words {
            if *word == "clear" {
                policy.clear();
                continue;
            }
            let input = usize::from(word.as_bytes()[0] - b'a');
            let stamp: i64 = word[1..].parse().unwrap();
            for set in policy.add(input, stamp, stamp) {
                let stamps: Vec<_> = set.iter().map(i64::to_string).collect();
                sets.push(stamps.join(","));
            }
        }
        sets
    }

    fn cache_answers(words: &[&str]) -> Vec<String> {
        let mut cache = Cache::new(words[0].parse().unwrap());
        let mut answers = Vec::new();
        let text = |stamp: Option<&i64>| stamp.map_or("-".to_owned(), i64::to_string);
        for word in &words[1..] {
            match word.split_once('=') {
                None if *word == "clear" => cache.clear(),
                None => {
                    let stamp = word.parse().unwrap();
                    cache.add(stamp, stamp);
                }
                Some(("before", time)) => answers.push(text(cache.before(time.parse().unwrap()))),
                Some(("after", time)) => answers.push(text(cache.after(time.parse().unwrap()))),
                Some((_, span)) => {
                    let (from, to) = span.split_once("..").unwrap();
                    let span = cache.interval(from.parse().unwrap(), to.parse().unwrap());
                    let span: Vec<_> = span.map(i64::to_string).collect();
                    answers.push(span.join(","));
                }
            }
        }
        answers
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../../tests/behaviour/filters.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#')) {
            let (steps, expected) = row.split_once("->").unwrap();
            let expected = expected.split('|').next().unwrap_or_default();
            let expected: Vec<_> = expected.split_whitespace().collect();
            let words: Vec<_> = steps.split_whitespace().collect();
            let inputs = words[2..].iter().filter(|word| **word != "clear");
            let inputs = inputs.filter_map(|word| word.bytes().next()).max();
            let inputs = usize::from(inputs.unwrap_or(b'b').max(b'b') - b'a') + 1;
            let found = match words[0] {
                "exact" => {
                    let mut policy = ExactTime::new(inputs, words[1].parse().unwrap());
                    play(&mut policy, &words[2..])
                }
                "adaptive" => {
                    let mut policy = ApproximateTime::new(inputs, words[1].parse().unwrap());
                    play(&mut policy, &words[2..])
                }
                "slop" => {
                    let (size, slop) = words[1].split_once(',').unwrap();
                    let mut policy =
                        SlopTime::new(inputs, size.parse().unwrap(), slop.parse().unwrap());
                    play(&mut policy, &words[2..])
                }
                "cache" => cache_answers(&words[1..]),
                other => panic!("{other}: no such kind"),
            };
            assert_eq!(found, expected, "{row}");
            count += 1;
        }
        assert!(count > 40);
    }

    #[test]
    fn the_messages_that_wait_are_visited() {
        let policies: [Box<dyn SyncPolicy<i64>>; 3] = [
            Box::new(ExactTime::new(2, 9)),
            Box::new(ApproximateTime::new(2, 9)),
            Box::new(SlopTime::new(2, 9, 2)),
        ];
        for mut policy in policies {
            play(&mut *policy, &["a1", "b1", "b2", "a10", "a20"]);
            let mut waiting = Vec::new();
            policy.visit(&mut |message| waiting.push(*message));
            waiting.sort_unstable();
            assert!(waiting.ends_with(&[10, 20]), "{waiting:?}");
            policy.clear();
            policy.visit(&mut |message| panic!("{message} waits"));
        }
    }

    #[test]
    fn inputs_that_do_not_exist_are_ignored() {
        let policies: [Box<dyn SyncPolicy<i64>>; 3] = [
            Box::new(ExactTime::new(1, 1)),
            Box::new(ApproximateTime::new(1, 1)),
            Box::new(SlopTime::new(1, 1, 5)),
        ];
        for mut policy in policies {
            assert!(policy.add(1, 5, 5).is_empty());
            assert_eq!(policy.add(0, i64::MAX, 7), [[7]]);
            assert!(policy.add(7, i64::MIN, 5).is_empty());
        }
    }
}
