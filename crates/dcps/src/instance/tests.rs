//! The cache of one keyed subscription on simulated time. Cases for both paths are
//! in `pteros/tests/testsuite/conformance`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::{CacheChange, Carrier, ChangeKind};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::qos::{EndpointQos, History, Reliability, ResourceLimits};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};

use super::cache::InstanceCache;
use super::instance_key::identify;
use crate::qos::DataLifecycle;
use crate::sample::InsertOutcome;
use crate::sample::instance_info::{InstanceState as State, SampleInstance};
use crate::sample::queued_sample::tests::item_of;
use crate::sample::queued_sample::{QueuedSample, SampleBody, SampleMeta};
use crate::sample::sample_limits::INSTANCES_MAX_DEFAULT;

/// The first byte after the encapsulation header is the key and its hash.
struct FirstByte;

impl KeyReader for FirstByte {
    fn of_sample(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        let key = payload.get(4).ok_or(DecodeError::NoHeader)?;
        Ok(KeyHash([*key; 16]))
    }

    fn of_key(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        self.of_sample(payload)
    }

    fn key_of(&self, payload: &[u8]) -> Result<Vec<u8>, DecodeError> {
        self.of_sample(payload)
            .map(|hash| vec![0, 1, 0, 0, hash.0[0]])
    }

    fn key_of_hash(&self, hash: KeyHash) -> Option<Vec<u8>> {
        Some(vec![0, 1, 0, 0, hash.0[0]])
    }
}

fn cache(qos: &EndpointQos, lifecycle: DataLifecycle) -> InstanceCache {
    InstanceCache::new(Arc::new(FirstByte), qos, lifecycle)
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn writer(n: u8) -> Guid {
    item_of(n, 1).meta.publisher
}

fn meta(n: u8) -> SampleMeta {
    item_of(n, 1).meta
}

fn item(from: u8, key: u8, kind: ChangeKind) -> QueuedSample {
    let payload = Bytes::from(vec![0, 1, 0, 0, key, 0, 0, 0]);
    let serialized = match kind {
        ChangeKind::Alive => Bytes::new(),
        _ => payload.clone(),
    };
    QueuedSample {
        body: SampleBody::Serialized(payload),
        instance: Some(Box::new(SampleInstance::new(
            KeyHash([key; 16]),
            kind,
            serialized,
        ))),
        ..item_of(from, 1)
    }
}

fn offer(cache: &mut InstanceCache, ms: u64, from: u8, key: u8, kind: ChangeKind) -> InsertOutcome {
    cache.offer(at_ms(ms), item(from, key, kind), None, |_| true)
}

fn sample(cache: &mut InstanceCache, key: u8) -> InsertOutcome {
    offer(cache, 0, 1, key, ChangeKind::Alive)
}

/// The next taken entry: its key, and how the instance ended if it did.
fn taken(cache: &mut InstanceCache) -> Option<(u8, Option<State>)> {
    let item = cache.pop(|| Instant::ZERO).item?;
    let end = item.is_end();
    let info = item.instance.unwrap().info;
    Some((info.key.0[0], end.then_some(info.state)))
}

fn all(cache: &mut InstanceCache) -> Vec<(u8, Option<State>)> {
    std::iter::from_fn(|| taken(cache)).collect()
}

#[test]
fn an_instance_is_forgotten_when_it_has_ended_and_nothing_of_it_waits() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    sample(&mut cache, 7);
    offer(&mut cache, 0, 1, 7, ChangeKind::DisposedUnregistered);
    assert_eq!(cache.count(), 1);
    assert_eq!(all(&mut cache), [(7, None), (7, Some(State::Disposed))]);
    assert_eq!(cache.count(), 0);
    // As if it had never existed.
    sample(&mut cache, 7);
    let item = cache.pop(|| Instant::ZERO).item.unwrap();
    assert_eq!(item.instance.unwrap().info.disposed_generations, 0);
}

#[test]
fn of_several_untaken_ends_the_last_is_kept() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    for _ in 0..1_000 {
        sample(&mut cache, 7);
        offer(&mut cache, 0, 1, 7, ChangeKind::Disposed);
    }
    let mut expected = vec![(7, None); 10];
    expected.push((7, Some(State::Disposed)));
    assert_eq!(all(&mut cache), expected);
    sample(&mut cache, 7);
    let item = cache.pop(|| Instant::ZERO).item.unwrap();
    assert_eq!(item.instance.unwrap().info.disposed_generations, 1_000);
}

