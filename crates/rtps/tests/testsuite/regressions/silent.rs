//! Participants that do not answer as others do: without SEDP readers, without INFO_DST,
//! or not at all. OpenSplice announces SEDP writers only by default.

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::wire::{Submessage, pid};

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, VICTIM, announce, locator_bytes, new_participant,
};
use pteros_test_support::rtps::domain::{address, prefix};
use pteros_test_support::rtps::packet::{Packet, Plist};

/// The address of the participant.
const HERE: Locator = Locator::udp_v4([10, 0, 0, 50], 7410);
const WRITERS: [EntityId; 2] = [
    EntityId::SEDP_PUBLICATIONS_WRITER,
    EntityId::SEDP_SUBSCRIPTIONS_WRITER,
];

/// The bits of SEDP readers in the built-in endpoint set.
const SEDP_READERS: u32 = 0x28;

/// A participant of another stack.
struct Foreign {
    endpoints: u32,
    answers_heartbeats: bool,
    answers_acknacks: bool,
    has_identity_token: bool,
    count: u32,
}

impl Foreign {
    fn new(endpoints: u32, answers_heartbeats: bool, answers_acknacks: bool) -> Self {
        Self {
            endpoints,
            answers_heartbeats,
            answers_acknacks,
            has_identity_token: false,
            count: 0,
        }
    }

    fn prefix() -> GuidPrefix {
        new_participant(50)
    }

    fn announcement_at(&self, at: Locator) -> Packet {
        let list = Plist::payload()
            .with(pid::PROTOCOL_VERSION, &[2, 1, 0, 0])
            .with(pid::VENDOR_ID, &[1, 2, 0, 0])
            .with(
                pid::PARTICIPANT_GUID,
                &Self::prefix().with(EntityId::PARTICIPANT).to_bytes(),
            )
            .with(pid::BUILTIN_ENDPOINT_SET, &self.endpoints.to_le_bytes())
            .with(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(at))
            .with(pid::DEFAULT_UNICAST_LOCATOR, &locator_bytes(at));
        let list = if self.has_identity_token {
            // Its class, and no properties.
            list.with(pid::IDENTITY_TOKEN, b"\x02\0\0\0D\0\0\0\0\0\0\0\0\0\0\0")
        } else {
            list
        };
        announce(Self::prefix(), &list.end())
    }

    /// What its SEDP writers multicast, for all who know it.
    fn multicast(&mut self) -> [Packet; 2] {
        WRITERS.map(|writer| {
            self.count += 1;
            let (_, payload) = Self::endpoint(writer);
            Packet::from(Self::prefix())
                .data(writer, 1, &payload)
                .heartbeat(writer, 1, 1, self.count)
        })
    }

    /// Its endpoint on the pair's topic: a writer, or a reader.
    fn endpoint(sedp: EntityId) -> (Guid, Vec<u8>) {
        let is_writer = sedp == EntityId::SEDP_PUBLICATIONS_WRITER;
        let kind = if is_writer {
            EntityId::KIND_WRITER_NO_KEY
        } else {
            EntityId::KIND_READER_NO_KEY
        };
        let guid = Self::prefix().with(EntityId::new([0, 0, 1], kind));
        let list = Plist::payload()
            .with(pid::ENDPOINT_GUID, &guid.to_bytes())
            .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
            .string(pid::TYPE_NAME, 2, b"T\0");
        (guid, list.end())
    }

    /// An answer. Without SEDP readers it has no INFO_DST, as with OpenSplice.
    fn to(&self, asker: GuidPrefix) -> Packet {
        let packet = Packet::from(Self::prefix());
        if self.endpoints & SEDP_READERS == 0 {
            packet
        } else {
            packet.to(asker)
        }
    }

