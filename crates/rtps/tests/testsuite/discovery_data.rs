//! Encoding of discovery data: round trip of every policy, both byte orders,
//! defaults for omitted parameters, limits.

use bytes::Bytes;
use pteros_rtps::content_filter::ContentFilterProperty;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData, ParticipantMessageData, limits};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, ProtocolVersion, VendorId};
use pteros_rtps::locator::Locator;
use pteros_rtps::qos::{
    DestinationOrder, Durability, DurabilityService, EndpointQos, History, Liveliness, Ownership,
    Presentation, Reliability, ResourceLimits, XCDR1, XCDR2,
};
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{WireError, pid};

const PREFIX: GuidPrefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
const WRITER: Guid = PREFIX.with(EntityId::new([0, 0, 6], EntityId::KIND_WRITER_NO_KEY));
const READER: Guid = PREFIX.with(EntityId::new([0, 0, 5], EntityId::KIND_READER_NO_KEY));

/// A parameter list made by hand, in either byte order.
struct List {
    bytes: Vec<u8>,
    big: bool,
}

impl List {
    fn new(big: bool) -> Self {
        let bytes = vec![0, if big { 2 } else { 3 }, 0, 0];
        Self { bytes, big }
    }

    fn number(&self, value: u32) -> [u8; 4] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn raw(mut self, id: u16, value: &[u8]) -> Self {
        let length = value.len().next_multiple_of(4);
        for half in [id, length as u16] {
            let half = if self.big {
                half.to_be_bytes()
            } else {
                half.to_le_bytes()
            };
            self.bytes.extend_from_slice(&half);
        }
        self.bytes.extend_from_slice(value);
        self.bytes
            .resize(self.bytes.len() + length - value.len(), 0);
        self
    }

    fn numbers(self, id: u16, values: &[u32]) -> Self {
        let value: Vec<u8> = values.iter().flat_map(|v| self.number(*v)).collect();
        self.raw(id, &value)
    }

    fn text(self, id: u16, text: &str) -> Self {
        let mut value = self.number(text.len() as u32 + 1).to_vec();
        value.extend_from_slice(text.as_bytes());
        value.push(0);
        self.raw(id, &value)
    }

    fn guid(self, id: u16, guid: Guid) -> Self {
        self.raw(id, &guid.to_bytes())
    }

    fn end(self) -> Vec<u8> {
        self.raw(pid::SENTINEL, &[]).bytes
    }
}

fn smallest(guid: Guid, big: bool) -> List {
    List::new(big)
        .guid(pid::ENDPOINT_GUID, guid)
        .text(pid::TOPIC_NAME, "rt/chatter")
        .text(pid::TYPE_NAME, "std_msgs::msg::dds_::String_")
}

#[test]
fn a_writer_belongs_to_no_publisher_of_another_participant() {
    let of = |prefix: GuidPrefix| {
        let group = prefix.with(EntityId::new([0, 0, 7], EntityId::KIND_WRITER_GROUP));
        let payload = List::new(false)
            .raw(pid::ENDPOINT_GUID, &WRITER.to_bytes())
            .text(pid::TOPIC_NAME, "rt/a")
            .text(pid::TYPE_NAME, "T")
            .raw(pid::GROUP_GUID, &group.to_bytes())
            .end();
        (EndpointData::parse(&payload).unwrap().group, group)
    };
    let (read, own) = of(PREFIX);
    assert_eq!(read, Some(own));
    assert_eq!(of(GuidPrefix([9; 12])).0, None);
}

#[test]
fn a_group_is_named_by_its_entity_id_or_its_guid() {
    let entity = EntityId::new([0, 0, 7], EntityId::KIND_WRITER_GROUP);
    let other = EntityId::new([0, 0, 8], EntityId::KIND_WRITER_GROUP);
    let group = |list: List| EndpointData::parse(&list.end()).unwrap().group;
    for big in [false, true] {
        let start = || smallest(WRITER, big);
        let by_id = |list: List, id: EntityId| list.raw(pid::GROUP_ENTITYID, &id.to_bytes());
        assert_eq!(group(start()), None);
        assert_eq!(group(by_id(start(), entity)), Some(PREFIX.with(entity)));
        assert_eq!(group(by_id(start(), EntityId::UNKNOWN)), None);
        // The GUID decides, wherever it stands.
        let guid = start().guid(pid::GROUP_GUID, PREFIX.with(entity));
        assert_eq!(group(by_id(guid, other)), Some(PREFIX.with(entity)));
        let guid_last = by_id(start(), other).guid(pid::GROUP_GUID, PREFIX.with(entity));
        assert_eq!(group(guid_last), Some(PREFIX.with(entity)));
    }
}