#[test]
fn a_writer_that_loses_liveliness_repeatedly_is_recorded_once() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    sample(&mut cache, 7);
    cache.hold_back();
    for _ in 0..1_000 {
        assert!(!cache.forget_writer(at_ms(0), writer(1), meta(1)));
    }
    assert_eq!(cache.departed_writer_count(), 1);
    assert_eq!(all(&mut cache), [(7, None)]);
    assert!(cache.handle_caught_up(at_ms(0)));
    assert_eq!(all(&mut cache), [(7, Some(State::NoWriters))]);
}

#[test]
fn a_disposed_registered_instance_gives_its_place_to_a_new_one() {
    let few = EndpointQos {
        resource_limits: ResourceLimits {
            max_instances: Some(2),
            ..ResourceLimits::default()
        },
        ..EndpointQos::default()
    };
    let mut cache = cache(&few, DataLifecycle::default());
    sample(&mut cache, 1);
    sample(&mut cache, 2);
    assert_eq!(sample(&mut cache, 3), InsertOutcome::Rejected);
    offer(&mut cache, 0, 1, 1, ChangeKind::Disposed);
    // Its end has not been taken.
    assert_eq!(sample(&mut cache, 3), InsertOutcome::Rejected);
    assert_eq!(all(&mut cache).len(), 3);
    assert_eq!(sample(&mut cache, 3), InsertOutcome::Queued);
    assert_eq!((cache.count(), cache.totals.rejected), (2, 2));
}

#[test]
fn a_writer_of_ever_new_keys_is_bounded_by_the_instance_limit() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    for n in 0_u32..20_000 {
        let mut item = item(1, 0, ChangeKind::Alive);
        let mut key = [0; 16];
        key[..4].copy_from_slice(&n.to_be_bytes());
        item.instance = Some(Box::new(SampleInstance::new(
            KeyHash(key),
            ChangeKind::Alive,
            Bytes::new(),
        )));
        cache.offer(at_ms(0), item, None, |_| true);
    }
    assert_eq!(cache.count(), INSTANCES_MAX_DEFAULT);
    assert_eq!(cache.totals.rejected, 10_000);
}

/// A sample of 64 MiB; all of them share the same bytes.
fn large(payload: &Bytes, key: u8) -> QueuedSample {
    QueuedSample {
        body: SampleBody::Serialized(payload.clone()),
        ..item(1, key, ChangeKind::Alive)
    }
}

#[test]
fn of_large_samples_of_many_instances_the_oldest_are_dropped() {
    let payload = Bytes::from(vec![0; 64 << 20]);
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    for key in 0..10 {
        let entered = cache.offer(at_ms(0), large(&payload, key), None, |_| true);
        assert_eq!(
            (entered, cache.exceeded_limit()),
            (InsertOutcome::Queued, None)
        );
    }
    assert_eq!(cache.totals.overwritten, 6);
    assert_eq!(
        all(&mut cache),
        [(6, None), (7, None), (8, None), (9, None)]
    );
    // A sample above the limit is the only one in the queue.
    let payload = Bytes::from(vec![0; 300 << 20]);
    for key in 0..2 {
        cache.offer(at_ms(0), large(&payload, key), None, |_| true);
    }
    assert_eq!(all(&mut cache), [(1, None)]);
}

#[test]
fn large_samples_fill_a_keep_all_queue() {
    let payload = Bytes::from(vec![0; 64 << 20]);
    let qos = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let mut cache = cache(&qos, DataLifecycle::default());
    for key in 0..4 {
        assert!(!cache.is_full());
        cache.offer(at_ms(0), large(&payload, key), None, |_| true);
    }
    assert!(cache.is_full() && cache.exceeded_limit().is_none());
    cache.hold_back();
    assert!(!cache.pop(|| Instant::ZERO).resume);
    assert!(cache.pop(|| Instant::ZERO).resume, "half empty");
}

/// A thread that waited for a change of an empty KEEP_ALL queue was woken by its
/// own check of it, again and again.
#[test]
fn checking_an_empty_keep_all_queue_makes_no_space() {
    let qos = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let mut cache = cache(&qos, DataLifecycle::default());
    assert!(!cache.pop(|| Instant::ZERO).freed_space);
    cache.offer(at_ms(0), large(&Bytes::from(vec![0; 8]), 1), None, |_| true);
    assert!(cache.pop(|| Instant::ZERO).freed_space);
    assert!(!cache.pop(|| Instant::ZERO).freed_space);
}

