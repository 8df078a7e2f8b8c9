//! A flow of numbered messages under attack: when each was published, and how late it
//! arrived.

use std::time::Duration;

/// How late a message may be, beside the time on the link: 99 of 100 messages.
pub const LATE_MAX: Duration = Duration::from_millis(20);

/// The messages of a flow since it was last checked.
#[derive(Debug, Default)]
pub struct Flow {
    published: Vec<Duration>,
    /// Messages that were checked before.
    checked: usize,
    late: Vec<Duration>,
}

impl Flow {
    /// Notes a message that is published at `now`. Returns its number.
    pub fn note_published(&mut self, now: Duration) -> usize {
        self.published.push(now);
        self.published.len() - 1
    }

    /// Notes that a message arrives. False if its number is unknown.
    pub fn note_taken(&mut self, number: usize, now: Duration) -> bool {
        let Some(at) = self.published.get(number) else {
            return false;
        };
        self.late.push(now - *at);
        true
    }

    /// Messages published and taken since the last check, and how late the 99th
    /// percentile was, beside `delay` on the link. Begins anew.
    pub fn take_counts(&mut self, delay: Duration) -> FlowCounts {
        let published = self.published.len() - self.checked;
        self.checked = self.published.len();
        let mut late = std::mem::take(&mut self.late);
        late.sort_unstable();
        let place = (late.len() * 99).div_ceil(100).max(1) - 1;
        let late_p99 = late.get(place).copied().unwrap_or(Duration::MAX);
        FlowCounts {
            published,
            taken: late.len(),
            late_p99: late_p99.saturating_sub(delay),
        }
    }
}

/// The fate of the messages of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowCounts {
    pub published: usize,
    pub taken: usize,
    pub late_p99: Duration,
}

impl FlowCounts {
    /// The fault after an attack, if there is one. A reliable flow loses nothing.
    pub fn violation(&self, what: &str) -> Option<String> {
        let Self {
            published,
            taken,
            late_p99,
        } = self;
        if taken != published {
            return Some(format!(
                "I19 {taken} of {published} messages arrive in {what}"
            ));
        }
        (*late_p99 > LATE_MAX).then(|| {
            format!("I19 one in a hundred of {published} messages is {late_p99:?} late in {what}")
        })
    }
}
