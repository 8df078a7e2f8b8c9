//! Local history: the transient local cache for late joiners of the same process.
//!
//! Late joiners in other processes get the protocol's history cache, which keeps
//! the same samples.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use pteros_msg::key::KeyHash;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::time::Instant;

use crate::sample::queued_sample::{DeliveryForm, QueuedSample};
use crate::sample::sample_limits::{KEEP_ALL_SAMPLES_DEFAULT, samples_max};

/// Ends of coherent sets kept beside the samples. Full: the oldest is dropped.
const SET_ENDS_MAX: usize = 1_024;

/// The samples of one publisher. Full: the oldest is dropped, of the same instance
/// first.
pub enum LocalHistory {
    /// Volatile publishers keep nothing.
    Off,
    /// A topic without key: one instance.
    Plain {
        /// The samples and ends of sets, oldest first.
        items: VecDeque<QueuedSample>,
        /// The most samples.
        max: usize,
        /// How many of the items end a set.
        ends: usize,
    },
    /// A topic with key: bounded per instance and in all.
    Keyed {
        /// The samples and ends of sets, by sequence number.
        items: BTreeMap<i64, QueuedSample>,
        /// The sequence numbers of each instance, oldest first.
        instances: BTreeMap<KeyHash, VecDeque<i64>>,
        /// The most samples in all.
        max: usize,
        /// The most samples of one instance.
        per_instance: usize,
        /// How many of the items end a set.
        ends: usize,
    },
}

impl LocalHistory {
    /// The history of a publisher with `qos`; `keyed`: its topic has a key.
    pub fn new(qos: &EndpointQos, keyed: bool) -> Self {
        if qos.durability == Durability::Volatile {
            return Self::Off;
        }
        let limits = &qos.resource_limits;
        if !keyed {
            let max = match qos.history {
                History::KeepLast(depth) => depth.max(1) as usize,
                History::KeepAll => samples_max(limits).unwrap_or(KEEP_ALL_SAMPLES_DEFAULT),
            };
            let items = VecDeque::new();
            let ends = 0;
            return Self::Plain { items, max, ends };
        }
        let limit = |n: Option<u32>| n.map(|n| n.max(1) as usize);
        let all = limit(limits.max_samples);
        let of_each = limit(limits.max_samples_per_instance).unwrap_or(usize::MAX);
        let (max, per_instance) = match qos.history {
            History::KeepLast(depth) => (
                all.unwrap_or(usize::MAX),
                of_each.min(depth.max(1) as usize),
            ),
            History::KeepAll => (all.unwrap_or(KEEP_ALL_SAMPLES_DEFAULT), of_each),
        };
        Self::Keyed {
            items: BTreeMap::new(),
            instances: BTreeMap::new(),
            max,
            per_instance,
            ends: 0,
        }
    }

    /// Keeps a written sample. Full: drops the oldest, of the same instance first.
    #[inline]
    pub fn push_or_drop_oldest(&mut self, item: QueuedSample) {
        if !matches!(self, Self::Off) {
            self.push(item);
        }
    }

    fn push(&mut self, item: QueuedSample) {
        match self {
            Self::Off => {}
            Self::Plain { items, max, ends } => {
                *ends += usize::from(item.ends_set());
                items.push_back(item);
                // An end without samples before it ends nothing.
                while items.len() - *ends > *max
                    || *ends > SET_ENDS_MAX
                    || items.front().is_some_and(QueuedSample::ends_set)
                {
                    let gone = items.pop_front();
                    *ends -= usize::from(gone.is_some_and(|item| item.ends_set()));
                }
            }
            Self::Keyed { items, ends, .. } if item.ends_set() => {
                *ends += 1;
                items.insert(item.meta.sequence, item);
                if *ends > SET_ENDS_MAX
                    && let Some(first) = items.values().find(|item| item.ends_set())
                {
                    let first = first.meta.sequence;
                    items.remove(&first);
                    *ends -= 1;
                }
            }
            Self::Keyed {
                items,
                instances,
                max,
                per_instance,
                ends,
            } => {
                let Some(keyed) = item.instance.as_deref() else {
                    return;
                };
                let (key, kind, sequence) = (keyed.info.key, keyed.kind, item.meta.sequence);
                if kind.is_unregistered() {
                    // Unregistered instances do not concern late joiners.
                    for sequence in instances.remove(&key).unwrap_or_default() {
                        items.remove(&sequence);
                    }
                    return;
                }
                debug_assert!(matches!(kind, ChangeKind::Alive | ChangeKind::Disposed));
                let of_it = instances.entry(key).or_default();
                if of_it.len() >= *per_instance
                    && let Some(oldest) = of_it.pop_front()
                {
                    items.remove(&oldest);
                }
                of_it.push_back(sequence);
                items.insert(sequence, item);
                while items
                    .first_key_value()
                    .is_some_and(|(_, item)| item.ends_set())
                {
                    items.pop_first();
                    *ends -= 1;
                }
                if items.len() - *ends > *max
                    && let Some((oldest, item)) = items.pop_first()
                    && let Some(keyed) = item.instance
                    && let Some(of_it) = instances.get_mut(&keyed.info.key)
                {
                    of_it.retain(|sequence| *sequence != oldest);
                    if of_it.is_empty() {
                        instances.remove(&keyed.info.key);
                    }
                }
            }
        }
    }

    /// Whether some sample is a value that a reader does not accept as it is.
    pub fn needs_serialization_for(&self, wants: DeliveryForm) -> bool {
        match self {
            Self::Off => false,
            Self::Plain { items, .. } => items.iter().any(|item| !wants.takes(&item.body)),
            Self::Keyed { items, .. } => items.values().any(|item| !wants.takes(&item.body)),
        }
    }

    /// The sample with that sequence number.
    pub fn find_mut(&mut self, sequence: i64) -> Option<&mut QueuedSample> {
        match self {
            Self::Off => None,
            Self::Plain { items, .. } => {
                let at = items.binary_search_by_key(&sequence, |item| item.meta.sequence);
                items.get_mut(at.ok()?)
            }
            Self::Keyed { items, .. } => items.get_mut(&sequence),
        }
    }

    /// The samples for a late joiner with history `depth`, oldest first, as far as
    /// its filter accepts them. Of a keyed topic it gets all and keeps that many
    /// per instance itself.
    pub fn for_reader(
        &self,
        now: Instant,
        reader: &EndpointQos,
        wants: impl Fn(&QueuedSample) -> bool,
    ) -> Vec<&QueuedSample> {
        let depth = match (reader.durability, reader.history) {
            (Durability::Volatile, _) => return Vec::new(),
            (_, History::KeepLast(depth)) => depth.max(1) as usize,
            (_, History::KeepAll) => usize::MAX,
        };
        let alive = |item: &&QueuedSample| item.expires_at > now && wants(item);
        match self {
            Self::Off => Vec::new(),
            Self::Plain { items, .. } => {
                let alive: Vec<_> = items.iter().filter(alive).collect();
                let is_sample = |item: &&&QueuedSample| !item.ends_set();
                let mut skipped = alive.iter().filter(is_sample).count().saturating_sub(depth);
                let skips = |item: &&QueuedSample| {
                    let skips = skipped > 0;
                    skipped -= usize::from(skips && !item.ends_set());
                    skips
                };
                alive.into_iter().skip_while(skips).collect()
            }
            Self::Keyed { items, .. } => items.values().filter(alive).collect(),
        }
    }
}
