//! Writers with a durable store: samples are stored when published, and restored when the
//! writer starts.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::{NewChange, RestoredSample};
use pteros_store::{Origin, Store, StoreCounts, StoredSample};

use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::instance::{KeyHash, SampleInstance};
use crate::sample::{DeliveryPath, RelatedIdentity, SampleBody, SampleMeta};

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
            // Registrations concern only living writers.
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
            // A wall clock that was set back must not extend the lifespan.
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
