//! Replay of recorded graphs of other stacks. Everything that one node sent is
//! given to a participant in place of the other node. It must discover the
//! participant and all its endpoints, match, and notice the dispose.

use crate::vectors;

use std::net::Ipv4Addr;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, NetworkScope, OwnAddress};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{LostReason, Participant, ParticipantConfig, ParticipantEvent};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::{AckNack, Submessage};
use vectors::{Captured, load};

fn sender(datagram: &Captured) -> GuidPrefix {
    GuidPrefix(datagram.message[8..20].try_into().unwrap())
}

fn time(datagram: &Captured) -> Instant {
    Instant::ZERO + Duration::from_micros(i64::from(datagram.micros))
}

fn prefix(hex: &str) -> GuidPrefix {
    let mut bytes = [0; 12];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    }
    GuidPrefix(bytes)
}

/// One node of a recording, seen by the other.
struct RecordedGraph {
    name: &'static str,
    domain_id: u32,
    /// The node that is watched.
    them: &'static str,
    /// The node that we stand in for.
    us: &'static str,
    our_ip: [u8; 4],
    endpoints: usize,
}

/// The discovered state.
struct ReplayResult {
    machine: Participant,
    events: Vec<ParticipantEvent>,
    sent_to: Vec<Locator>,
}

fn replay(scene: &RecordedGraph, local: Option<EndpointData>) -> ReplayResult {
    let mut config = ParticipantConfig::new(prefix(scene.us), scene.domain_id);
    config.network = NetworkScope {
        addresses: vec![OwnAddress {
            ip: scene.our_ip.into(),
            prefix_length: 24,
        }],
        ..NetworkScope::default()
    };
    let mut machine = Participant::new(Instant::ZERO, config);
    if let Some(data) = local {
        machine.add_reader(Instant::ZERO, data);
    }
    let mut seen = ReplayResult {
        machine,
        events: Vec::new(),
        sent_to: Vec::new(),
    };
    let theirs = prefix(scene.them);
    let mut recorded = Vec::new();
    for datagram in load(scene.name) {
        if sender(&datagram) != theirs {
            continue;
        }
        let (now, from) = (time(&datagram), datagram.from);
        let from = Locator::udp_v4(from.0, from.1);
        seen.machine.handle_timeout(now);
        let reader = MessageReader::new(&datagram.message, prefix(scene.us)).unwrap();
        for (source, submessage) in reader {
            seen.machine
                .handle_submessage(now, Some(from), &source, &submessage);
        }
        while let Some(event) = seen.machine.poll_event() {
            seen.events.push(event);
        }
        recorded.push(datagram.message);
        let mut out = Outbox::new();
        seen.machine.poll_transmit(now, &mut out);
        for sent in out.iter() {
            seen.sent_to.extend_from_slice(sent.to);
            let bytes = sent.parts.concat();
            for (_, submessage) in MessageReader::new(&bytes, theirs).unwrap() {
                if let Submessage::AckNack(acknack) = submessage {
                    seen.retransmit(now, from, &recorded, &acknack);
                }
            }
        }
    }
    seen
}

impl ReplayResult {
    /// What the recording has of a request comes again.
    fn retransmit(&mut self, now: Instant, from: Locator, recorded: &[Vec<u8>], acknack: &AckNack) {
        let us = self.machine.prefix();
        for message in recorded {
            for (source, submessage) in MessageReader::new(message, us).unwrap() {
                if let Submessage::Data(data) = &submessage
                    && data.writer == acknack.writer
                    && acknack.state.contains(data.sequence)
                {
                    let machine = &mut self.machine;
                    machine.handle_submessage(now, Some(from), &source, &submessage);
                }
            }
        }
        while let Some(event) = self.machine.poll_event() {
            self.events.push(event);
        }
    }
}

