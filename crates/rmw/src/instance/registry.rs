//! The instances that a publisher writes, each with its own DEADLINE.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::{Duration, Instant};

use super::alarms::{Alarm, Alarms};
use super::{INSTANCES_MAX_DEFAULT, Keyed};
use crate::writer::Outgoing;

/// Why a change of an instance is not accepted.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Its key cannot be read from the message.
    Unreadable(DecodeError),
    /// So many instances are registered.
    Full { max: usize },
    /// It is unregistered, but was never registered.
    Unknown,
}

/// Instances that are registered, by writing or expressly, and not yet
/// unregistered. At most RESOURCE_LIMITS' `max_instances`; more are refused.
pub(crate) struct Registry {
    reader: Arc<dyn KeyReader>,
    keys: BTreeMap<KeyHash, Entry>,
    instances_max: usize,
    deadline: Duration,
    alarms: Alarms,
    deadlines_missed: u64,
}

struct Entry {
    /// The serialized key.
    key: Bytes,
    /// Something of it was written, or it was registered expressly; otherwise it
    /// goes with the message that is not accepted.
    stays: bool,
    /// The last that was written of it is data.
    lives: bool,
}

impl Registry {
    pub(crate) fn new(reader: Arc<dyn KeyReader>, qos: &EndpointQos) -> Self {
        let limit = qos.resource_limits.max_instances;
        Self {
            reader,
            keys: BTreeMap::new(),
            instances_max: limit.map_or(INSTANCES_MAX_DEFAULT, |n| n.max(1) as usize),
            deadline: qos.deadline,
            alarms: Alarms::default(),
            deadlines_missed: 0,
        }
    }

    /// The instance of a message, registered if it was not: until
    /// [`Registry::forget_unwritten`], or for good once [`Registry::note_written`]
    /// or [`Registry::keep`] is told. What unregisters it is noted by the former.
    pub(crate) fn register(&mut self, message: &mut dyn Outgoing) -> Result<Keyed, Refused> {
        let reader = self.reader.clone();
        let hash = message.key_hash(&*reader).map_err(Refused::Unreadable)?;
        let kind = message.kind();
        if let Some(entry) = self.keys.get(&hash) {
            return Ok(Keyed::new(hash, kind, entry.key.clone()));
        }
        if kind.is_unregistered() {
            return Err(Refused::Unknown);
        }
        let max = self.instances_max;
        if self.keys.len() >= max {
            return Err(Refused::Full { max });
        }
        let key = message.key(&*reader).map_err(Refused::Unreadable)?;
        let entry = Entry {
            key: key.clone(),
            stays: false,
            lives: false,
        };
        self.keys.insert(hash, entry);
        Ok(Keyed::new(hash, kind, key))
    }

    /// A change was written: data meets the instance's deadline, an end has
    /// none to meet.
    pub(crate) fn note_written(&mut self, now: Instant, keyed: &Keyed) {
        let key = keyed.info.key;
        if keyed.kind.is_unregistered() {
            self.keys.remove(&key);
        } else {
            // Another thread may have unregistered it meanwhile.
            let entry = self.entry(keyed);
            entry.stays = true;
            entry.lives = keyed.kind == ChangeKind::Alive;
        }
        let due = match keyed.kind {
            ChangeKind::Alive => now.after(self.deadline),
            _ => Instant::FAR_FUTURE,
        };
        self.alarms.set(key, Alarm::Deadline, due);
    }

    /// An instance is registered whether or not it is written.
    pub(crate) fn keep(&mut self, keyed: &Keyed) {
        self.entry(keyed).stays = true;
    }

    fn entry(&mut self, keyed: &Keyed) -> &mut Entry {
        self.keys.entry(keyed.info.key).or_insert_with(|| Entry {
            key: keyed.key.clone(),
            stays: true,
            lives: false,
        })
    }

    /// A message was not accepted: its instance goes if nothing else is of it.
    pub(crate) fn forget_unwritten(&mut self, keyed: &Keyed) {
        let key = keyed.info.key;
        if self.keys.get(&key).is_some_and(|entry| !entry.stays) {
            self.keys.remove(&key);
        }
    }

    /// The serialized keys of all instances.
    pub(crate) fn all(&self) -> Vec<(KeyHash, Bytes)> {
        let keys = self.keys.iter();
        keys.map(|(hash, entry)| (*hash, entry.key.clone()))
            .collect()
    }

    /// Another deadline holds, from now on, for each instance that lives.
    pub(crate) fn set_deadline(&mut self, now: Instant, deadline: Duration) {
        if self.deadline == deadline {
            return;
        }
        self.deadline = deadline;
        for (key, _) in self.keys.iter().filter(|(_, entry)| entry.lives) {
            self.alarms.set(*key, Alarm::Deadline, now.after(deadline));
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// The deadlines missed in all, if one was missed now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<u64> {
        let before = self.deadlines_missed;
        while let Some((key, alarm)) = self.alarms.pop_due(now) {
            self.deadlines_missed += 1;
            self.alarms.set(key, alarm, now.after(self.deadline));
        }
        (self.deadlines_missed > before).then_some(self.deadlines_missed)
    }
}