    /// Answers one datagram, as its kind does.
    fn answer(&mut self, bytes: &[u8]) -> Vec<Packet> {
        let mut answers = Vec::new();
        for (source, message) in MessageReader::new(bytes, Self::prefix()).unwrap() {
            self.count += 1;
            match message {
                Submessage::AckNack(ack)
                    if self.answers_acknacks && WRITERS.contains(&ack.writer) && !ack.is_final =>
                {
                    let (_, payload) = Self::endpoint(ack.writer);
                    let packet = self
                        .to(source.prefix)
                        .data(ack.writer, 1, &payload)
                        .heartbeat(ack.writer, 1, 1, self.count);
                    answers.push(packet);
                }
                Submessage::Heartbeat(beat)
                    if self.answers_heartbeats && WRITERS.contains(&beat.writer) =>
                {
                    let reader = if beat.writer == EntityId::SEDP_PUBLICATIONS_WRITER {
                        EntityId::SEDP_PUBLICATIONS_READER
                    } else {
                        EntityId::SEDP_SUBSCRIPTIONS_READER
                    };
                    let pair = (reader, beat.writer);
                    let packet = self.to(source.prefix).acknack(pair, 1, 0, &[], self.count);
                    answers.push(packet);
                }
                _ => {}
            }
        }
        answers
    }

    /// Announces itself every second and answers for so long.
    fn run(&mut self, harness: &mut DiscoveryHarness, millis: i64) {
        for step in 0..millis / 10 {
            if step % 100 == 0 {
                let announced = self.announcement_at(HERE);
                harness.attack(HERE, &announced);
            }
            harness.run_ms(10);
            for (to, bytes) in std::mem::take(&mut harness.domain.undelivered) {
                if to == HERE {
                    for packet in self.answer(&bytes) {
                        harness.attack(HERE, &packet);
                    }
                }
            }
        }
    }
}

fn is_known(harness: &DiscoveryHarness, who: GuidPrefix) -> bool {
    harness.domain.nodes[0].machine.participant(who).is_some()
}

fn told_silent(harness: &DiscoveryHarness) -> usize {
    let events = harness.domain.nodes[0].events.iter();
    let silent = |event: &&ParticipantEvent| {
        matches!(event, ParticipantEvent::ParticipantSilent { data, from: Some(from) }
            if data.prefix == Foreign::prefix() && *from == HERE)
    };
    events.filter(silent).count()
}

/// Whichever built-in endpoints it announces, and whatever question it answers.
#[test]
fn a_participant_is_discovered_by_any_question_that_it_answers() {
    for (endpoints, answers_heartbeats, answers_acknacks) in [
        (0x415, false, true),
        (0x5, false, true),
        (0x11, false, true),
        (0x3f, false, true),
        (0x3f, true, false),
        (0x3f, true, true),
        (0xc3f, false, true),
        // An SEDP reader of subscriptions only.
        (0x25, true, true),
        // SEDP readers only: both, or one of them.
        (0x29, true, false),
        (0x2b, true, true),
        (0x9, true, false),
        (0x21, true, false),
        (0xc28, true, false),
        // A reader and a writer of the same kind, and of different kinds.
        (0x31, true, false),
        (0xd, false, true),
        (0x19, false, true),
    ] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(endpoints, answers_heartbeats, answers_acknacks);
        foreign.run(&mut harness, 900);
        assert!(is_known(&harness, Foreign::prefix()), "{endpoints:x}");
        if answers_acknacks {
            for (bit, sedp, node) in [(4, WRITERS[0], 1), (16, WRITERS[1], 0)] {
                let (guid, _) = Foreign::endpoint(sedp);
                let matched = harness.domain.matches(node);
                let is_matched = matched.iter().any(|(_, remote)| *remote == guid);
                assert_eq!(is_matched, endpoints & bit != 0, "{endpoints:x} {bit}");
            }
        }
        assert_eq!(told_silent(&harness), 0);
    }
}