/// The recordings: name, domain, the watched node, the node that we stand in for and
/// its address, number of endpoints. Counts are tshark's: distinct
/// PID_ENDPOINT_GUIDs of each sender.
const RECORDED_GRAPHS: &str = "\
cyclone-action   15 0110753a9b368644215b55eb 0110987eef39fcb2bd197f02 10.99.7.2  26
cyclone-action   15 0110987eef39fcb2bd197f02 0110753a9b368644215b55eb 10.99.7.1  27
cyclone-chatter  31 0110dca34d578009447423a3 01108c38c6eb31ef050f5d67 10.99.7.2  19
cyclone-chatter  31 01108c38c6eb31ef050f5d67 0110dca34d578009447423a3 10.99.7.1  19
cyclone-large    21 0110cb690db823298059a829 01100305048f7d8a5ff3749d 10.99.7.2  19
cyclone-large    21 01100305048f7d8a5ff3749d 0110cb690db823298059a829 10.99.7.1  19
cyclone-latched  19 01100457365671825344e158 0110edc8fed16fd633fc4587 10.99.7.2   7
cyclone-latched  19 0110edc8fed16fd633fc4587 01100457365671825344e158 10.99.7.1   7
cyclone-param    17 0110950ffc45c94226315852 01106c5ea6b37895af07ecc6 10.99.7.2  18
cyclone-param    17 01106c5ea6b37895af07ecc6 0110950ffc45c94226315852 10.99.7.1  19
cyclone-param    17 01106943e540cdafb60aa002 01106c5ea6b37895af07ecc6 10.99.7.2   6
cyclone-service  13 01103e8814e443a454ebf883 01102700526fc35198ae6574 10.99.7.2  20
fastdds-action   16 010f8b5b57136a8400000000 010f7b613d13ca0100000000 10.99.7.2  26
fastdds-action   16 010f7b613d13ca0100000000 010f8b5b57136a8400000000 10.99.7.1  27
fastdds-chatter  32 010f8b5bbe2289df00000000 010f7b619b22a85800000000 10.99.7.2  19
fastdds-chatter  32 010f7b619b22a85800000000 010f8b5bbe2289df00000000 10.99.7.1  19
fastdds-large    22 010f8b5bfa193d5e00000000 010f7b61f919ea1a00000000 10.99.7.2  19
fastdds-large    22 010f7b61f919ea1a00000000 010f8b5bfa193d5e00000000 10.99.7.1  19
fastdds-latched  20 010f8b5b6a18aadb00000000 010f7b6149185cce00000000 10.99.7.2   7
fastdds-latched  20 010f7b6149185cce00000000 010f8b5b6a18aadb00000000 10.99.7.1   7
fastdds-param    18 010f8b5b0316409200000100 010f7b61e11589d400000000 10.99.7.2  18
fastdds-param    18 010f7b61e11589d400000000 010f8b5b0316409200000100 10.99.7.1  19
fastdds-param    18 010f8b5b0316409200000000 010f7b61e11589d400000000 10.99.7.2   6
fastdds-service  14 010f8b5b8611795500000000 010f7b616f11c86200000000 10.99.7.2  20
fastdds-service  14 010f7b616f11c86200000000 010f8b5b8611795500000000 10.99.7.1  20
";

fn recorded_graphs() -> impl Iterator<Item = RecordedGraph> {
    RECORDED_GRAPHS.lines().map(|line| {
        let row: Vec<_> = line.split_whitespace().collect();
        let [name, domain_id, them, us, our_ip, endpoints] = row[..] else {
            panic!("{line}");
        };
        RecordedGraph {
            name,
            domain_id: domain_id.parse().unwrap(),
            them,
            us,
            our_ip: our_ip.parse::<Ipv4Addr>().unwrap().octets(),
            endpoints: endpoints.parse().unwrap(),
        }
    })
}

/// The watched talkers, with the ports of their locators.
const TALKERS: [(&str, VendorId, u16); 2] = [
    ("0110dca34d578009447423a3", VendorId::CYCLONE, 15160),
    ("010f8b5bbe2289df00000000", VendorId::FAST_DDS, 15410),
];

