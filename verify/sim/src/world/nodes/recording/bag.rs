//! The contents of a bag, whole or torn, against the accounts of its recorder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use pteros_bag::accounting::TopicAccount;
use pteros_bag::{BagReader, RecordingSummary};

use super::accounts::RECORD_BYTES_MIN;
use super::disk::{Disk, FileState};
use super::publishers::{Published, read_data};
use super::setup::{CHUNK_BYTES, LATCHED, topic_name};

/// Numbers of messages by topic and source, in the order of the bag.
type Content = BTreeMap<(String, u64), Vec<u64>>;

/// The contents of a bag, without the messages that a file repeats. Problems go to `found`.
fn read(bag: &mut BagReader, found: &mut Vec<String>) -> Content {
    let names: Vec<String> = bag
        .topics()
        .iter()
        .map(|one| one.topic.name.clone())
        .collect();
    let mut messages = Vec::new();
    // A file repeats messages of earlier ones, with times of its own.
    let mut first_files: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for message in bag.messages(Default::default()) {
        let name = names.get(message.topic).cloned().unwrap_or_default();
        let data = data_in(&message.payload);
        let Some((source, number)) = data.and_then(read_data) else {
            found.push(format!("{name}: a message in the bag is damaged"));
            continue;
        };
        let first = first_files.entry((source, number)).or_insert(message.file);
        *first = message.file.min(*first);
        messages.push((name, source, number, message.file));
    }
    let latched = topic_name(LATCHED);
    let mut content = Content::new();
    for (name, source, number, file) in messages {
        if name != latched || first_files.get(&(source, number)) == Some(&file) {
            content.entry((name, source)).or_default().push(number);
        }
    }
    content
}

/// The data of a `UInt8MultiArray`: behind the encapsulation, two empty counts of the
/// layout and the count of the data, and before padding.
fn data_in(payload: &[u8]) -> Option<&[u8]> {
    let count = u32::from_le_bytes(*payload.get(12..)?.first_chunk()?);
    let count = usize::try_from(count).ok()?;
    payload.get(16..)?.get(..count)
}

fn count_of(content: &Content, name: &str) -> u64 {
    let of_topic = content.iter().filter(|((topic, _), _)| topic == name);
    of_topic.map(|(_, numbers)| numbers.len() as u64).sum()
}

/// Differences between the bag and its accounts. `whole` is the summary of a bag whose
/// disk had no error.
pub fn differences_of_bag(
    bag: &Path,
    accounts: &BTreeMap<String, TopicAccount>,
    whole: Option<&RecordingSummary>,
    published: &[Published],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut bag = match BagReader::open(bag) {
        Ok(bag) => bag,
        Err(error) => return vec![format!("the bag is not read: {error}")],
    };
    let content = read(&mut bag, &mut found);
    for ((name, source), numbers) in &content {
        let known = usize::try_from(*source)
            .ok()
            .and_then(|at| published.get(at));
        let known = known.filter(|known| topic_name(known.topic) == *name);
        let count = known.map_or(0, |known| known.count);
        let is_in_order = numbers.is_sorted_by(|one, next| one < next);
        let is_published = numbers.last().is_none_or(|last| *last < count);
        if !is_in_order || !is_published {
            found.push(format!(
                "{name}: {numbers:?} of {count} messages of {source}"
            ));
        }
    }
    let mut more = 0;
    for (name, account) in accounts {
        let count = count_of(&content, name);
        let most = match whole {
            Some(_) => account.written,
            // The disk may have taken a chunk and refused its index.
            None => account.received,
        };
        if !(account.written..=most).contains(&count) {
            found.push(format!(
                "{name}: {count} messages in the bag, and {account}"
            ));
        }
        more += count.saturating_sub(account.written);
    }
    if let Some(summary) = whole {
        found.extend(differences_of_summary(&bag, summary));
    } else if more > (CHUNK_BYTES / RECORD_BYTES_MIN) as u64 {
        found.push(format!("{more} messages in the bag count as not written"));
    }
    found
}