#[test]
fn samples_of_time_based_filters_count_against_the_byte_limit() {
    let payload = Bytes::from(vec![0; 64 << 20]);
    let qos = EndpointQos {
        time_based_filter: Duration::from_secs(1),
        reliability: Reliability::Reliable,
        ..EndpointQos::default()
    };
    let mut cache = cache(&qos, DataLifecycle::default());
    for key in 0..10 {
        for _ in 0..2 {
            cache.offer(at_ms(0), large(&payload, key), None, |_| true);
            assert_eq!(cache.exceeded_limit(), None);
        }
    }
    // Three are held, and one sample waits.
    cache.handle_timeout(at_ms(2_000));
    let left = all(&mut cache).len() as u64;
    let totals = cache.totals;
    assert_eq!((left, totals.overwritten, totals.filtered), (4, 9, 7));
}

#[test]
fn a_blocked_sample_is_purged_with_its_instance() {
    let qos = EndpointQos {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples_per_instance: Some(1),
            ..ResourceLimits::default()
        },
        ..EndpointQos::default()
    };
    let lifecycle = DataLifecycle {
        autopurge_disposed_samples_delay: Duration::from_millis(100),
        ..DataLifecycle::default()
    };
    let mut cache = cache(&qos, lifecycle);
    sample(&mut cache, 1);
    sample(&mut cache, 1);
    cache.hold_back();
    // By a publisher of this process, which nothing blocks.
    offer(&mut cache, 0, 2, 1, ChangeKind::Disposed);
    assert!(cache.is_full() && !cache.take_resume());
    cache.handle_timeout(at_ms(100));
    assert_eq!((cache.totals.purged, cache.is_full()), (2, false));
    assert!(cache.take_resume() && !cache.take_resume());
    assert_eq!(all(&mut cache), []);
}

#[test]
fn the_end_of_an_unknown_instance_is_not_delivered() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    let mut end = item(1, 7, ChangeKind::Disposed);
    if let Some(keyed) = &mut end.instance {
        keyed.key = Bytes::new();
    }
    let outcome = cache.offer(at_ms(0), end.clone(), None, |_| true);
    assert_eq!((outcome, cache.count()), (InsertOutcome::Withheld, 0));
    assert_eq!(
        offer(&mut cache, 0, 1, 7, ChangeKind::Unregistered),
        InsertOutcome::Withheld
    );
    sample(&mut cache, 7);
    assert_eq!(
        cache.offer(at_ms(0), end, None, |_| true),
        InsertOutcome::InstanceEndQueued
    );
    let ends = |item: &QueuedSample| item.is_end();
    let end = std::iter::from_fn(|| cache.pop(|| Instant::ZERO).item).find(ends);
    // The key is the one that the sample had.
    assert_eq!(&*end.unwrap().instance.unwrap().key, [0, 1, 0, 0, 7]);
}

#[test]
fn a_departed_writer_leaves_its_instances_without_writers() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    for (from, key) in [(1, 1), (1, 2), (2, 2)] {
        offer(&mut cache, 0, from, key, ChangeKind::Alive);
    }
    assert_eq!(all(&mut cache).len(), 3);
    assert!(cache.forget_writer(at_ms(5), writer(1), meta(1)));
    assert_eq!(all(&mut cache), [(1, Some(State::NoWriters))]);
    assert!(cache.forget_writer(at_ms(6), writer(2), meta(2)));
    assert_eq!(all(&mut cache), [(2, Some(State::NoWriters))]);
    assert_eq!(cache.count(), 0);
}

#[test]
fn held_back_samples_of_a_departed_writer_come_before_the_end() {
    let mut cache = cache(&EndpointQos::default(), DataLifecycle::default());
    sample(&mut cache, 1);
    cache.hold_back();
    assert!(!cache.forget_writer(at_ms(0), writer(1), meta(1)));
    assert!(!cache.handle_caught_up(at_ms(0)));
    // Half empty: held-back samples are requested.
    assert!(cache.pop(|| Instant::ZERO).resume);
    sample(&mut cache, 1);
    assert!(cache.handle_caught_up(at_ms(0)));
    let expected = [(1, None), (1, Some(State::NoWriters))];
    assert_eq!(all(&mut cache), expected);
}

#[test]
fn each_deadline_is_missed_repeatedly_until_the_instance_ends() {
    let qos = EndpointQos {
        deadline: Duration::from_millis(100),
        ..EndpointQos::default()
    };
    let mut cache = cache(&qos, DataLifecycle::default());
    offer(&mut cache, 0, 1, 1, ChangeKind::Alive);
    offer(&mut cache, 50, 1, 2, ChangeKind::Alive);
    assert_eq!(cache.next_timeout(), Some(at_ms(100)));
    cache.handle_timeout(at_ms(100));
    assert_eq!(cache.totals.deadlines_missed, 1);
    cache.handle_timeout(at_ms(200));
    assert_eq!(cache.totals.deadlines_missed, 3);
    offer(&mut cache, 210, 1, 1, ChangeKind::Disposed);
    offer(&mut cache, 220, 1, 2, ChangeKind::Unregistered);
    assert_eq!(cache.next_timeout(), None);
}

