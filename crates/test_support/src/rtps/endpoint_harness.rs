//! Harness for attacks on endpoints: a matched reliable pair with traffic, an
//! intruder matched with both of them (possible without security), and an unmatched
//! sender.
//!
//! Dropping an [`EndpointHarness`] makes the checks at the end of every test case.

use std::time::Duration as WallTime;

use pteros_rtps::id::{EntityId, Guid, VendorId};
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::stats::{ReaderStats, WriterStats};
use pteros_rtps::writer::ReaderProxyConfig;

use super::meter::Meter;
use super::packet::Packet;
use super::pair::{Pair, R, W, locator, prefix, route};

/// The node that is matched and means ill.
pub const INTRUDER: usize = 2;
/// The node of the unmatched sender.
pub const UNMATCHED: usize = 3;
/// The intruder's writer and reader.
pub const INTRUDER_WRITER: EntityId = EntityId::new([9, 9, 1], EntityId::KIND_WRITER_NO_KEY);
pub const INTRUDER_READER: EntityId = EntityId::new([9, 9, 2], EntityId::KIND_READER_NO_KEY);

pub struct EndpointHarness {
    pub pair: Pair,
    pub w: W,
    pub r: R,
    /// How much the endpoints and the harness may hold more than at the start.
    pub memory_bytes_max: usize,
    /// Bytes of the attacks so far.
    pub received: usize,
    meter: Meter,
}

impl EndpointHarness {
    /// The pair has exchanged five samples.
    pub fn new() -> Self {
        Self::with_intruder(Reliability::Reliable)
    }

    /// The same; `intruder` is what the intruder's endpoints claim to be.
    pub fn with_intruder(intruder: Reliability) -> Self {
        let qos = EndpointQos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            history: History::KeepLast(10),
            ..EndpointQos::default()
        };
        let (mut pair, w, r) = Pair::matched(qos.clone(), qos.clone());
        let its = EndpointQos {
            reliability: intruder,
            ..qos
        };
        let now = pair.now();
        assert!(pair.writers[w.0].machine.match_reader(
            now,
            ReaderProxyConfig {
                guid: prefix(INTRUDER).with(INTRUDER_READER),
                qos: its.clone().into(),
                route: route(INTRUDER),
                expects_inline_qos: false,
                vendor: VendorId::FAST_DDS,
                content_filter: None,
                payload_form: None,
            }
        ));
        assert!(pair.readers[r.0].machine.match_writer(
            now,
            WriterProxyConfig {
                guid: prefix(INTRUDER).with(INTRUDER_WRITER),
                qos: its.into(),
                route: route(INTRUDER),
                vendor: VendorId::FAST_DDS,
            }
        ));
        let mut harness = Self {
            pair,
            w,
            r,
            memory_bytes_max: 1 << 20,
            received: 0,
            meter: Meter::start(),
        };
        harness.exchange_samples(5);
        harness.pair.run_ms(2_000);
        harness.pair.net.log.clear();
        harness.pair.net.bytes_to.clear();
        harness.meter = Meter::start();
        harness
    }

    pub fn writer(&self) -> Guid {
        self.pair.writer_guid(self.w)
    }

    pub fn reader_stats(&self) -> &ReaderStats {
        self.pair.readers[self.r.0].machine.stats()
    }

    pub fn writer_stats(&self) -> &WriterStats {
        self.pair.writers[self.w.0].machine.stats()
    }

    pub fn reader(&self) -> Guid {
        self.pair.guid(self.r)
    }

    /// The intruder's reader and the pair's writer, as requests name them.
    pub fn request(&self) -> (EntityId, EntityId) {
        (INTRUDER_READER, self.writer().entity)
    }

    /// The reader's participant receives it.
    pub fn send_to_reader(&mut self, packet: &Packet) {
        self.attack(1, &packet.0);
    }

    /// The writer's participant receives it.
    pub fn send_to_writer(&mut self, packet: &Packet) {
        self.attack(0, &packet.0);
    }

    /// Both receive it.
    pub fn send_to_both(&mut self, packet: &Packet) {
        self.attack(0, &packet.0);
        self.attack(1, &packet.0);
    }

    pub fn attack(&mut self, node: usize, bytes: &[u8]) {
        self.received += bytes.len();
        self.pair.deliver(locator(node), bytes);
        self.pair.flush();
    }

    /// Bytes sent to a node since the start.
    pub fn sent_to(&self, node: usize) -> usize {
        let sent = self.pair.net.bytes_to.get(&locator(node));
        sent.copied().unwrap_or(0)
    }

    /// Samples of the intruder that the reader handed on.
    pub fn samples_of_intruder(&self) -> Vec<(i64, Vec<u8>)> {
        let its = prefix(INTRUDER).with(INTRUDER_WRITER);
        let received = &self.pair.readers[self.r.0].received;
        let mine = received.iter().filter(|change| change.writer == its);
        mine.map(|change| (change.sequence.0, change.payload.to_vec()))
            .collect()
    }

    /// The pair exchanges samples, one a millisecond: all arrive, once, in
    /// order and unharmed.
    pub fn exchange_samples(&mut self, count: i64) {
        let from = self.pair.writers[self.w.0].machine.next_sequence().0;
        let before = self.samples_of_pair().len();
        for number in from..from + count {
            let payload = [number.to_le_bytes(), (!number).to_le_bytes()].concat();
            self.pair.write(self.w, &payload);
            self.pair.run_ms(1);
        }
        self.pair.run_ms(100);
        let arrived = self.samples_of_pair();
        let expected: Vec<(i64, Vec<u8>)> = (from..from + count)
            .map(|n| (n, [n.to_le_bytes(), (!n).to_le_bytes()].concat()))
            .collect();
        assert_eq!(arrived[before..], expected, "the pair's own traffic");
    }

    fn samples_of_pair(&self) -> Vec<(i64, Vec<u8>)> {
        let writer = self.writer();
        let received = &self.pair.readers[self.r.0].received;
        let own = received.iter().filter(|change| change.writer == writer);
        own.map(|change| (change.sequence.0, change.payload.to_vec()))
            .collect()
    }

    /// Checks at the end of every test case: little memory and time were used, the
    /// unmatched sender got no byte, and the pair's traffic continues. With the
    /// attacker silent, all traffic ends.
    fn check_end(&mut self) {
        // Readers with announced samples that do not exist may request them, a few
        // times a second.
        self.pair.run_ms(2_000);
        let (peak, took) = (self.meter.peak(), self.meter.took());
        assert!(
            peak <= self.memory_bytes_max,
            "{peak} bytes of memory for {} received",
            self.received
        );
        assert!(took < WallTime::from_secs(20), "it took {took:?}");
        assert_eq!(
            self.sent_to(UNMATCHED),
            0,
            "the unmatched sender was answered"
        );
        self.exchange_samples(20);
        self.pair.run_ms(2_000);
        self.pair.net.log.clear();
        self.pair.run_ms(2_000);
        let restless = self.pair.net.log.len();
        assert!(
            restless <= 60,
            "{restless} datagrams in 2 s without an attack"
        );
        for reader in &self.pair.readers {
            assert!(reader.machine.worst_case_bytes() < usize::MAX / 2);
        }
    }
}

impl Drop for EndpointHarness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_end();
        }
    }
}

/// A datagram of the intruder.
pub fn intruder() -> Packet {
    Packet::from(prefix(INTRUDER))
}

/// A datagram of the unmatched sender.
pub fn unmatched_sender() -> Packet {
    Packet::from(prefix(UNMATCHED))
}