/// The bag says of itself what the summary says.
fn differences_of_summary(bag: &BagReader, summary: &RecordingSummary) -> Vec<String> {
    let mut found: Vec<String> = bag.problems().to_vec();
    let texts = |accounts: &BTreeMap<String, TopicAccount>| -> Vec<(String, String)> {
        let texts = accounts.iter();
        texts
            .map(|(name, account)| (name.clone(), account.to_string()))
            .collect()
    };
    let (of_bag, of_summary) = (texts(&bag.accounts()), texts(&summary.accounts));
    if of_bag != of_summary {
        found.push(format!(
            "the bag says {of_bag:?}, the recorder {of_summary:?}"
        ));
    }
    if !bag.is_complete() || bag.message_count() != summary.metadata.message_count {
        let (count, of_summary) = (bag.message_count(), summary.metadata.message_count);
        found.push(format!(
            "{count} messages in the bag, {of_summary} in the summary"
        ));
    }
    found
}

/// A moment of a recording: how long its files were, and what was written of each topic.
#[derive(Clone, Debug)]
pub struct CutPoint {
    files: Vec<FileState>,
    /// Written messages, and those that the disk refused or perhaps has, by topic.
    counts: BTreeMap<String, (u64, u64)>,
}

impl CutPoint {
    pub fn new(disk: &Disk, accounts: &BTreeMap<String, TopicAccount>) -> Self {
        let counts = accounts.iter().map(|(name, account)| {
            let refused = account.lost_writer;
            (name.clone(), (account.written, refused))
        });
        Self {
            files: disk.files(),
            counts: counts.collect(),
        }
    }

    /// Whether nothing was written between both.
    pub fn is_same(&self, other: &Self) -> bool {
        let bytes = |one: &Self| one.files.iter().map(|file| file.bytes).sum::<u64>();
        bytes(self) == bytes(other) && self.counts == other.counts
    }

    /// Cuts the files of a finished bag to where they ended at one of the moments, or
    /// within what came next. What was written by then is there, and nothing else.
    pub fn check_one(cuts: &[Self], bag: &Path, torn: &Path, random: &mut Rng) -> Vec<String> {
        let mut found = Vec::new();
        if cuts.len() < 2 {
            return found;
        }
        let at = random.usize(0..cuts.len() - 1);
        let (cut, next) = (&cuts[at], &cuts[at + 1]);
        if let Err(error) = cut.copy(next, torn, random) {
            return vec![format!("a torn bag: {error}")];
        }
        let (torn, whole) = match (BagReader::open(torn), BagReader::open(bag)) {
            (Ok(torn), Ok(whole)) => (torn, whole),
            (Err(error), _) | (_, Err(error)) => {
                return vec![format!("a torn bag is not read: {error}")];
            }
        };
        let [torn, whole] = [torn, whole].map(|mut bag| read(&mut bag, &mut found));
        for (source, numbers) in &torn {
            let all = whole.get(source).map(Vec::as_slice).unwrap_or_default();
            if !all.starts_with(numbers) {
                found.push(format!("a torn bag has {numbers:?} of {source:?}"));
            }
        }
        for (name, (written, _)) in &cut.counts {
            let count = count_of(&torn, name);
            let (then, refused) = next.counts.get(name).copied().unwrap_or_default();
            if !(*written..=then + refused).contains(&count) {
                found.push(format!(
                    "{name}: a torn bag has {count} messages of {written} that were written"
                ));
            }
        }
        found
    }

    /// Copies the files as they were, and a part of what came next in the last one.
    fn copy(&self, next: &Self, torn: &Path, random: &mut Rng) -> std::io::Result<()> {
        let _ = std::fs::remove_dir_all(torn);
        std::fs::create_dir_all(torn)?;
        for (number, file) in self.files.iter().enumerate() {
            let is_last = number + 1 == self.files.len();
            let more = next.files.get(number).filter(|_| is_last);
            let most = more.map_or(file.bytes, |more| more.bytes);
            let bytes = random.u64(file.bytes..=most.max(file.bytes));
            let mut content = std::fs::read(&file.path)?;
            content.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
            let name: PathBuf = file.path.file_name().unwrap_or_default().into();
            std::fs::write(torn.join(name), content)?;
        }
        Ok(())
    }
}
