//! The history cache of keyed topics.

use crate::writer_reader::*;

fn keyed(key: u8, kind: ChangeKind) -> NewChange {
    NewChange {
        payload: Bytes::from(vec![0, 1, 0, 0, key, 0, 0, 0]),
        key_hash: Some([key; 16]),
        kind,
        ..NewChange::default()
    }
}

#[test]
fn the_last_sample_of_each_instance_is_kept_but_not_an_unregistered_one() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(1));
    let early = pair.reader(1, transient_local(100));
    pair.join(w, early);
    for key in [1, 2, 3, 1, 2, 1] {
        pair.try_write(w, keyed(key, ChangeKind::Alive))
            .expect("room");
    }
    for (key, kind) in [
        (3, ChangeKind::Disposed),
        (2, ChangeKind::Unregistered),
        (4, ChangeKind::DisposedUnregistered),
    ] {
        pair.try_write(w, keyed(key, kind)).expect("room");
    }
    pair.run_ms(100);
    assert_eq!(pair.writers[w.0].machine.cached_samples(), 2);
    let received = &pair.readers[early.0].received;
    let heard = |at: usize| {
        (
            received[at].kind,
            received[at].key_hash,
            received[at].key_only,
        )
    };
    assert_eq!(heard(6), (ChangeKind::Disposed, Some([3; 16]), true));
    assert_eq!(heard(7), (ChangeKind::Unregistered, Some([2; 16]), true));
    let both = ChangeKind::DisposedUnregistered;
    assert_eq!(heard(8), (both, Some([4; 16]), true));
    let late = pair.reader(2, transient_local(100));
    pair.join(w, late);
    pair.run_ms(100);
    assert_eq!(pair.numbers(late), [6, 7]);
    assert_eq!(lost(&pair, late), 0);
}

#[test]
fn a_keep_all_writer_blocks_on_the_full_instance_only() {
    let mut qos = keep_all(100);
    qos.resource_limits.max_samples_per_instance = Some(2);
    let (mut pair, w, _) = joined(qos.clone(), qos);
    let write = |pair: &mut Pair, key| pair.try_write(w, keyed(key, ChangeKind::Alive));
    for key in [1, 1, 2] {
        write(&mut pair, key).expect("room");
    }
    // No reader has had time to acknowledge anything.
    match write(&mut pair, 1) {
        Err(WriteError::WouldBlock {
            samples,
            samples_max,
            ..
        }) => assert_eq!((samples, samples_max), (2, 2)),
        other => panic!("{other:?}"),
    }
    write(&mut pair, 2).expect("room in another instance");
    pair.run_ms(100);
    write(&mut pair, 1).expect("acknowledged meanwhile");
}
