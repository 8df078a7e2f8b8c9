//! Contradictions in the accounts of a recorder, during the recording and at the
//! end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pteros_bag::accounting::{PublisherAccount, TopicAccount};

use super::disk::FileState;
use super::publishers::Published;
use super::setup::{ALL_MESSAGES, CACHE_BYTES, CHUNK_BYTES, STEADY, TOPICS, topic_name};

/// Bytes of the shortest message in a chunk: two heads, the CDR of an array, its data.
pub const RECORD_BYTES_MIN: usize = 9 + 22 + 16 + 16;
/// Messages that wait for the writer at most: in the queue, in the chunk that is being
/// filled, and one chunk on the way between both.
const WAITING_MAX: usize = (CACHE_BYTES + 2 * CHUNK_BYTES) / RECORD_BYTES_MIN;
/// Twice the time after which a recorder flushes and syncs: a flush that finds no room is
/// tried again.
const FLUSH_MAX: Duration = Duration::from_secs(2);

type Accounts = BTreeMap<String, TopicAccount>;

/// Messages that have come to their end behind the recorder's executor.
fn settled(account: &TopicAccount) -> u64 {
    account.written + account.lost_buffer + account.lost_writer + account.not_kept
}

/// Messages that the recorder knows of.
fn known(account: &TopicAccount) -> u64 {
    account.received + account.paused + account.lost_wire + account.lost_queue
}

/// Numbers from the first that arrived to the last.
fn span(one: &PublisherAccount) -> u64 {
    u64::try_from(one.last - one.first + 1).unwrap_or(0)
}

fn topic_of(name: &str) -> Option<usize> {
    (0..TOPICS).find(|topic| topic_name(*topic) == name)
}

/// Contradictions at any moment. `before` are the accounts of an earlier one.
pub fn differences_now(
    before: &Accounts,
    accounts: &Accounts,
    published: &[Published],
    is_snapshot: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = 0;
    for (name, account) in accounts {
        let Some(topic) = topic_of(name) else {
            found.push(format!("{name} is recorded"));
            continue;
        };
        let of_topic: Vec<_> = published.iter().filter(|one| one.topic == topic).collect();
        let mut wrong = |what: &str| found.push(format!("{name}: {what}: {account}"));
        if settled(account) > account.received {
            wrong("more written and lost than received");
        }
        waiting += account.received.saturating_sub(settled(account));
        let sum = of_topic.iter().map(|one| one.count).sum::<u64>();
        if known(account) > sum {
            wrong(&format!("only {sum} were published"));
        }
        if before
            .get(name)
            .is_some_and(|before| has_shrunk(before, account))
        {
            wrong("a count became less");
        }
        let all = account.publishers.values();
        let received: u64 = all.clone().map(|one| one.received).sum();
        let paused: u64 = all.map(|one| one.paused).sum();
        if (received, paused) != (account.received, account.paused) {
            wrong("not the sum of its publishers");
        }
        for (gid, one) in &account.publishers {
            let count = of_topic.iter().find(|known| known.gid == *gid);
            let count = count.map_or(0, |known| known.count);
            let is_in_range = one.first >= 1
                && one.first <= one.last
                && u64::try_from(one.last).is_ok_and(|last| last <= count);
            let is_sum = span(one) == one.received + one.paused + one.missing();
            if !is_in_range || !is_sum {
                wrong(&format!("{one:?} of {count} published by {gid}"));
            }
        }
    }
    // A snapshot is handed over whatever waits.
    if !is_snapshot && waiting > WAITING_MAX as u64 {
        found.push(format!("{waiting} messages wait for the writer"));
    }
    found
}

fn has_shrunk(before: &TopicAccount, now: &TopicAccount) -> bool {
    let counts = |one: &TopicAccount| {
        [
            one.received,
            one.written,
            one.lost_queue,
            one.lost_buffer,
            one.lost_writer,
            one.not_kept,
            one.paused,
        ]
    };
    let mut both = counts(before).into_iter().zip(counts(now));
    both.any(|(before, now)| now < before)
}

/// Contradictions after the recording. Every publisher that lives was heard to its
/// last message.
pub fn differences_at_the_end(accounts: &Accounts, published: &[Published]) -> Vec<String> {
    let mut found = differences_now(&BTreeMap::new(), accounts, published, false);
    for topic in 0..TOPICS {
        let name = topic_name(topic);
        let Some(account) = accounts.get(&name) else {
            found.push(format!("{name} has no account"));
            continue;
        };
        if settled(account) != account.received {
            found.push(format!(
                "{name}: received is not written and lost: {account}"
            ));
        }
        let of_topic = published.iter().filter(|one| one.topic == topic);
        let sum: u64 = of_topic.map(|one| one.count).sum();
        let spans: u64 = account.publishers.values().map(span).sum();
        // Of publishers that ended, the first and last messages may be nobody's loss.
        let most = if topic < STEADY { spans } else { sum };
        if !(spans..=most).contains(&known(account)) {
            found.push(format!(
                "{name}: {sum} published, {spans} from the first to the last, and {account}"
            ));
        }
        if topic == 0 && sum <= ALL_MESSAGES as u64 && account.lost_wire > 0 {
            found.push(format!(
                "{name}: lost though its publisher keeps all: {account}"
            ));
        }
    }
    found
}

/// The recorder flushes and syncs each second, where the disk is fast.
#[derive(Default)]
pub struct FlushRule {
    /// Latest last.
    earlier: VecDeque<Moment>,
    lost_buffer: u64,
}

/// How much was received and appended by a moment at which nothing waited.
struct Moment {
    time: Duration,
    received: u64,
    appended: u64,
}

impl FlushRule {
    /// Messages that are late at `now`, right after a poll, when nothing waits for the writer.
    pub fn check(
        &mut self,
        now: Duration,
        accounts: &Accounts,
        files: &[FileState],
        is_synced: bool,
    ) -> Vec<String> {
        let sum = |count: fn(&TopicAccount) -> u64| accounts.values().map(count).sum::<u64>();
        let lost_buffer = sum(|one| one.lost_buffer);
        if lost_buffer > self.lost_buffer {
            // A full buffer has no room for a flush either.
            self.earlier.clear();
            self.lost_buffer = lost_buffer;
        }
        let mut due = None;
        while let Some(first) = self.earlier.front()
            && first.time + FLUSH_MAX <= now
        {
            due = self.earlier.pop_front();
        }
        self.earlier.push_back(Moment {
            time: now,
            received: sum(|one| one.received),
            appended: files.iter().map(|file| file.bytes).sum(),
        });
        let Some(due) = due else {
            return Vec::new();
        };
        let settled = sum(settled);
        let synced: u64 = files.iter().map(|file| file.synced).sum();
        let is_late = settled < due.received;
        let is_unsynced = is_synced && synced < due.appended;
        let late = is_late.then(|| format!("{settled} of {} flushed in time", due.received));
        let unsynced =
            is_unsynced.then(|| format!("{synced} of {} B synced in time", due.appended));
        late.into_iter().chain(unsynced).collect()
    }
}
