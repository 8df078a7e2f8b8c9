//! Harness for attacks on discovery: two participants with a matched pair, and the
//! addresses of an attacker and a victim. The attacker sends in the name of a third
//! participant, which they know and which is silent.
//!
//! Dropping a [`DiscoveryHarness`] makes the checks at the end of every test case.

use std::time::Duration as WallTime;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::{ParticipantEvent, ParticipantStats};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::pid;

use super::domain::{Domain, address, config, prefix};
use super::meter::Meter;
use super::packet::{Packet, Plist};

/// The attacker's own address, which no participant announces.
pub const ATTACKER: Locator = Locator::udp_v4([10, 0, 0, 66], 9);
/// The address of an uninvolved host.
pub const VICTIM: Locator = Locator::udp_v4([10, 0, 0, 99], 7410);
/// The discovered participant that the attacker impersonates.
pub const IMPERSONATED: usize = 2;

pub struct DiscoveryHarness {
    pub domain: Domain,
    writer: Guid,
    reader: Guid,
    pub memory_bytes_max: usize,
    pub received: usize,
    next_sequence: i64,
    meter: Meter,
}

impl DiscoveryHarness {
    pub fn new() -> Self {
        let mut domain = Domain::met(3);
        let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
        let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
        domain.run_for(Duration::from_millis(500));
        assert_eq!(domain.matches(0), [(writer, reader)]);
        domain.nodes[IMPERSONATED].dead = true;
        domain.sent.clear();
        Self {
            domain,
            writer,
            reader,
            memory_bytes_max: 2 << 20,
            received: 0,
            next_sequence: 1,
            meter: Meter::start(),
        }
    }

    /// Announces an endpoint in the name of the impersonated participant, in
    /// sequence.
    pub fn announce_as_impersonated(&mut self, writes: bool, payload: &[u8]) {
        let from = if writes {
            EntityId::SEDP_PUBLICATIONS_WRITER
        } else {
            EntityId::SEDP_SUBSCRIPTIONS_WRITER
        };
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let packet = Packet::from(prefix(IMPERSONATED, 0))
            .to(prefix(0, 0))
            .data(from, sequence, payload);
        self.attack(address(IMPERSONATED), &packet);
    }

    /// Both participants receive a datagram from this address.
    pub fn attack(&mut self, from: Locator, packet: &Packet) {
        for node in 0..2 {
            self.received += packet.0.len();
            self.domain.deliver(node, Some(from), &packet.0);
            self.domain.flush(node);
        }
    }

    pub fn run_ms(&mut self, millis: i64) {
        self.domain.run_for(Duration::from_millis(millis));
    }

    /// Bytes sent to an address since the start.
    pub fn sent_to(&self, to: Locator) -> usize {
        self.domain.sent.get(&to).map_or(0, |(_, bytes)| *bytes)
    }

    pub fn stats(&self) -> ParticipantStats {
        *self.domain.nodes[0].machine.stats()
    }

    /// Endpoints of the impersonated participant that the first participant has
    /// accepted.
    pub fn accepted_endpoints(&self) -> usize {
        let impersonated = prefix(IMPERSONATED, 0);
        let endpoints = self.domain.nodes[0].machine.endpoints().remotes();
        endpoints
            .filter(|e| e.guid().prefix == impersonated)
            .count()
    }

    /// Checks at the end of every test case: little memory and time were used, the
    /// pair is still matched, and no participant was lost. New endpoints match, and
    /// a new participant is discovered within a second. No unvalidated address got
    /// more than three times the received bytes.
    fn check_end(&mut self) {
        let (peak, took) = (self.meter.peak(), self.meter.took());
        assert!(
            peak <= self.memory_bytes_max,
            "{peak} bytes of memory for {} received",
            self.received
        );
        assert!(took < WallTime::from_secs(20), "it took {took:?}");
        for unmatched_sender in [VICTIM, ATTACKER] {
            let sent = self.sent_to(unmatched_sender);
            assert!(sent <= 3 * self.received, "{sent} to {unmatched_sender}");
        }
        assert!(self.domain.matches(0).contains(&(self.writer, self.reader)));
        assert!(self.domain.matches(1).contains(&(self.reader, self.writer)));
        let domain = &mut self.domain;
        let writer = domain.add_writer(0, "rt/afterwards", EndpointQos::default());
        let reader = domain.add_reader(1, "rt/afterwards", EndpointQos::default());
        let late = domain.join(config(3, 0));
        domain.run_for(Duration::from_secs(1));
        assert!(domain.matches(0).contains(&(writer, reader)));
        assert!(domain.matches(1).contains(&(reader, writer)));
        let knows = |node: usize, whom: usize| {
            let mut known = domain.nodes[node].machine.participants();
            known.any(|p| p.prefix == prefix(whom, 0))
        };
        assert!(knows(0, 1) && knows(1, 0), "the pair");
        assert!(knows(0, 3) && knows(late, 0), "the new participant");
        for node in 0..2 {
            let lost = |event: &&ParticipantEvent| match event {
                ParticipantEvent::ParticipantLost { prefix: who, .. } => {
                    [0, 1, 3].iter().any(|known| *who == prefix(*known, 0))
                }
                _ => false,
            };
            assert_eq!(domain.nodes[node].events.iter().find(lost), None);
        }
    }
}

impl Drop for DiscoveryHarness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_end();
        }
    }
}

/// A locator as it stands in a parameter.
pub fn locator_bytes(locator: Locator) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&locator.kind.to_le_bytes());
    bytes[4..8].copy_from_slice(&locator.port.to_le_bytes());
    bytes[8..].copy_from_slice(&locator.address);
    bytes
}

/// The GUID prefix of a new participant, distinguished by a number.
pub fn new_participant(number: u32) -> GuidPrefix {
    let mut made_up = prefix(200, 0);
    made_up.0[2..6].copy_from_slice(&number.to_be_bytes());
    made_up
}

/// The mandatory parameters of an announcement, open for more.
pub fn announcement(prefix: GuidPrefix, at: Locator) -> Plist {
    Plist::payload()
        .with(pid::PROTOCOL_VERSION, &[2, 3, 0, 0])
        .with(pid::VENDOR_ID, &[1, 15, 0, 0])
        .with(
            pid::PARTICIPANT_GUID,
            &prefix.with(EntityId::PARTICIPANT).to_bytes(),
        )
        .with(pid::BUILTIN_ENDPOINT_SET, &0xc3f_u32.to_le_bytes())
        .with(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(at))
        .with(pid::DEFAULT_UNICAST_LOCATOR, &locator_bytes(at))
}

/// An announcement as a datagram.
pub fn announce(prefix: GuidPrefix, payload: &[u8]) -> Packet {
    Packet::from(prefix).data(EntityId::SPDP_WRITER, 1, payload)
}

/// An endpoint of the impersonated participant, open for more parameters.
pub fn endpoint(number: u32, kind: u8) -> Plist {
    let key = number.to_be_bytes();
    let entity = EntityId::new([key[1], key[2], key[3]], kind);
    let guid = prefix(IMPERSONATED, 0).with(entity);
    Plist::payload().with(pid::ENDPOINT_GUID, &guid.to_bytes())
}
