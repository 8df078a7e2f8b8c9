//! Loss accounting of a recorder: messages received per publisher, messages written, and
//! where the others were lost.
//!
//! Publishers number their messages. So two sums hold per topic:
//!
//! - `published = received + lost before the recorder`
//! - `received = written + lost in the buffer + lost in the writer + not kept`
//!
//! Messages that arrive while the recorder is paused are neither received nor
//! lost.

use std::collections::BTreeMap;
use std::fmt;

use pteros::fault;

/// Name of the metadata record in each file, and prefix of the keys in `custom_data`.
pub const LOSS_RECORD: &str = "pteros_loss";

/// The messages of one publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherAccount {
    /// The first sequence number that arrived, paused or not.
    pub first: i64,
    /// The highest sequence number that arrived.
    pub last: i64,
    /// Messages received.
    pub received: u64,
    /// Messages that arrived while the recorder was paused.
    pub paused: u64,
}

impl PublisherAccount {
    /// Counts a message by its sequence number.
    pub fn receive(&mut self, sequence: i64) {
        self.see(sequence);
        self.received += 1;
    }

    /// Counts a message that arrived while the recorder was paused.
    pub fn receive_paused(&mut self, sequence: i64) {
        self.see(sequence);
        self.paused += 1;
    }

    fn see(&mut self, sequence: i64) {
        if self.arrived() == 0 {
            (self.first, self.last) = (sequence, sequence);
        }
        self.first = self.first.min(sequence);
        self.last = self.last.max(sequence);
    }

    fn arrived(&self) -> u64 {
        self.received + self.paused
    }

    /// Messages between the first and the last number that did not arrive.
    pub fn missing(&self) -> u64 {
        if self.arrived() == 0 || fault!("missing-numbers-not-counted") {
            return 0;
        }
        let span = u64::try_from(self.last.saturating_sub(self.first)).unwrap_or(0);
        span.saturating_add(1).saturating_sub(self.arrived())
    }
}

/// The messages of one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicAccount {
    /// Messages that reached the recorder.
    pub received: u64,
    /// Messages in the bag, without repeated transient-local ones.
    pub written: u64,
    /// Lost in transport, by sequence numbers and by the reader's reports.
    pub lost_wire: u64,
    /// Replaced in the subscription's queue before they were taken.
    pub lost_queue: u64,
    /// Dropped because the buffer before the writer was full.
    pub lost_buffer: u64,
    /// Dropped because the file could not be written.
    pub lost_writer: u64,
    /// Replaced by later messages before a snapshot was requested. A snapshot discards
    /// them by design, so they do not count as lost.
    pub not_kept: u64,
    /// Arrived while the recorder was paused: neither received nor lost.
    pub paused: u64,
    /// Accounts by the gid of the publisher.
    pub publishers: BTreeMap<String, PublisherAccount>,
}

impl TopicAccount {
    /// Sum of all losses.
    pub fn lost(&self) -> u64 {
        self.lost_wire + self.lost_queue + self.lost_buffer + self.lost_writer
    }

    /// Parses the text of [`fmt::Display`]. Unknown words are ignored.
    pub fn read(text: &str) -> Self {
        let mut account = Self::default();
        for (name, value) in text.split(' ').filter_map(|part| part.split_once('=')) {
            let value = value.parse().unwrap_or(0);
            match name {
                "received" => account.received = value,
                "written" => account.written = value,
                "wire" => account.lost_wire = value,
                "queue" => account.lost_queue = value,
                "buffer" => account.lost_buffer = value,
                "writer" => account.lost_writer = value,
                "not_kept" => account.not_kept = value,
                "paused" => account.paused = value,
                _ => {}
            }
        }
        account
    }

    /// Computes the losses before the recorder, from the publishers' numbers and the
    /// reader's counts of lost and overwritten samples.
    pub(crate) fn settle(&mut self, reported_lost: u64, overwritten: u64) {
        let missing: u64 = self
            .publishers
            .values()
            .map(PublisherAccount::missing)
            .sum();
        self.lost_queue = overwritten;
        if fault!("queue-losses-not-counted") {
            self.lost_queue = 0;
        }
        let mut before_the_queue = missing.saturating_sub(overwritten);
        if fault!("queue-loss-counts-twice") {
            before_the_queue = missing;
        }
        self.lost_wire = before_the_queue.max(reported_lost);
    }
}

impl fmt::Display for TopicAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "received={} written={} wire={} queue={} buffer={} writer={}",
            self.received,
            self.written,
            self.lost_wire,
            self.lost_queue,
            self.lost_buffer,
            self.lost_writer
        )?;
        if self.not_kept > 0 {
            write!(f, " not_kept={}", self.not_kept)?;
        }
        if self.paused > 0 {
            write!(f, " paused={}", self.paused)?;
        }
        Ok(())
    }
}

/// Serializes the accounts of a bag's topics as texts by key.
pub(crate) fn to_texts(accounts: &BTreeMap<String, TopicAccount>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (topic, account) in accounts {
        texts.insert(format!("{LOSS_RECORD}:{topic}"), account.to_string());
        for (gid, publisher) in &account.publishers {
            let text = format!(
                "first={} last={} received={} missing={}",
                publisher.first,
                publisher.last,
                publisher.received,
                publisher.missing()
            );
            texts.insert(format!("{LOSS_RECORD}:{topic}:{gid}"), text);
        }
    }
    texts
}

/// Whether a key is one of [`to_texts`].
pub(crate) fn is_account(key: &str) -> bool {
    key.strip_prefix(LOSS_RECORD)
        .is_some_and(|rest| rest.starts_with(':'))
}

/// Parses the accounts of topics from texts by key.
pub(crate) fn from_texts(texts: &BTreeMap<String, String>) -> BTreeMap<String, TopicAccount> {
    let ours = texts.iter().filter_map(|(key, value)| {
        let topic = key.strip_prefix(LOSS_RECORD)?.strip_prefix(':')?;
        (!topic.contains(':')).then(|| (topic.to_owned(), TopicAccount::read(value)))
    });
    ours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_the_sequence_numbers_are_counted_per_publisher() {
        let mut account = TopicAccount::default();
        for sequence in [4, 5, 9] {
            account
                .publishers
                .entry("a".into())
                .or_default()
                .receive(sequence);
        }
        account.publishers.entry("b".into()).or_default().receive(1);
        account.settle(0, 1);
        assert_eq!((account.lost_wire, account.lost_queue), (2, 1));
        account.settle(5, 1);
        assert_eq!(
            account.lost_wire, 5,
            "losses behind the last message are reported ones"
        );
        let texts = to_texts(&[("/t".to_owned(), account.clone())].into());
        assert_eq!(
            texts["pteros_loss:/t:a"],
            "first=4 last=9 received=3 missing=3"
        );
        assert_eq!(from_texts(&texts)["/t"].lost_wire, 5);
    }
}
