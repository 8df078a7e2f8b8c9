//! What readers ask of a writer: acknowledgements of what was never sent,
//! bitmaps that are none, and requests as a way to make the writer shout.

use pteros_rtps::id::EntityId;

use crate::hall::{Hall, INTRUDER, ITS_READER};
use crate::pair::net::Said;

/// CVE-2020-18734 (Cyclone DDS) and Fast DDS #1337: the bitmap of an ACKNACK
/// was read into a fixed array, however many words it announced.
#[test]
fn an_acknack_of_more_than_256_bits_is_refused() {
    let mut hall = Hall::open();
    let pair = hall.request();
    for bits in [257, 288, 4_096, 0x8000_0000, u32::MAX] {
        hall.hit_writer(&Hall::intruder().acknack(pair, 1, bits, &[u32::MAX; 128], 1));
        let set = (1, bits, [u32::MAX; 128].as_slice());
        hall.hit_writer(&Hall::intruder().nack_frag(pair, 1, set, 1));
    }
    hall.hit_writer(&Hall::intruder().acknack(pair, 1, 256, &[u32::MAX; 2], 2));
    assert_eq!(hall.pair.writers[hall.w.0].machine.stats().nack_frags, 0);
    hall.close();
}

/// An ACKNACK that acknowledges samples which were never written: had it been
/// believed, the reader would never be sent them (the "unacked forever" family
/// of Cyclone DDS's asymmetric disconnects).
#[test]
fn the_future_can_not_be_acknowledged() {
    let mut hall = Hall::open();
    let pair = hall.request();
    for (count, base) in (1..).zip([1_000, 1 << 40, i64::MAX - 300, i64::MAX]) {
        hall.hit_writer(&Hall::intruder().acknack(pair, base, 0, &[], count));
        let words = [u32::MAX; 8];
        hall.hit_writer(&Hall::intruder().acknack(pair, base, 256, &words, count + 10));
    }
    let before = hall.sent_to(INTRUDER);
    hall.talk(3);
    assert!(hall.sent_to(INTRUDER) > before, "it gets what is written");
    hall.close();
}

/// Amplification by a matched reader: each small ACKNACK asks for all that is
/// kept (Cyclone DDS bounds this at 512 KiB queued, and tests "reader keeps
/// nacking"). What was sent a moment ago is not sent again.
#[test]
fn who_asks_again_and_again_is_answered_once_in_a_while() {
    let mut hall = Hall::open();
    for _ in 0..10 {
        hall.pair.write(hall.w, &[7; 1_000]);
    }
    hall.pair.run_ms(1_000);
    let before = hall.sent_to(INTRUDER);
    hall.pair.net.log.clear();
    let pair = hall.request();
    let from = hall.pair.writers[hall.w.0].machine.next_sequence().0 - 10;
    for count in 1..5_000 {
        hall.hit_writer(&Hall::intruder().acknack(pair, from, 10, &[u32::MAX], count));
    }
    let again = hall.pair.net.count(|said| matches!(said, Said::Data(_)));
    assert!(again <= 10, "{again} samples in one instant");
    // Each request that is not final gets the heartbeat it asks for.
    let sent = hall.sent_to(INTRUDER) - before;
    assert!(sent <= 2 * hall.received, "{sent} for {}", hall.received);
    hall.memory_bytes_max = 4 << 20;
    hall.close();
}

/// The same by somebody who is not matched: nothing at all is sent, whatever
/// is asked (CVE-2021-38425's family: no reply larger than the request before a
/// match). An unknown reader's id stands for every reader, not for it.
#[test]
fn strangers_get_nothing_however_they_ask() {
    let mut hall = Hall::open();
    let (_, writer) = hall.request();
    let before = hall.pair.net.bytes_sent;
    for reader in [ITS_READER, EntityId::UNKNOWN, hall.reader().entity] {
        for count in 0..300 {
            let pair = (reader, writer);
            let words = [u32::MAX; 8];
            hall.hit_writer(&Hall::stranger().acknack(pair, 1, 256, &words, count));
            hall.hit_writer(&Hall::stranger().nack_frag(pair, 1, (1, 256, &words), count));
        }
    }
    assert_eq!(hall.pair.net.bytes_sent, before);
    assert!(hall.pair.writers[hall.w.0].machine.stats().unknown_readers >= 900);
    hall.close();
}

/// Fragments of a sample that has none, fragments beyond its last, and of
/// samples that do not exist (CVE-2025-65865's subtraction, on the writer's
/// side).
#[test]
fn fragments_that_do_not_exist_are_not_sent() {
    let mut hall = Hall::open();
    let pair = hall.request();
    let large = hall.pair.write(hall.w, &[1; 10_000]);
    hall.pair.run_ms(1_000);
    let before = hall.sent_to(INTRUDER);
    let words = [u32::MAX; 8];
    for (count, base) in (1..).zip([0, 9, 100, u32::MAX - 256, u32::MAX]) {
        for sequence in [1, large.0, large.0 + 1, i64::MAX] {
            let set = (base, 256, words.as_slice());
            hall.hit_writer(&Hall::intruder().nack_frag(pair, sequence, set, count));
        }
    }
    let sent = hall.sent_to(INTRUDER) - before;
    assert!(sent <= 10 * 2_000, "{sent} bytes");
    hall.close();
}

/// Counts that jump: an attacker sends the highest count there is, so that all
/// later ones look old. It only silences itself.
#[test]
fn a_count_at_its_end_silences_only_its_sender() {
    let mut hall = Hall::open();
    let pair = hall.request();
    for count in [u32::MAX, 0x7fff_ffff, 0x8000_0000, 0] {
        hall.hit_writer(&Hall::intruder().acknack(pair, 1, 1, &[1 << 31], count));
        let writer = crate::hall::ITS_WRITER;
        hall.hit_reader(&Hall::intruder().heartbeat(writer, 1, 3, count));
    }
    hall.close();
}
