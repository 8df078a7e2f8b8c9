//! Publishers whose samples outlive them: durability TRANSIENT and PERSISTENT
//! (DDS 1.4 §2.2.3.4), with DURABILITY_SERVICE (§2.2.3.5) for the rules.
//!
//! There is no service that runs beside: the publisher's own process keeps a
//! store, and whoever creates the same publisher again, by domain, node and
//! topic or by the store's name, serves from it. What was stored comes before
//! anything new, under the new publisher's numbers, with the original writer's
//! GUID and number beside, so that subscriptions which had it drop it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::{NewChange, Restored, WriterConfig};
use pteros_store::{
    BYTES_MAX_DEFAULT, Depth, Origin, Retention, SAMPLES_MAX_DEFAULT, Safety, Store, StoreCounts,
    StoreError, StoreSpec, StoredSample, default_name,
};

use crate::core::Core;
use crate::event::{EndpointEvent, Events};
use crate::instance::{KeyHash, Keyed};
use crate::sample::{Body, Kin, Path, SampleMeta};
use crate::writer::{WriterEndpoint, WriterState};

/// Where stores lie and how large one may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The folder; without one no publisher can be transient or persistent.
    pub folder: Option<PathBuf>,
    /// Bytes of the samples in one store.
    pub bytes_max: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            folder: None,
            bytes_max: BYTES_MAX_DEFAULT,
        }
    }
}

/// Whether a publisher with these policies keeps a store.
pub(crate) fn is_durable(qos: &EndpointQos) -> bool {
    qos.durability >= Durability::Transient
}

impl Core {
    /// Opens the store of a writer that has one; what it holds comes along,
    /// oldest first. Blocks for the disk.
    pub(crate) fn open_store(
        &self,
        data: &EndpointData,
        name: Option<String>,
        events: &Arc<Events>,
    ) -> Result<Option<(Store, Vec<StoredSample>)>, StoreError> {
        if !is_durable(&data.qos) {
            return Ok(None);
        }
        let options = &self.options.store;
        let spec = StoreSpec {
            folder: options.folder.clone().ok_or(StoreError::NoFolder)?,
            name: name.unwrap_or_else(|| default_name(self.options.domain_id, "", &data.topic)),
            topic: data.topic.clone(),
            type_name: data.type_name.clone(),
            retention: retention(&data.qos, options.bytes_max),
            safety: match data.qos.durability {
                Durability::Persistent => Safety::Disk,
                _ => Safety::Process,
            },
            file_bytes_max: u64::MAX,
        };
        let (events, topic) = (events.clone(), data.topic.clone());
        let on_loss = move |loss: pteros_store::Loss| {
            tracing::warn!("topic {topic:?}: {}", loss.reason);
            events.note(EndpointEvent::NotStored {
                total: loss.total,
                waiting: loss.waiting,
                reason: loss.reason,
            });
        };
        self.env.open_store(spec, Box::new(on_loss)).map(Some)
    }
}

/// The machine of a durable writer keeps for late joiners what the store
/// keeps, if that is more than its own history.
pub(crate) fn widen(config: &mut WriterConfig, bytes_max: u64) {
    let qos = &mut config.qos;
    if !is_durable(qos) {
        return;
    }
    let limits = &mut config.limits;
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    limits.history_bytes_max = limits.history_bytes_max.max(bytes_max);
    qos.history = late_joiners_history(qos);
}

/// As announced, but with what late joiners get of a durable writer while it
/// lives.
pub(crate) fn late_joiners_qos(qos: &EndpointQos) -> EndpointQos {
    EndpointQos {
        history: late_joiners_history(qos),
        ..qos.clone()
    }
}

fn late_joiners_history(qos: &EndpointQos) -> History {
    let service = &qos.durability_service;
    match (qos.history, service.history) {
        (History::KeepLast(own), History::KeepLast(stored)) => History::KeepLast(own.max(stored)),
        (History::KeepLast(own), History::KeepAll) => {
            let stored = service.resource_limits.max_samples;
            let stored = stored.unwrap_or(SAMPLES_MAX_DEFAULT as u32);
            History::KeepLast(own.max(stored))
        }
        (History::KeepAll, _) => History::KeepAll,
    }
}

fn retention(qos: &EndpointQos, bytes_max: u64) -> Retention {
    let service = &qos.durability_service;
    let limit = |n: Option<u32>| n.map_or(usize::MAX, |n| n as usize);
    Retention {
        depth: match service.history {
            History::KeepLast(depth) => Depth::KeepLast(depth as usize),
            History::KeepAll => Depth::KeepAll,
        },
        samples_max: limit(service.resource_limits.max_samples),
        instances_max: limit(service.resource_limits.max_instances),
        samples_per_instance_max: limit(service.resource_limits.max_samples_per_instance),
        bytes_max,
        cleanup_nanos: match service.cleanup_delay.is_infinite() {
            true => -1,
            false => service.cleanup_delay.as_nanos(),
        },
    }
}