#[test]
fn every_policy_survives() {
    let qos = EndpointQos {
        reliability: Reliability::BestEffort,
        max_blocking_time: Duration::from_millis(250),
        durability: Durability::Persistent,
        history: History::KeepLast(77),
        resource_limits: ResourceLimits {
            max_samples: Some(100),
            max_instances: None,
            max_samples_per_instance: Some(3),
        },
        deadline: Duration::from_millis(10),
        lifespan: Duration::from_secs(3),
        liveliness: Liveliness::ManualByTopic,
        lease_duration: Duration::from_nanos(1),
        latency_budget: Duration::from_micros(5),
        destination_order: DestinationOrder::BySource,
        ownership: Ownership::Exclusive,
        ownership_strength: -4,
        presentation: Presentation {
            access_scope: 2,
            coherent: true,
            ordered: false,
        },
        partition: vec!["".into(), "robot*".into()],
        time_based_filter: Duration::ZERO,
        transport_priority: 9,
        durability_service: DurabilityService {
            cleanup_delay: Duration::INFINITE,
            history: History::KeepAll,
            resource_limits: ResourceLimits::default(),
        },
        representation: vec![XCDR1, XCDR2],
        user_data: b"typehash=RIHS01_00;".to_vec(),
        topic_data: vec![1],
        group_data: vec![2, 3, 4, 5, 6],
    };
    let writer = EndpointData {
        unicast: vec![Locator::udp_v4([10, 0, 0, 1], 7411)],
        multicast: vec![Locator::udp_v4([239, 255, 0, 2], 7401)],
        max_serialized_size: Some(24),
        type_information: Some(Bytes::from_static(&[1, 2, 3, 4])),
        group: Some(
            WRITER
                .prefix
                .with(EntityId::new([0, 0, 7], EntityId::KIND_WRITER_GROUP)),
        ),
        stalled_readers: vec![READER, WRITER],
        ..EndpointData::new(
            WRITER,
            "rt/chatter",
            "std_msgs::msg::dds_::String_",
            qos.clone(),
        )
    };
    assert_eq!(EndpointData::parse(&writer.encode()), Ok(writer.clone()));

    let reader = EndpointData {
        guid: READER,
        expects_inline_qos: true,
        content_filter: Some(ContentFilterProperty::new(
            "rt/chatter",
            "data LIKE %0 AND data <> 'it''s'",
            &["'Hello%'".into(), "7".into()],
        )),
        undecodable: vec![(WRITER, 3), (READER, u32::MAX)],
        qos: EndpointQos {
            time_based_filter: Duration::from_millis(100),
            lifespan: Duration::INFINITE,
            ownership_strength: 0,
            durability_service: DurabilityService::default(),
            ..qos
        }
        .into(),
        ..writer
    };
    assert_eq!(EndpointData::parse(&reader.encode()), Ok(reader));
}

/// Vendors give their own parameters what ids they like.
#[test]
fn stalled_readers_are_read_from_our_announcements_alone() {
    let list = |vendor: [u8; 2]| {
        let list = smallest(WRITER, false)
            .raw(pid::VENDOR_ID, &vendor)
            .raw(pid::PTEROS_STALLED_READERS, &READER.to_bytes());
        EndpointData::parse(&list.end())
    };
    let ours = list(VendorId::PTEROS.0).unwrap();
    assert_eq!(ours.stalled_readers, [READER]);
    let of_nobody = smallest(WRITER, false).raw(pid::PTEROS_STALLED_READERS, &READER.to_bytes());
    let of_nobody = EndpointData::parse(&of_nobody.end()).unwrap();
    assert_eq!(of_nobody.stalled_readers, []);
    assert_eq!(list([1, 0x10]).unwrap().stalled_readers, []);
    let many = READER.to_bytes().repeat(40);
    let list = smallest(WRITER, false)
        .raw(pid::VENDOR_ID, &VendorId::PTEROS.0)
        .raw(pid::PTEROS_STALLED_READERS, &many);
    let data = EndpointData::parse(&list.end()).unwrap();
    assert_eq!(data.stalled_readers.len(), limits::STALLED_READERS);
}

