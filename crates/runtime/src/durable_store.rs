//! Durable store of publishers: durability TRANSIENT and PERSISTENT (DDS 1.4
//! §2.2.3.4), with durability service (§2.2.3.5).
//!
//! There is no separate service process. The publisher's own process keeps a store.
//! A later publisher with the same domain, node and topic, or the same store name,
//! serves from it. Stored samples come before new ones, under new sequence numbers,
//! with GUID and sequence number of the original writer. Subscriptions that
//! received them before drop them (see `duplicate_filter`).

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
use pteros_rtps::writer::{NewChange, RestoredSample, WriterConfig};
use pteros_store::{
    BYTES_MAX_DEFAULT, Depth, Origin, Retention, SAMPLES_MAX_DEFAULT, Safety, Store, StoreCounts,
    StoreError, StoreSpec, StoredSample, default_name,
};

use crate::core::Core;
use crate::event::{EndpointEvent, EndpointEvents};
use crate::instance::{KeyHash, SampleInstance};
use crate::sample::{DeliveryPath, RelatedIdentity, SampleBody, SampleMeta};
use crate::writer::{WriterEndpoint, WriterState};

/// The location of stores and their maximum size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The folder. Without one no publisher can be transient or persistent.
    pub folder: Option<PathBuf>,
    /// The most bytes of samples in one store.
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
    /// Opens the store of a durable writer. Returns its samples, oldest first.
    /// Blocks for disk I/O.
    pub(crate) fn open_store(
        &self,
        data: &EndpointData,
        name: Option<String>,
        events: &Arc<EndpointEvents>,
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
            events.push(EndpointEvent::NotStored {
                total: loss.total,
                queued: loss.waiting,
                reason: loss.reason,
            });
        };
        self.platform.open_store(spec, Box::new(on_loss)).map(Some)
    }
}

/// Extends the history of a durable writer to what its store keeps, if that is
/// more.
pub(crate) fn extend_history(config: &mut WriterConfig, bytes_max: u64) {
    let qos = &mut config.qos;
    if !is_durable(qos) {
        return;
    }
    let limits = &mut config.limits;
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    limits.history_bytes_max = limits.history_bytes_max.max(bytes_max);
    qos.history = late_joiner_history(qos);
}

/// The announced QoS, with the history that late joiners of a durable writer get.
pub(crate) fn late_joiner_qos(qos: &EndpointQos) -> EndpointQos {
    EndpointQos {
        history: late_joiner_history(qos),
        ..qos.clone()
    }
}

fn late_joiner_history(qos: &EndpointQos) -> History {
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
        cleanup_nanos: if service.cleanup_delay.is_infinite() {
            -1
        } else {
            service.cleanup_delay.as_nanos()
        },
    }
}

/// The durable store of a writer.
impl WriterEndpoint {
    /// Queues a sample for storing, if the writer has a store. Call under the
    /// writer's `state` lock, so that the order is kept.
    pub(crate) fn store_sample(
        &self,
        meta: &SampleMeta,
        keyed: Option<&SampleInstance>,
        payload: &Bytes,
    ) {
        let Some(store) = &self.store else {
            return;
        };
        let kind = keyed.map_or(ChangeKind::Alive, |keyed| keyed.kind);
        if kind == ChangeKind::Unregistered {
            // Registrations matter only to living writers.
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

    /// Blocks until everything published is stored; true without a store.
    ///
    /// See [`Store::wait_until_stored`].
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

    /// Inserts the stored samples into a new writer, except those whose LIFESPAN
    /// has ended.
    pub(crate) fn restore(&self, now: Instant, wall: Timestamp, samples: Vec<StoredSample>) {
        let mut state = self.state.lock();
        for sample in samples {
            let source = sample.source_nanos.map(Timestamp::from_nanos);
            let lifespan = self.lifespan();
            let age = wall
                .as_nanos()
                .saturating_sub(sample.source_nanos.unwrap_or(wall.as_nanos()));
            // A wall clock that was set back makes no sample younger than new.
            let left = lifespan.as_nanos().saturating_sub(age.max(0));
            if !lifespan.is_infinite() && left <= 0 {
                continue;
            }
            let expires_at = if lifespan.is_infinite() {
                Instant::FAR_FUTURE
            } else {
                now.after(pteros_rtps::time::Duration::from_nanos(left))
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
                RestoredSample {
                    original_writer_info: original,
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
        restored: RestoredSample,
    ) {
        let kind = if sample.disposed {
            ChangeKind::Disposed
        } else {
            ChangeKind::Alive
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
                "topic {:?}: a stored sample of {} bytes exceeds the size limit; it is not sent and stays in \
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
            path: DeliveryPath::IntraProcess,
        };
        let keyed = sample.key_hash.map(|key| {
            let end = if sample.disposed {
                sample.payload.clone()
            } else {
                Bytes::new()
            };
            SampleInstance::new(KeyHash(key), kind, end)
        });
        let body = SampleBody::Serialized(sample.payload);
        let mut item = self.queued_sample(now, body, meta, keyed.as_ref());
        item.expires_at = restored.expires_at;
        item.related_identity = RelatedIdentity::new(Some(restored.original_writer_info), None);
        state.history.push_or_drop_oldest(item);
    }
}