/// A writer's store.
impl WriterEndpoint {
    /// Has a sample stored soon; of a writer without a store nothing. Under the
    /// writer's `state` lock, so that the order is kept.
    pub(crate) fn store_sample(&self, meta: &SampleMeta, keyed: Option<&Keyed>, payload: &Bytes) {
        let Some(store) = &self.store else {
            return;
        };
        let kind = keyed.map_or(ChangeKind::Alive, |keyed| keyed.kind);
        if kind == ChangeKind::Unregistered {
            // Who writes an instance matters to the living alone.
            return;
        }
        store.put(StoredSample {
            origin: Origin {
                writer: self.guid().to_bytes(),
                sequence: meta.sequence,
            },
            source_nanos: meta.source.map(Timestamp::as_nanos),
            key_hash: keyed.map(|keyed| keyed.info.key.0),
            disposed: kind != ChangeKind::Alive,
            ended_nanos: meta.source.map_or(0, Timestamp::as_nanos),
            payload: payload.clone(),
        });
    }

    pub(crate) fn close_store(&self) {
        if let Some(store) = &self.store {
            store.close();
        }
    }

    /// Waits until everything published is in the store; see
    /// [`Store::wait_until_stored`]. True without a store.
    pub fn wait_until_stored(&self, timeout: Duration) -> bool {
        let store = self.store.as_ref();
        store.is_none_or(|store| store.wait_until_stored(timeout))
    }

    /// The file of its store, if it has one.
    pub fn store_path(&self) -> Option<PathBuf> {
        self.store.as_ref().map(Store::path)
    }

    /// The totals of its store, if it has one.
    pub fn store_counts(&self) -> Option<StoreCounts> {
        self.store.as_ref().map(Store::counts)
    }

    /// Gives a new writer the samples of its earlier life. Those whose
    /// lifespan has ended since are left out.
    pub(crate) fn restore(&self, now: Instant, wall: Timestamp, samples: Vec<StoredSample>) {
        let mut state = self.state.lock();
        for sample in samples {
            let source = sample.source_nanos.map(Timestamp::from_nanos);
            let lifespan = self.lifespan();
            let age = wall
                .as_nanos()
                .saturating_sub(sample.source_nanos.unwrap_or(wall.as_nanos()));
            // A wall clock that was set back makes nothing younger than new.
            let left = lifespan.as_nanos().saturating_sub(age.max(0));
            if !lifespan.is_infinite() && left <= 0 {
                continue;
            }
            let expires_at = match lifespan.is_infinite() {
                true => Instant::FAR_FUTURE,
                false => now.after(pteros_rtps::time::Duration::from_nanos(left)),
            };
            let original = SampleIdentity {
                writer: Guid::from_bytes(sample.origin.writer),
                sequence: SequenceNumber(sample.origin.sequence),
            };
            self.restore_one(
                &mut state,
                now,
                wall,
                sample,
                source,
                Restored {
                    original,
                    expires_at,
                },
            );
        }
    }

    fn restore_one(
        &self,
        state: &mut WriterState,
        now: Instant,
        wall: Timestamp,
        sample: StoredSample,
        source: Option<Timestamp>,
        restored: Restored,
    ) {
        let kind = match sample.disposed {
            true => ChangeKind::Disposed,
            false => ChangeKind::Alive,
        };
        let change = NewChange {
            payload: sample.payload.clone(),
            kind,
            source_timestamp: source,
            key_hash: sample.key_hash,
            restored: Some(restored),
            ..NewChange::default()
        };
        let Ok(sequence) = state.machine.write(now, change) else {
            tracing::warn!(
                "topic {:?}: a stored sample of {} bytes is larger than may be sent; it stays in \
                 the store",
                self.data.topic,
                sample.payload.len()
            );
            return;
        };
        let meta = SampleMeta {
            source,
            reception: wall,
            sequence: sequence.0,
            publisher: self.guid(),
            path: Path::IntraProcess,
        };
        let keyed = sample.key_hash.map(|key| {
            let end = match sample.disposed {
                true => sample.payload.clone(),
                false => Bytes::new(),
            };
            Keyed::new(KeyHash(key), kind, end)
        });
        let body = Body::Serialized(sample.payload);
        let mut item = self.item(now, body, meta, keyed.as_ref());
        item.expires_at = restored.expires_at;
        item.kin = Kin::new(Some(restored.original), None);
        state.latched.push_or_drop_oldest(item);
    }
}
