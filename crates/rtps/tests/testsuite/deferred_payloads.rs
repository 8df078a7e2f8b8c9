//! Deferred payloads, on fake time: a writer without readers keeps numbers, sizes
//! and instances, and gets the bytes when a reader is matched.

use pteros_test_support::rtps::pair;

use bytes::Bytes;
use pair::{Pair, transient_local};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::{NewChange, WriteError, Writer, WriterConfig, WriterLimits};

fn deferred(bytes: usize) -> NewChange {
    NewChange {
        deferred_bytes: bytes,
        ..NewChange::default()
    }
}

fn payload(number: i64) -> Bytes {
    Bytes::from(vec![number as u8; 100])
}

#[test]
fn a_late_reader_gets_provided_payloads_and_a_gap_for_the_others() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(4));
    for _ in 0..6 {
        pair.try_write(w, deferred(100)).unwrap();
    }
    let r = pair.reader(1, transient_local(10));
    let machine = &mut pair.writers[w.0].machine;
    assert_eq!(machine.cached_payload(SequenceNumber(4)), None);
    let mut asked = Vec::new();
    machine.provide_deferred_payloads(|sequence| {
        asked.push(sequence.0);
        // One is irrelevant by now.
        (sequence.0 != 5).then(|| payload(sequence.0))
    });
    assert_eq!(asked, [3, 4, 5, 6]);
    assert_eq!(machine.cached_payload(SequenceNumber(4)), Some(&payload(4)));
    machine.provide_deferred_payloads(|_| unreachable!("all are supplied"));
    pair.join(w, r);
    pair.write(w, &payload(7));
    pair.run_ms(200);
    assert_eq!(pair.numbers(r), [3, 4, 6, 7]);
    let samples = &pair.readers[r.0].received;
    assert!(samples.iter().all(|c| c.payload == payload(c.sequence.0)));
}

#[test]
fn deferred_payloads_count_against_the_limits_with_their_final_size() {
    let limits = WriterLimits {
        history_bytes_max: 10_000,
        sample_bytes_max: 5_000,
        ..WriterLimits::default()
    };
    let guid = pair::prefix(0).with(pteros_rtps::id::EntityId::new([0, 0, 1], 3));
    let mut writer = Writer::new(WriterConfig {
        limits,
        ..WriterConfig::new(guid, transient_local(100))
    });
    let now = Instant::ZERO + Duration::from_secs(1);
    let refused = writer.write(now, deferred(5_001));
    assert!(matches!(refused, Err(WriteError::TooLarge { .. })));
    for _ in 0..10 {
        writer.reserve_space(now, &deferred(4_000)).unwrap();
        writer.write(now, deferred(4_000)).unwrap();
        assert!(writer.memory_bytes() <= 10_000);
    }
    assert_eq!(writer.cached_samples(), 2);
    let before = writer.memory_bytes();
    writer.provide_deferred_payloads(|_| Some(Bytes::from(vec![0; 4_000])));
    assert_eq!(writer.memory_bytes(), before);
}
