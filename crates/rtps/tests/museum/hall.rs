//! Where endpoints are attacked: a matched reliable pair that talks, an
//! intruder that is matched with both of them (without security anybody may
//! be), and a stranger that is matched with nobody.
//!
//! The rules every story ends with are in [`Hall::close`].
#![allow(dead_code, reason = "each test uses its part")]

use std::time::Duration as WallTime;

use pteros_rtps::id::{EntityId, Guid, VendorId};
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::writer::ReaderProxyConfig;

use crate::meter::Meter;
use crate::packet::Packet;
use crate::pair::{Pair, R, W, locator, prefix, route};

/// The node that is matched and means ill.
pub const INTRUDER: usize = 2;
/// The node that is matched with nobody.
pub const STRANGER: usize = 3;
/// The intruder's writer and reader.
pub const ITS_WRITER: EntityId = EntityId::new([9, 9, 1], EntityId::KIND_WRITER_NO_KEY);
pub const ITS_READER: EntityId = EntityId::new([9, 9, 2], EntityId::KIND_READER_NO_KEY);

pub struct Hall {
    pub pair: Pair,
    pub w: W,
    pub r: R,
    /// How much the endpoints and the harness may hold more than at the start.
    pub memory_bytes_max: usize,
    /// Bytes of the attacks so far.
    pub received: usize,
    meter: Meter,
}

impl Hall {
    /// The pair has exchanged five samples.
    pub fn open() -> Self {
        Self::open_as(Reliability::Reliable)
    }

    /// The same; `intruder` is what the intruder's endpoints claim to be.
    pub fn open_as(intruder: Reliability) -> Self {
        let qos = EndpointQos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            history: History::KeepLast(10),
            ..EndpointQos::default()
        };
        let mut pair = Pair::new();
        let w = pair.writer(0, qos.clone());
        let r = pair.reader(1, qos.clone());
        pair.join(w, r);
        let its = EndpointQos {
            reliability: intruder,
            ..qos
        };
        let now = pair.now();
        assert!(pair.writers[w.0].machine.match_reader(
            now,
            ReaderProxyConfig {
                guid: prefix(INTRUDER).with(ITS_READER),
                qos: its.clone().into(),
                route: route(INTRUDER),
                expects_inline_qos: false,
                vendor: VendorId::FAST_DDS,
                content_filter: None,
            }
        ));
        assert!(pair.readers[r.0].machine.match_writer(
            now,
            WriterProxyConfig {
                guid: prefix(INTRUDER).with(ITS_WRITER),
                qos: its.into(),
                route: route(INTRUDER),
                vendor: VendorId::FAST_DDS,
            }
        ));
        let mut hall = Self {
            pair,
            w,
            r,
            memory_bytes_max: 1 << 20,
            received: 0,
            meter: Meter::start(),
        };
        hall.talk(5);
        hall.pair.run_ms(2_000);
        hall.pair.net.log.clear();
        hall.pair.net.bytes_to.clear();
        hall.meter = Meter::start();
        hall
    }

    pub fn writer(&self) -> Guid {
        self.pair.writer_guid(self.w)
    }

    pub fn reader(&self) -> Guid {
        self.pair.guid(self.r)
    }

    /// The intruder's reader and the pair's writer, as requests name them.
    pub fn request(&self) -> (EntityId, EntityId) {
        (ITS_READER, self.writer().entity)
    }

    /// A datagram of the intruder.
    pub fn intruder() -> Packet {
        Packet::from(prefix(INTRUDER))
    }

    /// A datagram of the stranger.
    pub fn stranger() -> Packet {
        Packet::from(prefix(STRANGER))
    }

    /// The reader's participant receives it.
    pub fn hit_reader(&mut self, packet: &Packet) {
        self.hit(1, &packet.0);
    }

    /// The writer's participant receives it.
    pub fn hit_writer(&mut self, packet: &Packet) {
        self.hit(0, &packet.0);
    }

    /// Both receive it.
    pub fn hit_both(&mut self, packet: &Packet) {
        self.hit(0, &packet.0);
        self.hit(1, &packet.0);
    }

    pub fn hit(&mut self, node: usize, bytes: &[u8]) {
        self.received += bytes.len();
        self.pair.deliver(locator(node), bytes);
        self.pair.flush();
    }

    /// Bytes sent to a node since the hall opened.
    pub fn sent_to(&self, node: usize) -> usize {
        let sent = self.pair.net.bytes_to.get(&locator(node));
        sent.copied().unwrap_or(0)
    }

    /// Samples of the intruder that the reader handed on.
    pub fn intruders_samples(&self) -> Vec<(i64, Vec<u8>)> {
        let its = prefix(INTRUDER).with(ITS_WRITER);
        let received = &self.pair.readers[self.r.0].received;
        let mine = received.iter().filter(|change| change.writer == its);
        mine.map(|change| (change.sequence.0, change.payload.to_vec()))
            .collect()
    }

    /// The pair exchanges samples, one a millisecond: all arrive, once, in
    /// order and unharmed.
    pub fn talk(&mut self, count: i64) {
        let from = self.pair.writers[self.w.0].machine.next_sequence().0;
        let before = self.of_the_pair().len();
        for number in from..from + count {
            let payload = [number.to_le_bytes(), (!number).to_le_bytes()].concat();
            self.pair.write(self.w, &payload);
            self.pair.run_ms(1);
        }
        self.pair.run_ms(100);
        let arrived = self.of_the_pair();
        let expected: Vec<(i64, Vec<u8>)> = (from..from + count)
            .map(|n| (n, [n.to_le_bytes(), (!n).to_le_bytes()].concat()))
            .collect();
        assert_eq!(arrived[before..], expected, "the pair's own traffic");
    }

    fn of_the_pair(&self) -> Vec<(i64, Vec<u8>)> {
        let writer = self.writer();
        let received = &self.pair.readers[self.r.0].received;
        let own = received.iter().filter(|change| change.writer == writer);
        own.map(|change| (change.sequence.0, change.payload.to_vec()))
            .collect()
    }

    /// What must hold after every story: little memory was needed, in little
    /// time; the stranger got no byte; the pair's traffic goes on; and with the
    /// attacker silent, everybody comes to rest.
    pub fn close(mut self) {
        // Those who were told of samples that do not exist may ask for them,
        // a few times a second, and no more.
        self.pair.run_ms(2_000);
        let (peak, took) = (self.meter.peak(), self.meter.took());
        assert!(
            peak <= self.memory_bytes_max,
            "{peak} bytes of memory for {} received",
            self.received
        );
        assert!(took < WallTime::from_secs(20), "it took {took:?}");
        assert_eq!(self.sent_to(STRANGER), 0, "a stranger was answered");
        self.talk(20);
        self.pair.run_ms(2_000);
        self.pair.net.log.clear();
        self.pair.run_ms(2_000);
        let restless = self.pair.net.log.len();
        assert!(restless <= 60, "{restless} datagrams in 2 s of peace");
        for reader in &self.pair.readers {
            assert!(reader.machine.worst_case_bytes() < usize::MAX / 2);
        }
    }
}
