//! Publishers whose token has gone. Zenoh sends declarations before data, so that the last
//! samples of a publisher that is dropped come after its end. It stays for a moment.

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::time::{Duration, Instant};

/// How long such a publisher stays.
pub const UNDECLARED_WAIT: Duration = Duration::from_millis(100);
/// How much longer it stays while polls never find the inbox empty.
pub const UNDECLARED_WAIT_BUSY: Duration = Duration::from_secs(1);
/// More end at once.
const UNDECLARED_MAX: usize = 16_384;

/// Tokens of publishers that have gone, and when their endpoints end. No method blocks.
#[derive(Default)]
pub struct UndeclaredPublishers {
    /// In the order of their ends.
    queue: VecDeque<(Instant, String)>,
    /// An entry of the queue that is not here came back.
    ends_at: BTreeMap<String, Instant>,
}

impl UndeclaredPublishers {
    pub fn is_full(&self) -> bool {
        self.queue.len() >= UNDECLARED_MAX
    }

    /// Notes that a token has gone. One that has gone already keeps its time.
    pub fn push(&mut self, now: Instant, key: String) {
        if !self.ends_at.contains_key(&key) {
            let until = now.after(UNDECLARED_WAIT);
            self.ends_at.insert(key.clone(), until);
            self.queue.push_back((until, key));
        }
    }

    /// Notes that a token is alive. Returns whether its publisher was leaving, and stays.
    pub fn take_back(&mut self, key: &str) -> bool {
        self.ends_at.remove(key).is_some()
    }

    /// When the next one ends.
    pub fn next_end(&self) -> Option<Instant> {
        self.queue.front().map(|(until, _)| *until)
    }

    /// The next token whose wait ended at least `for_long` ago.
    pub fn pop_ended(&mut self, now: Instant, for_long: Duration) -> Option<String> {
        loop {
            let (until, key) = self
                .queue
                .pop_front_if(|(until, _)| until.after(for_long) <= now)?;
            if self.ends_at.get(&key) == Some(&until) {
                self.ends_at.remove(&key);
                return Some(key);
            }
        }
    }
}