#[test]
fn every_recorded_node_is_discovered_with_all_its_endpoints_and_disposed() {
    for scene in recorded_graphs() {
        let seen = replay(&scene, None);
        let announced = |wanted: fn(&ParticipantEvent) -> bool| {
            seen.events.iter().filter(|e| wanted(e)).count()
        };
        let name = (scene.name, scene.them);
        let found = |e: &ParticipantEvent| matches!(e, ParticipantEvent::ParticipantDiscovered(_));
        let endpoints = |e: &ParticipantEvent| matches!(e, ParticipantEvent::EndpointDiscovered(_));
        assert_eq!(announced(found), 1, "{name:?}");
        assert_eq!(announced(endpoints), scene.endpoints, "{name:?}");
        assert_eq!(seen.machine.stats().malformed, 0, "{name:?}");
        assert_eq!(seen.machine.stats().impersonation, 0, "{name:?}");
        let last = seen.events.last();
        let dispose = ParticipantEvent::ParticipantLost {
            prefix: prefix(scene.them),
            reason: LostReason::Disposed,
        };
        assert_eq!(last, Some(&dispose), "{name:?}");
        assert_eq!(seen.machine.endpoints().remotes().count(), 0, "{name:?}");
    }
}

#[test]
fn a_recorded_talker_matches_our_listener_and_is_answered_at_its_locator() {
    for (them, vendor, port) in TALKERS {
        let mut graphs = recorded_graphs();
        let scene = graphs.find(|scene| scene.them == them).unwrap();
        let guid = prefix(scene.us).with(EntityId::new([0, 0, 9], EntityId::KIND_READER_NO_KEY));
        let listener = EndpointData::new(
            guid,
            "rt/chatter",
            "std_msgs::msg::dds_::String_",
            EndpointQos::default(),
        );
        let seen = replay(&scene, Some(listener));
        let matched = seen.events.iter().find_map(|event| match event {
            ParticipantEvent::Matched {
                local,
                remote,
                route,
                vendor,
            } => Some((*local, remote.clone(), route.clone(), *vendor)),
            _ => None,
        });
        let (local, remote, route, theirs) = matched.expect("a match");
        assert_eq!((local, theirs), (guid, vendor));
        assert!(remote.qos.user_data.starts_with(b"typehash=RIHS01_"));
        assert_eq!(*route.locators, [Locator::udp_v4([10, 99, 7, 1], port + 1)]);
        assert!(!route.is_same_host());
        let metatraffic = Locator::udp_v4([10, 99, 7, 1], port);
        assert!(seen.sent_to.contains(&metatraffic));
        assert!(seen.sent_to.iter().all(|to| *to == metatraffic));
    }
}

#[test]
fn damaged_recordings_are_harmless() {
    let mut random = 0x1234_5678_9abc_def1u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for scene in recorded_graphs() {
        let mut machine = Participant::new(
            Instant::ZERO,
            ParticipantConfig::new(prefix(scene.us), scene.domain_id),
        );
        let recorded = load(scene.name);
        let theirs = recorded
            .iter()
            .filter(|d| d.message.len() < 2_000 && sender(d) == prefix(scene.them));
        for datagram in theirs {
            let now = time(datagram);
            for round in 0..30 {
                let mut bytes = datagram.message.clone();
                for _ in 0..round % 4 {
                    let at = 20 + next() as usize % (bytes.len() - 20);
                    bytes[at] = next() as u8;
                }
                let Ok(reader) = MessageReader::new(&bytes, prefix(scene.us)) else {
                    continue;
                };
                for (source, submessage) in reader {
                    machine.handle_submessage(now, None, &source, &submessage);
                }
                machine.handle_timeout(now);
                while machine.poll_event().is_some() {}
                let mut out = Outbox::new();
                machine.poll_transmit(now, &mut out);
                assert!(out.len() < 64);
            }
        }
        assert!(machine.participants().count() <= 1);
        assert!(machine.endpoints().remotes().count() <= 1024);
    }
}
