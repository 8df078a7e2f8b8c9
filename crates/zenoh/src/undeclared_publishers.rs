//! Undeclared publishers: publishers whose liveliness token was undeclared, for a short
//! wait. Zenoh sends declarations before data, so the last samples of a dropped publisher
//! arrive after its token has ended.

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::time::{Duration, Instant};

/// Wait before such a publisher is removed.
pub const UNDECLARED_WAIT: Duration = Duration::from_millis(100);
/// Additional wait while no poll finds the inbox empty.
pub const UNDECLARED_WAIT_BUSY: Duration = Duration::from_secs(1);
/// Publishers in this state. Further ones are removed at once.
const UNDECLARED_MAX: usize = 16_384;

/// Tokens of undeclared publishers, with the time of their removal. No method blocks.
#[derive(Default)]
pub struct UndeclaredPublishers {
    /// In the order of their removal.
    queue: VecDeque<(Instant, String)>,
    /// Entries of the queue that were not declared again.
    ends_at: BTreeMap<String, Instant>,
}

impl UndeclaredPublishers {
    pub fn is_full(&self) -> bool {
        self.queue.len() >= UNDECLARED_MAX
    }

    /// Notes that a token was undeclared. A second call for the same token has no effect.
    pub fn push(&mut self, now: Instant, key: String) {
        if !self.ends_at.contains_key(&key) {
            let until = now.after(UNDECLARED_WAIT);
            self.ends_at.insert(key.clone(), until);
            self.queue.push_back((until, key));
        }
    }

    /// Notes that a token is declared. Returns whether its publisher was undeclared
    /// before, and remains.
    pub fn take_back(&mut self, key: &str) -> bool {
        self.ends_at.remove(key).is_some()
    }

    /// When the next publisher is to be removed.
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
