//! Replay of recorded graphs of other stacks. Everything that one node sent is
//! given to a participant in place of the other node. It must discover the
//! participant and all its endpoints, match, and notice the dispose.

mod vectors;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, NetworkScope, OwnAddress};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{LostReason, Participant, ParticipantConfig, ParticipantEvent};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
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
            ip: scene.our_ip,
            prefix_length: 24,
        }],
        local_only: false,
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
        let mut out = Outbox::new();
        seen.machine.poll_transmit(now, &mut out);
        for sent in out.iter() {
            seen.sent_to.extend_from_slice(sent.to);
        }
    }
    seen
}

/// Counts are tshark's: distinct PID_ENDPOINT_GUIDs of each sender.
const RECORDED_GRAPHS: &[RecordedGraph] = &[
    RecordedGraph {
        name: "cyclone-action",
        domain_id: 15,
        them: "0110753a9b368644215b55eb",
        us: "0110987eef39fcb2bd197f02",
        our_ip: [10, 99, 7, 2],
        endpoints: 26,
    },
    RecordedGraph {
        name: "cyclone-action",
        domain_id: 15,
        them: "0110987eef39fcb2bd197f02",
        us: "0110753a9b368644215b55eb",
        our_ip: [10, 99, 7, 1],
        endpoints: 27,
    },
    RecordedGraph {
        name: "cyclone-chatter",
        domain_id: 31,
        them: "0110dca34d578009447423a3",
        us: "01108c38c6eb31ef050f5d67",
        our_ip: [10, 99, 7, 2],
        endpoints: 19,
    },
    RecordedGraph {
        name: "cyclone-chatter",
        domain_id: 31,
        them: "01108c38c6eb31ef050f5d67",
        us: "0110dca34d578009447423a3",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "cyclone-large",
        domain_id: 21,
        them: "0110cb690db823298059a829",
        us: "01100305048f7d8a5ff3749d",
        our_ip: [10, 99, 7, 2],
        endpoints: 19,
    },
    RecordedGraph {
        name: "cyclone-large",
        domain_id: 21,
        them: "01100305048f7d8a5ff3749d",
        us: "0110cb690db823298059a829",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "cyclone-latched",
        domain_id: 19,
        them: "01100457365671825344e158",
        us: "0110edc8fed16fd633fc4587",
        our_ip: [10, 99, 7, 2],
        endpoints: 7,
    },
    RecordedGraph {
        name: "cyclone-latched",
        domain_id: 19,
        them: "0110edc8fed16fd633fc4587",
        us: "01100457365671825344e158",
        our_ip: [10, 99, 7, 1],
        endpoints: 7,
    },
    RecordedGraph {
        name: "cyclone-param",
        domain_id: 17,
        them: "0110950ffc45c94226315852",
        us: "01106c5ea6b37895af07ecc6",
        our_ip: [10, 99, 7, 2],
        endpoints: 18,
    },
    RecordedGraph {
        name: "cyclone-param",
        domain_id: 17,
        them: "01106c5ea6b37895af07ecc6",
        us: "0110950ffc45c94226315852",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "cyclone-param",
        domain_id: 17,
        them: "01106943e540cdafb60aa002",
        us: "01106c5ea6b37895af07ecc6",
        our_ip: [10, 99, 7, 2],
        endpoints: 6,
    },
    RecordedGraph {
        name: "cyclone-service",
        domain_id: 13,
        them: "01103e8814e443a454ebf883",
        us: "01102700526fc35198ae6574",
        our_ip: [10, 99, 7, 2],
        endpoints: 20,
    },
    RecordedGraph {
        name: "fastdds-action",
        domain_id: 16,
        them: "010f8b5b57136a8400000000",
        us: "010f7b613d13ca0100000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 26,
    },
    RecordedGraph {
        name: "fastdds-action",
        domain_id: 16,
        them: "010f7b613d13ca0100000000",
        us: "010f8b5b57136a8400000000",
        our_ip: [10, 99, 7, 1],
        endpoints: 27,
    },
    RecordedGraph {
        name: "fastdds-chatter",
        domain_id: 32,
        them: "010f8b5bbe2289df00000000",
        us: "010f7b619b22a85800000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 19,
    },
    RecordedGraph {
        name: "fastdds-chatter",
        domain_id: 32,
        them: "010f7b619b22a85800000000",
        us: "010f8b5bbe2289df00000000",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "fastdds-large",
        domain_id: 22,
        them: "010f8b5bfa193d5e00000000",
        us: "010f7b61f919ea1a00000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 19,
    },
    RecordedGraph {
        name: "fastdds-large",
        domain_id: 22,
        them: "010f7b61f919ea1a00000000",
        us: "010f8b5bfa193d5e00000000",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "fastdds-latched",
        domain_id: 20,
        them: "010f8b5b6a18aadb00000000",
        us: "010f7b6149185cce00000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 7,
    },
    RecordedGraph {
        name: "fastdds-latched",
        domain_id: 20,
        them: "010f7b6149185cce00000000",
        us: "010f8b5b6a18aadb00000000",
        our_ip: [10, 99, 7, 1],
        endpoints: 7,
    },
    RecordedGraph {
        name: "fastdds-param",
        domain_id: 18,
        them: "010f8b5b0316409200000100",
        us: "010f7b61e11589d400000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 18,
    },
    RecordedGraph {
        name: "fastdds-param",
        domain_id: 18,
        them: "010f7b61e11589d400000000",
        us: "010f8b5b0316409200000100",
        our_ip: [10, 99, 7, 1],
        endpoints: 19,
    },
    RecordedGraph {
        name: "fastdds-param",
        domain_id: 18,
        them: "010f8b5b0316409200000000",
        us: "010f7b61e11589d400000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 6,
    },
    RecordedGraph {
        name: "fastdds-service",
        domain_id: 14,
        them: "010f8b5b8611795500000000",
        us: "010f7b616f11c86200000000",
        our_ip: [10, 99, 7, 2],
        endpoints: 20,
    },
    RecordedGraph {
        name: "fastdds-service",
        domain_id: 14,
        them: "010f7b616f11c86200000000",
        us: "010f8b5b8611795500000000",
        our_ip: [10, 99, 7, 1],
        endpoints: 20,
    },
];