/// It is told once, and listed until it answers.
#[test]
fn a_participant_that_never_answers_is_told() {
    let mut harness = DiscoveryHarness::new();
    let mut foreign = Foreign::new(0x415, false, false);
    let listed = |harness: &DiscoveryHarness| {
        let machine = &harness.domain.nodes[0].machine;
        let mut silent = machine.silent_participants();
        silent.any(|data| data.prefix == Foreign::prefix())
    };
    foreign.run(&mut harness, 900);
    assert!(!listed(&harness) && told_silent(&harness) == 0);
    foreign.run(&mut harness, 3_900);
    assert!(listed(&harness) && told_silent(&harness) == 0);
    foreign.run(&mut harness, 5_100);
    assert!(listed(&harness) && !is_known(&harness, Foreign::prefix()));
    assert_eq!(told_silent(&harness), 1);
    foreign.answers_acknacks = true;
    foreign.run(&mut harness, 2_000);
    assert!(!listed(&harness) && is_known(&harness, Foreign::prefix()));
    assert_eq!(told_silent(&harness), 1);
}

/// A healthy participant that is busy for seconds is not told.
#[test]
fn a_participant_that_answers_late_is_not_told() {
    for endpoints in [0x415, 0x3f] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(endpoints, false, false);
        foreign.run(&mut harness, 3_500);
        (foreign.answers_heartbeats, foreign.answers_acknacks) = (true, true);
        foreign.run(&mut harness, 9_000);
        assert!(is_known(&harness, Foreign::prefix()), "{endpoints:x}");
        assert_eq!(told_silent(&harness), 0, "{endpoints:x}");
    }
}

/// With DDS Security a participant need not answer one without.
#[test]
fn a_participant_with_an_identity_is_not_told() {
    for endpoints in [0x415, 0x3f, 0x00c0_0c3f] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(endpoints, false, false);
        foreign.has_identity_token = true;
        foreign.run(&mut harness, 9_000);
        let machine = &harness.domain.nodes[0].machine;
        assert_eq!(machine.unvalidated_count(), 1, "{endpoints:x}");
        assert_eq!(machine.silent_participants().count(), 0, "{endpoints:x}");
        assert_eq!(told_silent(&harness), 0, "{endpoints:x}");
    }
}

/// It has no endpoint to discover: only SPDP, or the participant message endpoints too.
#[test]
fn a_participant_without_sedp_is_not_told() {
    for endpoints in [0, 0x1, 0x3, 0x400, 0x401, 0xc03, 0x3000] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(endpoints, true, true);
        foreign.run(&mut harness, 9_000);
        let machine = &harness.domain.nodes[0].machine;
        assert_eq!(machine.silent_participants().count(), 0, "{endpoints:x}");
        assert_eq!(told_silent(&harness), 0, "{endpoints:x}");
    }
}

/// It does not hear us, and multicasts SEDP to others, as Cyclone DDS does. Its readers
/// would acknowledge nothing.
#[test]
fn a_deaf_participant_that_multicasts_sedp_is_told() {
    for endpoints in [0x3f, 0xc3f, 0x1d, 0x35] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(endpoints, false, false);
        for _ in 0..90 {
            foreign.run(&mut harness, 100);
            for packet in foreign.multicast() {
                harness.attack(HERE, &packet);
            }
        }
        assert!(!is_known(&harness, Foreign::prefix()), "{endpoints:x}");
        assert_eq!(told_silent(&harness), 1, "{endpoints:x}");
    }
}

