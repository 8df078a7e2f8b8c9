//! Coherent sets (RTPS 2.5 §8.7.6): marks are sent with samples, set ends reach
//! only readers with coherent access, and neither causes a loss.

use pteros_test_support::rtps::pair;

use bytes::Bytes;
use pair::{Pair, R, W};
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::id::VendorId;
use pteros_rtps::qos::{
    Durability, EndpointQos, History, Presentation, Reliability, ResourceLimits,
};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::wire::{Cursor, Endianness, InlineQos};
use pteros_rtps::writer::NewChange;

fn coherent() -> EndpointQos {
    EndpointQos {
        presentation: Presentation {
            access_scope: 1,
            coherent: true,
            ordered: false,
        },
        history: History::KeepLast(100),
        ..EndpointQos::default()
    }
}

fn plain() -> EndpointQos {
    EndpointQos {
        presentation: Presentation::default(),
        ..coherent()
    }
}

fn sample(mark: Option<CoherentMark>) -> NewChange {
    NewChange {
        payload: Bytes::from_static(b"\0\x01\0\0data"),
        coherent_mark: mark.map(Box::new),
        ..NewChange::default()
    }
}

fn end() -> NewChange {
    NewChange {
        payload: Bytes::new(),
        ..sample(Some(CoherentMark {
            kind: CoherentMarkKind::SetEnd,
            ..CoherentMark::default()
        }))
    }
}

/// Writes a set of so many samples and its end.
fn write_set(pair: &mut Pair, w: W, count: usize) {
    let first = pair.writers[w.0].machine.next_sequence();
    let mark = CoherentMark {
        coherent_set: Some(first),
        ..CoherentMark::default()
    };
    for _ in 0..count {
        pair.try_write(w, sample(Some(mark))).unwrap();
    }
    pair.try_write(w, end()).unwrap();
}

/// Samples of a reader: the first number of the set, or 0 for a set end.
fn seen(pair: &Pair, r: R) -> Vec<(i64, i64)> {
    let received = pair.readers[r.0].received.iter();
    let of = |mark: &CoherentMark| match mark.kind {
        CoherentMarkKind::CacheChange => mark.coherent_set.map_or(-1, |set| set.0),
        CoherentMarkKind::SetEnd => 0,
        CoherentMarkKind::Filtered => -2,
        CoherentMarkKind::GroupHeartbeat => -3,
    };
    received
        .map(|c| (c.sequence.0, c.coherent_mark.as_deref().map_or(-1, of)))
        .collect()
}

#[test]
fn coherent_marks_and_set_ends_arrive_in_order_at_33_percent_loss() {
    let mut pair = Pair::with_seed(7);
    let w = pair.writer(0, coherent());
    let r = pair.reader(1, coherent());
    pair.join(w, r);
    pair.run_ms(50);
    pair.net.faults.loss_percent = 33;
    write_set(&mut pair, w, 3);
    pair.write(w, b"\0\x01\0\0alone");
    write_set(&mut pair, w, 2);
    pair.run_ms(3_000);
    let expected = [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 0),
        (5, -1),
        (6, 6),
        (7, 6),
        (8, 0),
    ];
    assert_eq!(seen(&pair, r), expected);
    assert_eq!(pair.readers[r.0].machine.stats().delivered, 6);
}

#[test]
fn readers_without_coherent_access_get_the_samples_and_no_loss() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        for vendor in [VendorId::PTEROS, VendorId::CYCLONE] {
            let mut pair = Pair::new();
            let w = pair.writer(0, coherent());
            let r = pair.reader(
                1,
                EndpointQos {
                    reliability,
                    ..plain()
                },
            );
            // In one process with a reader that requests coherent access.
            let beside = pair.reader(1, coherent());
            let alone = pair.reader(
                2,
                EndpointQos {
                    reliability,
                    ..plain()
                },
            );
            pair.match_reader_with(w, r, vendor);
            pair.match_writer_only(r, w);
            pair.match_reader_with(w, alone, vendor);
            pair.match_writer_only(alone, w);
            pair.join(w, beside);
            pair.run_ms(50);
            for _ in 0..3 {
                write_set(&mut pair, w, 2);
            }
            pair.run_ms(1_000);
            for reader in [r, alone] {
                assert_eq!(pair.numbers(reader), [1, 2, 4, 5, 7, 8], "{reliability:?}");
                assert_eq!(pair.readers[reader.0].machine.stats().lost, 0);
            }
            assert_eq!(pair.numbers(beside), (1..=9).collect::<Vec<_>>());
            assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
        }
    }
}

