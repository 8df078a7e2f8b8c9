//! The registered instances of a publisher, each with its own DEADLINE.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::{Duration, Instant};

use super::instance_key::InstanceIdentity;
use super::timers::{InstanceTimer, InstanceTimers};
use crate::sample::instance_info::SampleInstance;
use crate::sample::sample_limits::INSTANCES_MAX_DEFAULT;

/// Why a change of an instance is refused.
#[derive(Debug)]
pub enum InstanceRefusal {
    /// The key cannot be read from the message.
    Unreadable(DecodeError),
    /// The instance limit is reached.
    Full {
        /// The limit.
        max: usize,
    },
    /// It was never registered, or is unregistered.
    Unknown,
}

/// Instances registered by writing or explicitly, and not unregistered yet. At most
/// `max_instances` of RESOURCE_LIMITS; more are refused.
pub struct WriterInstances {
    reader: Arc<dyn KeyReader>,
    keys: BTreeMap<KeyHash, WriterInstance>,
    instances_max: usize,
    deadline: Duration,
    timers: InstanceTimers,
    deadlines_missed: u64,
}

struct WriterInstance {
    /// The serialized key.
    key: Bytes,
    /// Whether it was written or registered explicitly. Otherwise it is removed
    /// with its refused message.
    is_registered: bool,
    /// Whether the last change was data.
    is_alive: bool,
}

impl WriterInstances {
    /// No instances; limit and deadline are those of `qos`.
    pub fn new(reader: Arc<dyn KeyReader>, qos: &EndpointQos) -> Self {
        let limit = qos.resource_limits.max_instances;
        Self {
            reader,
            keys: BTreeMap::new(),
            instances_max: limit.map_or(INSTANCES_MAX_DEFAULT, |n| n.max(1) as usize),
            deadline: qos.deadline,
            timers: InstanceTimers::default(),
            deadlines_missed: 0,
        }
    }

    /// Reads the keys of the topic.
    #[inline]
    pub fn key_reader(&self) -> &Arc<dyn KeyReader> {
        &self.reader
    }

    /// The instance of a message, registered if it was not. `key` serializes the key
    /// of a new instance.
    ///
    /// The registration lasts until [`WriterInstances::remove_unwritten`], or for
    /// good after [`WriterInstances::note_written`] or [`WriterInstances::keep`].
    /// An unregistration is recorded by `note_written`.
    pub fn register(
        &mut self,
        hash: KeyHash,
        kind: ChangeKind,
        key: impl FnOnce(&dyn KeyReader) -> Result<Bytes, DecodeError>,
    ) -> Result<SampleInstance, InstanceRefusal> {
        if let Some(entry) = self.keys.get(&hash) {
            return Ok(SampleInstance::new(hash, kind, entry.key.clone()));
        }
        if kind.is_unregistered() {
            return Err(InstanceRefusal::Unknown);
        }
        let max = self.instances_max;
        if self.keys.len() >= max {
            return Err(InstanceRefusal::Full { max });
        }
        let key = key(&*self.reader).map_err(InstanceRefusal::Unreadable)?;
        let entry = WriterInstance {
            key: key.clone(),
            is_registered: false,
            is_alive: false,
        };
        self.keys.insert(hash, entry);
        Ok(SampleInstance::new(hash, kind, key))
    }

    /// Records a written change. Data meets the instance's deadline; an end has no
    /// deadline.
    pub fn note_written(&mut self, now: Instant, keyed: &SampleInstance) {
        let key = keyed.info.key;
        if keyed.kind.is_unregistered() {
            self.keys.remove(&key);
        } else {
            // Another thread may have unregistered it meanwhile.
            let entry = self.entry(keyed);
            entry.is_registered = true;
            entry.is_alive = keyed.kind == ChangeKind::Alive;
        }
        let due = match keyed.kind {
            ChangeKind::Alive => now.after(self.deadline),
            _ => Instant::FAR_FUTURE,
        };
        self.timers.set(key, InstanceTimer::Deadline, due);
    }

    /// Keeps an instance registered whether or not it is written.
    pub fn keep(&mut self, keyed: &SampleInstance) {
        self.entry(keyed).is_registered = true;
    }

    fn entry(&mut self, keyed: &SampleInstance) -> &mut WriterInstance {
        self.keys
            .entry(keyed.info.key)
            .or_insert_with(|| WriterInstance {
                key: keyed.key.clone(),
                is_registered: true,
                is_alive: false,
            })
    }

    /// Removes an instance whose only message was refused.
    pub fn remove_unwritten(&mut self, keyed: &SampleInstance) {
        let key = keyed.info.key;
        if self
            .keys
            .get(&key)
            .is_some_and(|entry| !entry.is_registered)
        {
            self.keys.remove(&key);
        }
    }

    /// The keys of all instances.
    pub fn all(&self) -> Vec<InstanceIdentity> {
        let keys = self.keys.iter();
        keys.map(|(hash, entry)| InstanceIdentity {
            hash: *hash,
            key: entry.key.clone(),
        })
        .collect()
    }

    /// Sets the deadline of each instance that is alive, from now on.
    pub fn set_deadline(&mut self, now: Instant, deadline: Duration) {
        if self.deadline == deadline {
            return;
        }
        self.deadline = deadline;
        for (key, _) in self.keys.iter().filter(|(_, entry)| entry.is_alive) {
            self.timers
                .set(*key, InstanceTimer::Deadline, now.after(deadline));
        }
    }

    /// When [`WriterInstances::handle_timeout`] has work.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles due deadlines. Returns the total of missed deadlines if one was
    /// missed now.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<u64> {
        let before = self.deadlines_missed;
        while let Some((key, timer)) = self.timers.pop_due(now) {
            self.deadlines_missed += 1;
            self.timers.set(key, timer, now.after(self.deadline));
        }
        (self.deadlines_missed > before).then_some(self.deadlines_missed)
    }
}