#[test]
fn an_ended_instance_is_purged_after_its_delay_unless_it_is_written_again() {
    let lifecycle = DataLifecycle {
        autopurge_disposed_samples_delay: Duration::from_millis(100),
        autopurge_nowriter_samples_delay: Duration::from_millis(300),
        ..DataLifecycle::default()
    };
    let mut cache = cache(&EndpointQos::default(), lifecycle);
    for key in [1, 2, 3] {
        sample(&mut cache, key);
    }
    offer(&mut cache, 0, 1, 1, ChangeKind::DisposedUnregistered);
    offer(&mut cache, 0, 1, 2, ChangeKind::Disposed);
    offer(&mut cache, 0, 1, 3, ChangeKind::Unregistered);
    offer(&mut cache, 50, 1, 2, ChangeKind::Alive);
    cache.handle_timeout(at_ms(100));
    assert_eq!((cache.totals.purged, cache.count()), (1, 2));
    cache.handle_timeout(at_ms(300));
    assert_eq!((cache.totals.purged, cache.count()), (2, 1));
    let expected = [(2, None), (2, Some(State::Disposed)), (2, None)];
    assert_eq!(all(&mut cache), expected);
}

#[test]
fn keep_all_blocks_a_sample_whose_instance_is_full() {
    let qos = EndpointQos {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples_per_instance: Some(1),
            ..ResourceLimits::default()
        },
        ..EndpointQos::default()
    };
    let mut cache = cache(&qos, DataLifecycle::default());
    sample(&mut cache, 1);
    assert!(cache.is_full_for(&KeyHash([1; 16])) && !cache.is_full_for(&KeyHash([2; 16])));
    sample(&mut cache, 2);
    assert!(!cache.is_full());
    sample(&mut cache, 1);
    assert!(cache.is_full());
    cache.hold_back();
    assert_eq!(taken(&mut cache), Some((1, None)));
    assert!(!cache.is_full());
    assert_eq!(all(&mut cache), [(2, None), (1, None)]);
    assert_eq!(cache.totals.overwritten, 0);
}

fn change(vendor: VendorId, payload: &[u8], key_only: bool, sent: Option<u8>) -> CacheChange {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&vendor.0);
    CacheChange {
        kind: if key_only {
            ChangeKind::Disposed
        } else {
            ChangeKind::Alive
        },
        writer: GuidPrefix(prefix).with(EntityId::new([0, 0, 1], EntityId::KIND_WRITER_WITH_KEY)),
        sequence: SequenceNumber(1),
        source_timestamp: None,
        carrier: Carrier::Datagrams,
        payload: Bytes::copy_from_slice(payload),
        key_only,
        key_hash: sent.map(|key| [key; 16]),
        related_sample_identity: None,
        original_writer_info: None,
        expires_at: Instant::FAR_FUTURE,
        coherent_mark: None,
        charge: SampleCharge::default(),
    }
}

#[test]
fn a_readable_key_takes_precedence_over_a_received_hash() {
    let payload = [0, 1, 0, 0, 7, 0, 0, 0];
    let key = |vendor, payload: &[u8], key_only, sent| {
        let keyed = identify(&FirstByte, &change(vendor, payload, key_only, sent))?;
        Some((keyed.info.key.0[0], keyed.key.len()))
    };
    let cyclone = VendorId::CYCLONE;
    for key_only in [false, true] {
        let size = if key_only { 8 } else { 0 };
        assert_eq!(key(cyclone, &payload, key_only, None), Some((7, size)));
        assert_eq!(key(cyclone, &payload, key_only, Some(9)), Some((7, size)));
    }
    // An end without anything else, or one that cannot be read.
    assert_eq!(key(cyclone, &[], true, Some(9)), Some((9, 5)));
    assert_eq!(key(cyclone, &[0, 3], true, Some(9)), Some((9, 5)));
    assert_eq!(key(cyclone, &[], true, None), None);
    // The hash of a Pteros peer is computed as ours.
    assert_eq!(
        key(VendorId::PTEROS, &payload, false, Some(9)),
        Some((9, 0))
    );
}