/// CVE-2021-38425 by whoever forges source addresses: they do not receive our questions,
/// and do not know our GUID prefix. A victim with SEDP readers would get all of our SEDP.
#[test]
fn answers_without_our_prefix_validate_no_participant_with_sedp_readers() {
    let readers = [
        EntityId::SEDP_PUBLICATIONS_READER,
        EntityId::SEDP_SUBSCRIPTIONS_READER,
    ];
    // The endpoints that it announces first, and then.
    for (before, endpoints) in [(0x3f, 0x3f), (0xc3f, 0xc3f), (0x2b, 0x2b), (0x415, 0x3f)] {
        let mut harness = DiscoveryHarness::new();
        let mut foreign = Foreign::new(before, true, true);
        harness.attack(VICTIM, &foreign.announcement_at(VICTIM));
        foreign.endpoints = endpoints;
        for count in 1..100 {
            if count % 20 == 1 {
                harness.attack(VICTIM, &foreign.announcement_at(VICTIM));
            }
            for pair in readers.into_iter().zip(WRITERS) {
                let acknack = Packet::from(Foreign::prefix()).acknack(pair, 1, 0, &[], count);
                harness.attack(VICTIM, &acknack);
            }
            for packet in foreign.multicast() {
                harness.attack(VICTIM, &packet);
            }
            harness.run_ms(20);
        }
        assert!(!is_known(&harness, Foreign::prefix()), "{endpoints:x}");
        assert!(harness.sent_to(VICTIM) > 0, "it was not asked");
    }
}

/// One without SEDP readers sends no ACKNACK of SEDP.
#[test]
fn an_acknack_without_our_prefix_validates_nobody() {
    let mut harness = DiscoveryHarness::new();
    let foreign = Foreign::new(0x415, true, true);
    harness.attack(VICTIM, &foreign.announcement_at(VICTIM));
    for count in 1..100 {
        let pair = (EntityId::SEDP_PUBLICATIONS_READER, WRITERS[0]);
        let acknack = Packet::from(Foreign::prefix()).acknack(pair, 1, 0, &[], count);
        harness.attack(VICTIM, &acknack);
        harness.run_ms(20);
    }
    assert!(!is_known(&harness, Foreign::prefix()));
    assert!(harness.sent_to(VICTIM) > 0, "it was not asked");
}

/// CVE-2021-38425 by ACKNACKs: a victim is announced as a participant without SEDP
/// readers. What it did not ask for validates nothing.
#[test]
fn writers_that_were_not_asked_or_speak_from_elsewhere_validate_nothing() {
    let mut harness = DiscoveryHarness::new();
    let foreign = Foreign::new(0x415, false, true);
    let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
    let (_, payload) = Foreign::endpoint(writer);
    let unasked = Packet::from(Foreign::prefix())
        .data(writer, 1, &payload)
        .heartbeat(writer, 1, 1, 1);
    for round in 0..100 {
        let announced = foreign.announcement_at(VICTIM);
        harness.received += announced.0.len();
        harness.domain.deliver(0, Some(VICTIM), &announced.0);
        if round == 0 {
            harness.domain.deliver(0, Some(VICTIM), &unasked.0);
        }
        harness.domain.flush(0);
        harness.attack(ATTACKER, &unasked);
        harness.run_ms(50);
    }
    assert!(!is_known(&harness, Foreign::prefix()));
    assert!(harness.sent_to(VICTIM) > 0, "it was not asked");
}

/// A forged announcement that it moved, and one that another participant has its
/// address. It has no SEDP reader, and is asked by ACKNACKs.
#[test]
fn a_participant_without_sedp_readers_defends_its_address() {
    let mut harness = DiscoveryHarness::new();
    let mut foreign = Foreign::new(0x415, false, true);
    foreign.run(&mut harness, 500);
    assert!(is_known(&harness, Foreign::prefix()));
    let forged = foreign.announcement_at(VICTIM);
    harness.attack(HERE, &forged);
    let other = new_participant(51);
    let list = pteros_test_support::rtps::discovery_harness::announcement(other, HERE);
    harness.attack(HERE, &announce(other, &list.end()));
    let answer = Packet::from(other)
        .to(prefix(0, 0))
        .heartbeat(WRITERS[0], 1, 0, 1);
    harness.attack(HERE, &answer);
    assert!(is_known(&harness, other));
    foreign.run(&mut harness, 5_000);
    let machine = &harness.domain.nodes[0].machine;
    let data = machine.participant(Foreign::prefix()).expect("not lost");
    assert_eq!(data.metatraffic_unicast, [HERE]);
    assert!(machine.participant(prefix(1, 0)).is_some() && HERE != address(1));
}
