//! Coherent sets on their way (RTPS 2.5 §8.7.6): marks go with samples, ends of
//! sets reach those who asked for coherent access and nobody else, and neither
//! costs anybody a sample.

mod pair;

use bytes::Bytes;
use pair::{Pair, R, W};
use pteros_rtps::id::VendorId;
use pteros_rtps::mark::{Mark, MarkKind};
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

fn sample(mark: Option<Mark>) -> NewChange {
    NewChange {
        payload: Bytes::from_static(b"\0\x01\0\0data"),
        mark: mark.map(Box::new),
        ..NewChange::default()
    }
}

fn end() -> NewChange {
    NewChange {
        payload: Bytes::new(),
        ..sample(Some(Mark {
            kind: MarkKind::End,
            ..Mark::default()
        }))
    }
}

/// Writes a set of so many samples and its end.
fn write_set(pair: &mut Pair, w: W, count: usize) {
    let first = pair.writers[w.0].machine.next_sequence();
    let mark = Mark {
        set: Some(first),
        ..Mark::default()
    };
    for _ in 0..count {
        pair.try_write(w, sample(Some(mark))).unwrap();
    }
    pair.try_write(w, end()).unwrap();
}

/// What a reader got: the first number of its set, or 0 for an end.
fn seen(pair: &Pair, r: R) -> Vec<(i64, i64)> {
    let received = pair.readers[r.0].received.iter();
    let of = |mark: &Mark| match mark.kind {
        MarkKind::Change => mark.set.map_or(-1, |set| set.0),
        MarkKind::End => 0,
        MarkKind::Filtered => -2,
        MarkKind::Settled => -3,
    };
    received
        .map(|c| (c.sequence.0, c.mark.as_deref().map_or(-1, of)))
        .collect()
}

#[test]
fn marks_and_ends_arrive_in_order_though_a_third_of_the_datagrams_is_lost() {
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
            // In one process with one that does ask for it.
            let beside = pair.reader(1, coherent());
            let alone = pair.reader(
                2,
                EndpointQos {
                    reliability,
                    ..plain()
                },
            );
            pair.writer_learns_of(w, r, vendor);
            pair.reader_learns(r, w);
            pair.writer_learns_of(w, alone, vendor);
            pair.reader_learns(alone, w);
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
            assert!(pair.writers[w.0].machine.is_acked_by_all());
        }
    }
}

#[test]
fn a_late_joiners_depth_counts_samples_and_not_the_ends_of_their_sets() {
    for wants in [coherent(), plain()] {
        let mut pair = Pair::new();
        let latched = |qos, depth| EndpointQos {
            durability: Durability::TransientLocal,
            history: History::KeepLast(depth),
            ..qos
        };
        let w = pair.writer(0, latched(coherent(), 5));
        for _ in 0..10 {
            write_set(&mut pair, w, 2);
        }
        assert_eq!(pair.writers[w.0].machine.kept_count(), 5);
        let r = pair.reader(1, latched(wants.clone(), 2));
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
fn an_end_takes_no_room_that_a_sample_needs_and_is_never_refused() {
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
fn what_a_peer_writes_into_a_mark_is_read_or_left_out() {
    let read = |bytes: &[u8], is_nothing| {
        let list = InlineQos::parse(&mut Cursor::new(bytes, Endianness::Little)).unwrap();
        Mark::read(&list, is_nothing)
    };
    const END: [u8; 4] = [1, 0, 0, 0];
    let of = |id: u8, value: &[u8]| {
        let head = [id, 0, value.len() as u8, 0];
        [&head[..], value, &END[..]].concat()
    };
    let five = [0, 0, 0, 0, 5, 0, 0, 0];
    let unknown = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let mark = Mark::default;
    let five_read = Some(SequenceNumber(5));
    assert_eq!(read(&END, false), None);
    assert_eq!(
        read(&of(0x56, &five), false),
        Some(Mark {
            set: five_read,
            ..mark()
        })
    );
    let group = Mark {
        group_set: five_read,
        ..mark()
    };
    assert_eq!(read(&of(0x63, &five), false), Some(group));
    let kind = MarkKind::End;
    assert_eq!(read(&of(0x63, &five), true), Some(Mark { kind, ..group }));
    assert_eq!(
        read(&of(0x56, &unknown), true),
        Some(Mark { kind, ..mark() })
    );
    // Without payload and without the end of a set: somebody's filter.
    let kind = MarkKind::Filtered;
    assert_eq!(read(&END, true), Some(Mark { kind, ..mark() }));
    // Nonsense is no mark.
    for nonsense in [&five[..4], &[0; 8], &[0xff; 8], &unknown] {
        for id in [0x56, 0x63, 0x64] {
            assert_eq!(read(&of(id, nonsense), false), None, "{id:x} {nonsense:?}");
        }
    }
    assert_eq!(read(&of(0x65, &[]), false), None);
}

#[test]
fn a_silent_writer_of_an_ordered_publisher_says_where_that_is() {
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
    writer.know_place(SequenceNumber(7), [1, 2, 3, 4]);
    let mark = Mark {
        group_sequence: Some(SequenceNumber(7)),
        ..Mark::default()
    };
    pair.try_write(w, sample(Some(mark))).unwrap();
    pair.run_ms(50);
    // What is told is lost at first, and told again.
    pair.net.faults.loss_percent = 100;
    let now = pair.now();
    let place = SequenceNumber(9);
    pair.writers[w.0]
        .machine
        .note_place(now, place, [1, 2, 3, 4]);
    pair.run_ms(10);
    pair.net.heal();
    pair.run_ms(100);
    let told = pair.readers[r.0].received.iter().filter_map(|c| {
        let mark = c.mark.as_deref()?;
        (mark.kind == MarkKind::Settled).then_some((c.sequence.0, mark.group_sequence?.0))
    });
    assert_eq!(told.last(), Some((1, 9)));
    assert_eq!(pair.numbers(unasked), [1]);
}
