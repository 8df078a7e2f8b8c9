//! Requests of readers: acknowledgements of unsent samples, invalid bitmaps, and
//! requests as a traffic amplifier.

use pteros_rtps::id::EntityId;

use crate::endpoint_harness::{EndpointHarness, INTRUDER, INTRUDER_READER};
use crate::pair::net::SubmessageSummary;

/// CVE-2020-18734 (Cyclone DDS) and Fast DDS #1337: the bitmap of an ACKNACK
/// was read into a fixed array, however many words it announced.
#[test]
fn an_acknack_of_more_than_256_bits_is_refused() {
    let mut endpoint_harness = EndpointHarness::new();
    let pair = endpoint_harness.request();
    for bits in [257, 288, 4_096, 0x8000_0000, u32::MAX] {
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
            pair,
            1,
            bits,
            &[u32::MAX; 128],
            1,
        ));
        let set = (1, bits, [u32::MAX; 128].as_slice());
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().nack_frag(pair, 1, set, 1));
    }
    endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
        pair,
        1,
        256,
        &[u32::MAX; 2],
        2,
    ));
    assert_eq!(
        endpoint_harness.pair.writers[endpoint_harness.w.0]
            .machine
            .stats()
            .nack_frags,
        0
    );
    endpoint_harness.check_and_close();
}

/// An ACKNACK that acknowledges samples which were never written: had it been
/// believed, the reader would never be sent them (the "unacked forever" family
/// of Cyclone DDS's asymmetric disconnects).
#[test]
fn unsent_samples_cannot_be_acknowledged() {
    let mut endpoint_harness = EndpointHarness::new();
    let pair = endpoint_harness.request();
    for (count, base) in (1..).zip([1_000, 1 << 40, i64::MAX - 300, i64::MAX]) {
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
            pair,
            base,
            0,
            &[],
            count,
        ));
        let words = [u32::MAX; 8];
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
            pair,
            base,
            256,
            &words,
            count + 10,
        ));
    }
    let before = endpoint_harness.sent_to(INTRUDER);
    endpoint_harness.exchange_samples(3);
    assert!(
        endpoint_harness.sent_to(INTRUDER) > before,
        "it gets what is written"
    );
    endpoint_harness.check_and_close();
}

/// Amplification by a matched reader: each small ACKNACK requests the whole history
/// (Cyclone DDS bounds this at 512 KiB queued, and tests "reader keeps nacking").
/// NACK suppression ignores recent requests.
#[test]
fn repeated_requests_are_answered_at_a_limited_rate() {
    let mut endpoint_harness = EndpointHarness::new();
    for _ in 0..10 {
        endpoint_harness.pair.write(endpoint_harness.w, &[7; 1_000]);
    }
    endpoint_harness.pair.run_ms(1_000);
    let before = endpoint_harness.sent_to(INTRUDER);
    endpoint_harness.pair.net.log.clear();
    let pair = endpoint_harness.request();
    let from = endpoint_harness.pair.writers[endpoint_harness.w.0]
        .machine
        .next_sequence()
        .0
        - 10;
    for count in 1..5_000 {
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
            pair,
            from,
            10,
            &[u32::MAX],
            count,
        ));
    }
    let again = endpoint_harness
        .pair
        .net
        .count(|submessage| matches!(submessage, SubmessageSummary::Data(_)));
    assert!(again <= 10, "{again} samples in one instant");
    // Each request that is not final gets the requested heartbeat.
    let sent = endpoint_harness.sent_to(INTRUDER) - before;
    assert!(
        sent <= 2 * endpoint_harness.received,
        "{sent} for {}",
        endpoint_harness.received
    );
    endpoint_harness.memory_bytes_max = 4 << 20;
    endpoint_harness.check_and_close();
}

/// The same from an unmatched sender: nothing at all is sent, whatever it requests
/// (CVE-2021-38425's family: before a match no reply is larger than its request).
/// An unknown reader's id means every reader, not it.
#[test]
fn unmatched_readers_get_nothing_whatever_they_request() {
    let mut endpoint_harness = EndpointHarness::new();
    let (_, writer) = endpoint_harness.request();
    let before = endpoint_harness.pair.net.bytes_sent;
    for reader in [
        INTRUDER_READER,
        EntityId::UNKNOWN,
        endpoint_harness.reader().entity,
    ] {
        for count in 0..300 {
            let pair = (reader, writer);
            let words = [u32::MAX; 8];
            endpoint_harness.send_to_writer(
                &EndpointHarness::unmatched_sender().acknack(pair, 1, 256, &words, count),
            );
            endpoint_harness.send_to_writer(&EndpointHarness::unmatched_sender().nack_frag(
                pair,
                1,
                (1, 256, &words),
                count,
            ));
        }
    }
    assert_eq!(endpoint_harness.pair.net.bytes_sent, before);
    assert!(
        endpoint_harness.pair.writers[endpoint_harness.w.0]
            .machine
            .stats()
            .unknown_readers
            >= 900
    );
    endpoint_harness.check_and_close();
}

/// Fragments of a sample that has none, fragments beyond its last, and of
/// samples that do not exist (CVE-2025-65865's subtraction, on the writer's
/// side).
#[test]
fn fragments_that_do_not_exist_are_not_sent() {
    let mut endpoint_harness = EndpointHarness::new();
    let pair = endpoint_harness.request();
    let large = endpoint_harness
        .pair
        .write(endpoint_harness.w, &[1; 10_000]);
    endpoint_harness.pair.run_ms(1_000);
    let before = endpoint_harness.sent_to(INTRUDER);
    let words = [u32::MAX; 8];
    for (count, base) in (1..).zip([0, 9, 100, u32::MAX - 256, u32::MAX]) {
        for sequence in [1, large.0, large.0 + 1, i64::MAX] {
            let set = (base, 256, words.as_slice());
            endpoint_harness
                .send_to_writer(&EndpointHarness::intruder().nack_frag(pair, sequence, set, count));
        }
    }
    let sent = endpoint_harness.sent_to(INTRUDER) - before;
    assert!(sent <= 10 * 2_000, "{sent} bytes");
    endpoint_harness.check_and_close();
}

/// Counts that jump: an attacker sends the highest count there is, so that all
/// later ones look old. It only silences itself.
#[test]
fn a_count_at_its_end_silences_only_its_sender() {
    let mut endpoint_harness = EndpointHarness::new();
    let pair = endpoint_harness.request();
    for count in [u32::MAX, 0x7fff_ffff, 0x8000_0000, 0] {
        endpoint_harness.send_to_writer(&EndpointHarness::intruder().acknack(
            pair,
            1,
            1,
            &[1 << 31],
            count,
        ));
        let writer = crate::endpoint_harness::INTRUDER_WRITER;
        endpoint_harness
            .send_to_reader(&EndpointHarness::intruder().heartbeat(writer, 1, 3, count));
    }
    endpoint_harness.check_and_close();
}