#[test]
fn counts_of_undecodable_samples_are_read_from_our_announcements_alone() {
    let of_writer = [&WRITER.to_bytes()[..], &3u32.to_le_bytes()].concat();
    let list = |vendor: [u8; 2], value: &[u8]| {
        let list = smallest(READER, false)
            .raw(pid::VENDOR_ID, &vendor)
            .raw(pid::PTEROS_UNDECODABLE, value);
        EndpointData::parse(&list.end())
    };
    let ours = VendorId::PTEROS.0;
    assert_eq!(list(ours, &of_writer).unwrap().undecodable, [(WRITER, 3)]);
    assert_eq!(list([1, 0x10], &of_writer).unwrap().undecodable, []);
    assert!(list(ours, &of_writer[..16]).is_err());
    let many = list(ours, &of_writer.repeat(40)).unwrap();
    assert_eq!(many.undecodable.len(), limits::UNDECODABLE_WRITERS);
}

#[test]
fn omitted_policies_have_the_dds_defaults() {
    let writer = EndpointData::parse(&smallest(WRITER, false).end()).unwrap();
    assert_eq!(writer.qos.reliability, Reliability::Reliable);
    assert_eq!(writer.qos.history, History::KeepLast(1));
    let reader = EndpointData::parse(&smallest(READER, false).end()).unwrap();
    assert_eq!(reader.qos.reliability, Reliability::BestEffort);
    assert_eq!(reader.qos.durability, Durability::Volatile);
    assert_eq!(reader.qos.deadline, Duration::INFINITE);
    assert_eq!(reader.topic, "rt/chatter");
}

/// As Cyclone DDS does. Dust DDS misreads an infinite duration.
#[test]
fn policies_with_the_defaults_of_dds_are_not_announced() {
    let policies = [
        pid::RELIABILITY,
        pid::DURABILITY,
        pid::DEADLINE,
        pid::LATENCY_BUDGET,
        pid::LIVELINESS,
        pid::OWNERSHIP,
        pid::OWNERSHIP_STRENGTH,
        pid::DESTINATION_ORDER,
        pid::PRESENTATION,
        pid::LIFESPAN,
        pid::HISTORY,
        pid::TIME_BASED_FILTER,
        pid::PARTITION,
        pid::TRANSPORT_PRIORITY,
    ];
    let announced = |guid: Guid, qos: EndpointQos| {
        let data = EndpointData::new(guid, "rt/chatter", "T", qos);
        let payload = data.encode();
        assert_eq!(EndpointData::parse(&payload), Ok(data));
        let mut found: Vec<u16> = Vec::new();
        let mut list = &payload[4..];
        while let [a, b, c, d, rest @ ..] = list {
            let id = u16::from_le_bytes([*a, *b]);
            found.extend(policies.iter().copied().find(|policy| *policy == id));
            list = &rest[usize::from(u16::from_le_bytes([*c, *d]))..];
        }
        found
    };
    let defaults = |reliability| EndpointQos {
        reliability,
        history: History::KeepLast(1),
        ..EndpointQos::default()
    };
    // Fast DDS takes a writer without durability for transient-local.
    let writer = announced(WRITER, defaults(Reliability::Reliable));
    assert_eq!(writer, [pid::DURABILITY]);
    let reader = announced(READER, defaults(Reliability::BestEffort));
    assert_eq!(reader, [pid::DURABILITY]);
    // Those of a reader are not those of a writer.
    let other_kind = [pid::RELIABILITY, pid::DURABILITY];
    let writer = announced(WRITER, defaults(Reliability::BestEffort));
    assert_eq!(writer, other_kind);
    let reader = announced(READER, defaults(Reliability::Reliable));
    assert_eq!(reader, other_kind);
    let short = Duration::from_secs(1);
    let others = EndpointQos {
        max_blocking_time: short,
        deadline: short,
        latency_budget: short,
        lease_duration: short,
        lifespan: short,
        ownership: Ownership::Exclusive,
        destination_order: DestinationOrder::BySource,
        presentation: Presentation {
            access_scope: 0,
            coherent: false,
            ordered: true,
        },
        ..EndpointQos::default()
    };
    assert_eq!(announced(WRITER, others).len(), 10);
    // A usual publisher of ROS 2.
    let usual = EndpointData::new(
        WRITER,
        "rt/chatter",
        "std_msgs::msg::dds_::String_",
        EndpointQos {
            user_data: [b"typehash=RIHS01_".as_slice(), &[b'0'; 64], b";"].concat(),
            representation: vec![0],
            ..EndpointQos::default()
        },
    );
    assert_eq!(usual.encode().len(), 268);
}