#[test]
fn a_late_joiners_depth_counts_samples_and_not_the_ends_of_their_sets() {
    for wants in [coherent(), plain()] {
        let mut pair = Pair::new();
        let transient_local = |qos, depth| EndpointQos {
            durability: Durability::TransientLocal,
            history: History::KeepLast(depth),
            ..qos
        };
        let w = pair.writer(0, transient_local(coherent(), 5));
        for _ in 0..10 {
            write_set(&mut pair, w, 2);
        }
        assert_eq!(pair.writers[w.0].machine.cached_samples(), 5);
        let r = pair.reader(1, transient_local(wants.clone(), 2));
        pair.join(w, r);
        pair.run_ms(500);
        let samples: Vec<i64> = seen(&pair, r)
            .into_iter()
            .filter(|(_, set)| *set != 0)
            .map(|(number, _)| number)
            .collect();
        assert_eq!(samples, [28, 29], "{:?}", wants.presentation);
    }
}

#[test]
fn a_set_end_takes_no_space_of_samples_and_is_never_refused() {
    let mut pair = Pair::new();
    let qos = EndpointQos {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(2),
            ..ResourceLimits::default()
        },
        ..coherent()
    };
    let w = pair.writer(0, qos.clone());
    let r = pair.reader(1, qos);
    pair.join(w, r);
    pair.run_ms(50);
    pair.net.faults.loss_percent = 100;
    write_set(&mut pair, w, 2);
    assert!(pair.try_write(w, sample(None)).is_err());
    for _ in 0..3_000 {
        pair.try_write(w, end()).unwrap();
    }
    pair.net.heal();
    pair.run_ms(5_000);
    let ends = seen(&pair, r).into_iter().filter(|(_, set)| *set == 0);
    assert_eq!(ends.count(), 1_024);
    assert_eq!(seen(&pair, r)[..2], [(1, 1), (2, 1)]);
}

#[test]
fn malformed_marks_of_a_peer_are_dropped() {
    let read = |bytes: &[u8], is_nothing| {
        let list = InlineQos::parse(&mut Cursor::new(bytes, Endianness::Little)).unwrap();
        list.coherent_mark(is_nothing)
    };
    const END: [u8; 4] = [1, 0, 0, 0];
    let of = |id: u8, value: &[u8]| {
        let head = [id, 0, value.len() as u8, 0];
        [&head[..], value, &END[..]].concat()
    };
    let five = [0, 0, 0, 0, 5, 0, 0, 0];
    let unknown = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let mark = CoherentMark::default;
    let five_read = Some(SequenceNumber(5));
    assert_eq!(read(&END, false), None);
    assert_eq!(
        read(&of(0x56, &five), false),
        Some(CoherentMark {
            coherent_set: five_read,
            ..mark()
        })
    );
    let group = CoherentMark {
        group_coherent_set: five_read,
        ..mark()
    };
    assert_eq!(read(&of(0x63, &five), false), Some(group));
    let kind = CoherentMarkKind::SetEnd;
    assert_eq!(
        read(&of(0x63, &five), true),
        Some(CoherentMark { kind, ..group })
    );
    assert_eq!(
        read(&of(0x56, &unknown), true),
        Some(CoherentMark { kind, ..mark() })
    );
    // Without payload and without a set end: a filter of the writer.
    let kind = CoherentMarkKind::Filtered;
    assert_eq!(read(&END, true), Some(CoherentMark { kind, ..mark() }));
    // Nonsense is no mark.
    for nonsense in [&five[..4], &[0; 8], &[0xff; 8], &unknown] {
        for id in [0x56, 0x63, 0x64] {
            assert_eq!(read(&of(id, nonsense), false), None, "{id:x} {nonsense:?}");
        }
    }
    assert_eq!(read(&of(0x65, &[]), false), None);
}

#[test]
fn a_silent_writer_of_an_ordered_publisher_announces_the_group_sequence() {
    let mut pair = Pair::new();
    let ordered = EndpointQos {
        presentation: Presentation {
            access_scope: 2,
            coherent: false,
            ordered: true,
        },
        ..coherent()
    };
    let w = pair.writer(0, ordered.clone());
    let r = pair.reader(1, ordered);
    let unasked = pair.reader(2, plain());
    pair.join(w, r);
    pair.join(w, unasked);
    pair.run_ms(50);
    let writer = &mut pair.writers[w.0].machine;
    writer.set_group_sequence(SequenceNumber(7), [1, 2, 3, 4]);
    let mark = CoherentMark {
        group_sequence: Some(SequenceNumber(7)),
        ..CoherentMark::default()
    };
    pair.try_write(w, sample(Some(mark))).unwrap();
    pair.run_ms(50);
    // The group sequence number is lost at first, and sent again.
    pair.net.faults.loss_percent = 100;
    let now = pair.now();
    let place = SequenceNumber(9);
    pair.writers[w.0]
        .machine
        .announce_group_sequence(now, place, [1, 2, 3, 4]);
    pair.run_ms(10);
    pair.net.heal();
    pair.run_ms(100);
    let announced = pair.readers[r.0].received.iter().filter_map(|c| {
        let mark = c.coherent_mark.as_deref()?;
        (mark.kind == CoherentMarkKind::GroupHeartbeat)
            .then_some((c.sequence.0, mark.group_sequence?.0))
    });
    assert_eq!(announced.last(), Some((1, 9)));
    assert_eq!(pair.numbers(unasked), [1]);
}
