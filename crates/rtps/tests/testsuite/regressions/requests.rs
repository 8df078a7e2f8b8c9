//! Requests of readers: acknowledgements of unsent samples, invalid bitmaps, and
//! requests as a traffic amplifier.

use pteros_rtps::id::EntityId;

use pteros_test_support::rtps::endpoint_harness::{
    EndpointHarness, INTRUDER, INTRUDER_READER, intruder, unmatched_sender,
};
use pteros_test_support::rtps::pair::net::SubmessageSummary;

/// CVE-2020-18734 (Cyclone DDS) and Fast DDS #1337: the bitmap of an ACKNACK
/// was read into a fixed array, however many words it announced.
#[test]
fn an_acknack_of_more_than_256_bits_is_refused() {
    let mut harness = EndpointHarness::new();
    let pair = harness.request();
    for bits in [257, 288, 4_096, 0x8000_0000, u32::MAX] {
        harness.send_to_writer(&intruder().acknack(pair, 1, bits, &[u32::MAX; 128], 1));
        let set = (1, bits, [u32::MAX; 128].as_slice());
        harness.send_to_writer(&intruder().nack_frag(pair, 1, set, 1));
    }
    harness.send_to_writer(&intruder().acknack(pair, 1, 256, &[u32::MAX; 2], 2));
    assert_eq!(harness.writer_stats().nack_frags, 0);
}

/// An ACKNACK that acknowledges samples which were never written: had it been
/// believed, the reader would never be sent them (the "unacked forever" family
/// of Cyclone DDS's asymmetric disconnects).
#[test]
fn unsent_samples_cannot_be_acknowledged() {
    let mut harness = EndpointHarness::new();
    let pair = harness.request();
    for (count, base) in (1..).zip([1_000, 1 << 40, i64::MAX - 300, i64::MAX]) {
        harness.send_to_writer(&intruder().acknack(pair, base, 0, &[], count));
        let words = [u32::MAX; 8];
        harness.send_to_writer(&intruder().acknack(pair, base, 256, &words, count + 10));
    }
    let before = harness.sent_to(INTRUDER);
    harness.exchange_samples(3);
    assert!(
        harness.sent_to(INTRUDER) > before,
        "it gets what is written"
    );
}

/// Amplification by a matched reader: each small ACKNACK requests the whole history
/// (Cyclone DDS bounds this at 512 KiB queued, and tests "reader keeps nacking").
/// NACK suppression ignores recent requests.
#[test]
fn repeated_requests_are_answered_at_a_limited_rate() {
    let mut harness = EndpointHarness::new();
    for _ in 0..10 {
        harness.pair.write(harness.w, &[7; 1_000]);
    }
    harness.pair.run_ms(1_000);
    let before = harness.sent_to(INTRUDER);
    harness.pair.net.log.clear();
    let pair = harness.request();
    let from = harness.pair.writers[harness.w.0].machine.next_sequence().0 - 10;
    for count in 1..5_000 {
        harness.send_to_writer(&intruder().acknack(pair, from, 10, &[u32::MAX], count));
    }
    let again = harness
        .pair
        .net
        .count(|submessage| matches!(submessage, SubmessageSummary::Data(_)));
    assert!(again <= 10, "{again} samples in one instant");
    // Each request that is not final gets the requested heartbeat.
    let sent = harness.sent_to(INTRUDER) - before;
    assert!(
        sent <= 2 * harness.received,
        "{sent} for {}",
        harness.received
    );
    harness.memory_bytes_max = 4 << 20;
}

/// The same from an unmatched sender: nothing at all is sent, whatever it requests
/// (CVE-2021-38425's family: before a match no reply is larger than its request).
/// An unknown reader's id means every reader, not it.
#[test]
fn unmatched_readers_get_nothing_whatever_they_request() {
    let mut harness = EndpointHarness::new();
    let (_, writer) = harness.request();
    let before = harness.pair.net.bytes_sent;
    for reader in [INTRUDER_READER, EntityId::UNKNOWN, harness.reader().entity] {
        for count in 0..300 {
            let pair = (reader, writer);
            let words = [u32::MAX; 8];
            harness.send_to_writer(&unmatched_sender().acknack(pair, 1, 256, &words, count));
            harness.send_to_writer(&unmatched_sender().nack_frag(pair, 1, (1, 256, &words), count));
        }
    }
    assert_eq!(harness.pair.net.bytes_sent, before);
    assert!(harness.writer_stats().unknown_readers >= 900);
}

/// Fragments of a sample that has none, fragments beyond its last, and of
/// samples that do not exist (CVE-2025-65865's subtraction, on the writer's
/// side).
#[test]
fn fragments_that_do_not_exist_are_not_sent() {
    let mut harness = EndpointHarness::new();
    let pair = harness.request();
    let large = harness.pair.write(harness.w, &[1; 10_000]);
    harness.pair.run_ms(1_000);
    let before = harness.sent_to(INTRUDER);
    let words = [u32::MAX; 8];
    for (count, base) in (1..).zip([0, 9, 100, u32::MAX - 256, u32::MAX]) {
        for sequence in [1, large.0, large.0 + 1, i64::MAX] {
            let set = (base, 256, words.as_slice());
            harness.send_to_writer(&intruder().nack_frag(pair, sequence, set, count));
        }
    }
    let sent = harness.sent_to(INTRUDER) - before;
    assert!(sent <= 10 * 2_000, "{sent} bytes");
}

/// Counts that jump: an attacker sends the highest count there is, so that all
/// later ones look old. It only silences itself.
#[test]
fn a_count_at_its_end_silences_only_its_sender() {
    let mut harness = EndpointHarness::new();
    let pair = harness.request();
    for count in [u32::MAX, 0x7fff_ffff, 0x8000_0000, 0] {
        harness.send_to_writer(&intruder().acknack(pair, 1, 1, &[1 << 31], count));
        let writer = pteros_test_support::rtps::endpoint_harness::INTRUDER_WRITER;
        harness.send_to_reader(&intruder().heartbeat(writer, 1, 3, count));
    }
}