#[test]
fn both_byte_orders_parse_to_the_same() {
    let list = |big| {
        let list = smallest(WRITER, big)
            .numbers(pid::RELIABILITY, &[1, 0, 1 << 31])
            .numbers(pid::DURABILITY, &[1])
            .numbers(pid::LIVELINESS, &[2, 3, 0])
            .numbers(pid::DEADLINE, &[0x7fff_ffff, 0xffff_ffff])
            .numbers(pid::HISTORY, &[0, 12])
            .numbers(pid::RESOURCE_LIMITS, &[5, u32::MAX, u32::MAX])
            .numbers(pid::DURABILITY_SERVICE, &[1, 0, 0, 4, u32::MAX, 2, 3])
            .numbers(pid::OWNERSHIP, &[1])
            .numbers(pid::DESTINATION_ORDER, &[1]);
        let mut user_data = list.number(3).to_vec();
        user_data.extend_from_slice(b"abc");
        let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 7];
        let locator = [&list.number(1)[..], &list.number(7411)[..], &address].concat();
        list.raw(pid::USER_DATA, &user_data)
            .raw(pid::UNICAST_LOCATOR, &locator)
            .end()
    };
    let little = EndpointData::parse(&list(false)).unwrap();
    let big = EndpointData::parse(&list(true)).unwrap();
    assert_eq!(little, big);
    assert_eq!(big.qos.reliability, Reliability::BestEffort);
    assert_eq!(big.qos.max_blocking_time, Duration::from_millis(500));
    assert_eq!(big.qos.lease_duration, Duration::from_secs(3));
    assert_eq!(big.qos.resource_limits.max_samples, Some(5));
    assert_eq!(big.qos.durability_service.history, History::KeepLast(4));
    assert_eq!(big.qos.user_data, b"abc");
    assert_eq!(big.unicast, [Locator::udp_v4([10, 0, 0, 7], 7411)]);
}