const TALKER_GRAPHS: &[(RecordedGraph, VendorId, u16)] = &[
    (
        RecordedGraph {
            name: "cyclone-chatter",
            domain_id: 31,
            them: "0110dca34d578009447423a3",
            us: "01108c38c6eb31ef050f5d67",
            our_ip: [10, 99, 7, 2],
            endpoints: 19,
        },
        VendorId::CYCLONE,
        15160,
    ),
    (
        RecordedGraph {
            name: "fastdds-chatter",
            domain_id: 32,
            them: "010f8b5bbe2289df00000000",
            us: "010f7b619b22a85800000000",
            our_ip: [10, 99, 7, 2],
            endpoints: 19,
        },
        VendorId::FAST_DDS,
        15410,
    ),
];

#[test]
fn every_recorded_node_is_discovered_with_all_its_endpoints_and_disposed() {
    for scene in RECORDED_GRAPHS {
        let seen = replay(scene, None);
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
        assert_eq!(seen.machine.remote_endpoints().count(), 0, "{name:?}");
    }
}

#[test]
fn a_recorded_talker_matches_our_listener_and_is_answered_at_its_locator() {
    for (scene, vendor, port) in TALKER_GRAPHS {
        let guid = prefix(scene.us).with(EntityId::new([0, 0, 9], EntityId::KIND_READER_NO_KEY));
        let listener = EndpointData::new(
            guid,
            "rt/chatter",
            "std_msgs::msg::dds_::String_",
            EndpointQos::default(),
        );
        let seen = replay(scene, Some(listener));
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
        assert_eq!((local, theirs), (guid, *vendor));
        assert!(remote.qos.user_data.starts_with(b"typehash=RIHS01_"));
        assert_eq!(*route.locators, [Locator::udp_v4([10, 99, 7, 1], port + 1)]);
        assert!(!route.is_same_host());
        let metatraffic = Locator::udp_v4([10, 99, 7, 1], *port);
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
    for scene in RECORDED_GRAPHS {
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
        assert!(machine.remote_endpoints().count() <= 1024);
    }
}