/// The same parameter id has another meaning for each vendor. A participant with an
/// invalid value is discovered as any other.
#[test]
fn each_vendor_announces_its_product_version_in_its_own_parameter() {
    let announced = |vendor: [u8; 2], id: u16, value: &[u8]| {
        let list = List::new(false)
            .raw(id, value)
            .guid(pid::PARTICIPANT_GUID, PREFIX.with(EntityId::PARTICIPANT))
            .raw(pid::VENDOR_ID, &vendor)
            .end();
        let data = ParticipantData::parse(&list).unwrap();
        data.product.map(|product| product.to_string())
    };
    let is = |text: &str| Some(String::from(text));
    let (pteros, fast, rti, cyclone) = ([1, 0x50], [1, 0x0f], [1, 1], [1, 0x10]);
    assert_eq!(announced(fast, 0x8000, &[3, 2, 1, 0]), is("3.2.1"));
    assert_eq!(announced(rti, 0x8000, &[7, 3, 0, 2]), is("7.3.0.2"));
    assert_eq!(announced(pteros, 0x8000, &[0, 1, 0, 0]), is("0.1.0"));
    let info = |text: &str| {
        let mut bytes = vec![0; 20];
        bytes.extend((text.len() as u32 + 1).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.push(0);
        bytes
    };
    let of_cyclone = |bytes: &[u8]| announced(cyclone, 0x8007, bytes);
    assert_eq!(of_cyclone(&info("host/11.0.1/Linux/Linux")), is("11.0.1"));
    for text in [
        "",
        "/",
        "host/many.of.them/Linux",
        "no slashes",
        "a/1.2.3.4.5/b",
    ] {
        assert_eq!(of_cyclone(&info(text)), None, "{text}");
    }
    let mut long = info("host/1.2.3/Linux");
    long[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    for bytes in [&long[..], &long[..20], &[0; 4], &[]] {
        assert_eq!(of_cyclone(bytes), None);
    }
    // For other vendors it is not a version.
    assert_eq!(announced(cyclone, 0x8000, &[3, 2, 1, 0]), None);
    assert_eq!(announced(fast, 0x8007, &info("host/1.2.3/Linux")), None);
    assert_eq!(announced([9, 9], 0x8000, &[3, 2, 1, 0]), None);
    assert_eq!(announced(fast, 0x8000, &[]), None);
}

#[test]
fn a_participant_survives_and_is_read_from_big_endian() {
    let participant = ParticipantData {
        domain_id: Some(7),
        domain_tag: Some("lab".into()),
        builtin_endpoints: 0xc3f,
        builtin_qos: 1,
        metatraffic_unicast: vec![Locator::udp_v4([10, 0, 0, 1], 7410)],
        metatraffic_multicast: vec![Locator::udp_v4([239, 255, 0, 1], 7400)],
        default_unicast: vec![Locator::udp_v4([10, 0, 0, 1], 7411)],
        default_multicast: vec![Locator::udp_v4([239, 255, 0, 1], 7401)],
        lease: Duration::from_secs(20),
        manual_liveliness_count: 3,
        user_data: b"enclave=/;".to_vec(),
        entity_name: Some("/".into()),
        properties: vec![("a".into(), "".into()), ("bcd".into(), "efghi".into())],
        expects_inline_qos: true,
        security_tokens: vec![(pid::IDENTITY_TOKEN, Bytes::from_static(&[7; 12]))],
        ..ParticipantData::new(PREFIX)
    };
    assert_eq!(
        ParticipantData::parse(&participant.encode()),
        Ok(participant)
    );

    let big = List::new(true)
        .raw(pid::PROTOCOL_VERSION, &[2, 1])
        .raw(pid::VENDOR_ID, &[1, 0x10])
        .guid(pid::PARTICIPANT_GUID, PREFIX.with(EntityId::PARTICIPANT))
        .numbers(pid::BUILTIN_ENDPOINT_SET, &[0xc3f])
        .numbers(pid::PARTICIPANT_LEASE_DURATION, &[10, 0])
        .numbers(pid::DOMAIN_ID, &[5])
        .end();
    let big = ParticipantData::parse(&big).unwrap();
    assert_eq!((big.prefix, big.vendor), (PREFIX, VendorId::CYCLONE));
    assert_eq!(big.version, ProtocolVersion { major: 2, minor: 1 });
    assert_eq!((big.builtin_endpoints, big.domain_id), (0xc3f, Some(5)));
    assert_eq!(big.lease, Duration::from_secs(10));
}

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    let list = |id| smallest(WRITER, false).raw(id, &[1, 2, 3, 4]).end();
    for id in [pid::PAD, 0x0090, 0x3fff, 0x8003, 0x800c, 0x8007] {
        assert!(EndpointData::parse(&list(id)).is_ok(), "{id:04x}");
    }
    for id in [0x4090, 0xc001] {
        assert_eq!(
            EndpointData::parse(&list(id)),
            Err(WireError::NotUnderstood(id))
        );
    }
}

#[test]
fn missing_and_malformed_parameters_are_named() {
    let parse = |list: List| EndpointData::parse(&list.end()).map(|_| ());
    let nameless = List::new(false).guid(pid::ENDPOINT_GUID, WRITER);
    let missing = WireError::MissingParameter;
    assert_eq!(parse(List::new(false)), Err(missing(pid::ENDPOINT_GUID)));
    assert_eq!(parse(nameless), Err(missing(pid::TOPIC_NAME)));
    let malformed = WireError::InvalidParameter;
    for (id, values) in [
        (pid::RELIABILITY, &[7, 0, 0][..]),
        (pid::RELIABILITY, &[1, 0]),
        (pid::DURABILITY, &[9]),
        (pid::LIVELINESS, &[3, 0, 0]),
        (pid::HISTORY, &[2, 1]),
        (pid::USER_DATA, &[5, 0]),
        (pid::UNICAST_LOCATOR, &[1, 2, 3]),
        (pid::PARTITION, &[2, 0]),
        (pid::TOPIC_NAME, &[u32::MAX, 0]),
    ] {
        let list = smallest(WRITER, false).numbers(id, values);
        assert_eq!(parse(list), Err(malformed(id)), "{id:04x} {values:?}");
    }
    // A participant's GUID is no endpoint's.
    let guid = PREFIX.with(EntityId::PARTICIPANT);
    assert_eq!(
        parse(smallest(guid, false)),
        Err(malformed(pid::ENDPOINT_GUID))
    );
    let mut xml = smallest(WRITER, false).end();
    xml[1] = 4;
    assert_eq!(
        EndpointData::parse(&xml),
        Err(WireError::UnsupportedEncapsulation(4))
    );
}

#[test]
fn too_long_matching_data_is_refused_and_other_data_left_out() {
    let long = "x".repeat(limits::NAME_BYTES + 1);
    let list = smallest(WRITER, false).text(pid::TOPIC_NAME, &long).end();
    assert_eq!(
        EndpointData::parse(&list),
        Err(WireError::TooLong(pid::TOPIC_NAME))
    );
    let partitions = vec![u32::MAX];
    let list = smallest(WRITER, false).numbers(pid::PARTITION, &partitions);
    assert_eq!(
        EndpointData::parse(&list.end()),
        Err(WireError::TooLong(pid::PARTITION))
    );

    let chatty = ParticipantData {
        user_data: vec![1; limits::USER_DATA_BYTES + 1],
        entity_name: Some("n".repeat(limits::ENTITY_NAME_BYTES + 1)),
        properties: vec![("p".into(), "v".repeat(limits::PROPERTIES_BYTES))],
        default_unicast: vec![Locator::udp_v4([10, 0, 0, 1], 1); limits::LOCATORS + 1],
        ..ParticipantData::new(PREFIX)
    };
    let read = ParticipantData::parse(&chatty.encode()).unwrap();
    assert!(read.user_data.is_empty() && read.properties.is_empty());
    assert_eq!(read.entity_name, None);
    assert_eq!(read.default_unicast.len(), limits::LOCATORS);
}

#[test]
fn a_key_payload_names_its_entity_and_nothing_else() {
    let key = EndpointData::encode_key(WRITER);
    assert_eq!(EndpointData::parse_key(&key), Some(WRITER));
    let key = ParticipantData::encode_key(PREFIX);
    assert_eq!(
        ParticipantData::parse_key(&key),
        Some(PREFIX.with(EntityId::PARTICIPANT))
    );
    assert_eq!(EndpointData::parse_key(&key), None);
    assert_eq!(EndpointData::parse_key(&[]), None);
}

#[test]
fn a_liveliness_assertion_encodes_prefix_kind_and_length() {
    let message = ParticipantMessageData::liveliness(PREFIX, Liveliness::Automatic);
    let bytes = [
        0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1, 0, 0, 0, 0,
    ];
    assert_eq!(message.encode(), &bytes[..]);
    let read = ParticipantMessageData::parse(&bytes).unwrap();
    assert_eq!(read, message);
    assert_eq!(read.liveliness_kind(), Some(Liveliness::Automatic));
    assert_eq!(read.key_hash(), bytes[4..20]);

    let big = [
        0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 2, 0, 0, 0, 2, 8, 9,
    ];
    let read = ParticipantMessageData::parse(&big).unwrap();
    assert_eq!(
        read.liveliness_kind(),
        Some(Liveliness::ManualByParticipant)
    );
    assert_eq!(read.data, [8, 9]);
}
